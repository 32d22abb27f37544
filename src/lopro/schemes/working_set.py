"""Basis pursuit denoising on a growing set of columns: few products with the whole matrix.

Only the columns that matter are worked on. One product ``A'r`` with all of them tells which are missing
and proves how far the solution on the present ones can be from the optimum; a solution has a few hundred
nonzeros, and about ten such products find them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lopro._arrays import Array, is_complex
from lopro._threads import one_pool
from lopro._validation import check_count
from lopro.about import About
from lopro.constraints.base import Normal
from lopro.epochs import Epoch, Workbench
from lopro.errors import InfeasibleError, MissingCapabilityError, StalledError
from lopro.inner.signed_support import ColumnSet, Restricted, Solution, Vector, largest
from lopro.objectives import L1Norm
from lopro.penalties import Hinge
from lopro.problem import Problem
from lopro.schemes.matrix_free import MatrixFree
from lopro.schemes.sparse_problem import SparseProblem, residual_ball_of

__all__ = ["WorkingSet"]

_PATIENT_UP_TO = 2000  # columns; with so few, following the path in small steps is cheap


@dataclass(frozen=True)
class WorkingSet:
    """Working-set semismooth Newton for ``min sum w_i |x_i|  s.t. |A x - y| <= sigma (and x >= 0)``.

    Problem: `L1Norm` over a `ResidualBall` with a real NumPy or sparse matrix, optionally intersected with
    ``x >= 0``. Oracles: columns of A, a product with A' per round. As an inner algorithm it is exact, so one
    projection (which finds nothing to do) ends a run. Where it makes no progress `MatrixFree` goes on from
    its point, and behind that `MultiplierMethod`.

    Parameters
    ----------
    first : int, optional
        Columns to start with; a tenth of the rows by default.
    rounds : int
        Products ``A'r`` after which the fallback takes over.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((20, 60))
    >>> ball = lopro.constraints.ResidualBall(A, A[:, 0] - 2 * A[:, 5], sigma=0.1)
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), ball)
    >>> result = lopro.solve(problem, method=lopro.WorkingSet(), tol=1e-10)
    >>> result.success, np.flatnonzero(result.x)
    (True, array([0, 5]))
    """

    about: ClassVar[About] = About(
        assumptions="l1 norm over a residual ball, optionally x >= 0, explicit real columns",
        oracles="columns of A, a product with A' per round",
        rate="finite: Newton's method on the signs of a working set",
        projections="1 where Newton's method succeeds",
        reference="this library: semismooth Newton on working sets",
    )

    first: int | None = None
    rounds: int = 60

    def __post_init__(self) -> None:
        if self.first is not None:
            check_count("first", self.first)
        check_count("rounds", self.rounds)

    def check(self, problem: Problem) -> None:
        ball, _ = residual_ball_of(problem.constraint)
        fits = isinstance(problem.objective, L1Norm)
        if not fits or ball is None or not ball.A.explicit or is_complex(ball.like):
            raise MissingCapabilityError(
                "WorkingSet needs L1Norm over a ResidualBall with a real explicit matrix (and possibly "
                f"x >= 0), got {problem.objective!r} over {problem.constraint!r}"
            )
        if not isinstance(ball.like, np.ndarray):
            raise MissingCapabilityError("WorkingSet reads columns with NumPy; use lopro.Auto()")

    def epochs(self, bench: Workbench, x0: Array) -> Iterator[Epoch]:
        search = _Search(bench, x0, self.first)
        if search.zero_is_feasible:
            yield search.epoch()
            return
        with suppress(StalledError):
            yield from self._newton(search)
        if not search.done and search.sparse.weights.size <= _PATIENT_UP_TO:
            search.start_over()
            with suppress(StalledError):
                yield from self._newton(search, rounds=200)
        if search.done:
            return
        # The first-order method finds out signs that Newton's method then needs one round for.
        for epoch in MatrixFree().epochs(bench, search.point()):
            yield epoch
            if search.resume(epoch.x_hat):
                with suppress(StalledError):
                    yield from self._newton(search, rounds=3)

    def _newton(self, search: _Search, rounds: int | None = None) -> Iterator[Epoch]:
        """Go round until the solution is complete, or Newton's method is stuck."""
        for _ in range(self.rounds if rounds is None else rounds):
            search.round()
            if search.complete or search.bench.exhausted:
                yield search.epoch()
                search.done = search.bench.exhausted or search.missing.size == 0
                if search.done:
                    return
            if search.stuck:
                return
            search.take_in_missing()


class _Search:
    """The state of one run: columns, signs, the present solution and the best dual value."""

    def __init__(self, bench: Workbench, x0: Array, first: int | None) -> None:
        self.bench = bench
        self.sparse = SparseProblem.of(bench.problem, np.asarray(x0))
        self.ball, self.A = self.sparse.ball, self.sparse.ball.A
        self.y = np.asarray(self.ball.y)
        self.correlations = self.A.adjoint(self.y)
        self.columns = ColumnSet(self.y, self.sparse.weights)
        self.restricted = Restricted(self.columns, self.ball.sigma, self.sparse.nonneg)
        self.signs = np.empty(0, dtype=self.y.dtype)
        self.done = False
        self.patient = False  # whether to follow the path in small steps
        self.solution: Solution | None = None
        self.bound, self.normal = -math.inf, Normal(0.0 * self.sparse.weights, 0.0)
        self._start(np.asarray(x0), max(10, self.A.shape[0] // 10) if first is None else first)

    def _start(self, x0: Vector, count: int) -> None:
        """Begin with the support of the start and the columns that correlate most with ``y``."""
        given = np.flatnonzero(x0)
        size = self.sparse.excess(self.correlations)
        self.floor = 0.0 if given.size else 0.1 * float(size.max(initial=0.0))
        likely = largest(size, count)
        chosen = np.union1d(given, likely[size[likely] > 0.0])
        self._extend(chosen, np.sign(x0[chosen]))
        if not given.size:
            self.signs = np.where(
                size[chosen] > self.floor, np.sign(self.correlations[chosen]), 0.0
            )

    def start_over(self) -> None:
        """Follow the path from its beginning, with signs that are right at every step."""
        self.patient = True
        self.floor = 0.5 * float(self.sparse.excess(self.correlations).max(initial=0.0))
        self.signs = 0.0 * self.signs

    @property
    def zero_is_feasible(self) -> bool:
        """Whether ``x = 0`` satisfies the constraint, and so is the solution."""
        return float(np.linalg.norm(self.y)) <= self.ball.sigma

    def resume(self, x: Vector) -> bool:
        """Start again at a point with fewer nonzeros than rows; False if it has more."""
        support = np.flatnonzero(x)
        if not 0 < support.size < len(self.y):
            return False
        new = np.setdiff1d(support, self.columns.indices)
        self._extend(new, np.zeros(new.size))
        self.signs, self.floor = np.sign(np.asarray(x)[self.columns.indices]), 0.0
        return True

    def _extend(self, indices: Vector, signs: Vector) -> None:
        self.columns.extend(indices, self.A.columns, self.correlations[indices])
        self.signs = np.concatenate([self.signs, signs])

    def round(self) -> None:
        """Solve on the present columns, then look at all of them."""
        self.bench.tick()
        with one_pool():
            solution = self._solve_restricted()
        self.solution, self.signs = solution, solution.signs
        self._places = self.columns.indices
        everywhere = self.A.adjoint(solution.dual)
        excess = self.sparse.excess(everywhere)
        gauge = float(excess.max())
        self._improve_bound(solution, everywhere, gauge)
        self._check_feasible(solution, gauge)
        excess[self.columns.indices] = 0.0
        self.missing = np.flatnonzero(excess > 1.0 + 1e-9)
        self._missing_size, self._missing_sign = (
            excess[self.missing],
            np.sign(everywhere[self.missing]),
        )
        if not solution.reached:
            self._lower_floor(solution)

    def _lower_floor(self, solution: Solution) -> None:
        """Go down the path: in a hurry by tenths; step by step, and settled, where signs must be right."""
        if not self.patient:
            self.floor *= 0.1
        elif solution.settled and self.missing.size == 0:
            self.floor *= 0.5

    def _solve_restricted(self) -> Solution:
        """Solve on the present columns with alpha at or above the floor."""
        if self.floor == 0.0 or self.patient:
            solution = self.restricted.solve(self.signs, self.floor)
            if solution.reached:
                self.floor = 0.0
            return solution
        # While sigma is out of reach the solution is only a guide to more columns: two steps will do.
        solution = self.restricted.solve(self.signs, self.floor, steps=2)
        if not solution.reached:
            return solution
        self.floor = 0.0
        return self.restricted.solve(solution.signs, 0.0)

    def _improve_bound(self, solution: Solution, everywhere: Vector, gauge: float) -> None:
        """Scale the dual point to feasibility; it bounds the optimum from below."""
        if gauge <= 0.0:
            return
        value = self.sparse.dual_value(solution.dual, self.y) / gauge
        if value > self.bound:
            self.bound, self.normal = value, self.sparse.normal(everywhere, gauge, value)

    def _check_feasible(self, solution: Solution, gauge: float) -> None:
        """Raise if the residual is orthogonal to every column and still too long.

        The angle decides, not the size of ``A'r``: a short residual has small correlations anyway. And an
        ill-conditioned matrix makes small angles, so the suspicion is checked by a factorisation.
        """
        length = float(np.linalg.norm(solution.residual))
        if solution.reached or not solution.settled or length <= self.ball.sigma:
            return
        cosine = solution.alpha * gauge / length
        largest_cosine = self.restricted.most / float(np.linalg.norm(self.y))
        if cosine <= 1e-8 * largest_cosine and self.ball.misfit > self.ball.sigma:
            raise InfeasibleError(
                f"no x has |A x - y| <= sigma: the least-squares residual is {self.ball.misfit:.6g}, "
                f"sigma is {self.ball.sigma:.6g}"
            )

    @property
    def complete(self) -> bool:
        """Whether the solution is good enough to be projected and looked at."""
        solution = self.solution
        if solution is None or not solution.reached:
            return False
        fun = float(self.columns.weights @ np.abs(solution.x))
        good = fun - self.bound <= 0.5 * self.bench.gap_wanted(fun)
        return good or (solution.settled and self.missing.size == 0)

    @property
    def stuck(self) -> bool:
        """Whether Newton's method has nothing more to offer.

        Either the columns at hand were not solved for and no other one would help, or sigma is out of
        reach although the support fills half of the rows: the path to such a solution is long, and
        Newton's method goes astray on it.
        """
        solution = self.solution
        assert solution is not None
        if solution.reached:
            return self.missing.size == 0 and not solution.settled
        if self.patient:
            return not solution.settled and self.missing.size == 0
        return bool(np.count_nonzero(solution.signs) > 0.5 * len(self.y))

    def take_in_missing(self) -> None:
        """Add the columns that violate most, at most a third as many as there are nonzeros.

        Those that were taken in for nothing leave first, before they cost time and memory.
        """
        used = self.signs != 0.0
        if np.count_nonzero(used) < 0.9 * len(self.columns):
            self.columns.keep(used)
            self.signs = self.signs[used]
        limit = max(20, int(np.count_nonzero(self.signs)) // 3)
        keep = largest(self._missing_size, limit)
        if keep.size:
            self._extend(self.missing[keep], self._missing_sign[keep])

    def point(self) -> Vector:
        """Return the present solution among all columns."""
        x = np.zeros(self.A.shape[1], dtype=self.y.dtype)
        if self.solution is not None:
            x[self._places] = self.solution.x
        return x

    def epoch(self) -> Epoch:
        """Project the present solution: a check, as it is feasible already."""
        x = self.point()
        F = self.bench.penalised(Hinge(0.0), x)
        return Epoch(x=self.bench.project(x), x_hat=x, F=F, normal=self.normal)
