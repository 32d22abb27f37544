"""The state of a search: a problem, the best lower bound so far, and candidates for the driver.

`Search` has the bound and the candidates, `WorkingSetSearch` the columns that are missing, and
`ResidualSearch` the solution on the columns of the set where the data enter by a residual ``y - A x``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from lopro.basis_pursuit.columns import support_newton
from lopro.basis_pursuit.columns.pieces import Vector, columns_of
from lopro.basis_pursuit.columns.support_newton import Solution
from lopro.basis_pursuit.problem import SparseForm, SparseProblem, images_at
from lopro.basis_pursuit.recognition import sparse_form
from lopro.constraints import ResidualBall
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
)
from lopro.errors import InfeasibleError, StalledError
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Evidence, Target, Workbench

__all__ = ["ResidualSearch", "Search", "WorkingSetSearch", "newton_rounds"]


class Search:
    """A problem with the best lower bound that has been proved of its optimum.

    Parameters
    ----------
    problem : Problem
        The problem that candidates are for.
    sparse : SparseForm
        The same problem in the form that the search uses.
    target : Target
        The required accuracy.
    like : array
        An array of the kind of points.
    """

    def __init__(self, problem: Problem, sparse: SparseForm, target: Target, like: Array) -> None:
        self.problem, self.sparse, self.target, self._like = problem, sparse, target, like
        self.bound, self.proof = -math.inf, sparse.at_zero(sparse.weights)
        #: A lower estimate of the norm of the matrix, from the products so far.
        self._stretch = 0.0

    def improve_bound(self, r: Array, g: Array, growth: float = 1.0) -> None:
        """Scale a residual with ``g = A^H r`` to a feasible dual point, and keep it if its bound is better.

        ``growth`` is the factor by which the rounding errors of ``r`` have grown.
        """
        found = self.sparse.proved(r, g, self._stretch, growth, above=self.bound)
        if found is not None:
            self.bound, self.proof = self.sparse.bound(found), found

    @property
    def evidence(self) -> Evidence:
        """The multiplier behind the best bound, in the library and precision of the problem."""
        return self.sparse.evidence(self.sparse.as_given(self.proof, self._like))

    def measured_at(self, x: Array, image: Array, length: float) -> Candidate | None:
        """Return a candidate with its image ``A x``, where ``length`` is that of its residual.

        None where that exceeds a bound of the residual. Equations hold up to rounding.
        """
        sparse = self.sparse
        if not isinstance(sparse, SparseProblem):
            return Candidate(x, self.evidence, objective_image=sparse.image_at(x, image))
        allowed = sparse.ball.sigma or support_newton.SETTINGS.met * norm(sparse.y)
        if length > allowed:
            return None
        return Candidate(x, self.evidence, image=images_at(x, image, self.problem.constraint))


class WorkingSetSearch(Search):
    """A search that solves on some columns, then prices all of them; vectors are NumPy's, in float64."""

    #: Columns outside of the set whose correlation exceeds what their weight allows.
    missing: Vector
    #: The objective at the present solution.
    fun = math.inf
    #: Whether no further progress is needed, or possible.
    done = False

    def __init__(self, problem: Problem, sparse: SparseForm, target: Target) -> None:
        super().__init__(problem, sparse, target, sparse.like)
        self.A = sparse.A
        self.plain = isinstance(self._like, np.ndarray) and not is_single(self._like)
        self.missing = np.empty(0, dtype=np.intp)

    def pulled(self, dual: Vector, *, rough: bool = False) -> Vector:
        """Return the correlations of all columns with a dual point; roughly, in the precision of the data."""
        if self.plain:
            return np.asarray(self.A.adjoint(dual))
        if rough:
            return to_numpy(self.A.adjoint(asarray_like(dual, self.A.like))).astype(np.float64)
        return to_numpy(self.A.adjoint_exactly(from_numpy(dual, self.A.like)))

    def read(self, indices: Vector) -> Any:
        """Return columns: as an array, or in sparse form if they have few entries."""
        return columns_of(self.A, indices)

    def _among_all(self, places: Vector, values: Vector) -> Array:
        """Return a point with values at some places and zeros elsewhere, in the library of the problem."""
        x = np.zeros(self.A.shape[1], dtype=values.dtype)
        x[places] = values
        return asarray_like(x, self._like)

    @property
    def gap(self) -> float:
        """The proved gap of the present solution."""
        return self.fun - self.bound

    @property
    def good(self) -> bool:
        """Whether the gap is at most half of the allowed one: the driver evaluates both ends again."""
        return self.gap <= 0.5 * self.target.gap(self.fun)

    @property
    def exact(self) -> bool:
        """Whether value and bound differ by rounding only."""
        rounding = max(1e-10, 1e3 * eps(self._like))
        return self.gap <= rounding * self.fun

    @property
    def complete(self) -> bool:
        """Whether the solution is to be proposed."""
        return self.good


class ResidualSearch(WorkingSetSearch):
    """A search on columns, or blocks of them, with the solution that it has come to.

    Parameters
    ----------
    problem : Problem
        A norm and a residual, whose map has columns.
    target : Target
        The required accuracy.
    """

    def __init__(self, problem: Problem, target: Target) -> None:
        # Weights in double precision do not widen points of single precision data.
        columns = problem.shape
        assert columns is not None
        sparse = sparse_form(problem, np.zeros(columns))
        assert sparse is not None
        super().__init__(problem, sparse, target)
        wide = np.complex128 if is_complex(self._like) else np.float64
        self.y = to_numpy(sparse.y).astype(wide, copy=False)
        #: Whether the residual is bounded, and by what: by infinity where it is penalised.
        self.constrained = isinstance(sparse, SparseProblem)
        self.sigma = sparse.ball.sigma if isinstance(sparse, SparseProblem) else math.inf
        self.solution: Solution | None = None
        #: Correlations of all columns with ``y``, empty until they are computed.
        self.correlations: Vector = np.empty(0)

    @property
    def ball(self) -> ResidualBall:
        """The bound of the residual, where there is one."""
        assert isinstance(self.sparse, SparseProblem)
        return self.sparse.ball

    @property
    def _margin(self) -> float:
        """The distance from the boundary of the ball at which a point stays inside when it is rounded."""
        if self.plain:
            return 0.0
        return min(0.5 * self.sigma, eps(self._like) * float(np.linalg.norm(self.y)))

    @property
    def zero_is_feasible(self) -> bool:
        """Whether ``x = 0`` satisfies a bound of the residual, and so is the solution."""
        return self.constrained and float(np.linalg.norm(self.y)) <= self.sigma

    def learn_units(self, correlations: Vector) -> None:
        """Check the units of the data and estimate the norm of the matrix by the correlations with y."""
        self.sparse.check_units(correlations, self.y)
        self._stretch = float(np.linalg.norm(correlations)) / (float(np.linalg.norm(self.y)) or 1.0)

    def accept(
        self,
        solution: Solution,
        places: Vector,
        norm_of_x: float,
        forward: Callable[[Vector], Vector],
    ) -> None:
        """Store a solution on the set, its places among all columns, its norm, and its image.

        In single precision the image is that of the rounded coefficients, computed by ``forward``.
        """
        self.solution, self._places = solution, places
        self.fun = self.sparse.value(norm_of_x, solution.x, solution.residual)
        self._image = self.y - solution.residual
        if is_single(self._like):
            single = to_numpy(self._like).dtype
            self._image = forward(solution.x.astype(single).astype(self.y.dtype))
        self._stretch = max(self._stretch, stretch_at(solution.x, self._image))

    def price(self, solution: Solution, everywhere: Vector) -> Vector:
        """Improve the bound by the correlations of all columns; return them in units of the weights."""
        excess = self.sparse.excess(everywhere)
        self.improve_bound(solution.dual, everywhere)
        self._check_feasible(solution, float(excess.max()))
        return np.asarray(excess)

    def _check_feasible(self, solution: Solution, gauge: float) -> None:
        """Raise if the residual is orthogonal to every column and still too long.

        The angle decides, not the size of ``A'r``: a short residual has small correlations anyway. And an
        ill-conditioned matrix makes small angles, so that a factorisation has to confirm it.
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
    def complete(self) -> bool:
        solution = self.solution
        if solution is None or not solution.reached:
            return False
        return self.good or (solution.settled and self.missing.size == 0)

    def point(self) -> Array:
        """Return the present solution among all columns, in the library of the problem."""
        if self.solution is None:
            return self._among_all(np.empty(0, dtype=np.intp), self.y[:0])
        return self._among_all(self._places, self.solution.x.astype(self.y.dtype, copy=False))

    def measured_candidate(self) -> Candidate | None:
        """Return the present solution with its image; None where there is none, or outside of the ball."""
        if self.solution is None:
            return None
        length = float(np.linalg.norm(self._image - self.y))
        return self.measured_at(self.point(), asarray_like(self._image, self._like), length)

    def candidate(self, bench: Workbench) -> Candidate:
        """Return the present solution as a candidate.

        The columns in use show that it is feasible; a product with the whole matrix would show no more. Where
        rounding makes it infeasible it is projected.
        """
        if not self.constrained:
            return self.measured_candidate() or Candidate(self.point(), self.evidence)
        if self.plain and self.solution is not None and self.solution.alpha == 0.0:
            # Equations hold up to rounding, and a projection would fill in the zeros.
            return Candidate(self.point(), self.evidence)
        with bench.observe():
            measured = self.measured_candidate()
        x = self.point()
        return measured or Candidate(bench.project(x), self.evidence, before=x)


def newton_rounds(bench: Workbench, search: Any, rounds: float = math.inf) -> Candidates:
    """Make rounds of a `WorkingSetSearch` until it is done or stuck."""
    with suppress(StalledError):
        while rounds > 0:
            rounds -= 1
            search.round()
            if search.complete or bench.exhausted:
                yield search.candidate(bench)
                # The driver requires more: only rounding is a reason to stop now.
                search.done = bench.exhausted or (search.exact and search.missing.size == 0)
            if search.done or search.stuck:
                return
            search.add_missing()
