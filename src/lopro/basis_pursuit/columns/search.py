"""A working-set search: solve on the columns of the set, price all columns, add those that violate.

Each round is one solution on the set and one product with all columns, which shows the missing columns and
proves a lower bound. While sigma is out of reach alpha is reduced from round to round, or along the path of
solutions, where the signs of a solution predict those of the next.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.basis_pursuit.columns import column_set as columns
from lopro.basis_pursuit.columns import support_newton
from lopro.basis_pursuit.columns.pieces import Vector, largest
from lopro.basis_pursuit.columns.pool import PassRequest, PassRequests
from lopro.basis_pursuit.columns.signed_search import SignedSearch
from lopro.basis_pursuit.columns.support_newton import Solution
from lopro.core.arrays import Array, is_single, to_numpy
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["SETTINGS", "ColumnSearch"]


@dataclass(frozen=True)
class Settings:
    """Settings of working-set searches.

    Pairs of figures are the products of the 62 instances of `python -m benchmarks.constants basis_pursuit`
    that use this search, with a tenth and with ten times the value, relative to those with the value.
    """

    #: The first alpha as a share of the largest (0.99, 1.42), and the factor of alpha in a round while sigma
    #: is out of reach (1.00, 1.21).
    start: float = 0.1
    descent: float = 0.1
    #: The largest number of missing columns, as a share of the nonzeros, for settled signs (1.01, 1.23).
    few: float = 0.2
    #: A column is missing in single precision if its correlation exceeds its weight by this share: about a
    #: hundred roundings.
    missing_single: float = 1e-5
    #: Consecutive rounds with more missing columns than before, after which the search is abandoned (1.35
    #: with none, 1.01).
    diverging: int = 2
    #: The share of the rows that the support may fill (1.04, 1.03, and 3.8 for one instance of equations),
    #: and the number of rounds above sigma in which it may exceed this.
    limit: tuple[float, int] = (0.5, 0)
    #: With a penalty, in units of the first alpha: columns that correlate less with y are not used at first,
    #: except a few. A sparse 20000 x 200000 at a tenth reads 130 instead of 2000 columns, in a third of the
    #: time.
    likely: float = 2.0


SETTINGS = Settings()


class ColumnSearch(SignedSearch):
    """The state of one search whose coefficients have signs, on a matrix in memory.

    Parameters
    ----------
    problem, target
        As for `ResidualSearch`.
    tick : callable
        Called once for every product with all columns.
    before : ColumnSearch, optional
        A search for another alpha, on the same matrix and right-hand side, whose columns are used again.
    """

    def __init__(
        self,
        problem: Problem,
        target: Target,
        tick: Callable[[], bool] = lambda: True,
        before: ColumnSearch | None = None,
    ) -> None:
        super().__init__(problem, target, before)
        self._tick = tick
        if before is not None:
            self.correlations, self._stretch = before.correlations, before._stretch
        #: Whether alpha is reduced only where signs have settled; whether the search continues another one.
        self.settling, self._along_path = False, False
        #: Whether products in single precision may show the missing columns; whether the last one was such.
        self._single = is_single(self._like) and not isinstance(self._like, np.ndarray)
        self._rough = self._single
        #: The last alpha and the correlations of all columns there; those of the search before.
        self.latest: tuple[float, Vector] | None = None
        self._before = None if before is None else before.latest
        #: The factor of alpha in a round.
        self.descent = SETTINGS.descent
        self._limit, self._full_rounds = SETTINGS.limit, 0
        # The number of columns that the last solution at sigma lacked, and of consecutive rounds in which it
        # increased. From the signs that another method has found it may increase and decrease.
        self._lacking, self._diverging = math.inf, 0

    # The start.

    def multiply_y(self, columns: Vector | None = None) -> PassRequests:
        """Request the correlations of all columns with ``y``, and some columns, in one pass."""
        self.correlations = yield PassRequest(dual=self.y, columns=columns)
        self.learn_units(self.correlations)

    def begin(self, x0: Array, first: int | None) -> PassRequests:
        """Begin with the support of the start and the columns that correlate most with ``y``."""
        if self._before is not None:
            self._begin_after(*self._before)
            return
        if not self.correlations.size:
            yield from self.multiply_y()
        x0 = to_numpy(x0).astype(np.float64, copy=False)
        if self.sparse.nonneg:
            x0 = np.maximum(x0, 0.0)  # a negative sign would never be corrected
        fewest = columns.SETTINGS.fewest
        count = max(fewest, min(self.A.shape) // 10) if first is None else first
        given, size = np.flatnonzero(x0), self.sparse.excess(self.correlations)
        yield from self._fetch_first(given, size, count, first is not None)
        largest_alpha = float(size.max(initial=0.0))
        self.floor = 0.0 if given.size else max(SETTINGS.start * largest_alpha, self.level.least)
        likely = largest(size, count)
        if self.level.least > 0.0:
            few = largest(size, min(count, fewest))
            likely = np.union1d(few, likely[size[likely] > SETTINGS.likely * self.floor])
        chosen = np.union1d(given, likely[size[likely] > 0.0])
        signs = np.sign(self.correlations[chosen])
        signs = np.sign(x0[chosen]) if given.size else np.where(size[chosen] > self.floor, signs, 0)
        self.extend(chosen, signs)

    def _fetch_first(self, given: Vector, size: Vector, count: int, exactly: bool) -> PassRequests:
        """Fetch columns for the start; all columns of a matrix in memory are there."""
        yield from ()

    def _begin_after(self, alpha: float, excess: Vector) -> None:
        """Begin with the signs of the previous search, and the columns that may get one on the way.

        Correlations change by at most the change of alpha, usually (the sequential strong rule of Tibshirani
        and others, 2012): those below ``2 lam - alpha`` are not read before all columns are priced.
        """
        self.floor, self._before, self._along_path = 0.0, None, True
        share = 2.0 * self.level.least / alpha - 1.0
        excess[self.columns.indices] = 0.0
        near = np.flatnonzero(excess > max(share, 0.0))
        new = near[largest(excess[near], self._room(1))]
        new.sort()  # in the order of memory
        self.extend(new, np.zeros(new.size))

    def follow_path(self, descent: float, limit: tuple[float, int] = (math.inf, 0)) -> None:
        """Restart at half of the largest alpha; multiply it by ``descent`` wherever signs have settled.

        The search is stuck once the support has filled more than a share of the rows in more than a number of
        rounds above sigma, the two numbers of ``limit``.
        """
        self.settling, self.descent = True, descent
        self._limit, self._full_rounds = limit, 0
        most = float(self.sparse.excess(self.correlations).max(initial=0.0))
        self.floor = max(0.5 * most, self.level.least)
        self.signs = 0.0 * self.signs

    def propose(self, x: Vector, residual: Vector) -> None:
        """Make a point of another method the present solution; its residual is a dual point."""
        new = np.setdiff1d(np.flatnonzero(x), self.columns.indices)
        self.extend(new, np.zeros(new.size))
        at, alpha = x[self.columns.indices], self.level.least
        dual = residual / alpha
        solution = Solution(at, np.sign(at), alpha, residual, dual, reached=True, settled=False)
        self._accept_on_columns(solution)
        self._rough = False
        self._price_all(solution, self.pulled(dual))

    def resume_with(self, signs: Vector) -> None:
        super().resume_with(signs)
        self.settling, self._limit, self._full_rounds = False, SETTINGS.limit, 0

    # A round: solve, price, add.

    def serve(self, requests: PassRequests) -> None:
        """Run one of the generators here and answer all its requests."""
        reply: Any = None
        with contextlib.suppress(StopIteration):
            while True:
                reply = self._answer(requests.send(reply))

    def _answer(self, request: PassRequest) -> Any:
        """Return the correlations of all columns with a dual point."""
        return None if request.dual is None else self.pulled(request.dual, rough=self._rough)

    def round(self) -> None:
        """Solve on the columns of the set, then price all columns."""
        self.serve(self._solve_and_price())

    def add_missing(self) -> None:
        """Add the columns that violate most."""
        self._add(self.missing, self._excess[self.missing], self._missing_signs)

    def _solve_and_price(self) -> PassRequests:
        self._tick()
        solution = self._solve_on_set()
        # As long as columns are missing, products in single precision show them well enough: on a device sums
        # in double precision take several times as long. They prove no bound.
        self._rough = self._single and not self._thorough
        everywhere = yield PassRequest(dual=solution.dual)
        self._price_all(solution, everywhere)
        if solution.reached:
            more = self.missing.size > self._lacking
            self._diverging = self._diverging + 1 if more else 0
            self._lacking = self.missing.size
        if not solution.reached or self._any_alpha:
            share = np.count_nonzero(solution.signs) / self.columns.rank
            self._full_rounds += int(share > self._limit[0])
        if not solution.reached:
            self._lower_floor(solution)

    def _price_all(self, solution: Solution, everywhere: Vector) -> None:
        """Improve the bound by the correlations of all columns, and note the missing columns."""
        excess = self.sparse.excess(everywhere) if self._rough else self.price(solution, everywhere)
        self.latest = (solution.alpha, excess.copy())
        excess[self._known] = 0.0
        beyond = SETTINGS.missing_single if self._rough else support_newton.SETTINGS.close
        self.missing = np.flatnonzero(excess > 1.0 + beyond)
        self._excess, self._missing_signs = excess, np.sign(everywhere[self.missing])

    @property
    def _known(self) -> Vector:
        """The columns that the solution takes into account."""
        return self.columns.indices

    def _few_missing(self, solution: Solution) -> bool:
        """Whether so few columns are missing that the signs count as settled."""
        return bool(self.missing.size <= SETTINGS.few * np.count_nonzero(solution.signs))

    def _lower_floor(self, solution: Solution) -> None:
        """Reduce alpha: in every round, or only where the signs have (almost) settled."""
        if not self.settling or (solution.settled and self._few_missing(solution)):
            self.floor = max(self.floor * self.descent, self.level.least)

    def _solve_on_set(self) -> Solution:
        known = self.solution is not None and self.missing.size == 0
        return self._solve(self.settling or self._along_path or known)

    # Progress.

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

        Either no column is missing and the set is not solved, or the method diverges: more and more columns
        are missing, or sigma is out of reach although the support fills many of the rows.
        """
        solution = self.solution
        assert solution is not None
        full = self._full_rounds > self._limit[1]
        if solution.reached:
            if self._any_alpha and full:
                return True
            lost = self._diverging >= SETTINGS.diverging and not (self.settling or self._guided)
            return lost or (self._thorough and self.missing.size == 0)
        if self.settling and not solution.settled and self.missing.size == 0:
            return True
        return full
