"""Searches for several problems on one matrix that is expensive to read: they share its passes.

Each pass answers the requests of all searches, and a column that one of them needs is there for the others.
Their answers are proposed to the driver, problem by problem, and certified like any other point.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

from lopro.basis_pursuit.columns.pool import PassRequest, PassRequests, Pool
from lopro.basis_pursuit.columns.pooled_search import PooledSearch
from lopro.basis_pursuit.recognition import passes_are_expensive
from lopro.basis_pursuit.working_set import WorkingSet
from lopro.core.arrays import Array, is_complex
from lopro.core.counting import Counts, count, counting
from lopro.core.deadline import current_deadline
from lopro.driver.workbench import Options
from lopro.errors import InfeasibleError, StalledError
from lopro.maps import LinearMap, NumPyMap
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Target, Workbench

__all__ = ["SETTINGS", "Proposed", "SharedPasses", "shares_passes"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of searches that share passes."""

    #: Bytes of the columns of all searches together, 2 GiB, if each uses a tenth as many columns as rows.
    memory: int = 2**31
    #: The maximal number of searches at a time: products with 64 vectors, 16 operations for each byte of the
    #: matrix, still take less time than reading from a disk.
    searches: int = 64


SETTINGS = Settings()


@dataclasses.dataclass(frozen=True, eq=False)
class Proposed:
    """The method that proposes the result of a shared search; if it is not accepted, `WorkingSet` continues.

    Parameters
    ----------
    name : str
        The name of the shared search.
    candidate : Candidate
        The point with its image and its bound.
    steps : int
        Iterations of the search.
    counts : Counts
        Their counts; a shared pass counts for every search with a request in it.
    seconds : float
        Its share of the time.
    """

    card: ClassVar[Card] = WorkingSet.card

    name: str
    candidate: Candidate
    steps: int
    counts: Counts
    seconds: float

    def __repr__(self) -> str:
        return self.name

    def check(self, problem: Problem) -> None:
        WorkingSet().check(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        for _ in range(self.steps):
            bench.tick()
        for counter, number in self.counts.to_dict().items():
            count(counter, number)
        yield self.candidate
        bench.hand_over(WorkingSet())
        yield from WorkingSet().run(bench, self.candidate.x)


def shares_passes(A: LinearMap, problems: Sequence[Problem]) -> bool:
    """Whether several problems share passes: the matrix is stored or distributed, or wide on a device.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.columns.shared_passes import shares_passes
    >>> from lopro.maps import linear_map
    >>> shares_passes(linear_map(np.eye(2)), [])
    False
    """
    near = isinstance(A, NumPyMap) or not passes_are_expensive(A)
    if near or len(problems) < 2 or not A.has_columns:
        return False
    return not any(is_complex(problem.start(None)) for problem in problems)


class SharedPasses:
    """Searches for several problems on one matrix that share its passes.

    Parameters
    ----------
    A : LinearMap
        With columns; all problems are about it.
    options : Options
        The required accuracy.
    """

    def __init__(self, A: LinearMap, options: Options) -> None:
        self.A, self.options = A, options
        of_one = max(1, 8 * A.shape[0] * (A.shape[0] // 10))
        self._at_a_time = max(1, min(SETTINGS.searches, SETTINGS.memory // of_one))

    def search(self, problems: Sequence[Problem]) -> list[Proposed | None]:
        """Return the answer of each problem; None where a search does not end."""
        found: list[Proposed | None] = []
        for start in range(0, len(problems), self._at_a_time):
            found += self._some(problems[start : start + self._at_a_time])
        return found

    def _some(self, problems: Sequence[Problem]) -> list[Proposed | None]:
        pool = Pool(self.A)
        searches = [_Search(problem, self.options.tol, pool) for problem in problems]
        started = time.perf_counter()
        with counting(Counts()) as counts:
            while waiting := [search for search in searches if search.request is not None]:
                current_deadline().check()
                waiting = self._first(waiting, pool)
                answers = pool.answer([search.request for search in waiting if search.request])
                for search, answer in zip(waiting, answers, strict=True):
                    search.advance(answer, counts)
        seconds = (time.perf_counter() - started) / len(searches)
        return [search.proposed(seconds) for search in searches]

    def _first(self, waiting: list[_Search], pool: Pool) -> list[_Search]:
        """Return the searches that need columns only, where these are cheap: then all are priced together."""
        for_columns = [
            search for search in waiting if search.request and search.request.dual is None
        ]
        if not for_columns:
            return waiting
        lacking = pool.lacking([search.request for search in for_columns if search.request])
        expensive = 4 * self.A.bytes_for_columns(lacking) > self.A.nbytes
        return waiting if expensive else for_columns


class _Search:
    """One search with its unanswered request; None once it has ended."""

    def __init__(self, problem: Problem, tol: float, pool: Pool) -> None:
        target = Target(tol, problem.gap_scale or 0.0)
        self.search = PooledSearch(problem, target, self._tick, pool)
        self.rounds, self._counts = 0, Counts()
        self._generator = self._requests()
        self.request: PassRequest | None = None
        if not self.search.zero_is_feasible:
            self.request = next(self._generator)

    def _tick(self) -> bool:
        self.rounds += 1
        return True

    def _requests(self) -> PassRequests:
        yield from self.search.begin(self.search.point(), None)  # zero
        with suppress(StalledError, InfeasibleError):
            yield from self.search.rounds(WorkingSet().rounds)

    def advance(self, answer: Any, counts: Counts) -> None:
        """Continue with an answer to the next request; record the passes so far."""
        self._counts = dataclasses.replace(counts)
        try:
            self.request = self._generator.send(answer)
        except StopIteration:
            self.request = None

    def proposed(self, seconds: float) -> Proposed | None:
        """Return the proposal; None if the search did not end with a feasible point."""
        search, read = self.search, self._counts
        candidate = search.measured_candidate() if search.complete else None
        if candidate is None:
            return None
        # The products of this problem alone.
        counts = Counts(
            rmatvecs=self.rounds + 1,
            passes=read.passes,
            bytes_read=read.bytes_read,
            columns=read.columns,
        )
        return Proposed("WorkingSet, passes shared", candidate, self.rounds, counts, seconds)
