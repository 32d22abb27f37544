"""Several problems on one matrix: many right-hand sides, or many radii, and the work that they share.

Dense matrices in memory have a Newton method for all right-hand sides at once, which proves its answers.
Where a pass over the matrix is expensive (a file, a cluster, a wide matrix on a device), each pass answers
the requests that all searches have at the time, and a column that one of them needs is there for the others.
What comes out of these is proposed to the driver, problem by problem, and certified like any other point.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from lopro.basis_pursuit.application import BPDNResult, ProblemData, solve_one
from lopro.basis_pursuit.batch_newton import solve_dense
from lopro.basis_pursuit.column_search import ColumnSearch
from lopro.basis_pursuit.pool import PassRequest, PassRequests, Pool
from lopro.basis_pursuit.working_set import WorkingSet, passes_are_expensive
from lopro.core.arrays import Array, is_complex, to_numpy
from lopro.core.counting import Counts, count, counting
from lopro.core.deadline import OutOfTime, current_deadline
from lopro.core.validation import check_array
from lopro.driver.workbench import Options
from lopro.errors import InfeasibleError, StalledError
from lopro.maps import LinearMap, NumPyMap
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Target, Workbench

__all__ = ["SETTINGS", "Proposed", "SharedPasses", "radii_for", "shares_passes", "solve_columns"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of searches that share passes."""

    #: Bytes that the columns of all searches may take, as far as that is known before.
    memory: int = 2**31
    #: Searches at a time: products with 64 vectors still take less time than reading from a disk.
    searches: int = 64


SETTINGS = Settings()


def solve_columns(
    data: ProblemData, Y: Array, sigma: Any, starts: Any, method: Any, options: Options
) -> list[BPDNResult]:
    """Solve one problem per column of ``Y``; with the default method and no starts the work is shared."""
    k = Y.shape[1]
    radii = radii_for(sigma, k)
    if starts is not None:
        starts, shape = check_array("x0", starts), (data.A.shape[1], k)
        if tuple(starts.shape) != shape:
            raise ValueError(
                f"x0 must have shape {shape}, a start for each column of y, "
                f"got {tuple(starts.shape)}"
            )
    shared = method is None and starts is None and not options.limited
    found: list[BPDNResult | None] = [None] * k
    if shared and k > 1 and options.callback is None and not options.progress:
        found = solve_dense(data, Y, radii, options)
    rest = [j for j in range(k) if found[j] is None]
    problems = [data.problem(Y[:, j], float(radii[j])) for j in rest]
    if shared:
        results = solve_all(data, problems, options)
    else:
        results = [
            solve_one(problem, None if starts is None else starts[:, j], method, options)
            for j, problem in zip(rest, problems, strict=True)
        ]
    alone = dict(zip(rest, results, strict=True))
    return [alone[j] if each is None else each for j, each in enumerate(found)]


def radii_for(sigma: Any, k: int) -> Any:
    """Return a radius for each of ``k`` right-hand sides, from one number or as many."""
    radii = check_array("sigma", sigma, allow_complex=False)
    if radii.ndim > 1 or math.prod(radii.shape) not in (1, k):
        raise ValueError(
            f"sigma must be a number or {k} of them, one for each column of y, got {sigma!r}"
        )
    return np.broadcast_to(to_numpy(radii).astype(np.float64), (k,))


def solve_all(data: ProblemData, problems: list[Problem], options: Options) -> list[BPDNResult]:
    """Solve problems on one matrix; what no shared search finds is solved alone."""
    proposed: list[Proposed | None] = [None] * len(problems)
    with suppress(OutOfTime):
        if shares_passes(data.A, problems):
            proposed = SharedPasses(data.A, options).search(problems)
    return [
        solve_one(problem, None, None, options)
        if each is None
        else dataclasses.replace(
            result := solve_one(problem, each.candidate.x, each, options),
            seconds=result.seconds + each.seconds,
        )
        for problem, each in zip(problems, proposed, strict=True)
    ]


@dataclasses.dataclass(frozen=True, eq=False)
class Proposed:
    """The method that proposes what a shared search has found; should it not do, `WorkingSet` goes on.

    Parameters
    ----------
    name : str
        Of the shared search.
    candidate : Candidate
        The point, its image and what proves it.
    steps : int
        Iterations of the search.
    counts : Counts
        What they cost; a pass that is shared counts for everyone who took part.
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
    """Whether several problems should be searched together: the matrix is far away, or wide on a device.

    Where a device reads a matrix as fast as it computes, columns that stay on it are worth more.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.batch import shares_passes
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
        """Return those that need columns only, where these are cheap: then all can be priced together."""
        for_columns = [
            search for search in waiting if search.request and search.request.dual is None
        ]
        if not for_columns:
            return waiting
        lacking = pool.lacking([search.request for search in for_columns if search.request])
        expensive = 4 * self.A.bytes_for_columns(lacking) > self.A.nbytes
        return waiting if expensive else for_columns


class _Search:
    """One search, and the request that it waits to have answered; None when it is over."""

    def __init__(self, problem: Problem, tol: float, pool: Pool) -> None:
        target = Target(tol, problem.gap_scale or 0.0)
        self.search = ColumnSearch(problem, target, self._tick, pool)
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
        """Take an answer and go on to the next request; note the passes in which this search took part."""
        self._counts = dataclasses.replace(counts)
        try:
            self.request = self._generator.send(answer)
        except StopIteration:
            self.request = None

    def proposed(self, seconds: float) -> Proposed | None:
        """Return the candidate, or None if it does not have the required residual."""
        search, read = self.search, self._counts
        candidate = search.measured_candidate() if search.complete else None
        if candidate is None:
            return None
        # Products are those for this problem.
        counts = Counts(
            rmatvecs=self.rounds + 1,
            passes=read.passes,
            bytes_read=read.bytes_read,
            columns=read.columns,
        )
        return Proposed("WorkingSet, passes shared", candidate, self.rounds, counts, seconds)
