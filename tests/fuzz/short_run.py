"""The short form of the fuzzer for continuous integration: fixed cases and their known outcomes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fuzz.judge.verdict import Class
from fuzz.machine.pool import Pool
from fuzz.machine.record import Record

__all__ = ["CASES", "KNOWN_FAILURES", "complaints", "known_failures", "records"]

#: Number of seeds of each kind, counted from 0: about a minute on two cores.
CASES = {
    "bpdn": 80,
    "many": 4,
    "path": 12,
    "solve": 60,
    "minimize": 12,
    "metric": 30,
    "project": 29,
    "invalid": 89,
    "program": 30,
    "cvxpy": 20,
    "regression": 40,
    "composite": 30,
    "correlation": 20,
    "conic": 40,
    "exponential": 30,
}

KNOWN_FAILURES = Path(__file__).with_name("known_failures.json")


def known_failures() -> dict[str, dict[str, str]]:
    """Return ``unmended`` cases with their labels, and ``unsteady`` ones, whose outcome may change."""
    found: dict[str, dict[str, str]] = json.loads(KNOWN_FAILURES.read_text(encoding="utf-8"))
    return found


def records(kind: str, pool: Pool) -> list[Record]:
    """Run the cases of a kind."""
    answers: Any = pool.run([(kind, seed) for seed in range(CASES[kind])])
    return sorted((record for _, record in answers), key=lambda record: record.seed)


def complaints(found: list[Record], known: dict[str, dict[str, str]]) -> list[str]:
    """Return the differences from the list of known failures: new failures, and those that are gone.

    A deadline that was missed is not counted here: tests do not measure time.
    """
    words = []
    for record in found:
        fails = record.fails and record.verdict != Class.OVERRUN.value
        outcome = f"{record.verdict}: {record.label}"
        if record.name in known["unsteady"]:
            continue
        if fails and record.name not in known["unmended"]:
            words.append(f"{record.name} fails: {outcome} ({record.detail})")
        if not fails and record.name in known["unmended"]:
            words.append(f"{record.name} passes ({outcome}): remove it from {KNOWN_FAILURES.name}")
    return words
