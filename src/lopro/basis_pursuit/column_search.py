"""A working-set search: solve on the columns of the set, price all columns, add those that violate.

What the search needs of the matrix it asks a pool for. A matrix in memory is a pool that holds every column
and answers at once: there each round is one solution and one product. Where the matrix is expensive to read,
the problem is solved on the columns of the pool, completely, before the next pass, which tells what other
columns are missing; those that violate, and those that are near to it, are fetched together. While sigma is
out of reach, alpha is then reduced where few columns are missing: signs are right, and Newton's method does
not diverge.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit.columns import Vector, columns_to_add, largest
from lopro.basis_pursuit.pool import Asking, Pool, Question, WholeMatrix, answered
from lopro.basis_pursuit.sign_search import SETTINGS, SignSearch
from lopro.basis_pursuit.support_newton import Solution
from lopro.core.arrays import Array, is_single, to_numpy
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["ColumnSearch", "SupportLimit"]


@dataclass
class SupportLimit:
    """Stop when ``|support| / rows`` exceeds a share for more than so many rounds above sigma."""

    share: float
    rounds: int = 0
    seen: int = 0

    def count(self, share: float) -> None:
        """Take note of a round."""
        self.seen += share > self.share

    @property
    def exceeded(self) -> bool:
        """Whether to stop."""
        return self.seen > self.rounds


class ColumnSearch(SignSearch):
    """The state of one search whose coefficients have signs.

    Parameters
    ----------
    problem, target
        As for `Search`.
    tick : callable
        Called once for every product with all columns.
    pool : Pool, optional
        The columns at hand, shared with other searches on the same matrix; all of them by default.
    before : ColumnSearch, optional
        A search for another alpha, on the same matrix in memory and right-hand side, to go on from.
    """

    def __init__(
        self,
        problem: Problem,
        target: Target,
        tick: Callable[[], bool] = lambda: True,
        pool: Pool | None = None,
        before: ColumnSearch | None = None,
    ) -> None:
        super().__init__(problem, target, pool, before)
        self._tick = tick
        self.pool: Pool | WholeMatrix = WholeMatrix(self._multiplied) if pool is None else pool
        on_device = is_single(self._like) and not isinstance(self._like, np.ndarray)
        #: Whether products in single precision may tell which columns are missing, and whether they do.
        self._single, self._rough = on_device and pool is None, on_device and pool is None
        #: The last alpha and the correlations of all columns there; those of the search before.
        self.latest: tuple[float, Vector] | None = None
        self._before = None if before is None else before.latest
        #: What a round leaves of alpha, and when to stop.
        self.descent = SETTINGS.descent if pool is None else SETTINGS.pass_descent
        self._limit = SupportLimit(0.5)
        #: With a pool: whether the end of the path was reached, and sigma was not.
        self._at_end = False
        # Of solutions that reach sigma: how many columns the last one lacks, and how often in a row there
        # were more than before. From signs that other methods have found it may go up and down.
        self._lacking, self._diverging, self._guided = math.inf, 0, False
        #: Called when the columns for the next round are there.
        self.after_round: Callable[[], None] = lambda: None

    def _multiplied(self, dual: Vector) -> Vector:
        return self.pulled(dual, rough=self._rough)

    # Where it begins.

    def multiply_y(self, columns: Vector | None = None) -> Asking:
        """Ask for the correlations of all columns with ``y``, and for some columns, in one pass."""
        self.correlations = yield Question(dual=self.y, columns=columns)
        self.learn_units(self.correlations)

    def begin(self, x0: Array, first: int | None) -> Asking:
        """Begin with the support of the start and the columns that correlate most with ``y``."""
        if self._before is not None:
            self._begin_after(*self._before)
            return
        if not self.correlations.size:
            yield from self.multiply_y()
        x0 = to_numpy(x0).astype(np.float64, copy=False)
        if self.sparse.nonneg:
            x0 = np.maximum(x0, 0.0)  # a sign that is not allowed would never be questioned
        count = max(10, min(self.A.shape) // 10) if first is None else first
        given, size = np.flatnonzero(x0), self.sparse.excess(self.correlations)
        if self._held is not None:
            fetched = (
                count
                if first is not None
                else max(count, min(self.A.shape[0] // 4, self._held.most))
            )
            near = largest(size, fetched)
            yield Question(columns=np.union1d(given, near[size[near] > 0.0]))
        largest_alpha = float(size.max(initial=0.0))
        self.floor = 0.0 if given.size else max(SETTINGS.start * largest_alpha, self.level.least)
        likely = largest(size, count)
        if self.level.least > 0.0:
            few = largest(size, min(count, SETTINGS.fewest))
            likely = np.union1d(few, likely[size[likely] > SETTINGS.likely * self.floor])
        chosen = np.union1d(given, likely[size[likely] > 0.0])
        signs = np.sign(self.correlations[chosen])
        signs = np.sign(x0[chosen]) if given.size else np.where(size[chosen] > self.floor, signs, 0)
        self._extend(chosen, signs)

    def _begin_after(self, alpha: float, excess: Vector) -> None:
        """Begin with the signs of the search before, and the columns that may gain one on the way.

        Correlations change by no more than alpha does, usually (the sequential strong rule of Tibshirani and
        others, 2012): those below ``2 lam - alpha`` are not read before all columns are priced.
        """
        self.floor, self._before, self._along_path = 0.0, None, True
        share = 2.0 * self.level.least / alpha - 1.0
        excess[self.columns.indices] = 0.0
        near = np.flatnonzero(excess > max(share, SETTINGS.least_share))
        new = near[largest(excess[near], columns_to_add(self.signs, self.columns.rank, 1))]
        new.sort()  # memory is read in its order
        self._extend(new, np.zeros(new.size))

    def follow_path(self, descent: float, limit: SupportLimit | None = None) -> None:
        """Restart at half of the largest alpha; multiply it by ``descent`` wherever signs have settled."""
        self.settling, self.descent, self._limit = True, descent, limit or SupportLimit(math.inf)
        most = float(self.sparse.excess(self.correlations).max(initial=0.0))
        self.floor = max(0.5 * most, self.level.least)
        self.signs = 0.0 * self.signs

    def propose(self, x: Vector, residual: Vector) -> None:
        """Make a point that another method has found the present solution; its residual is a dual point."""
        new = np.setdiff1d(np.flatnonzero(x), self.columns.indices)
        self._extend(new, np.zeros(new.size))
        at, alpha = x[self.columns.indices], self.level.least
        dual = residual / alpha
        solution = Solution(at, np.sign(at), alpha, residual, dual, reached=True, settled=False)
        self.accept(solution, self.columns)
        self._rough = False
        self._price_all(solution, self.pulled(dual))

    def resume_at(self, point: Array) -> bool:
        """Restart at a point with fewer nonzeros than rows; False if it has more."""
        x = to_numpy(point)
        if not 0 < np.count_nonzero(x) < len(self.y):
            return False
        self._restart_with(np.sign(x))
        return True

    def resume_with(self, signs: Vector) -> None:
        """Restart with signs of all columns."""
        self._restart_with(signs.astype(self.y.dtype))
        self.settling, self._limit = False, SupportLimit(0.5)

    def resume_with_columns(self, indices: Vector, signs: Vector) -> None:
        """Restart with these columns and their signs."""
        self._extend(indices, signs)

    def _restart_with(self, signs: Vector) -> None:
        new = np.setdiff1d(np.flatnonzero(signs), self.columns.indices)
        self._extend(new, np.zeros(new.size))
        self.signs, self.floor, self._guided = signs[self.columns.indices], 0.0, True

    # A round: solve, price, add.

    def rounds(self, most: int) -> Asking:
        """Make rounds until the search is complete or stuck."""
        for _ in range(most):
            yield from self._solve_and_price()
            if self.complete or self.stuck:
                return
            yield from self._fetch()

    def round(self) -> None:
        """Solve on the columns at hand, then price all of them."""
        answered(self._solve_and_price(), self.pool)

    def add_missing(self) -> None:
        """Add the columns that violate most, or have them fetched."""
        answered(self._fetch(), self.pool)

    def _solve_and_price(self) -> Asking:
        self._tick()
        solution = self._solve_at_hand()
        # As long as columns are missing, numbers in single precision tell well enough which: on a device a
        # sum of them in double precision takes several times as long. Then there is no bound yet.
        self._rough = self._single and not self._thorough
        everywhere = yield Question(dual=solution.dual)
        self._price_all(solution, everywhere)
        if solution.reached:
            more = self.missing.size > self._lacking
            self._diverging = self._diverging + 1 if more else 0
            self._lacking = self.missing.size
        if not solution.reached or self._any_alpha:
            self._limit.count(np.count_nonzero(solution.signs) / self.columns.rank)
        if not solution.reached:
            self._lower_floor(solution)

    def _price_all(self, solution: Solution, everywhere: Vector) -> None:
        """Learn from the correlations of all columns: a bound, and which of them are missing."""
        excess = self.sparse.excess(everywhere) if self._rough else self.price(solution, everywhere)
        self.latest = (solution.alpha, excess.copy())
        if self._held is not None:
            self._held.note(self.latest[1])
        excess[self.columns.indices if self._held is None else self._held.indices] = 0.0
        beyond = SETTINGS.missing_single if self._rough else SETTINGS.missing
        self.missing = np.flatnonzero(excess > 1.0 + beyond)
        self._excess, self._missing_signs = excess, np.sign(everywhere[self.missing])

    def _lower_floor(self, solution: Solution) -> None:
        """Reduce alpha: in every round, or only where the signs have (almost) settled."""
        few = self.missing.size <= SETTINGS.few * np.count_nonzero(solution.signs)
        lowered = max(self.floor * self.descent, self.level.least)
        if self._held is None:
            if not self.settling or (solution.settled and few):
                self.floor = lowered
            return
        if few:
            self._at_end = self.floor == 0.0
            end = SETTINGS.least_floor * float(self.sparse.excess(self.correlations).max())
            self.floor = lowered if lowered > end else 0.0
        # Where little changes on the way down, steps become longer.
        self.descent = self.descent**2 if few else SETTINGS.pass_descent

    def _fetch(self) -> Asking:
        """Add the columns that violate most; with a pool, fetch these and those that are near to it."""
        if self._held is None:
            self._add(self.missing, self._excess[self.missing], self._missing_signs)
            return
        near = np.flatnonzero(self._excess > SETTINGS.near)
        # Some times the nonzeros, fewer where memory is short.
        nonzeros = int(np.count_nonzero(self.signs))
        spare = self._held.most - len(self.columns)
        count = max(10, nonzeros // 2, min(int(SETTINGS.growth * nonzeros), spare))
        fetched = near[largest(self._excess[near], count)]
        self._held.room_for(len(fetched), self.columns.indices)
        if fetched.size:
            yield Question(columns=fetched)
        self.after_round()

    # Whether it goes on.

    @property
    def _any_alpha(self) -> bool:
        """Whether alpha may vanish although the residual is not bounded: the square-root LASSO."""
        return not self.constrained and self.level.least == 0.0

    @property
    def complete(self) -> bool:
        return super().complete and not self._rough

    @property
    def stuck(self) -> bool:
        """Whether Newton's method makes no further progress.

        Either the columns at hand were not solved for and no other one would help, or it diverges: more and
        more columns are missing, or sigma is out of reach although the support fills many of the rows.
        """
        solution = self.solution
        assert solution is not None
        if self._held is not None:
            return self.missing.size == 0 if solution.reached else self._at_end
        if solution.reached:
            if self._any_alpha and self._limit.exceeded:
                return True
            lost = self._diverging >= SETTINGS.diverging and not (self.settling or self._guided)
            return lost or (self._thorough and self.missing.size == 0)
        if self.settling and not solution.settled and self.missing.size == 0:
            return True
        return self._limit.exceeded
