"""The problems of `lopro.bpdn` and `lopro.lasso`, and the choice of their methods."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.losses.search import WorkingSetNewton
from lopro.basis_pursuit.operators.by_products import ByProducts
from lopro.basis_pursuit.operators.matrix_free import MatrixFree
from lopro.basis_pursuit.problem import NORMS, SparseProblem
from lopro.basis_pursuit.recognition import sparse_form, sparse_loss
from lopro.basis_pursuit.results import BPDNResult, LassoResult
from lopro.basis_pursuit.working_set import WorkingSet
from lopro.constraints import Box, Constraint, Intersection, ResidualBall, WholeSpace
from lopro.core.arrays import (
    Array,
    asarray_like,
    is_array,
    is_complex,
    to_numpy,
    zeros,
)
from lopro.core.deadline import current_deadline
from lopro.core.validation import check_array, check_number, check_shape
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
    pass

__all__ = [
    "BasisPursuit",
    "ProblemData",
    "bpdn_problem",
    "checked_norm",
    "lasso_problem",
    "solve_one",
]


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
        """Return the method: by columns where ``A`` has columns or can be read, matrix-free otherwise."""
        return _fitting(problem) or MultiplierMethod()


def _fitting(problem: Problem) -> Method | None:
    """Return the first of the methods that accepts a problem."""
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
        raise ValueError(
            "weights must be positive: a coefficient that is not penalised has no bound"
        )
    return objective


def _orthant(like: Array, d: int) -> Box:
    """Return ``x >= 0`` in the precision of ``like``."""
    if is_complex(like):
        raise TypeError("nonneg requires real data, got complex A or y")
    return Box(np.zeros(d, dtype=to_numpy(like[:1]).dtype), np.full(d, np.inf))


def _in_precision_of(like: Array, weights: Any) -> Any:
    """Return weights in the precision of ``A`` and ``y``, so that they do not widen points."""
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


def solve_one(problem: Problem, x0: Array | None, method: Method | None, options: Options) -> Any:
    """Solve one problem, by the default method if none is given; return a result of its kind."""
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
