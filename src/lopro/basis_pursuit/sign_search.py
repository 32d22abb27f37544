"""Columns in use with the signs of their coefficients, and solutions on them.

With a pool, more columns are held than are in use: the problem is solved on all of them before the next pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lopro.basis_pursuit.columns import Vector, columns_to_add, largest
from lopro.basis_pursuit.device_columns import column_set
from lopro.basis_pursuit.pool import Pool
from lopro.basis_pursuit.search import Search
from lopro.basis_pursuit.support_newton import Solution, SupportNewton
from lopro.core.arrays import Array
from lopro.core.deadline import current_deadline
from lopro.core.threads import one_pool
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["SETTINGS", "SignSearch"]


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
    #: Of the first alpha: with a penalty, columns that correlate less with y are not used at first, beyond a
    #: few. A sparse 20000 x 200000 at a tenth reads 130 instead of 2000 columns, in a third of the time.
    likely: float = 2.0
    fewest: int = 10
    #: Columns without a sign leave once they are this share of the set.
    unused: float = 0.1
    #: Of alpha: along a path, columns with smaller correlations are not read before they violate.
    least_share: float = 0.5
    #: With a pool: what a pass leaves of alpha; squared after each pass that changes little.
    pass_descent: float = 0.3
    #: With a pool: columns with correlations of this size are fetched, at most so many times the nonzeros.
    near: float = 0.6
    growth: float = 2.0
    #: With a pool: solutions between two passes.
    inner_rounds: int = 80
    #: With a pool, of the largest alpha: below it, the end of the path is tried.
    least_floor: float = 1e-9


SETTINGS = Settings()


class SignSearch(Search):
    """Columns in use, the signs of their coefficients, and Newton's method on them.

    Parameters
    ----------
    problem, target
        As for `Search`.
    pool : Pool, optional
        The columns at hand; all of them by default.
    before : SignSearch, optional
        A search for another alpha, on the same matrix and right-hand side, whose columns are used again.
    """

    def __init__(
        self, problem: Problem, target: Target, pool: Pool | None, before: SignSearch | None
    ) -> None:
        super().__init__(problem, target)
        self._held = pool
        self.level = self.sparse.level(self._margin)
        self.signs, self.floor = np.empty(0), 0.0
        if before is None:
            self.columns = column_set(
                self.A, self._like, self.y, self.sparse.weights, self.level.equations
            )
            self.support_newton = SupportNewton(self.columns, self.level, self.sparse.nonneg)
        else:
            self.correlations, self._stretch = before.correlations, before._stretch
            self.columns, self.signs = before.columns, before.signs
            self.support_newton = replace(before.support_newton, level=self.level)
        self.columns.ridge = self.sparse.ridge
        #: Whether alpha comes down only where signs have settled; whether the search began on a path.
        self.settling, self._along_path = pool is not None, False

    def read(self, indices: Vector) -> Array:
        return super().read(indices) if self._held is None else self._held.read(indices)

    @property
    def _most(self) -> float:
        return self.columns.most

    def _solve_at_hand(self) -> Solution:
        """Solve on the present columns; with a pool, until no other column of it is missing."""
        if self._held is None:
            known = self.solution is not None and self.missing.size == 0
            return self._solve(self.settling or self._along_path or known)
        thorough = False
        for _ in range(SETTINGS.inner_rounds):
            current_deadline().check()
            solution = self._solve(thorough)
            with one_pool():
                pulled = self._held.adjoint(solution.dual)
            excess = self._excess_in_pool(self._held, pulled)
            missing = np.flatnonzero(excess > 1.0 + SETTINGS.missing)
            if thorough and missing.size == 0:
                break
            thorough = missing.size == 0
            self._add(self._held.indices[missing], excess[missing], np.sign(pulled[missing]))
        return solution

    def _excess_in_pool(self, pool: Pool, pulled: Vector) -> Vector:
        """Return correlations in units of the weights; those of columns in use do not count."""
        everywhere = np.zeros(self.A.shape[1])
        everywhere[pool.indices] = pulled
        everywhere[self.columns.indices] = 0.0
        return np.asarray(self.sparse.excess(everywhere))[pool.indices]

    def _solve(self, thorough: bool) -> Solution:
        """Solve on the present columns with alpha at or above the floor, and make that the solution."""
        self._thorough = thorough
        steps = SETTINGS.thorough_steps if thorough else SETTINGS.guiding_steps
        with one_pool():
            solution = self.support_newton.solve(self.signs, self.floor, steps)
        if solution.reached:
            self.floor = 0.0
        self.accept(solution, self.columns)
        self.signs = solution.signs
        return solution

    def _add(self, indices: Vector, excess: Vector, signs: Vector) -> None:
        """Add the columns that violate most, at most a part as many as there are nonzeros."""
        used = self.signs != 0.0
        if np.count_nonzero(used) < (1.0 - SETTINGS.unused) * len(self.columns):
            # Columns without a sign would cost time and memory.
            self.columns.keep(used)
            self.signs = self.signs[used]
        part = SETTINGS.added_part if self.level.least == 0.0 else SETTINGS.added_part_at_penalty
        kept = largest(excess, columns_to_add(self.signs, self.columns.rank, part))
        if kept.size:
            kept.sort()  # memory is read in its order
            self._extend(indices[kept], signs[kept])

    def _extend(self, indices: Vector, signs: Vector) -> None:
        self.columns.extend(indices, self.read, self.correlations[indices])
        self.signs = np.concatenate([self.signs, signs])
