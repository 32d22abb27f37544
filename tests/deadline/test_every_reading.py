"""No internal exception escapes, whenever the time limit is reached or Ctrl-C comes; the clock is simulated.

A deadline acts where the clock is read, and nowhere else. So every call is repeated, and the time is up, or
the signal comes, at the k-th reading: at each of the first ones, and at some of the others.
"""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest

from deadline.entries import ENTRIES, WORDS
from lopro.core.deadline import using_clock

#: At each of the first readings, and at this number of others.
FIRST, LATER = 16, 6
LIMIT = 1.0


class Clock:
    """Stands still until the k-th reading; then time or the user ends the call."""

    def __init__(self, k: float, after: float, interrupts: bool) -> None:
        self.k, self.after, self.interrupts = k, after, interrupts
        self.readings, self.fired = 0, False

    def __call__(self) -> float:
        self.readings += 1
        if self.readings > self.k and not self.fired:
            self.fired = True
            if self.interrupts:
                signal.raise_signal(signal.SIGINT)
        return self.after if self.fired else 0.0


def words_of(found: Any) -> set[str]:
    if isinstance(found, str):
        return {found}
    results = found if isinstance(found, list) else [found]
    for result in results:
        assert np.isfinite(result.x).all()
        assert result.success == (result.status.name == "CONVERGED")
    return {result.status.name for result in results}


def call(name: str, k: float, after: float = 0.0, interrupts: bool = False) -> Clock:
    clock = Clock(k, after, interrupts)
    with using_clock(clock):
        assert words_of(ENTRIES[name](LIMIT)) <= WORDS
    return clock


def moments(name: str) -> list[int]:
    """Return the readings at which to end a call; before the first one no deadline is set."""
    total = call(name, np.inf).readings
    early = range(1, min(total, FIRST))
    return sorted({*early, *(int(k) for k in np.linspace(1, total, LATER))})


#: A little late, so that time remains to finish the result; and so late that none remains.
LATE = {"late": 1.01 * LIMIT, "far too late": 1e9}


@pytest.mark.parametrize("after", LATE.values(), ids=LATE)
@pytest.mark.parametrize("name", ENTRIES)
def test_a_limit_gives_an_answer_at_every_reading(name, after):
    for k in moments(name):
        call(name, k, after)


# `lopro.iterate` handles Ctrl-C only inside a step.
@pytest.mark.parametrize("name", [n for n in ENTRIES if n != "iterate"])
def test_an_interrupt_gives_an_answer_at_every_reading(name):
    for k in moments(name):
        try:
            call(name, k, interrupts=True)
        except KeyboardInterrupt:  # it would end the whole test run
            pytest.fail(f"KeyboardInterrupt at reading {k}")


@pytest.mark.parametrize("limit", [1e-6, 1e-3])
@pytest.mark.parametrize("name", ENTRIES)
def test_tiny_limits_give_an_answer(name, limit):
    assert words_of(ENTRIES[name](limit)) <= WORDS


@pytest.mark.parametrize("name", [n for n in ENTRIES if not n.startswith("command")])
def test_no_time_at_all_is_refused(name):
    with pytest.raises(ValueError, match="time_limit must be in"):
        ENTRIES[name](0.0)
