"""A working-set search on a matrix that is expensive to read: as few passes as possible.

The problem is solved completely on the columns of a pool before the next pass over the matrix, which shows
the missing columns; those that violate and those that are close to a violation are fetched together. Alpha is
reduced where few columns are missing: then the signs are right, and Newton's method does not diverge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.basis_pursuit.columns import column_set as columns
from lopro.basis_pursuit.columns import support_newton
from lopro.basis_pursuit.columns.pieces import Vector, largest
from lopro.basis_pursuit.columns.pool import PassRequest, PassRequests, Pool
from lopro.basis_pursuit.columns.search import ColumnSearch
from lopro.basis_pursuit.columns.support_newton import Solution
from lopro.core.arrays import Array
from lopro.core.deadline import current_deadline
from lopro.core.threads import one_pool
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["SETTINGS", "PooledSearch"]


@dataclass(frozen=True)
class Settings:
    """Settings of searches on a pool; figures as those of `columns.search.Settings`."""

    #: The factor of alpha after a pass; squared after each pass with few missing columns (1.00, seven
    #: certificates lost).
    descent: float = 0.3
    #: Columns whose correlation is at least this share of their weight are fetched (1.00, one certificate
    #: lost), at most this multiple of the nonzeros (1.01, 1.00).
    near: float = 0.6
    growth: float = 2.0
    #: The maximal number of solutions between two passes (1.37, 0.99).
    inner_rounds: int = 80


SETTINGS = Settings()


class PooledSearch(ColumnSearch):
    """The state of one search on the columns of a pool.

    Parameters
    ----------
    problem, target, tick
        As for `ColumnSearch`.
    pool : Pool
        The columns that have been read, shared with other searches on the same matrix.
    """

    def __init__(
        self, problem: Problem, target: Target, tick: Callable[[], bool], pool: Pool
    ) -> None:
        super().__init__(problem, target, tick)
        self.pool = pool
        self.settling, self.descent = True, SETTINGS.descent
        self._single = self._rough = False
        #: Whether the end of the path was reached, and sigma was not.
        self._at_end = False
        #: Called when the columns for the next round have been read.
        self.after_round: Callable[[], None] = lambda: None

    def read(self, indices: Vector) -> Array:
        return self.pool.read(indices)

    def rounds(self, most: int) -> PassRequests:
        """Make rounds until the search is complete or stuck."""
        for _ in range(most):
            yield from self._solve_and_price()
            if self.complete or self.stuck:
                return
            yield from self._fetch()

    def add_missing(self) -> None:
        """Have the columns fetched that violate most, and those that are close to a violation."""
        self.serve(self._fetch())

    def _answer(self, request: PassRequest) -> Any:
        return self.pool.answer([request])[0]

    @property
    def _known(self) -> Vector:
        return self.pool.indices

    def _fetch_first(self, given: Vector, size: Vector, count: int, exactly: bool) -> PassRequests:
        if not exactly:
            count = max(count, min(self.A.shape[0] // 4, self.pool.most))
        near = largest(size, count)
        yield PassRequest(columns=np.union1d(given, near[size[near] > 0.0]))

    def _fetch(self) -> PassRequests:
        """Fetch a multiple of the nonzeros, fewer where memory is short."""
        near = np.flatnonzero(self._excess > SETTINGS.near)
        nonzeros = int(np.count_nonzero(self.signs))
        spare = self.pool.most - len(self.columns)
        several = min(int(SETTINGS.growth * nonzeros), spare)
        count = max(columns.SETTINGS.fewest, nonzeros // 2, several)
        fetched = near[largest(self._excess[near], count)]
        self.pool.room_for(len(fetched), self.columns.indices)
        if fetched.size:
            yield PassRequest(columns=fetched)
        self.after_round()

    def _price_all(self, solution: Solution, everywhere: Vector) -> None:
        super()._price_all(solution, everywhere)
        assert self.latest is not None
        self.pool.note(self.latest[1])

    def _lower_floor(self, solution: Solution) -> None:
        """Reduce alpha where few columns are missing, by larger steps from pass to pass."""
        few = self._few_missing(solution)
        if few:
            self._at_end = self.floor == 0.0
            most = float(self.sparse.excess(self.correlations).max())
            end = support_newton.SETTINGS.least_alpha * most
            lowered = max(self.floor * self.descent, self.level.least)
            self.floor = lowered if lowered > end else 0.0
        self.descent = self.descent**2 if few else SETTINGS.descent

    def _solve_on_set(self) -> Solution:
        """Solve until no other column of the pool is missing."""
        thorough = False
        for _ in range(SETTINGS.inner_rounds):
            current_deadline().check()
            solution = self._solve(thorough)
            with one_pool():
                pulled = self.pool.adjoint(solution.dual)
            excess = self._excess_in_pool(pulled)
            missing = np.flatnonzero(excess > 1.0 + support_newton.SETTINGS.close)
            if thorough and missing.size == 0:
                break
            thorough = missing.size == 0
            self._add(self.pool.indices[missing], excess[missing], np.sign(pulled[missing]))
        return solution

    def _excess_in_pool(self, pulled: Vector) -> Vector:
        """Return correlations in units of the weights, 0 for columns in use."""
        everywhere = np.zeros(self.A.shape[1])
        everywhere[self.pool.indices] = pulled
        everywhere[self.columns.indices] = 0.0
        return np.asarray(self.sparse.excess(everywhere))[self.pool.indices]

    @property
    def stuck(self) -> bool:
        """Whether another pass would not help: no column is missing, or the end of the path was reached."""
        solution = self.solution
        assert solution is not None
        return self.missing.size == 0 if solution.reached else self._at_end
