"""A working-set search for matrices that are far away: as much as possible between two looks at them.

The problem is solved on the columns of a pool, completely, before the next pass: a pass tells which other
columns are missing and how far the solution is from the optimum. Those that violate, and those that are near
to it, are fetched together. While sigma is out of reach the path is followed downwards, and a step further
down is made where few columns are missing: then signs are right, and Newton's method does not go astray.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lopro.basis_pursuit.columns import Vector, columns_to_add, largest
from lopro.basis_pursuit.pool import Asking, Pool, Question
from lopro.basis_pursuit.search import Search
from lopro.core.arrays import Array, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.threads import one_pool
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["PooledSearch"]

_NEWTON_STEPS, _HASTY_STEPS = 30, 2
_START, _DESCENT = 0.1, 0.3  # of alpha, while sigma is out of reach
_FEW = 0.2  # of the nonzeros: so many missing columns do not lead astray
_NEAR, _GROWTH = 0.6, 2.0  # what is fetched: correlations of this size, so many times the nonzeros
_INNER_ROUNDS = 80
_LEAST_FLOOR = 1e-9  # of the largest alpha
_SAME = 1e-6  # of the largest correlation: products of the same data agree to this, in single precision too


class PooledSearch(Search):
    """One search on the columns of a pool; what it needs of the matrix it asks for.

    Parameters
    ----------
    problem, target
        As for `Search`.
    pool : Pool
        Shared with other searches on the same matrix.
    tick : callable
        Called once for every look at all columns; returns whether there may be more of them.
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
        self._descent = _DESCENT
        #: Whether nothing more can be done here.
        self.stuck = False
        #: Called when the columns for the next round are there.
        self.after_round: Callable[[], None] = lambda: None

    @property
    def complete(self) -> bool:
        """Whether the solution is good enough to be looked at."""
        solution = self.solution
        if solution is None or not solution.reached:
            return False
        return self.good or (solution.settled and self.missing.size == 0)

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
        self.floor = 0.0 if given.size else _START * self.most
        if given.size:
            self._take_in(given, np.sign(start[given]))
        else:
            chosen = np.sort(likely[largest(size[likely], max(10, self.A.shape[0] // 10))])
            signs = np.sign(self.correlations[chosen])
            self._take_in(chosen, np.where(size[chosen] > self.floor, signs, 0.0))

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
        if not np.abs(saved - self.correlations).max(initial=0.0) <= _SAME * size:
            raise ValueError(refusal)
        self.learn_units(self.correlations)
        self.most = float(self.sparse.excess(self.correlations).max(initial=0.0))
        self.floor, self._descent = (float(number) for number in state["path"])
        self._take_in(state["in_use"], state["signs"])

    def rounds(self, most: int) -> Asking:
        """Solve on the pool, look at all columns, fetch what is missing; until complete or stuck."""
        for _ in range(most):
            go_on = self._tick()
            self._settle()
            assert self.solution is not None
            everywhere = yield Question(dual=self.solution.dual)
            wanted = self._look(everywhere)
            if self.complete or self.stuck or not go_on:
                return
            if wanted.size:
                yield Question(columns=wanted)
            self.after_round()
        self.stuck = True

    def _look(self, everywhere: Vector) -> Vector:
        """Learn from the correlations of all columns; return which of them to fetch."""
        solution = self.solution
        assert solution is not None
        excess = self.price(solution, everywhere)
        self.pool.note(excess.copy())
        excess[self.pool.indices] = 0.0
        self.missing = np.flatnonzero(excess > 1.0 + 1e-9)
        nonzeros = int(np.count_nonzero(self.signs))
        few = self.missing.size <= _FEW * nonzeros
        if solution.reached:
            self.stuck = self.missing.size == 0
        elif few:
            self.stuck = self.floor == 0.0  # the end of the path, and sigma was not reached
            self.floor *= self._descent
            if self.floor <= _LEAST_FLOOR * self.most:
                self.floor = 0.0
        # Where little changes on the way down, steps become longer.
        self._descent = self._descent**2 if few else _DESCENT
        near = np.flatnonzero(excess > _NEAR)
        wanted = near[largest(excess[near], self._room(nonzeros))]
        self.pool.room_for(len(wanted), self.columns.indices)
        return wanted

    def _room(self, nonzeros: int) -> int:
        """Return how many columns to fetch: some times the nonzeros, fewer where memory is short."""
        spare = self.pool.most - len(self.columns)
        return max(10, nonzeros // 2, min(int(_GROWTH * nonzeros), spare))

    def _settle(self) -> None:
        """Solve on the columns of the pool for the present floor of alpha."""
        thorough = False
        for _ in range(_INNER_ROUNDS):
            current_deadline().check()
            # While columns are missing a solution is only a guide to more of them: two steps will do.
            steps = _NEWTON_STEPS if thorough else _HASTY_STEPS
            with one_pool():
                solution = self.support_newton.solve(self.signs, self.floor, steps)
                self.accept(solution)
                pulled = self.pool.adjoint(solution.dual)
            if solution.reached:
                self.floor = 0.0
            excess = self._excess_in_pool(pulled)
            lacking = np.flatnonzero(excess > 1.0 + 1e-9)
            if thorough and lacking.size == 0:
                return
            thorough = lacking.size == 0
            self._drop_unused()
            new = lacking[largest(excess[lacking], columns_to_add(self.signs, len(self.y), 3))]
            if new.size:
                self._take_in(self.pool.indices[new], np.sign(pulled[new]))

    def _excess_in_pool(self, pulled: Vector) -> Vector:
        """Return correlations in units of the weights; those of columns in use do not count."""
        everywhere = np.zeros(self.A.shape[1])
        everywhere[self.pool.indices] = pulled
        everywhere[self.columns.indices] = 0.0
        return np.asarray(self.sparse.excess(everywhere))[self.pool.indices]

    def _drop_unused(self) -> None:
        """Let go of columns that were taken in for nothing."""
        used = self.signs != 0.0
        if np.count_nonzero(used) < 0.9 * len(self.columns):
            self.columns.keep(used)
            self.signs = self.signs[used]

    def _take_in(self, indices: Vector, signs: Vector) -> None:
        self.columns.extend(indices, self.pool.read, self.correlations[indices])
        self.signs = np.concatenate([self.signs, signs])
