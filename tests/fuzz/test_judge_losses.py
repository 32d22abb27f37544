"""The judge of losses and certificates accepts what is right and rejects every forgery."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fuzz.judge.claims import Claims, Outcome
from fuzz.judge.verdict import Class
from fuzz.losses.case import LossCase, certify_case, loss_case
from fuzz.machine.attempt import attempt
from fuzz.machine.case import decide
from lopro.certificates import Certificate


def claimed(case: LossCase, x: Any, bound: float, success: bool = True) -> Outcome:
    fun = case.sample.value(x)
    status = "CONVERGED" if success else "STALLED"
    gap = max(fun - bound, 0.0)
    return Outcome((Claims(status, success, x, fun, bound, gap, 0.0, 0.0),))


@pytest.mark.parametrize("seed", range(12))
def test_forgeries_are_found(seed: int) -> None:
    case = loss_case(seed)
    value, x = case.best()
    if case.size() == 0.0 or not math.isfinite(value):
        return
    off = 0.01 * case.size()
    assert decide(case, claimed(case, x, value - 1e-9 * off)).kind is Class.CERTIFIED
    assert decide(case, claimed(case, x, value + off, success=False)).label == "bound above optimum"
    far = x + 10.0 / case.sample.units
    if case.sample.value(far) > value + off and case.sample.excess(far) == 0.0:
        assert decide(case, claimed(case, far, value - off)).label == "not within tol"
    assert decide(case, replace_status(claimed(case, x, value), "UNBOUNDED")).kind is Class.WRONG


def replace_status(outcome: Outcome, status: str) -> Outcome:
    return replace(outcome, claims=(replace(outcome.claims[0], status=status, success=False),))


@pytest.mark.parametrize("seed", range(8))
def test_forged_certificates_are_found(seed: int) -> None:
    case = certify_case(seed)
    assert case.x is not None
    value = case.best()[0]
    high = Certificate(0.0, 0.0, value + 0.1 * case.size() + 1e-6, 0.0, "forged")
    if case.sample.excess(case.x) == 0.0:
        assert decide(case, Outcome(value=high)).label in ("bound above optimum", "not within tol")
    # Within a radius in which no better point is known it is no forgery, unless it claims a success.
    near = replace(high, radius=0.0, relative_gap=1.0, gap=math.inf)
    elsewhere = not any(np.array_equal(z, case.x) for z in case.sample.good_points())
    assert (decide(case, Outcome(value=near)).kind is not Class.WRONG) == elsewhere


@pytest.mark.parametrize("kind", ["losses", "certify"])
def test_some_calls_are_right(kind: str) -> None:
    make: Any = loss_case if kind == "losses" else certify_case
    for seed in range(6):
        case = make(seed)
        assert not decide(case, attempt(case.script())).fails


def test_points_of_the_judge_satisfy_the_row() -> None:
    for seed in range(10):
        sample = loss_case(seed).sample
        for x in sample.good_points():
            assert sample.excess(x) <= 1e-15 and np.isfinite(sample.value(x))
