"""A working-set search: solve on the columns of the set, price all columns, add those that violate.

The search requests products and columns of the matrix. A matrix in memory answers at once: there each
round is one solution and one product. Where the matrix is expensive to read, a pool of columns answers, and
the problem is solved on those of the pool, completely, before the next pass, which shows what other columns
are missing; those that violate, and those that are near to it, are fetched together. While sigma is out of
reach, alpha is then reduced where few columns are missing: signs are right, and Newton's method does not
diverge.
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lopro.basis_pursuit.columns import column_set, columns_to_add
from lopro.basis_pursuit.pieces import Vector, largest
from lopro.basis_pursuit.pool import PassRequest, PassRequests, Pool
from lopro.basis_pursuit.search import Search
from lopro.basis_pursuit.support_newton import Solution, SupportNewton
from lopro.core.arrays import Array, is_single, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.threads import one_pool
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["SETTINGS", "Checkpoint", "ColumnSearch"]


@dataclass(frozen=True)
class Settings:
    """Settings of working-set searches."""

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
    #: Share of the rows that the support may fill, and the rounds above sigma that it may fill more.
    limit: tuple[float, int] = (0.5, 0)
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
    #: With a pool, of the largest alpha: below it, the end of the path is attempted.
    least_floor: float = 1e-9


SETTINGS = Settings()


class ColumnSearch(Search):
    """The state of one search whose coefficients have signs.

    Parameters
    ----------
    problem, target
        As for `Search`.
    tick : callable
        Called once for every product with all columns.
    pool : Pool, optional
        The columns at hand, shared with other searches on the same matrix; None where all of them are.
    before : ColumnSearch, optional
        A search for another alpha, on the same matrix in memory and right-hand side, whose columns are used
        again.
    """

    def __init__(
        self,
        problem: Problem,
        target: Target,
        tick: Callable[[], bool] = lambda: True,
        pool: Pool | None = None,
        before: ColumnSearch | None = None,
    ) -> None:
        super().__init__(problem, target)
        self.pool, self._tick = pool, tick
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
        on_device = is_single(self._like) and not isinstance(self._like, np.ndarray)
        #: Whether products in single precision may show which columns are missing, and whether they do.
        self._single, self._rough = on_device and pool is None, on_device and pool is None
        #: The last alpha and the correlations of all columns there; those of the search before.
        self.latest: tuple[float, Vector] | None = None
        self._before = None if before is None else before.latest
        #: The factor of alpha in a round, and when to stop.
        self.descent = SETTINGS.descent if pool is None else SETTINGS.pass_descent
        #: Stop when ``|support| / rows`` was above a share for more than so many rounds above sigma.
        self._limit, self._full_rounds = SETTINGS.limit, 0
        #: With a pool: whether the end of the path was reached, and sigma was not.
        self._at_end = False
        # Of solutions that reach sigma: how many columns the last one lacks, and how often in a row there
        # were more than before. From signs that other methods have found it may go up and down.
        self._lacking, self._diverging, self._guided = math.inf, 0, False
        #: Called when the columns for the next round are there.
        self.after_round: Callable[[], None] = lambda: None

    def read(self, indices: Vector) -> Array:
        return super().read(indices) if self.pool is None else self.pool.read(indices)

    @property
    def _most(self) -> float:
        return self.columns.most

    # Where it begins.

    def multiply_y(self, columns: Vector | None = None) -> PassRequests:
        """Ask for the correlations of all columns with ``y``, and for some columns, in one pass."""
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
            x0 = np.maximum(x0, 0.0)  # a sign that is not allowed would never be questioned
        count = max(10, min(self.A.shape) // 10) if first is None else first
        given, size = np.flatnonzero(x0), self.sparse.excess(self.correlations)
        if self.pool is not None:
            fetched = (
                count
                if first is not None
                else max(count, min(self.A.shape[0] // 4, self.pool.most))
            )
            near = largest(size, fetched)
            yield PassRequest(columns=np.union1d(given, near[size[near] > 0.0]))
        largest_alpha = float(size.max(initial=0.0))
        self.floor = 0.0 if given.size else max(SETTINGS.start * largest_alpha, self.level.least)
        likely = largest(size, count)
        if self.level.least > 0.0:
            few = largest(size, min(count, SETTINGS.fewest))
            likely = np.union1d(few, likely[size[likely] > SETTINGS.likely * self.floor])
        chosen = np.union1d(given, likely[size[likely] > 0.0])
        signs = np.sign(self.correlations[chosen])
        signs = np.sign(x0[chosen]) if given.size else np.where(size[chosen] > self.floor, signs, 0)
        self.extend(chosen, signs)

    def _begin_after(self, alpha: float, excess: Vector) -> None:
        """Begin with the signs of the search before, and the columns that may gain one on the way.

        Correlations change by no more than alpha does, usually (the sequential strong rule of Tibshirani and
        others, 2012): those below ``2 lam - alpha`` are not read before all columns are priced.
        """
        self.floor, self._before, self._along_path = 0.0, None, True
        share = 2.0 * self.level.least / alpha - 1.0
        excess[self.columns.indices] = 0.0
        near = np.flatnonzero(excess > max(share, SETTINGS.least_share))
        new = near[largest(excess[near], self._room(1))]
        new.sort()  # memory is read in its order
        self.extend(new, np.zeros(new.size))

    def follow_path(self, descent: float, limit: tuple[float, int] = (math.inf, 0)) -> None:
        """Restart at half of the largest alpha; multiply it by ``descent`` wherever signs have settled.

        It is stuck once the support fills more than a share of the rows for so many rounds above sigma.
        """
        self.settling, self.descent = True, descent
        self._limit, self._full_rounds = limit, 0
        most = float(self.sparse.excess(self.correlations).max(initial=0.0))
        self.floor = max(0.5 * most, self.level.least)
        self.signs = 0.0 * self.signs

    def propose(self, x: Vector, residual: Vector) -> None:
        """Make a point that another method has found the present solution; its residual is a dual point."""
        new = np.setdiff1d(np.flatnonzero(x), self.columns.indices)
        self.extend(new, np.zeros(new.size))
        at, alpha = x[self.columns.indices], self.level.least
        dual = residual / alpha
        solution = Solution(at, np.sign(at), alpha, residual, dual, reached=True, settled=False)
        self._accept_on_columns(solution)
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
        self.settling, self._limit, self._full_rounds = False, SETTINGS.limit, 0

    def _restart_with(self, signs: Vector) -> None:
        new = np.setdiff1d(np.flatnonzero(signs), self.columns.indices)
        self.extend(new, np.zeros(new.size))
        self.signs, self.floor, self._guided = signs[self.columns.indices], 0.0, True

    # A round: solve, price, add.

    def rounds(self, most: int) -> PassRequests:
        """Make rounds until the search is complete or stuck."""
        for _ in range(most):
            yield from self._solve_and_price()
            if self.complete or self.stuck:
                return
            yield from self._fetch()

    def serve(self, requests: PassRequests) -> None:
        """Answer all requests of one of the generators here."""
        reply: Any = None
        with contextlib.suppress(StopIteration):
            while True:
                reply = self._answer(requests.send(reply))

    def _answer(self, request: PassRequest) -> Any:
        """Return the required correlations, with the columns in the pool, where there is one."""
        if self.pool is not None:
            return self.pool.answer([request])[0]
        return None if request.dual is None else self.pulled(request.dual, rough=self._rough)

    def round(self) -> None:
        """Solve on the columns at hand, then price all of them."""
        self.serve(self._solve_and_price())

    def add_missing(self) -> None:
        """Add the columns that violate most, or have them fetched."""
        self.serve(self._fetch())

    def _solve_and_price(self) -> PassRequests:
        self._tick()
        solution = self._solve_at_hand()
        # As long as columns are missing, numbers in single precision show well enough which: on a device a
        # sum of them in double precision takes several times as long. Then there is no bound yet.
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
        """Learn from the correlations of all columns: a bound, and which of them are missing."""
        excess = self.sparse.excess(everywhere) if self._rough else self.price(solution, everywhere)
        self.latest = (solution.alpha, excess.copy())
        if self.pool is not None:
            self.pool.note(self.latest[1])
        excess[self.columns.indices if self.pool is None else self.pool.indices] = 0.0
        beyond = SETTINGS.missing_single if self._rough else SETTINGS.missing
        self.missing = np.flatnonzero(excess > 1.0 + beyond)
        self._excess, self._missing_signs = excess, np.sign(everywhere[self.missing])

    def _lower_floor(self, solution: Solution) -> None:
        """Reduce alpha: in every round, or only where the signs have (almost) settled."""
        few = self.missing.size <= SETTINGS.few * np.count_nonzero(solution.signs)
        lowered = max(self.floor * self.descent, self.level.least)
        if self.pool is None:
            if not self.settling or (solution.settled and few):
                self.floor = lowered
            return
        if few:
            self._at_end = self.floor == 0.0
            end = SETTINGS.least_floor * float(self.sparse.excess(self.correlations).max())
            self.floor = lowered if lowered > end else 0.0
        # Where little changes on the way down, steps become longer.
        self.descent = self.descent**2 if few else SETTINGS.pass_descent

    def _fetch(self) -> PassRequests:
        """Add the columns that violate most; with a pool, fetch these and those that are near to it."""
        if self.pool is None:
            self._add(self.missing, self._excess[self.missing], self._missing_signs)
            return
        near = np.flatnonzero(self._excess > SETTINGS.near)
        # Some times the nonzeros, fewer where memory is short.
        nonzeros = int(np.count_nonzero(self.signs))
        spare = self.pool.most - len(self.columns)
        count = max(10, nonzeros // 2, min(int(SETTINGS.growth * nonzeros), spare))
        fetched = near[largest(self._excess[near], count)]
        self.pool.room_for(len(fetched), self.columns.indices)
        if fetched.size:
            yield PassRequest(columns=fetched)
        self.after_round()

    # Solutions on the columns at hand.

    def _solve_at_hand(self) -> Solution:
        """Solve on the present columns; with a pool, until no other column of it is missing."""
        if self.pool is None:
            known = self.solution is not None and self.missing.size == 0
            return self._solve(self.settling or self._along_path or known)
        thorough = False
        for _ in range(SETTINGS.inner_rounds):
            current_deadline().check()
            solution = self._solve(thorough)
            with one_pool():
                pulled = self.pool.adjoint(solution.dual)
            excess = self._excess_in_pool(self.pool, pulled)
            missing = np.flatnonzero(excess > 1.0 + SETTINGS.missing)
            if thorough and missing.size == 0:
                break
            thorough = missing.size == 0
            self._add(self.pool.indices[missing], excess[missing], np.sign(pulled[missing]))
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
        self._accept_on_columns(solution)
        self.signs = solution.signs
        return solution

    def _accept_on_columns(self, solution: Solution) -> None:
        c = self.columns
        norm_of_x = float(c.weights @ np.abs(solution.x))
        self.accept(solution, c.indices, norm_of_x, c.forward)

    def _add(self, indices: Vector, excess: Vector, signs: Vector) -> None:
        """Add the columns that violate most, at most a part as many as there are nonzeros."""
        used = self.signs != 0.0
        if np.count_nonzero(used) < (1.0 - SETTINGS.unused) * len(self.columns):
            # Columns without a sign would cost time and memory.
            self.columns.keep(used)
            self.signs = self.signs[used]
        part = SETTINGS.added_part if self.level.least == 0.0 else SETTINGS.added_part_at_penalty
        kept = largest(excess, self._room(part))
        if kept.size:
            kept.sort()  # memory is read in its order
            self.extend(indices[kept], signs[kept])

    def _room(self, part: int) -> int:
        """Return how many columns may join: one for so many nonzeros, fewer as rows run out."""
        return columns_to_add(self.signs, len(self.y), part, self.columns.ridge > 0.0)

    def extend(self, indices: Vector, signs: Vector) -> None:
        """Take more columns into use, with the signs of their coefficients."""
        self.columns.extend(indices, self.read, self.correlations[indices])
        self.signs = np.concatenate([self.signs, signs])

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
        if self.pool is not None:
            return self.missing.size == 0 if solution.reached else self._at_end
        full = self._full_rounds > self._limit[1]
        if solution.reached:
            if self._any_alpha and full:
                return True
            lost = self._diverging >= SETTINGS.diverging and not (self.settling or self._guided)
            return lost or (self._thorough and self.missing.size == 0)
        if self.settling and not solution.settled and self.missing.size == 0:
            return True
        return full


#: The errors of NumPy for a file that is not an archive, is truncated, or lacks an array.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError)

#: Of the largest correlation: products of the same data agree to this, in single precision too.
_SAME = 1e-6


class Checkpoint:
    """A file with the state of one search on stored or distributed data: a run that was killed resumes.

    It has a few numbers per column and row: correlations with ``y``, which columns are held and in use, and
    their signs. The columns themselves are read again; the same pass multiplies with ``y``, which shows
    another matrix. The file of another problem is refused.

    Parameters
    ----------
    path : str or Path
        It is replaced as a whole, so that there is a complete one at any time.
    search : ColumnSearch
        The search, on a pool.
    """

    def __init__(self, path: Any, search: ColumnSearch) -> None:
        self._search = search
        self.path = Path(path)
        self._rows, self._columns = search.A.shape
        self._failed = False
        weights = search.sparse.weights
        self._problem = np.concatenate(
            [
                [*search.A.shape, search.sigma, float(search.sparse.nonneg)],
                [float(weights @ np.cos(np.arange(weights.size)))],
                search.y,
            ]
        )

    def load(self) -> dict[str, Any] | None:
        """Return the saved state; None if there is none."""
        if not self.path.exists():
            return None
        try:
            # Opened here: NumPy leaves a file open that it cannot read.
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as saved:
                state = {name: saved[name] for name in saved.files}
            problem = state.pop("problem")
            whole = self._is_whole(state)
        except _UNREADABLE as error:
            raise ValueError(
                f"checkpoint {str(self.path)!r} cannot be read ({error}); remove it, or name another "
                "file"
            ) from error
        if not np.array_equal(problem, self._problem):
            raise self._of_another_problem
        if not whole:
            raise ValueError(
                f"checkpoint {str(self.path)!r} does not hold a state of this search; remove it, or "
                "name another file"
            )
        return state

    def _is_whole(self, state: dict[str, Any]) -> bool:
        """Whether the arrays have the sizes, and the indices the range, of this search."""
        indices = np.concatenate([state["held"], state["in_use"]])
        return bool(
            state["correlations"].shape == (self._columns,)
            and state["signs"].shape == state["in_use"].shape
            and state["path"].shape == (2,)
            and indices.dtype.kind == "i"
            and ((indices >= 0) & (indices < self._columns)).all()
        )

    @property
    def _of_another_problem(self) -> ValueError:
        """The error for the file of another problem."""
        return ValueError(
            f"checkpoint {str(self.path)!r} belongs to another problem: other A, y, sigma, weights or "
            "signs; remove it, or name another file"
        )

    def _state(self) -> dict[str, Any]:
        """Return the state from which the search resumes, without the columns: they are large."""
        search = self._search
        assert search.pool is not None
        return {
            "correlations": search.correlations,
            "held": search.pool.indices,
            "in_use": search.columns.indices,
            "signs": search.signs,
            "path": np.array([search.floor, search.descent]),
        }

    def go_on_from(self, state: dict[str, Any]) -> PassRequests:
        """Ask for the columns that were held, and resume the search there.

        The same pass multiplies ``y``; a state of another matrix, which has other products, is refused.
        """
        search = self._search
        yield from search.multiply_y(np.union1d(state["held"], state["in_use"]))
        size = float(np.abs(search.correlations).max(initial=0.0))
        apart = np.abs(state["correlations"] - search.correlations).max(initial=0.0)
        # Products of the same data differ by the order of their sums: by some roundings.
        if not apart <= _SAME * size:
            raise self._of_another_problem
        search.floor, search.descent = (float(number) for number in state["path"])
        search.extend(state["in_use"], state["signs"])

    def save(self) -> None:
        """Replace what was saved; a disk that takes nothing more is warned of once, and the run goes on."""
        if self._failed:
            return
        beside = self.path.with_name(self.path.name + ".new")
        try:
            with open(beside, "wb") as file:
                np.savez(file, problem=self._problem, **self._state())
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError as error:
            self._failed = True
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            warnings.warn(
                f"checkpoint {str(self.path)!r} cannot be written ({error}); the run goes on without it",
                RuntimeWarning,
                stacklevel=2,
            )
