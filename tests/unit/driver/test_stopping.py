"""Stopping rules: each at its exact threshold, combined, and accepted by every solving function."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import lopro
from lopro import Iterate, Problem, Status
from lopro.constraints import Polyhedron
from lopro.driver.stopping import (
    Gap,
    Iterations,
    Products,
    Projections,
    RelativeGap,
    Rule,
    Seconds,
    Value,
    When,
    as_rule,
)
from lopro.objectives import SquaredDistance

SEEN = Iterate(
    x=np.zeros(2),
    epoch=3,
    iterations=40,
    projections=4,
    products=90,
    fun=2.5,
    violation=0.0,
    lower_bound=2.0,
    gap=0.5,
    relative_gap=0.2,
    penalty_weight=math.nan,
    exact=None,
    regularity=math.nan,
    seconds=1.25,
)

#: A rule that the iterate just meets, and the next one that it does not.
EDGES: list[tuple[Rule, Rule]] = [
    (Value(2.5), Value(math.nextafter(2.5, 0.0))),
    (Gap(0.5), Gap(math.nextafter(0.5, 0.0))),
    (RelativeGap(0.2), RelativeGap(math.nextafter(0.2, 0.0))),
    (Seconds(1.25), Seconds(math.nextafter(1.25, 2.0))),
    (Iterations(40), Iterations(41)),
    (Projections(4), Projections(5)),
    (Products(90), Products(91)),
    (When(lambda it: it.epoch == 3), When(lambda it: it.epoch > 3)),
]


@pytest.mark.parametrize(("met", "missed"), EDGES, ids=lambda rule: type(rule).__name__)
def test_a_rule_is_met_at_its_threshold_and_not_before(met: Rule, missed: Rule) -> None:
    assert met.met(SEEN) and not missed.met(SEEN)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_either_and_both(first: bool, second: bool) -> None:
    a, b = When(lambda it: first), When(lambda it: second)
    assert (a | b).met(SEEN) is (first or second)
    assert (a & b).met(SEEN) is (first and second)


def test_plain_functions_combine_with_rules() -> None:
    assert (Value(1.0) | (lambda it: it.gap < 1.0)).met(SEEN)
    assert not (Value(1.0) & (lambda it: it.gap < 1.0)).met(SEEN)
    rule = Value(1.0)
    assert as_rule(rule) is rule


def test_rules_have_readable_names() -> None:
    both = (Value(1.0) | Projections(3)) & Seconds(2.0)
    assert repr(both) == "Value(below=1.0) | Projections(most=3) & Seconds(most=2.0)"
    assert pickle.loads(pickle.dumps(Value(1.0) | Gap(0.1))) == Value(1.0) | Gap(0.1)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Value(math.nan), "below"),
        (lambda: Gap(-1.0), "below"),
        (lambda: RelativeGap("0.1"), "below"),
        (lambda: Seconds(-0.1), "most"),
        (lambda: Projections(0), "most"),
        (lambda: Iterations(1.5), "most"),
        (lambda: When(3), "function"),
        (lambda: Value(1.0) | 3, "stop"),
        (lambda: lopro.solve(PROBLEM, stop=3), "stop"),
        (lambda: lopro.solve(PROBLEM, stop=Value), "stop"),
    ],
)
def test_bad_rules_are_named(call: Any, name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=name):
        call()


PROBLEM = Problem(
    SquaredDistance(np.array([3.0, 0.0])), Polyhedron.box(-np.ones(2), np.ones(2)), gap_scale=1.0
)
STEPS = lopro.LoPGD(lopro.theorems.HalvingSteps(lam=3.0, eta=0.1, steps=10, epochs=50))


@pytest.mark.parametrize("most", [1, 3, 7])
def test_a_run_ends_with_the_iterate_that_meets_the_rule(most: int) -> None:
    for rule in (Projections(most), Iterations(10 * most), When(lambda it: it.epoch >= most)):
        result = lopro.solve(PROBLEM, np.zeros(2), STEPS, tol=0.0, stop=rule)
        assert result.status is Status.STOPPED
        assert len(result.history) == result.counts.projections == most
        assert result.message == f"stopped by the rule {rule!r}"


def test_the_first_of_two_rules_counts() -> None:
    result = lopro.solve(PROBLEM, np.zeros(2), STEPS, tol=0.0, stop=Projections(9) | Iterations(20))
    assert result.iterations == 20
    result = lopro.solve(PROBLEM, np.zeros(2), STEPS, tol=0.0, stop=Projections(3) & Iterations(60))
    assert result.iterations == 60


def test_convergence_takes_precedence_over_a_rule() -> None:
    result = lopro.solve(PROBLEM, stop=lambda it: True)
    assert result.status is Status.CONVERGED


def test_iterate_takes_rules() -> None:
    run = lopro.iterate(PROBLEM, np.zeros(2), STEPS, tol=0.0, stop=Projections(2))
    assert len(list(run)) == 2
    assert run.result().status is Status.STOPPED


def test_minimize_takes_rules() -> None:
    calls: list[Iterate] = []
    result = lopro.minimize(
        lambda x: float(np.abs(x - 2.0).sum()),
        np.zeros(2),
        lambda x: np.sign(x - 2.0),
        constraint=PROBLEM.constraint,
        smooth=False,
        tol=0.0,
        stop=lambda it: bool(calls.append(it)) or len(calls) == 2,
    )
    assert result.status is Status.STOPPED and len(calls) == len(result.history) == 2


def test_bpdn_and_learn_metric_take_rules(rng: np.random.Generator) -> None:
    A, y = rng.standard_normal((20, 50)), rng.standard_normal(20)
    for rule in (Iterations(1), lambda it: True):
        result = lopro.bpdn(A, y, 0.1, tol=0.0, stop=rule)
        assert result.status is Status.STOPPED and len(result.history) == 1
    X, labels = rng.standard_normal((20, 6)), np.arange(20) % 2
    learned = lopro.learn_metric(X, labels, l1=0.01, tol=0.0, stop=Iterations(1))
    assert learned.status is Status.STOPPED and len(learned.history) == 1


def test_rules_evaluate_no_functions() -> None:
    """They read the iterate, and do not change it."""
    before = replace(SEEN)
    for met, missed in EDGES:
        (met | missed).met(SEEN)
    assert SEEN.row() == pytest.approx(before.row(), nan_ok=True)
