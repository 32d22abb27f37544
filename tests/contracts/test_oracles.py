"""Counters count every evaluation exactly once, on the open ledger, and change nothing."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from support.catalogue_objectives import ENTRIES, NUMPY, TALL, Entry

from lopro.constraints import FunctionConstraint, Intersection, Simplex
from lopro.core.counting import Counts, count, counting
from lopro.driver.counted import CountedConstraint, CountedObjective
from lopro.objectives import L1Norm, LeastSquares, SquaredDistance

X = np.array([0.5, -1.0, 2.0, 0.0])


def lasso():
    return LeastSquares(TALL, np.ones(9)) + L1Norm()


def nonzero(counts: Counts) -> dict[str, int]:
    return {name: times for name, times in counts.to_dict().items() if times}


def passes(count: int) -> dict[str, int]:
    """The further passes that products with the whole matrix make."""
    return {"passes": count, "bytes_read": count * TALL.nbytes}


def test_every_oracle_is_counted_once():
    f = CountedObjective(SquaredDistance(np.ones(4)))
    with counting(Counts()) as counts:
        f.value(X)
        f.value(X)
        f.subgradient(X)
        f.prox(X, 0.5)
        f.prox(X, step=0.5)
    assert nonzero(counts) == {"values": 2, "gradients": 1, "proxes": 2}


def test_stochastic_gradients_and_products_are_counted():
    f = CountedObjective(LeastSquares(TALL, np.ones(9)))
    with counting(Counts()) as counts:
        f.stochastic_subgradient(X, np.random.default_rng(0))
    assert nonzero(counts) == {"gradients": 1, "bytes_read": TALL[0].nbytes}
    with counting(Counts()) as counts:
        f.subgradient(X)
    assert nonzero(counts) == {"gradients": 1, "matvecs": 1, "rmatvecs": 1, **passes(2)}


def test_a_linearization_counts_its_gradient_only_when_it_is_evaluated():
    f = CountedObjective(LeastSquares(TALL, np.ones(9)))
    with counting(Counts()) as counts:
        _, gradient = f.linearize_at(f.image(X))
        assert nonzero(counts) == {"values": 1, "matvecs": 1, **passes(1)}
        gradient()
        both = {"matvecs": 1, "rmatvecs": 1, **passes(2)}
        assert nonzero(counts) == {"values": 1, "gradients": 1, **both}


def test_a_sum_is_one_objective_and_its_split_parts_are_counted_too():
    f = CountedObjective(lasso())
    with counting(Counts()) as counts:
        f.subgradient(X)
    assert counts.gradients == 1
    smooth, proximable = f.split()
    with counting(Counts()) as counts:
        smooth.value(X)
        proximable.prox(X, 1.0)
    assert nonzero(counts) == {"values": 1, "proxes": 1, "matvecs": 1, **passes(1)}
    assert CountedObjective(L1Norm()).split()[0] is None


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_wrappers_forward_everything(entry: Entry):
    f = entry.build(NUMPY.of)
    proxy = CountedObjective(f)
    x = entry.point(np.random.default_rng(1))
    for name in ("shape", "smooth", "proximable", "stochastic", "image_length"):
        assert getattr(proxy, name) == getattr(f, name)
    assert proxy.like is f.like
    for name in ("lipschitz", "smoothness", "strong_convexity", "infimum"):
        assert getattr(proxy, name)() == getattr(f, name)()
    assert proxy.value(x) == f.value(x)
    np.testing.assert_array_equal(proxy.subgradient(x), f.subgradient(x))
    alpha, g = proxy.minorant(x, x)
    assert alpha == f.minorant(x, x)[0]
    np.testing.assert_array_equal(g, f.minorant(x, x)[1])
    value, gradient = proxy.linearize_at(proxy.image(x))
    assert value == f.linearize_at(f.image(x))[0]
    np.testing.assert_array_equal(gradient(), f.subgradient(x))
    assert repr(proxy) == repr(f)


def test_wrappers_can_be_copied():
    proxy = CountedObjective(L1Norm(2.0))
    for other in (copy.copy(proxy), copy.deepcopy(proxy), pickle.loads(pickle.dumps(proxy))):
        with counting(Counts()) as counts:
            assert other.value(X) == 7.0
        assert counts.values == 1


def test_values_and_slopes_of_a_constraint_and_its_members_are_counted():
    half = FunctionConstraint(lambda x: float(x[0]), lambda x: np.array([1.0, 0.0, 0.0, 0.0]))
    counted = CountedConstraint(Intersection(Simplex(4), half))
    with counting(Counts()) as counts:
        counted.value(X)
        counted.subgradient(X)
        for member in counted.members():
            member.value(X)
    assert nonzero(counts) == {"constraint_values": 3, "constraint_gradients": 1}
    assert counted.members() is counted.members()  # made once


def test_a_counted_constraint_cannot_project():
    counted = CountedConstraint(Intersection(Simplex(4), Simplex(4)))
    for one in (counted, *counted.members()):
        with pytest.raises(TypeError, match=r"bench\.project"):
            one.project(X)


def test_nested_ledgers_are_separate():
    f = CountedObjective(L1Norm())
    with counting(Counts()) as outer:
        f.value(X)
        with counting(Counts()) as inside:
            f.value(X)
            f.value(X)
        f.prox(X, 1.0)
    assert nonzero(outer) == {"values": 1, "proxes": 1}
    assert nonzero(inside) == {"values": 2}


def test_a_ledger_is_closed_after_an_error_and_can_be_opened_again():
    counts = Counts()
    with pytest.raises(ZeroDivisionError), counting(counts):
        count("values")
        _ = 1 / 0
    count("values")
    assert counts.values == 1
    with counting(counts):
        count("values", 3)
    assert counts.values == 4


def test_without_a_ledger_nothing_is_counted_and_nothing_breaks():
    f = CountedObjective(lasso())
    assert f.value(X) == lasso().value(X)


def test_threads_have_ledgers_of_their_own():
    inside = Counts()

    def work() -> None:
        count("values")
        with counting(inside):
            count("values")

    with counting(Counts()) as outer:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert outer.values == 0
    assert inside.values == 1


def test_unknown_counters_are_mistakes():
    with counting(Counts()), pytest.raises(AttributeError):
        count("no_such_counter")
