"""A working-set search: solve on the columns of the set, price all columns, add those that violate.

`ColumnSearch` is for matrices in memory, where columns are cheap and few are held. `PooledSearch` is for
those that are expensive to read: between two passes everything is done that the columns at hand allow.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lopro.basis_pursuit.columns import Vector, columns_to_add, largest
from lopro.basis_pursuit.device_columns import column_set
from lopro.basis_pursuit.search import Search
from lopro.basis_pursuit.support_newton import Solution, SupportNewton
from lopro.core.arrays import Array, is_single, to_numpy
from lopro.core.threads import one_pool
from lopro.errors import StalledError
from lopro.problem import Problem
from lopro.protocol import Candidates, Target, Workbench

__all__ = ["SETTINGS", "ColumnSearch", "SignSearch", "SupportLimit", "newton_rounds"]


@dataclass(frozen=True)
class Settings:
    """What steers working-set searches."""

    #: Newton steps where all columns are at hand, and where a solution only guides to missing ones.
    thorough_steps: int = 30
    guiding_steps: int = 2
    #: The first alpha, and what a round leaves of it while sigma is out of reach, in units of the largest.
    start: float = 0.1
    descent: float = 0.1
    #: Of the nonzeros: so many missing columns do not change signs.
    few: float = 0.2
    #: A correlation counts as missing beyond 1 by this; in single precision by that.
    missing: float = 1e-9
    missing_single: float = 1e-5
    #: Rounds in a row with more missing columns than before, after which the search is given up.
    diverging: int = 2
    #: One column may join for so many nonzeros. Where alpha is known more may: `benchmarks.lasso` at a
    #: fiftieth, 1000 x 10000 and sparse, takes 11 and 9 products instead of 15 and 14.
    added_part: int = 3
    added_part_at_penalty: int = 1
    #: Of the first alpha: with a penalty, columns that correlate less with y are not read at first, beyond a
    #: few. A sparse 20000 x 200000 at a tenth reads 130 instead of 2000 columns, in a third of the time.
    likely: float = 2.0
    fewest: int = 10
    #: Columns without a sign leave once they are this share of the set.
    unused: float = 0.1
    #: Of alpha: along a path, columns with smaller correlations are not read before they violate.
    least_share: float = 0.5


SETTINGS = Settings()


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


class SignSearch(Search):
    """A search whose coefficients have signs: the column set, and Newton's method on it."""

    def __init__(self, problem: Problem, target: Target) -> None:
        super().__init__(problem, target)
        self.level = self.sparse.level(self._margin)
        self.columns = column_set(
            self.A, self._like, self.y, self.sparse.weights, self.level.equations
        )
        self.columns.ridge = self.sparse.ridge
        self.support_newton = SupportNewton(self.columns, self.level, self.sparse.nonneg)
        self.signs, self.floor = np.empty(0), 0.0

    @property
    def _most(self) -> float:
        return self.columns.most

    def _solve(self, thorough: bool) -> Solution:
        """Solve on the present columns with alpha at or above the floor, and make that the solution."""
        steps = SETTINGS.thorough_steps if thorough else SETTINGS.guiding_steps
        with one_pool():
            solution = self.support_newton.solve(self.signs, self.floor, steps)
        if solution.reached:
            self.floor = 0.0
        self.accept(solution, self.columns)
        self.signs = solution.signs
        return solution

    def _first_floor(self, most: float) -> float:
        """Return the first alpha, given the largest correlation with ``y``."""
        return max(SETTINGS.start * most, self.level.least)

    def _first_signs(self, columns: Vector, size: Vector) -> Vector:
        """Return the signs of columns whose correlation with ``y`` is above the floor."""
        signs = np.sign(self.correlations[columns])
        return np.where(size[columns] > self.floor, signs, 0.0)

    def _extend(self, indices: Vector, signs: Vector) -> None:
        self.columns.extend(indices, self.read, self.correlations[indices])
        self.signs = np.concatenate([self.signs, signs])

    def _drop_unused(self) -> None:
        """Drop columns without a sign, before they cost time and memory."""
        used = self.signs != 0.0
        if np.count_nonzero(used) < (1.0 - SETTINGS.unused) * len(self.columns):
            self.columns.keep(used)
            self.signs = self.signs[used]

    def _add(self, indices: Vector, excess: Vector, signs: Vector) -> None:
        """Add the columns that violate most, at most a part as many as there are nonzeros."""
        self._drop_unused()
        part = SETTINGS.added_part if self.level.least == 0.0 else SETTINGS.added_part_at_penalty
        kept = largest(excess, columns_to_add(self.signs, self.columns.rank, part))
        if kept.size:
            kept.sort()  # memory is read in its order
            self._extend(indices[kept], signs[kept])


class ColumnSearch(SignSearch):
    """The state of one run on a matrix in memory.

    Parameters
    ----------
    bench : Workbench
    problem : Problem
    before : ColumnSearch, optional
        A search for another alpha, on the same matrix and right-hand side, to go on from.
    """

    _before: tuple[float, Vector] | None = None
    #: Whether the search began next to its solution, on a path.
    _along_path = False

    def __init__(
        self, bench: Workbench, problem: Problem, before: ColumnSearch | None = None
    ) -> None:
        super().__init__(problem, bench.target)
        self.bench = bench
        self._single = is_single(self._like) and not isinstance(self._like, np.ndarray)
        if before is None:
            self.correlations = self.pulled(self.y, rough=self._single)
            self.learn_units(self.correlations)
        else:
            self._take_over(before)
        #: Whether alpha comes down only where signs have settled, what a round leaves of it, when to stop.
        self.settling, self._descent = False, SETTINGS.descent
        self._limit = SupportLimit(0.5)
        # Of solutions that reach sigma: how many columns the last one lacks, and how often in a row there
        # were more than before. From signs that other methods have found it may go up and down.
        self._lacking, self._diverging, self._guided = math.inf, 0, False
        #: The last alpha and the correlations of all columns there; those of the search before.
        self.latest: tuple[float, Vector] | None = None

    def _take_over(self, before: ColumnSearch) -> None:
        """Go on with the columns of a search for another alpha, and those that come next on the path."""
        self.correlations, self._stretch = before.correlations, before._stretch
        self.columns, self.signs = before.columns, before.signs
        self.columns.ridge = self.sparse.ridge
        self.support_newton = replace(before.support_newton, level=self.level)
        self._before = before.latest

    def begin(self, x0: Array, first: int | None) -> None:
        """Begin with the support of the start and the columns that correlate most with ``y``."""
        if self._before is not None:
            self._begin_after(*self._before)
            return
        x0 = to_numpy(x0).astype(np.float64, copy=False)
        count = max(10, min(self.A.shape) // 10) if first is None else first
        if self.sparse.nonneg:
            x0 = np.maximum(x0, 0.0)  # a sign that is not allowed would never be questioned
        given = np.flatnonzero(x0)
        size = self.sparse.excess(self.correlations)
        self.floor = 0.0 if given.size else self._first_floor(float(size.max(initial=0.0)))
        likely = largest(size, count)
        if self.level.least > 0.0:
            few = largest(size, min(count, SETTINGS.fewest))
            likely = np.union1d(few, likely[size[likely] > SETTINGS.likely * self.floor])
        chosen = np.union1d(given, likely[size[likely] > 0.0])
        signs = np.sign(x0[chosen]) if given.size else self._first_signs(chosen, size)
        self._extend(chosen, signs)

    def _begin_after(self, alpha: float, excess: Vector) -> None:
        """Begin with the signs of the search before, and the columns that may gain one on the way.

        Correlations change by no more than alpha does, usually (the sequential strong rule of Tibshirani and
        others, 2012): those below ``2 lam - alpha`` are not looked at before all columns are priced.
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
        self.settling, self._descent, self._limit = True, descent, limit or SupportLimit(math.inf)
        most = float(self.sparse.excess(self.correlations).max(initial=0.0))
        self.floor = max(0.5 * most, self.level.least)
        self.signs = 0.0 * self.signs

    def propose(self, x: Vector, residual: Vector) -> None:
        """Make a point that somebody else has found the present solution; its residual is a dual point."""
        new = np.setdiff1d(np.flatnonzero(x), self.columns.indices)
        self._extend(new, np.zeros(new.size))
        at, alpha = x[self.columns.indices], self.level.least
        dual = residual / alpha
        solution = Solution(at, np.sign(at), alpha, residual, dual, reached=True, settled=False)
        self.accept(solution, self.columns)
        self._price_all(solution)

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

    def _restart_with(self, signs: Vector) -> None:
        new = np.setdiff1d(np.flatnonzero(signs), self.columns.indices)
        self._extend(new, np.zeros(new.size))
        self.signs, self.floor, self._guided = signs[self.columns.indices], 0.0, True

    def round(self) -> None:
        """Solve on the present columns, then price all of them."""
        self.bench.tick()
        known = self.solution is not None and self.missing.size == 0
        self._thorough = self.settling or self._along_path or known
        solution = self._solve(self._thorough)
        everywhere, excess = self._price_all(solution)
        self._missing_size = excess[self.missing]
        self._missing_sign = np.sign(everywhere[self.missing])
        if solution.reached:
            more = self.missing.size > self._lacking
            self._diverging = self._diverging + 1 if more else 0
            self._lacking = self.missing.size
        if not solution.reached or self._any_alpha:
            self._limit.count(np.count_nonzero(solution.signs) / self.columns.rank)
        if not solution.reached:
            self._lower_floor(solution)

    def _price_all(self, solution: Solution) -> tuple[Vector, Vector]:
        """Return the correlations of all columns, and those outside of the set in units of the weights.

        As long as columns are missing, numbers in single precision tell well enough which: on a device a sum
        of them in double precision takes several times as long. Then there is no bound yet.
        """
        self._rough = self._single and not self._thorough
        everywhere = self.pulled(solution.dual, rough=self._rough)
        excess = self.sparse.excess(everywhere) if self._rough else self.price(solution, everywhere)
        self.latest = (solution.alpha, excess.copy())
        excess[self.columns.indices] = 0.0
        beyond = SETTINGS.missing_single if self._rough else SETTINGS.missing
        self.missing = np.flatnonzero(excess > 1.0 + beyond)
        return everywhere, excess

    def _lower_floor(self, solution: Solution) -> None:
        """Reduce alpha: in every round, or only where the signs have (almost) settled."""
        few = self.missing.size <= SETTINGS.few * np.count_nonzero(solution.signs)
        if not self.settling or (solution.settled and few):
            self.floor = max(self.floor * self._descent, self.level.least)

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
        if solution.reached:
            if self._any_alpha and self._limit.exceeded:
                return True
            lost = self._diverging >= SETTINGS.diverging and not (self.settling or self._guided)
            return lost or (self._thorough and self.missing.size == 0)
        if self.settling and not solution.settled and self.missing.size == 0:
            return True
        return self._limit.exceeded

    def add_missing(self) -> None:
        """Add the columns that violate most."""
        self._add(self.missing, self._missing_size, self._missing_sign)


def newton_rounds(search: Any, rounds: int) -> Candidates:
    """Go round with a `ColumnSearch` or `BlockSearch` until it is done, or makes no further progress."""
    with suppress(StalledError):
        for _ in range(rounds):
            search.round()
            if search.complete or search.bench.exhausted:
                yield search.candidate(search.bench)
                # The driver asks for more: only rounding is a reason to stop now.
                search.done = search.bench.exhausted or (search.exact and search.missing.size == 0)
            if search.done or search.stuck:
                return
            search.add_missing()
