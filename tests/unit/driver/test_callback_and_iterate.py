"""Callbacks, progress, seeds, and iteration by hand: observing a run does not change it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.driver_cases import ellipsoid, nearest_in_box

import lopro
from lopro import Iterate, Problem, Status
from lopro.constraints import Polyhedron
from lopro.methods.inner import ConstantStep, SqrtStep, StochasticSubgradient, SubgradientDescent
from lopro.objectives import LeastSquares
from lopro.penalties import Hinge

METHODS = {
    "auto": lopro.Auto(),
    "lopgd": lopro.LoPGD(),
    "lopnag": lopro.LoPNAG(),
    "one": lopro.OneProjection(SubgradientDescent(SqrtStep(0.2)), Hinge(2.0), 50),
}


def fresh() -> Problem:
    """Return the problem newly made: a problem keeps its factorisation, which would be counted only once."""
    return ellipsoid(np.random.default_rng(2017)).problem


def rows(history: lopro.History) -> list[dict]:
    """Return the history without times, which differ between runs, and with NaN equal to itself."""
    return [{k: repr(v) for k, v in row.items() if k != "seconds"} for row in history]


def same(a: lopro.Result, b: lopro.Result) -> None:
    np.testing.assert_array_equal(a.x, b.x)
    assert rows(a.history) == rows(b.history)
    assert a.status is b.status and a.fun == b.fun and a.iterations == b.iterations
    assert a.certificate == b.certificate
    assert a.counts == b.counts and a.certificate_counts == b.certificate_counts


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_iterate_is_solve(method):
    options = {"method": method, "max_iter": 3000, "tol": 1e-5}
    seen: list[Iterate] = []
    solved = lopro.solve(fresh(), callback=seen.append, **options)
    run = lopro.iterate(fresh(), **options)
    by_hand = list(run)
    assert len(seen) == len(by_hand) == len(solved.history) > 0
    for a, b in zip(seen, by_hand, strict=True):
        np.testing.assert_array_equal(a.x, b.x)
        assert a.fun == b.fun and a.gap == b.gap
    same(solved, run.result())


def test_the_callback_gets_iterates_that_match_the_history(rng):
    known = ellipsoid(rng)
    seen: list[Iterate] = []
    result = lopro.solve(known.problem, callback=seen.append)
    for iterate, row in zip(seen, result.history, strict=True):
        assert isinstance(iterate, Iterate) and dataclasses.is_dataclass(iterate)
        assert iterate.row() == pytest.approx(row, nan_ok=True)
        assert iterate.fun == known.problem.objective.value(iterate.x)
        assert known.problem.constraint.violation(iterate.x) <= 1e-9
    assert [it.epoch for it in seen] == list(range(1, len(seen) + 1))


@pytest.mark.parametrize("answer", [True, np.True_])
def test_true_stops(rng, answer):
    result = lopro.solve(ellipsoid(rng).problem, tol=0.0, callback=lambda it: answer)
    assert result.status is Status.STOPPED and len(result.history) == 1


@pytest.mark.parametrize("answer", [None, False, np.False_, 1, "stop", [True]])
def test_nothing_but_true_stops(answer):
    same(lopro.solve(fresh(), callback=lambda it: answer), lopro.solve(fresh()))


def test_true_at_the_last_epoch_does_not_hide_convergence(rng):
    result = lopro.solve(ellipsoid(rng).problem, callback=lambda it: it.relative_gap <= 1e-6)
    assert result.status is Status.CONVERGED


def test_exceptions_of_a_callback_are_raised(rng):
    class OwnError(Exception):
        pass

    def callback(iterate):
        raise OwnError("mine")

    with pytest.raises(OwnError, match="mine"):
        lopro.solve(ellipsoid(rng).problem, callback=callback)


def test_a_callback_that_overwrites_its_point_changes_nothing():
    def vandal(iterate):
        iterate.x[...] = 1e6

    same(lopro.solve(fresh(), callback=vandal), lopro.solve(fresh()))


def test_iteration_can_stop_and_resume(rng):
    problem = ellipsoid(rng).problem
    run = lopro.iterate(problem)
    first = next(run)
    early = run.result()
    kept = (early.counts.to_dict(), rows(early.history), early.x.copy())
    assert early.status is Status.STOPPED and len(early.history) == 1
    assert early.fun == first.fun
    rest = list(run)
    late = run.result()
    assert late.status is Status.CONVERGED and len(late.history) == 1 + len(rest)
    # The early result is a copy that later steps do not change.
    assert (early.counts.to_dict(), rows(early.history)) == kept[:2]
    np.testing.assert_array_equal(early.x, kept[2])
    np.testing.assert_array_equal(late.x, lopro.solve(problem).x)


def test_result_before_the_first_epoch_is_the_projected_start(rng):
    known = nearest_in_box(rng)
    result = lopro.iterate(known.problem, np.array([5.0, 0.0, -5.0, 0.5])).result()
    np.testing.assert_allclose(result.x, [1.0, 0.0, -1.0, 0.5])
    assert result.status is Status.STOPPED and result.certificate.gap == np.inf


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_progress_is_shown_on_stderr_and_changes_nothing(capfd, method):
    quiet = lopro.solve(fresh(), method=method, max_iter=2000, tol=1e-4)
    assert capfd.readouterr() == ("", "")
    shown = lopro.solve(fresh(), method=method, max_iter=2000, tol=1e-4, progress=True)
    out, err = capfd.readouterr()
    assert out == "" and "lopro" in err and "epoch" in err
    same(quiet, shown)


def test_progress_ends_when_the_run_raises(rng, capfd):
    def callback(iterate):
        raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        lopro.solve(ellipsoid(rng).problem, callback=callback, progress=True)
    lopro.solve(ellipsoid(rng).problem, progress=True)  # a second display may start


def stochastic_run(rng, seed):
    A, b = rng.standard_normal((30, 4)), rng.standard_normal(30)
    problem = Problem(LeastSquares(A, b), Polyhedron.box(-0.1 * np.ones(4), 0.1 * np.ones(4)))
    inner = StochasticSubgradient(ConstantStep(1e-3))
    method = lopro.OneProjection(inner, Hinge(50.0), 60)
    return lopro.solve(problem, np.full(4, 0.05), method, seed=seed)


def test_a_seed_reproduces_a_stochastic_run():
    a, b = (stochastic_run(np.random.default_rng(5), seed=7) for _ in range(2))
    same(a, b)
    from_generator = stochastic_run(np.random.default_rng(5), seed=np.random.default_rng(7))
    np.testing.assert_array_equal(a.x, from_generator.x)


def test_other_seeds_give_other_runs():
    found = [stochastic_run(np.random.default_rng(5), seed=seed).x for seed in (1, 2, None)]
    assert not np.array_equal(found[0], found[1]) and not np.array_equal(found[0], found[2])


def test_deterministic_methods_ignore_the_seed():
    same(lopro.solve(fresh(), seed=1), lopro.solve(fresh(), seed=2))
