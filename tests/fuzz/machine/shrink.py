"""Greedy shrinking: take the first simpler case that fails in the same way, until none does."""

from __future__ import annotations

import time
from collections.abc import Callable

from fuzz.judge.verdict import Verdict
from fuzz.machine.attempt import attempt
from fuzz.machine.case import Case, decide

__all__ = ["shrunk"]


def shrunk(
    case: Case,
    verdict: Verdict,
    *,
    attempts: int = 300,
    seconds: float = 40.0,
    announce: Callable[[Case], None] = lambda case: None,
) -> tuple[Case, Verdict]:
    """Return the simplest case found with the same kind of failure, and its verdict."""
    stop, left = time.monotonic() + seconds, attempts
    progress = True
    while progress:
        progress = False
        for simpler in case.simpler():
            if left <= 0 or time.monotonic() > stop:
                return case, verdict
            left -= 1
            announce(simpler)
            found = _verdict(simpler)
            if found is not None and (found.kind, found.label) == (verdict.kind, verdict.label):
                case, verdict, progress = simpler, found, True
                break
    return case, verdict


def _verdict(case: Case) -> Verdict | None:
    try:
        return decide(case, attempt(case.script()))
    except Exception:
        return None  # an invalid reduction: the data do not fit together
