"""A few hundred random calls with a fixed seed: exactly the known cases fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuzz.machine.pool import Pool
from fuzz.machine.record import Record
from fuzz.short_run import CASES, complaints, known_failures, records


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", CASES)
def test_only_known_cases_fail(kind):
    with Pool(1, cpu_clock=True) as pool:
        found = records(kind, pool)
    assert len(found) == CASES[kind]
    assert complaints(found, known_failures()) == []


def test_the_list_of_known_failures_is_strict():
    known = {"unmended": {"bpdn:1": "wrong: x"}, "unsteady": {"bpdn:2": "time"}}
    wrong = Record("bpdn", 1, "wrong", "x")
    right = Record("bpdn", 1, "certified")
    assert complaints([wrong], known) == []
    assert "passes" in complaints([right], known)[0]
    assert complaints([replace(right, seed=3)], known) == []
    assert "bpdn:3 fails" in complaints([replace(wrong, seed=3)], known)[0]
    assert complaints([replace(wrong, seed=2), replace(right, seed=2)], known) == []
    assert complaints([replace(wrong, seed=3, verdict="overrun")], known) == []


def test_the_list_of_known_failures_names_cases_of_the_run():
    known = known_failures()
    assert set(known) == {"unmended", "unsteady"}
    for name in [*known["unmended"], *known["unsteady"]]:
        kind, _, seed = name.partition(":")
        assert int(seed) < CASES[kind]
