"""The state of every search for columns: columns, signs, a solution and the best dual value."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.penalised import PenalisedProblem, sparse_form
from lopro.basis_pursuit.pieces import Vector
from lopro.basis_pursuit.problem import BlockNorm, SparseProblem, images_at
from lopro.basis_pursuit.support_newton import Solution
from lopro.constraints import ResidualBall
from lopro.constraints.base import ValidInequality
from lopro.constraints.pulled_back import stretch_at
from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    from_numpy,
    is_complex,
    is_single,
    norm,
    to_numpy,
    widest,
)
from lopro.core.exact import square_beyond
from lopro.errors import InfeasibleError, StalledError
from lopro.maps import LinearMap
from lopro.maps.algebra import widened
from lopro.objectives import L1Norm
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Evidence, Multiplier, Target, Workbench

__all__ = ["Search", "columns_of", "newton_rounds", "one_nonzero", "thinned"]

#: Share of entries that are not zero up to which products of sparse columns are quicker than dense ones.
_SPARSE = 0.03
#: Of ``|y|``: for a smaller sigma one nonzero is hardly ever enough.
_CLOSE_TO_Y = 0.9
#: Of the rounding of ``|y|^2``: what is less is computed exactly.
_CANCELS = 1e9


def thinned(block: Any) -> Any:
    """Return a sparse block by columns, in double precision, if products with it are quicker that way.

    Otherwise as an array; arrays stay what they are.
    """
    if not scipy.sparse.issparse(block):
        return block
    block = widened(block)
    few = block.nnz <= _SPARSE * math.prod(block.shape)
    return scipy.sparse.csc_array(block) if few else block.toarray()


def columns_of(A: LinearMap, indices: Vector) -> Any:
    """Return columns, as an array or sparse if they are very much so; those of an operator by products."""
    if not A.has_columns:
        units = np.zeros((A.shape[1], len(indices)))
        units[indices, np.arange(len(indices))] = 1.0
        return np.asarray(A.forward(units))
    return thinned(A.columns(indices))


class Search:
    """The state of one search; vectors are NumPy's, in double precision, complex where points are.

    Parameters
    ----------
    problem : Problem
        Checked to be a norm and a residual, with columns.
    target : Target
        The required accuracy.
    """

    #: Columns that are missing: those outside of the set whose correlation is too large.
    missing: Vector
    #: Whether no further progress is possible, or needed.
    done = False

    def __init__(self, problem: Problem, target: Target) -> None:
        self.problem, self.target = problem, target
        # Weights in double precision do not widen points of single precision data.
        columns = problem.shape
        assert columns is not None
        sparse = sparse_form(problem, np.zeros(columns))
        assert sparse is not None
        self.sparse, self.A = sparse, sparse.A
        self._like = like = sparse.like
        self.plain = isinstance(like, np.ndarray) and not is_single(like)
        wide = np.complex128 if is_complex(like) else np.float64
        self.y = to_numpy(sparse.y).astype(wide, copy=False)
        #: Whether there is a bound of the residual, and the bound: any length where it is penalised.
        self.constrained = isinstance(sparse, SparseProblem)
        self.sigma = sparse.ball.sigma if isinstance(sparse, SparseProblem) else math.inf
        self.solution: Solution | None = None
        self.fun = math.inf
        #: Correlations of all columns with ``y``, once they are known.
        self.correlations: Vector = np.empty(0)
        #: About the norm of the matrix, once it is known.
        self._stretch = 0.0
        self.bound, self.proof = -math.inf, sparse.at_zero(sparse.weights)

    @property
    def pursuit(self) -> SparseProblem:
        """The problem, where it has a bound of the residual."""
        assert isinstance(self.sparse, SparseProblem)
        return self.sparse

    @property
    def ball(self) -> ResidualBall:
        """The bound of the residual, where there is one."""
        return self.pursuit.ball

    @property
    def _margin(self) -> float:
        """The distance from the boundary of the ball that keeps the rounded point inside."""
        if self.plain:
            return 0.0
        return min(0.5 * self.sigma, eps(self._like) * float(np.linalg.norm(self.y)))

    @property
    def zero_is_feasible(self) -> bool:
        """Whether ``x = 0`` satisfies a bound of the residual, and so is the solution."""
        return self.constrained and float(np.linalg.norm(self.y)) <= self.sigma

    def learn_units(self, correlations: Vector) -> None:
        """Take the correlations with ``y`` for what they say of the size of the matrix."""
        self.sparse.check_units(correlations, self.y)
        self._stretch = float(np.linalg.norm(correlations)) / (float(np.linalg.norm(self.y)) or 1.0)

    # Requests to the matrix.

    def pulled(self, dual: Vector, *, rough: bool = False) -> Vector:
        """Return the correlations of all columns with a dual point; roughly, in the precision of the data."""
        if self.plain:
            return np.asarray(self.A.adjoint(dual))
        if rough:
            return to_numpy(self.A.adjoint(asarray_like(dual, self.A.like))).astype(np.float64)
        return to_numpy(self.A.adjoint_exactly(from_numpy(dual, self.A.like)))

    def read(self, indices: Vector) -> Array:
        """Return columns: as an array, or sparse if they are very much so."""
        return columns_of(self.A, indices)

    # The bound from a solution on the columns of the set.

    def accept(
        self,
        solution: Solution,
        places: Vector,
        norm_of_x: float,
        forward: Callable[[Vector], Vector],
    ) -> None:
        """Make a solution the present one: its places among all columns, its norm, and how to multiply it."""
        self.solution, self._places = solution, places
        self.fun = self.sparse.value(norm_of_x, solution.x, solution.residual)
        self._image = self.y - solution.residual
        if is_single(self._like):
            single = to_numpy(self._like).dtype
            self._image = forward(solution.x.astype(single).astype(self.y.dtype))
        self._stretch = max(self._stretch, stretch_at(solution.x, self._image))

    def price(self, solution: Solution, everywhere: Vector) -> Vector:
        """Learn from the correlations of all columns with a dual point; return them in units of weights."""
        excess = self.sparse.excess(everywhere)
        self._improve_bound(solution, everywhere)
        self._check_feasible(solution, float(excess.max()))
        return np.asarray(excess)

    def _improve_bound(self, solution: Solution, everywhere: Vector) -> None:
        """Scale the dual point to feasibility; it bounds the optimum from below."""
        found = self.sparse.proved(solution.dual, everywhere, self._stretch, above=self.bound)
        if found is not None:
            self.bound, self.proof = self.sparse.bound(found), found

    def _check_feasible(self, solution: Solution, gauge: float) -> None:
        """Raise if the residual is orthogonal to every column and still too long.

        The angle decides, not the size of ``A'r``: a short residual has small correlations anyway. And an
        ill-conditioned matrix makes small angles, so the suspicion is checked by a factorisation.
        """
        length = float(np.linalg.norm(solution.residual))
        if solution.reached or not solution.settled or length <= self.sigma:
            return
        cosine = solution.alpha * gauge / length
        largest_cosine = self._most / float(np.linalg.norm(self.y))
        if cosine <= 1e-8 * largest_cosine:
            misfit = self._proved_misfit(solution)
            if misfit is not None:
                raise InfeasibleError(
                    f"no x has |A x - y| <= sigma: the least-squares residual is {misfit:.6g}, "
                    f"sigma is {self.sigma:.6g}"
                )

    @property
    def _most(self) -> float:
        """The largest correlation with ``y`` in units of the weights."""
        raise NotImplementedError

    def _proved_misfit(self, solution: Solution) -> float | None:
        """Return the least-squares residual if it is proved to be too long."""
        return self.ball.misfit if self.ball.is_empty else None

    @property
    def good(self) -> bool:
        """Whether value and bound are as close as required, with a margin."""
        return self.fun - self.bound <= 0.5 * self.target.gap(self.fun)

    @property
    def complete(self) -> bool:
        """Whether the solution is good enough to be proposed."""
        solution = self.solution
        if solution is None or not solution.reached:
            return False
        return self.good or (solution.settled and self.missing.size == 0)

    @property
    def exact(self) -> bool:
        """Whether value and bound differ by rounding only."""
        rounding = max(1e-10, 1e3 * eps(self._like))
        return self.fun - self.bound <= rounding * self.fun

    # Candidates for the driver.

    def point(self) -> Array:
        """Return the present solution among all columns, in the library of the problem."""
        x = np.zeros(self.A.shape[1], dtype=self.y.dtype)
        if self.solution is not None:
            x[self._places] = self.solution.x
        return asarray_like(x, self._like)

    @property
    def _evidence(self) -> Evidence:
        """The multiplier behind the best bound, in the library of the problem."""
        proof = self.proof if self.plain else self.sparse.as_given(self.proof, self._like)
        return self.sparse.evidence(proof)

    def measured_candidate(self) -> Candidate | None:
        """Return the present solution with its image; None where that is unknown, or outside of the ball."""
        if self.solution is None:
            return None
        x, image = self.point(), asarray_like(self._image, self._like)
        if isinstance(self.sparse, PenalisedProblem):
            return Candidate(x, self._evidence, objective_image=self.sparse.image_at(x, image))
        # An equation holds up to rounding.
        allowed = self.sigma or 1e-12 * float(np.linalg.norm(self.y))
        if float(np.linalg.norm(self._image - self.y)) > allowed:
            return None
        images = images_at(x, image, self.problem.constraint)
        return Candidate(x, self._evidence, image=images)

    def candidate(self, bench: Workbench) -> Candidate:
        """Return the present solution as a candidate.

        It is feasible, as the columns in use show, and a product with all of the matrix would show no more.
        Where it is not, by rounding, it is projected.
        """
        x, evidence = self.point(), self._evidence
        if not self.constrained:
            return self.measured_candidate() or Candidate(x, evidence)
        if self.plain and self.solution is not None and self.solution.alpha == 0.0:
            # Equations are met up to rounding, and a correction of that would fill in the zeros.
            return Candidate(x, evidence)
        with bench.observe():
            measured = self.measured_candidate()
        return measured or Candidate(bench.project(x), evidence, before=x)


def newton_rounds(bench: Workbench, search: Any, rounds: int) -> Candidates:
    """Go round with a `ColumnSearch` or `BlockSearch` until it is done, or makes no further progress."""
    with suppress(StalledError):
        for _ in range(rounds):
            search.round()
            if search.complete or bench.exhausted:
                yield search.candidate(bench)
                # The driver requires more: only rounding is a reason to stop now.
                search.done = bench.exhausted or (search.exact and search.missing.size == 0)
            if search.done or search.stuck:
                return
            search.add_missing()


def one_nonzero(bench: Workbench, sparse: SparseProblem, x0: Array) -> Candidate | None:
    """Return the solution if it has one nonzero and proves to be good enough; None costs three products.

    Where sigma is close to ``|y|``, ``x`` is so short that the residual hardly differs from ``y``, and a
    difference of two residuals is rounding; the formula has none.

    The column that correlates most with ``y``, in units of its weight, enters first. Where ``a`` is that
    column and ``c = a^H y``, its coefficient has the phase of ``c`` and the smaller root ``t`` of
    ``|y - t a c / |c||^2 = sigma^2`` as its modulus. A block enters along its correlations.
    """
    ball = sparse.ball
    length = norm(ball.y)
    if not _CLOSE_TO_Y * length < ball.sigma < length:
        return None
    sparse, y = replace(sparse, weights=to_numpy(sparse.weights)), to_numpy(ball.y)
    like = widest((ball.y, ball.like))
    correlations = to_numpy(ball.pullback((asarray_like(y, like),)))
    j = int(np.argmax(sparse.excess(correlations)))
    block = _block_of(j, sparse.objective)
    c = np.maximum(correlations[block], 0.0) if sparse.nonneg else correlations[block]
    size = norm(c)
    if size == 0.0 or not math.isfinite(size):
        return None
    x = np.zeros(ball.A.shape[1], dtype=correlations.dtype)
    x[block] = c / size
    column = to_numpy(ball.image(asarray_like(x, x0))[0])
    rest = (length - ball.sigma) * (length + ball.sigma)
    if rest < _CANCELS * eps(y) * length * length:
        rest = square_beyond(y, ball.sigma)
    depth = size * size - norm(column) * norm(column) * rest
    if depth < 0.0 or not math.isfinite(depth):
        return None
    t = rest / (size + math.sqrt(depth))
    x[block] *= t
    image = t * column
    r = y - image
    g = to_numpy(ball.pullback((asarray_like(r, like),)))
    found = sparse.proved(r, g, stretch=max(norm(correlations) / norm(y), norm(column)))
    fun = t * float(sparse.weights[j])
    if found is None or fun + found.support > 0.5 * bench.target.gap(fun):
        return None
    bench.tick()
    return _candidate(bench, found, asarray_like(x, x0), asarray_like(image, like))


def _block_of(j: int, objective: L1Norm | BlockNorm) -> Any:
    """Return the entries that leave zero together with one of them."""
    return objective.labels == objective.labels[j] if isinstance(objective, BlockNorm) else [j]


def _candidate(bench: Workbench, found: ValidInequality, x: Array, image: Array) -> Candidate:
    """Return the point as it is: a projection would move it inside by more than it is long."""
    assert found.dual is not None
    multiplier = ValidInequality(
        asarray_like(found.direction, x),
        found.support,
        tuple(asarray_like(v, image if v.shape == image.shape else x) for v in found.dual),
    )
    return Candidate(x, Multiplier(multiplier), image=images_at(x, image, bench.problem.constraint))
