"""Convergence of the gap, against time and against projections, on both applications.

Every run has the same time limit. A gap is ``f(x) - (best lower bound that any of the runs has proved)``,
relative to the value: a certified bound on the error of a run, also for methods that prove no bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from lopro import FeatureWorkingSet, MatrixFree
from lopro.basis_pursuit.application import BasisPursuit
from lopro.driver.result import Result
from lopro.methods import Auto, LoPGD, LoPNAG
from lopro.methods.baselines import NESTA, ProjectedSubgradient
from lopro.methods.inner import LastIterate, SqrtStep
from lopro.methods.paper.theorems import HalvingSteps
from lopro.problem import Problem
from lopro.protocol import Method
from lopro.solving import solve
from paper.experiments.colon import Samples
from paper.experiments.instances import sparse_recovery
from paper.experiments.table2 import paper_problem
from paper.experiments.table2_data import Settings

__all__ = ["Race", "Runner", "Trace", "metric_race", "recovery_race"]

_ENDLESS = 10**7  # iterations: the time limit ends the run


@dataclass(frozen=True)
class Trace:
    """One run: the time, the number of projections and the gap after each of its epochs."""

    name: str
    seconds: tuple[float, ...]
    projections: tuple[int, ...]
    gap: tuple[float, ...]
    iterations: int
    objective: float
    #: The gap that the run itself has certified.
    own_gap: float


@dataclass(frozen=True)
class Race:
    """All runs on one problem, and the lower bound for their gaps."""

    traces: tuple[Trace, ...]
    lower_bound: float


@dataclass(frozen=True)
class Runner:
    """A method and its name in the figures."""

    name: str
    method: Method


def recovery_race(
    m: int = 1000,
    d: int = 5000,
    nonzeros: int = 100,
    *,
    seconds: float = 10.0,
    seed: int = 0,
    say: Callable[[str], Any] | None = None,
) -> Race:
    """Run six methods on basis pursuit denoising, the instance of Table 1.

    Examples
    --------
    >>> from paper.experiments.convergence import recovery_race
    >>> race = recovery_race(20, 60, 3, seconds=0.2)
    >>> race.traces[0].name, race.traces[0].gap[-1] < 1e-6
    ('lopro.bpdn', True)
    """
    problem = sparse_recovery(m, d, nonzeros, seed).problem
    ball: Any = problem.constraint
    ball.A.left_spectrum  # noqa: B018  (the factorisation that all share, before the clock starts)
    return _race(problem, list(_recovery_runners(problem)), seconds, say)


def metric_race(
    data: Samples,
    settings: Settings,
    *,
    seconds: float = 10.0,
    say: Callable[[str], Any] | None = None,
) -> Race:
    """Run six methods on sparse metric learning, the problem of Table 2.

    Examples
    --------
    >>> from paper.experiments.colon import stand_in
    >>> from paper.experiments.convergence import metric_race
    >>> from paper.experiments.table2_data import QUICK
    >>> race = metric_race(stand_in(), QUICK, seconds=0.2)
    >>> race.traces[0].name
    'lopro.learn_metric'
    """
    problem, L = paper_problem(data, settings, "cpu")
    return _race(problem, list(_metric_runners(L, settings.lam)), seconds, say)


def _recovery_runners(problem: Problem) -> Iterator[Runner]:
    yield Runner("lopro.bpdn", BasisPursuit().choose(problem))
    yield Runner("MatrixFree", MatrixFree())
    yield Runner("Auto", Auto())
    yield Runner("LoPNAG, adaptive", LoPNAG())
    yield Runner("NESTA, continuation", NESTA(1e-7, stages=5, variation=1e-8, report=20))
    yield Runner("projected subgradient", _projected(0.01))


def _metric_runners(L: float, lam: float) -> Iterator[Runner]:
    # Steps as the tuning of Table 2 tends to choose them: just stable, or long at first.
    last = LastIterate()
    yield Runner("lopro.learn_metric", FeatureWorkingSet())
    yield Runner("Auto", Auto())
    yield Runner("LoPGD", LoPGD(HalvingSteps(lam, 1.9 / L, 200, 1000)))
    yield Runner("LoPGD, last iterate", LoPGD(HalvingSteps(lam, 1.9 / L, 200, 1000, last)))
    yield Runner("PGD", _projected(8.0 / L))
    yield Runner("PGD, last iterate", replace(_projected(32.0 / L), average=last))


def _projected(step: float) -> ProjectedSubgradient:
    return ProjectedSubgradient(SqrtStep(step), iterations=_ENDLESS, report=10)


def _race(
    problem: Problem, runners: list[Runner], seconds: float, say: Callable[[str], Any] | None
) -> Race:
    tell = say or (lambda line: None)
    results = []
    for runner in runners:
        tell(f"{runner.name}, at most {seconds:g} s")
        results.append(solve(problem, None, runner.method, tol=1e-8, time_limit=seconds))
    bound = max(result.certificate.lower_bound for result in results)
    pairs = zip(runners, results, strict=True)
    return Race(tuple(_trace(runner.name, result, bound) for runner, result in pairs), bound)


def _trace(name: str, result: Result, bound: float) -> Trace:
    history = result.history
    best = list(accumulate(history["fun"], min))
    return Trace(
        name=name,
        seconds=tuple(history["seconds"]),
        projections=tuple(history["projections"]),
        # Gaps below rounding are raised, so that a logarithmic axis shows the point.
        gap=tuple(max(value - bound, 1e-16 * abs(value)) / abs(value) for value in best),
        iterations=result.iterations,
        objective=result.fun,
        own_gap=max(0.0, result.fun - result.certificate.lower_bound) / abs(result.fun),
    )
