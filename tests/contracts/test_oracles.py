"""Counters count exactly what was asked, once, on the ledger that is open, and change nothing."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from catalogue_objectives import ENTRIES, NUMPY, TALL, Entry

from lopro.objectives import L1Norm, LeastSquares, SquaredDistance
from lopro.oracles import CONSTRAINT_ORACLES, OBJECTIVE_ORACLES, Counts, counted, ledger, tally

X = np.array([0.5, -1.0, 2.0, 0.0])


def lasso():
    return LeastSquares(TALL, np.ones(9)) + L1Norm()


def nonzero(counts: Counts) -> dict[str, int]:
    return {name: times for name, times in counts.to_dict().items() if times}


def passes(count: int) -> dict[str, int]:
    """What products with all of the matrix add besides."""
    return {"passes": count, "bytes_read": count * TALL.nbytes}


def test_every_oracle_is_counted_once():
    f = counted(SquaredDistance(np.ones(4)), OBJECTIVE_ORACLES)
    with ledger(Counts()) as counts:
        f.value(X)
        f.value(X)
        f.subgradient(X)
        f.prox(X, 0.5)
        f.prox(X, step=0.5)
    assert nonzero(counts) == {"values": 2, "gradients": 1, "proxes": 2}


def test_stochastic_gradients_and_products_are_counted():
    f = counted(LeastSquares(TALL, np.ones(9)), OBJECTIVE_ORACLES)
    with ledger(Counts()) as counts:
        f.stochastic_subgradient(X, np.random.default_rng(0))
    assert nonzero(counts) == {"gradients": 1, "bytes_read": TALL[0].nbytes}
    with ledger(Counts()) as counts:
        f.subgradient(X)
    assert nonzero(counts) == {"gradients": 1, "matvecs": 1, "rmatvecs": 1, **passes(2)}


def test_a_linearization_counts_its_gradient_only_when_asked():
    f = counted(LeastSquares(TALL, np.ones(9)), OBJECTIVE_ORACLES)
    with ledger(Counts()) as counts:
        _, gradient = f.linearize_at(f.image(X))
        assert nonzero(counts) == {"values": 1, "matvecs": 1, **passes(1)}
        gradient()
        both = {"matvecs": 1, "rmatvecs": 1, **passes(2)}
        assert nonzero(counts) == {"values": 1, "gradients": 1, **both}


def test_a_sum_is_one_objective_and_its_split_parts_are_counted_too():
    f = counted(lasso(), OBJECTIVE_ORACLES)
    with ledger(Counts()) as counts:
        f.subgradient(X)
    assert counts.gradients == 1
    smooth, proximable = f.split()
    with ledger(Counts()) as counts:
        smooth.value(X)
        proximable.prox(X, 1.0)
    assert nonzero(counts) == {"values": 1, "proxes": 1, "matvecs": 1, **passes(1)}
    assert counted(L1Norm(), OBJECTIVE_ORACLES).split()[0] is None


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_proxies_forward_everything(entry: Entry):
    f = entry.build(NUMPY.of)
    proxy = counted(f, OBJECTIVE_ORACLES)
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


def test_attributes_that_do_not_exist_are_missed():
    proxy = counted(L1Norm(), OBJECTIVE_ORACLES)
    with pytest.raises(AttributeError, match="no_such_thing"):
        _ = proxy.no_such_thing


def test_attributes_are_not_frozen_at_first_sight():
    f = LeastSquares(TALL, np.ones(9))
    proxy = counted(f, OBJECTIVE_ORACLES)
    assert proxy.batch_size == 1
    f.batch_size = 5
    assert proxy.batch_size == 5


def test_proxies_can_be_copied():
    proxy = counted(L1Norm(2.0), OBJECTIVE_ORACLES)
    for other in (copy.copy(proxy), copy.deepcopy(proxy), pickle.loads(pickle.dumps(proxy))):
        with ledger(Counts()) as counts:
            assert other.value(X) == 7.0
        assert counts.values == 1


def test_members_and_projections_of_constraints_are_counted():
    class Halfline:
        """The set {x <= 0}, as far as the proxy is concerned."""

        def value(self, x):
            return float(x[0])

        def project(self, x):
            return np.minimum(x, 0.0)

        def members(self):
            return (self,)

        def regularity(self):
            return 1.0

    proxy = counted(Halfline(), CONSTRAINT_ORACLES)
    with ledger(Counts()) as counts:
        proxy.project(X)
        proxy.value(X)
        (member,) = proxy.members()
        member.project(X)
        assert proxy.regularity() == 1.0
    assert nonzero(counts) == {"projections": 2, "constraint_values": 1}


def test_nested_ledgers_are_separate():
    f = counted(L1Norm(), OBJECTIVE_ORACLES)
    with ledger(Counts()) as outer:
        f.value(X)
        with ledger(Counts()) as inside:
            f.value(X)
            f.value(X)
        f.prox(X, 1.0)
    assert nonzero(outer) == {"values": 1, "proxes": 1}
    assert nonzero(inside) == {"values": 2}


def test_a_ledger_is_closed_after_an_error_and_can_be_opened_again():
    counts = Counts()
    with pytest.raises(ZeroDivisionError), ledger(counts):
        tally("values")
        _ = 1 / 0
    tally("values")
    assert counts.values == 1
    with ledger(counts):
        tally("values", 3)
    assert counts.values == 4


def test_without_a_ledger_nothing_is_counted_and_nothing_breaks():
    f = counted(lasso(), OBJECTIVE_ORACLES)
    assert f.value(X) == lasso().value(X)


def test_threads_have_ledgers_of_their_own():
    inside = Counts()

    def work() -> None:
        tally("values")
        with ledger(inside):
            tally("values")

    with ledger(Counts()) as outer:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert outer.values == 0
    assert inside.values == 1


def test_unknown_counters_are_mistakes():
    with ledger(Counts()), pytest.raises(AttributeError):
        tally("no_such_counter")
