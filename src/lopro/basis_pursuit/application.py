"""From a matrix and measurements to a `Problem`, the method that suits it, and its result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lopro.basis_pursuit.loss_search import WorkingSetNewton
from lopro.basis_pursuit.matrix_free import MatrixFree
from lopro.basis_pursuit.penalised import FitMultiplier, PenalisedProblem, sparse_form
from lopro.basis_pursuit.problem import NORMS, BlockNorm, SparseProblem
from lopro.basis_pursuit.sparse_loss import sparse_loss
from lopro.basis_pursuit.working_set import ByProducts, WorkingSet
from lopro.constraints import Box, Constraint, Intersection, ResidualBall, WholeSpace
from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    is_array,
    is_complex,
    namespace,
    norm,
    to_numpy,
    zeros,
)
from lopro.core.deadline import current_deadline
from lopro.core.optional import needing
from lopro.core.validation import check_array, check_number, check_shape
from lopro.driver.printing import in_html
from lopro.driver.result import Result
from lopro.driver.run import Run
from lopro.driver.workbench import Options
from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import GroupNorm
from lopro.maps import linear_map
from lopro.methods import Auto, MultiplierMethod
from lopro.objectives import L1Norm, LeastSquares, Objective, OfAtom, SquaredDistance, Sum
from lopro.problem import Problem
from lopro.protocol import Method
from lopro.solving import run_to_the_end

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BPDNResult",
    "BasisPursuit",
    "LassoPath",
    "LassoResult",
    "ParetoCurve",
    "ProblemData",
    "bpdn_problem",
    "checked_norm",
    "fields_of",
    "from_largest",
    "lasso_problem",
    "solve_one",
]

T = TypeVar("T", bound="BPDNResult")


def fields_of(result: Result) -> dict[str, Any]:
    """Return the fields of a result, for one with more of them."""
    return {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}


@dataclass(frozen=True, repr=False)
class BPDNResult(Result):
    """A `Result` with the dual solution.

    ``dual`` is the multiplier ``nu`` of ``A x = y - r`` scaled to ``|A^H nu|_i <= w_i``; its value
    ``Re <y, nu> - sigma |nu|`` is a lower bound of the optimum, that of the certificate up to rounding. None
    where the certificate has another proof.
    """

    dual: Array | None = None

    @property
    def support(self) -> Array:
        """Indices of the nonzeros of ``x``; of its rows that are not zero, where it has several columns."""
        xp = namespace(self.x)
        return xp.nonzero(self.x if self.x.ndim == 1 else xp.any(self.x != 0.0, axis=1))[0]

    @staticmethod
    def of(result: Result, problem: Problem) -> BPDNResult:
        """Add the dual point that the multiplier of a result stands for."""
        sparse = SparseProblem.of(problem, result.x)
        dual = sparse.dual_point(result.multiplier)
        if dual is not None:
            bound = result.certificate.lower_bound
            proved = -sparse.ball.support_image((-dual,))
            # The point was rounded to the precision of the data after its value had been taken.
            rounding = 8.0 * eps(dual) * norm(sparse.ball.y) * norm(dual)
            # Where it proves less, the bound rests on a radius as well.
            if proved < bound - 1e-12 * abs(bound) - rounding:
                dual = None
        return BPDNResult(**fields_of(result), dual=dual)


@dataclass(frozen=True, repr=False)
class LassoResult(BPDNResult):
    """A `Result` of `lopro.lasso`: ``fun`` is the penalised objective, or with ``tau`` the residual.

    ``dual`` is ``nu``, in all forms the residual over the weight ``lam`` of the penalty:
    ``|A^H nu|_i <= w_i`` (without a ridge). With ``tau``, ``(Re <y, nu> - tau) / |nu|`` is the lower bound,
    and ``curve`` has the points of the Pareto curve that were computed on the way, as pairs of residual and
    norm.
    """

    curve: tuple[tuple[float, float], ...] = ()

    @staticmethod
    def of(result: Result, problem: Problem) -> LassoResult:
        """Add the dual point that the multiplier of a result stands for."""
        form, found = sparse_form(problem), result.multiplier
        assert isinstance(form, PenalisedProblem)
        dual = found.fit / form.lam if isinstance(found, FitMultiplier) else None
        return LassoResult(**fields_of(result), dual=dual)


class LassoPath(list[T]):
    """Results for several weights of the penalty, in the order of these.

    Parameters
    ----------
    results : sequence of LassoResult or LogisticResult
        One for each weight.
    lams : sequence of float
        The weights.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> path = lopro.lasso_path(np.eye(2), np.array([3.0, 4.0]), [4.0, 1.0])
    >>> path.lams, path.coefficients.round(6) + 0.0
    ((4.0, 1.0), array([[0., 0.],
           [2., 3.]]))
    """

    def __init__(self, results: Sequence[T], lams: Sequence[float]) -> None:
        super().__init__(results)
        self.lams = tuple(float(lam) for lam in lams)

    @property
    def coefficients(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """The solutions, one in each row, on the host."""
        return np.stack([to_numpy(result.x) for result in self])


class ParetoCurve(list[BPDNResult]):
    """Results for several radii, in the order of these: a list with what it says of the curve.

    Where ``v(sigma)`` is the least norm, ``v`` is convex and falls, and ``-|nu|`` is its slope, with the dual
    solution ``nu`` at ``sigma``: each result bounds the whole curve from below by a tangent.

    Parameters
    ----------
    results : sequence of BPDNResult
        One for each radius.
    radii : sequence of float
        The radii.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> path = lopro.bpdn_path(np.eye(2), np.array([3.0, 4.0]), [5.0, 0.0])
    >>> path.radii, path.norms.round(6) + 0.0
    ((5.0, 0.0), array([0., 7.]))
    """

    def __init__(self, results: Sequence[BPDNResult], radii: Sequence[float]) -> None:
        super().__init__(results)
        self.radii = tuple(float(radius) for radius in radii)

    def __repr__(self) -> str:
        certified = sum(result.success for result in self)
        return f"ParetoCurve({len(self)} radii, {certified} certified)"

    def _repr_html_(self) -> str:
        """Return a table for notebooks, one row for each radius."""
        rows = [
            [f"{s:.6g}", f"{r.fun:.10g}", f"{r.certificate.relative_gap:.3g}", r.status.name]
            for s, r in zip(self.radii, self, strict=True)
        ]
        heads = ["radius", "least norm", "relative gap", "status"]
        return in_html([["th"] * 4, ["td"] * 4], [heads, *rows])

    @property
    def norms(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The least norm for each radius."""
        return np.array([float(result.fun) for result in self])

    @property
    def slopes(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The slope of the curve at each radius; not a number where there is no dual solution."""
        return np.array([math.nan if r.dual is None else -norm(r.dual) for r in self])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the norms against the radii, with a piece of each tangent; needs matplotlib."""
        if ax is None:
            with needing("plot", "matplotlib", "lopro[plot]"):
                import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
        order = np.argsort(self.radii)
        radii, norms, slopes = np.asarray(self.radii)[order], self.norms[order], self.slopes[order]
        ax.plot(radii, norms, "o-", ms=4, label="least norm")
        reach = 0.05 * float(np.ptp(radii))
        for radius, value, slope in zip(radii, norms, slopes, strict=True):
            if math.isfinite(slope) and reach > 0.0:
                ends = np.array([radius - reach, radius + reach])
                ax.plot(ends, value + slope * (ends - radius), "-", color="0.6", lw=1.0)
        ax.set(xlabel="radius of the residual ball", ylabel="least norm")
        ax.grid(alpha=0.3)
        return ax


class BasisPursuit:
    """The l1 norm over a residual ball, or added to least squares or a logistic loss."""

    name = "basis pursuit denoising, the LASSO or sparse logistic regression"
    objectives: tuple[type[Any], ...] = (*NORMS, Sum)
    methods: dict[str, Any] = {  # noqa: RUF012
        "ByProducts": ByProducts,
        "MatrixFree": MatrixFree,
        "WorkingSet": WorkingSet,
        "WorkingSetNewton": WorkingSetNewton,
    }

    def recognise(self, problem: Problem) -> Method | None:
        """Return the method of `lopro.bpdn` for a problem of this form."""
        if sparse_loss(problem) is not None:
            return WorkingSetNewton()
        form = sparse_form(problem)
        if form is None or form.objective.least_weight <= 0.0:
            return None
        return self.choose(problem) if isinstance(form, SparseProblem) else _fitting(problem)

    def choose(self, problem: Problem) -> Method:
        """Return the method: by columns where ``A`` has some or can be read, matrix-free otherwise."""
        return _fitting(problem) or MultiplierMethod()


def _fitting(problem: Problem) -> Method | None:
    """Return the first of the methods that takes a problem."""
    kinds: tuple[type[Method], ...] = (WorkingSet, ByProducts, MatrixFree)
    for kind in kinds:
        method = kind()
        with suppress(MissingCapabilityError):
            method.check(problem)
            return method
    return None


def bpdn_problem(
    A: Any,
    y: Any,
    sigma: float,
    *,
    weights: Any = None,
    nonneg: bool = False,
    groups: Any = None,
) -> Problem:
    """Return the problem that `bpdn` solves, for use with `lopro.solve` and `lopro.iterate`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.application import bpdn_problem
    >>> bpdn_problem(np.eye(2), np.ones(2), 0.5).shape
    (2,)
    """
    return ProblemData(A, weights, nonneg, groups).problem(y, sigma)


def lasso_problem(
    A: Any,
    y: Any,
    lam: float,
    *,
    weights: Any = None,
    nonneg: bool = False,
    groups: Any = None,
    ridge: float = 0.0,
    square_root: bool = False,
) -> Problem:
    """Return the problem that `lasso` solves for ``lam``, for use with `lopro.solve` and `lopro.iterate`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.application import lasso_problem
    >>> lasso_problem(np.eye(2), np.ones(2), 0.5).objective.value(np.ones(2))
    1.0
    """
    return ProblemData(A, weights, nonneg, groups, ridge, square_root).penalised(y, lam)


def checked_norm(like: Array, d: int, weights: Any, groups: Any = None) -> L1Norm | BlockNorm:
    """Return the weighted l1 norm, or the sum of the lengths of groups."""
    objective: L1Norm | BlockNorm
    if groups is not None:
        objective = BlockNorm(groups, weights)
        check_shape("groups", objective.labels, (d,))
        if len(objective.of_blocks) == d:  # groups of one
            objective = L1Norm(_in_precision_of(like, objective.of_blocks[objective.labels]))
    else:
        objective = L1Norm(_in_precision_of(like, weights), shape=(d,))
    if objective.least_weight <= 0.0:
        raise ValueError("weights must be positive: a coefficient that costs nothing has no bound")
    return objective


def _orthant(like: Array, d: int) -> Box:
    """Return ``x >= 0`` for points of a kind, in their precision."""
    if is_complex(like):
        raise TypeError("nonneg requires real data, got complex A or y")
    return Box(np.zeros(d, dtype=to_numpy(like[:1]).dtype), np.full(d, np.inf))


def _in_precision_of(like: Array, weights: Any) -> Any:
    """Return weights that do not widen the points: the precision of ``A`` and ``y`` decides."""
    if weights is None or getattr(weights, "ndim", np.ndim(weights)) == 0:
        return weights
    checked = check_array("weights", weights, allow_complex=False)
    return asarray_like(checked, abs(like)) if is_array(weights) else to_numpy(checked)


@dataclass(frozen=True, eq=False)
class ProblemData:
    """The data that the problems of one call share: matrix, weights, signs."""

    A: Any
    weights: Any = None
    nonneg: bool = False
    groups: Any = None
    ridge: float = 0.0
    square_root: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "A", linear_map(self.A, "A"))

    def problem(self, y: Array, sigma: float) -> Problem:
        """Return the problem for one right-hand side."""
        ball = ResidualBall(self.A, y, sigma)
        objective = checked_norm(ball.like, ball.A.shape[1], self.weights, self.groups)
        constraint: Constraint = ball
        if self.nonneg:
            constraint = Intersection(ball, _orthant(ball.like, ball.A.shape[1]))
        return Problem(objective, constraint, gap_scale=0.0)

    def penalised(self, y: Array, lam: float) -> Problem:
        """Return the problem with a penalty for one right-hand side."""
        lam = check_number("lam", lam, minimum=0.0, exclusive=True)
        ridge = check_number("ridge", self.ridge, minimum=0.0)
        squares = LeastSquares(self.A, y)
        like, (rows, d) = squares.like, squares.A.shape
        parts: list[Objective] = [squares, lam * checked_norm(like, d, self.weights, self.groups)]
        if ridge > 0.0:
            if self.square_root or self.groups is not None or is_complex(like):
                raise ValueError("ridge is for the LASSO of real data without groups")
            parts.append(ridge * SquaredDistance(zeros((d,), like)))
        if self.square_root:
            if is_complex(like):
                raise TypeError("square_root requires real data, got complex A or y")
            parts[0] = OfAtom(GroupNorm(rows), squares.A, squares.b)
        constraint = _orthant(like, d) if self.nonneg else WholeSpace((d,))
        return Problem(Sum(*parts), constraint, gap_scale=0.0)


def from_largest(
    values: Sequence[float],
    solve: Callable[[int, Array | None], T],
    start: Array | None = None,
    point: Callable[[T], Array] = lambda result: result.x,
) -> list[T]:
    """Solve for the largest value first, each from the last proved solution; results in the order given."""
    results: dict[int, T] = {}
    for i in sorted(range(len(values)), key=lambda i: -values[i]):
        results[i] = solve(i, start)
        if results[i].success:
            start = point(results[i])
    return [results[i] for i in range(len(values))]


def solve_one(problem: Problem, x0: Array | None, method: Method | None, options: Options) -> Any:
    """Solve one problem, by the method that suits it if none is given; return a result of its kind."""
    penalised = isinstance(problem.objective, Sum)
    if method is None:
        method = Auto() if penalised else BasisPursuit().choose(problem)
    kind = LassoResult if penalised else BPDNResult
    if current_deadline().passed:
        # The deadline of the batch has passed: return TIME_LIMIT without evaluating the start.
        run = Run(problem, method, x0, options)
        run.give_up()
        return kind.of(run.result(), problem)
    return kind.of(run_to_the_end(problem, x0, method, options), problem)
