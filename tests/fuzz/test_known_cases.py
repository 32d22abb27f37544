"""Calls that once gave a wrong result are right; those that still are wrong are strictly expected to fail."""

from __future__ import annotations

import time

import pytest

from fuzz.judge.verdict import Class
from fuzz.known_cases import KNOWN, SUCCEED, UNMENDED
from fuzz.machine.attempt import attempt
from fuzz.machine.case import decide

pytestmark = pytest.mark.fuzz


def parameter(name: str):
    unmended = pytest.mark.xfail(strict=True, reason="not fixed yet")
    return pytest.param(name, marks=[unmended] if name in UNMENDED else [])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [parameter(name) for name in KNOWN])
def test_a_known_case(name, monkeypatch):
    # Limits in processor time: how busy the machine is must not matter.
    monkeypatch.setattr(time, "perf_counter", time.process_time)
    case = KNOWN[name]()
    verdict = decide(case, attempt(case.script()))
    # The time depends on the machine; `make fuzz` checks it.
    assert verdict.kind is Class.OVERRUN or not verdict.fails, verdict
    if name in SUCCEED:
        assert verdict.kind is Class.CERTIFIED, verdict


def test_the_lists_name_known_cases():
    assert set(KNOWN) >= SUCCEED and set(KNOWN) >= UNMENDED
