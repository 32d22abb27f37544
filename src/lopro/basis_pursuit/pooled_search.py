"""A working-set search for matrices that are expensive to read: as much as possible between two passes.

The problem is solved on the columns of a pool, completely, before the next pass: a pass tells which other
columns are missing and how far the solution is from the optimum. Those that violate, and those that are near
to it, are fetched together. While sigma is out of reach, alpha is reduced where few columns are
missing: then signs are right, and Newton's method does not diverge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.basis_pursuit.column_search import SETTINGS as COMMON
from lopro.basis_pursuit.column_search import SignSearch
from lopro.basis_pursuit.columns import Vector, largest
from lopro.basis_pursuit.pool import Asking, Pool, Question
from lopro.core.arrays import Array, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.threads import one_pool
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["PooledSearch"]


@dataclass(frozen=True)
class Settings:
    """What steers searches on a pool of columns."""

    #: What a pass leaves of alpha while sigma is out of reach; squared after each pass that changes little.
    descent: float = 0.3
    #: What is fetched: columns with correlations of this size, at most so many times the nonzeros.
    near: float = 0.6
    growth: float = 2.0
    #: Solutions on the pool between two passes.
    inner_rounds: int = 80
    #: Of the largest alpha: below it, the end of the path is tried.
    least_floor: float = 1e-9
    #: Of the largest correlation: products of the same data agree to this, in single precision too.
    same: float = 1e-6


SETTINGS = Settings()


class PooledSearch(SignSearch):
    """One search on the columns of a pool; what it needs of the matrix it asks for.

    Parameters
    ----------
    problem, target
        As for `Search`.
    pool : Pool
        Shared with other searches on the same matrix.
    tick : callable
        Called once for every pass that prices all columns; returns whether there may be more of them.
    """

    def __init__(
        self,
        problem: Problem,
        target: Target,
        pool: Pool,
        tick: Callable[[], bool] = lambda: True,
    ) -> None:
        super().__init__(problem, target)
        self.pool, self._tick = pool, tick
        self._descent = SETTINGS.descent
        #: Whether nothing more can be done here.
        self.stuck = False
        #: Called when the columns for the next round are there.
        self.after_round: Callable[[], None] = lambda: None

    def begin(self, x0: Array, first: int | None) -> Asking:
        """Ask for the columns that correlate most with ``y``, and for those of the start."""
        self.correlations = yield Question(dual=self.y)
        self.learn_units(self.correlations)
        size = self.sparse.excess(self.correlations)
        self.most = float(size.max(initial=0.0))
        count = min(self.A.shape[0] // 4, self.pool.most) if first is None else first
        start = to_numpy(x0).astype(np.float64, copy=False)
        given, likely = np.flatnonzero(start), largest(size, max(10, count))
        likely = likely[size[likely] > 0.0]
        yield Question(columns=np.union1d(given, likely))
        self.floor = 0.0 if given.size else self._first_floor(self.most)
        if given.size:
            self._extend(given, np.sign(start[given]))
        else:
            chosen = np.sort(likely[largest(size[likely], max(10, self.A.shape[0] // 10))])
            self._extend(chosen, self._first_signs(chosen, size))

    def state(self) -> dict[str, Any]:
        """Return what has to be known to go on from here: small beside the columns, which are not in it."""
        return {
            "correlations": self.correlations,
            "held": self.pool.indices,
            "in_use": self.columns.indices,
            "signs": self.signs,
            "path": np.array([self.floor, self._descent]),
        }

    def go_on_from(self, state: dict[str, Any], refusal: str) -> Asking:
        """Ask for the columns that were held in a state, and take up the search there.

        The same pass multiplies ``y``; a state of another matrix, which has other products, is refused.
        """
        held = np.union1d(state["held"], state["in_use"])
        self.correlations = yield Question(dual=self.y, columns=held)
        saved, size = state["correlations"], float(np.abs(self.correlations).max(initial=0.0))
        # Products of the same data differ by the order of their sums: by some roundings.
        if not np.abs(saved - self.correlations).max(initial=0.0) <= SETTINGS.same * size:
            raise ValueError(refusal)
        self.learn_units(self.correlations)
        self.most = float(self.sparse.excess(self.correlations).max(initial=0.0))
        self.floor, self._descent = (float(number) for number in state["path"])
        self._extend(state["in_use"], state["signs"])

    def rounds(self, most: int) -> Asking:
        """Solve on the pool, price all columns, fetch what is missing; until complete or stuck."""
        for _ in range(most):
            go_on = self._tick()
            self._settle()
            assert self.solution is not None
            everywhere = yield Question(dual=self.solution.dual)
            wanted = self._to_fetch(everywhere)
            if self.complete or self.stuck or not go_on:
                return
            if wanted.size:
                yield Question(columns=wanted)
            self.after_round()
        self.stuck = True

    def _to_fetch(self, everywhere: Vector) -> Vector:
        """Learn from the correlations of all columns; return which of them to fetch."""
        solution = self.solution
        assert solution is not None
        excess = self.price(solution, everywhere)
        self.pool.note(excess.copy())
        excess[self.pool.indices] = 0.0
        self.missing = np.flatnonzero(excess > 1.0 + COMMON.missing)
        nonzeros = int(np.count_nonzero(self.signs))
        few = self.missing.size <= COMMON.few * nonzeros
        if solution.reached:
            self.stuck = self.missing.size == 0
        elif few:
            self.stuck = self.floor == 0.0  # the end of the path, and sigma was not reached
            self.floor = max(self.floor * self._descent, self.level.least)
            if self.floor <= SETTINGS.least_floor * self.most:
                self.floor = 0.0
        # Where little changes on the way down, steps become longer.
        self._descent = self._descent**2 if few else SETTINGS.descent
        near = np.flatnonzero(excess > SETTINGS.near)
        wanted = near[largest(excess[near], self._room(nonzeros))]
        self.pool.room_for(len(wanted), self.columns.indices)
        return wanted

    def _room(self, nonzeros: int) -> int:
        """Return how many columns to fetch: some times the nonzeros, fewer where memory is short."""
        spare = self.pool.most - len(self.columns)
        return max(10, nonzeros // 2, min(int(SETTINGS.growth * nonzeros), spare))

    def _settle(self) -> None:
        """Solve on the columns of the pool for the present floor of alpha."""
        thorough = False
        for _ in range(SETTINGS.inner_rounds):
            current_deadline().check()
            solution = self._solve(thorough)
            with one_pool():
                pulled = self.pool.adjoint(solution.dual)
            excess = self._excess_in_pool(pulled)
            missing = np.flatnonzero(excess > 1.0 + COMMON.missing)
            if thorough and missing.size == 0:
                return
            thorough = missing.size == 0
            self._add(self.pool.indices[missing], excess[missing], np.sign(pulled[missing]))

    def read(self, indices: Vector) -> Array:
        return self.pool.read(indices)

    def _excess_in_pool(self, pulled: Vector) -> Vector:
        """Return correlations in units of the weights; those of columns in use do not count."""
        everywhere = np.zeros(self.A.shape[1])
        everywhere[self.pool.indices] = pulled
        everywhere[self.columns.indices] = 0.0
        return np.asarray(self.sparse.excess(everywhere))[self.pool.indices]
