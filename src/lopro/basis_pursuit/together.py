"""Several problems on one matrix that is dear to read: searches that share its passes, and their columns.

Right-hand sides and radii alike. Each pass answers the questions that all searches have at the time, and a
column that one of them needs is there for the others. What comes out is proposed to the driver, problem by
problem, and certified like any other point.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

from lopro.basis_pursuit.pool import Asking, Pool, Question
from lopro.basis_pursuit.pooled_search import PooledSearch
from lopro.basis_pursuit.working_set import WorkingSet, passes_are_dear
from lopro.core.arrays import Array, is_complex
from lopro.core.counting import Counts, count, counting
from lopro.core.deadline import OutOfTime, current_deadline
from lopro.driver.options import Options
from lopro.errors import InfeasibleError, StalledError
from lopro.maps import LinearMap, NumPyMap
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Target, Workbench

__all__ = ["Found", "found_together", "shares_passes"]

#: Bytes that the columns of all searches may take, as far as that can be told before.
MEMORY = 2**31
#: Searches at a time: enough for passes to be shared, few enough for products to be cheap beside reading.
AT_A_TIME = 64


def shares_passes(A: LinearMap, problems: Sequence[Problem]) -> bool:
    """Whether several problems on a matrix should be searched together: it is far away, or wide on a device.

    Where a device reads a matrix as fast as it computes, columns that stay on it are worth more.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.together import shares_passes
    >>> from lopro.maps import linear_map
    >>> shares_passes(linear_map(np.eye(2)), [])
    False
    """
    near = isinstance(A, NumPyMap) or not passes_are_dear(A)
    if near or len(problems) < 2 or not A.has_columns:
        return False
    return not any(is_complex(problem.start(None)) for problem in problems)


class Together:
    """Searches for several problems that share a matrix.

    Parameters
    ----------
    A : LinearMap
        With columns; all problems are about it.
    options : Options
        The accuracy asked for.
    rounds : int
        Looks at all columns that each search may have.
    """

    def __init__(self, A: LinearMap, options: Options, rounds: int = 25) -> None:
        self.A, self.options, self.rounds = A, options, rounds
        rows = A.shape[0]
        self._at_a_time = max(1, min(AT_A_TIME, MEMORY // max(1, 8 * rows * (rows // 10))))

    def search(self, problems: Sequence[Problem]) -> list[Found | None]:
        """Return what was found for each problem; None where a search does not come to an end."""
        found: list[Found | None] = []
        for start in range(0, len(problems), self._at_a_time):
            found += self._batch(problems[start : start + self._at_a_time])
        return found

    def _batch(self, problems: Sequence[Problem]) -> list[Found | None]:
        pool = Pool(self.A)
        walks = [_Walk(problem, self.options.tol, pool, self.rounds) for problem in problems]
        started = time.perf_counter()
        with counting(Counts()) as counts:
            while asking := [walk for walk in walks if walk.question is not None]:
                current_deadline().check()
                asking = self._first_in_line(asking, pool)
                answers = pool.answer([walk.question for walk in asking if walk.question])
                for walk, answer in zip(asking, answers, strict=True):
                    walk.goes_on(answer, counts)
        share = (time.perf_counter() - started) / len(walks)
        return [walk.found(share) for walk in walks]

    def _first_in_line(self, asking: list[_Walk], pool: Pool) -> list[_Walk]:
        """Let those who want columns only go first, where these are cheap: then all can look together."""
        wanting = [walk for walk in asking if walk.question and walk.question.dual is None]
        if not wanting:
            return asking
        lacking = pool.lacking([walk.question for walk in wanting if walk.question])
        dear = 4 * self.A.bytes_for_columns(lacking) > self.A.nbytes
        return asking if dear else wanting


class _Walk:
    """One search, and the question that it waits to have answered; None when it is over."""

    def __init__(self, problem: Problem, tol: float, pool: Pool, rounds: int) -> None:
        target = Target(tol, problem.gap_scale or 0.0)
        self.search = PooledSearch(problem, target, pool, self._tick)
        self.looks = 0
        self._counts = Counts()
        self._asking = self._questions(rounds)
        self.question: Question | None = None
        if not self.search.zero_is_feasible:
            self.question = next(self._asking)

    def _tick(self) -> bool:
        self.looks += 1
        return True

    def _questions(self, rounds: int) -> Asking:
        yield from self.search.begin(self.search.point(), None)  # zero
        with suppress(StalledError, InfeasibleError):
            yield from self.search.rounds(rounds)

    def goes_on(self, answer: Any, counts: Counts) -> None:
        """Take an answer and come to the next question; note the passes in which this search took part."""
        self._counts = dataclasses.replace(counts)
        try:
            self.question = self._asking.send(answer)
        except StopIteration:
            self.question = None

    def found(self, seconds: float) -> Found | None:
        """Return what there is to propose; nothing if it is not what was asked for."""
        search = self.search
        image = search.image() if search.complete else None
        if image is None:
            return None
        candidate = Candidate(search.point(), Multiplier(search.evidence()), image=image)
        return Found(candidate, self.looks, self._counts, seconds)


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """The method that proposes what a search among others has found; should it not do, `WorkingSet` goes on.

    Parameters
    ----------
    candidate : Candidate
        The point, its image and what proves it.
    looks : int
        How often the search has looked at all columns.
    counts : Counts
        What had been read when it ended, for all searches.
    seconds : float
        Its share of the time.
    """

    card: ClassVar[Card] = WorkingSet.card

    candidate: Candidate
    looks: int
    counts: Counts
    seconds: float

    def __repr__(self) -> str:
        return f"{WorkingSet()!r}, passes shared"

    def check(self, problem: Problem) -> None:
        WorkingSet().check(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        for _ in range(self.looks):
            bench.tick()
        # Passes that are shared count for everyone who took part; products are those for this problem.
        count("rmatvecs", self.looks + 1)
        for counter in ("passes", "bytes_read", "columns"):
            count(counter, getattr(self.counts, counter))
        yield self.candidate
        yield from WorkingSet().run(bench, self.candidate.x)


def found_together(
    A: LinearMap, problems: Sequence[Problem], options: Options
) -> list[Found | None]:
    """Return what searches together find; nothing if time is up before they end."""
    try:
        return Together(A, options).search(problems)
    except OutOfTime:
        return [None] * len(problems)
