"""The comparison of convergence: gaps are certified bounds, never increase, and have the right counts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest

import lopro
from lopro.core.deadline import using_clock
from paper.experiments.colon import stand_in
from paper.experiments.convergence import Race, metric_race, recovery_race
from paper.experiments.instances import sparse_recovery
from paper.experiments.table2 import paper_problem
from paper.experiments.table2_data import Settings

SETTINGS = Settings(features=8, samples=7, steps=40, checkpoints=(40,))


@contextmanager
def counted_time() -> Iterator[None]:
    """A clock on which every reading takes a tenth of a millisecond, however busy the machine is."""
    readings = count()
    with using_clock(lambda: 1e-4 * next(readings)):
        yield


@pytest.fixture(scope="module")
def recovery() -> Race:
    with counted_time():
        return recovery_race(30, 100, 4, seconds=0.3)


@pytest.fixture(scope="module")
def metric() -> Race:
    with counted_time():
        return metric_race(stand_in(), SETTINGS, seconds=0.3)


def test_the_bound_is_one_and_the_gaps_follow_from_it(recovery, metric):
    optimum = lopro.solve(sparse_recovery(30, 100, 4).problem, tol=1e-10).fun
    problem, _ = paper_problem(stand_in(), SETTINGS, "cpu")
    least = lopro.solve(problem, method=lopro.FeatureWorkingSet(), tol=1e-9).fun
    for race, best in ((recovery, optimum), (metric, least)):
        assert race.lower_bound <= best * (1 + 1e-9)
        for trace in race.traces:
            assert trace.gap[-1] >= (trace.objective - best) / trace.objective - 1e-12
            assert trace.own_gap >= trace.gap[-1] - 1e-12


def test_gaps_never_rise_and_clock_and_counts_never_fall(recovery, metric):
    for trace in (*recovery.traces, *metric.traces):
        assert len(trace.gap) == len(trace.seconds) == len(trace.projections) > 0
        assert list(trace.gap) == sorted(trace.gap, reverse=True)
        assert list(trace.seconds) == sorted(trace.seconds)
        assert list(trace.projections) == sorted(trace.projections)


def test_the_counts_are_those_of_the_methods(recovery, metric):
    by_name = {trace.name: trace for trace in recovery.traces}
    assert by_name["lopro.bpdn"].projections == (0,)
    nesta = by_name["NESTA, continuation"]
    assert nesta.projections[-1] == 2 * nesta.iterations
    assert {t.name for t in metric.traces} > {"lopro.learn_metric", "LoPGD", "PGD"}
    pgd = next(t for t in metric.traces if t.name == "PGD")
    # A row every ten iterations with a projection each; the clock may end the last ten before their row.
    assert pgd.projections[:-1] == tuple(range(10, 10 * len(pgd.projections), 10))
    assert pgd.iterations - 10 <= pgd.projections[-1] <= pgd.iterations


def test_it_announces_what_runs():
    lines: list[str] = []
    recovery_race(10, 20, 2, seconds=0.05, say=lines.append)
    assert len(lines) == 6 and lines[0] == "lopro.bpdn, at most 0.05 s"
