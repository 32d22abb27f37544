"""Deadlines: the remaining time, nested deadlines, and work that is not started for lack of time."""

from __future__ import annotations

import math
import signal
from collections.abc import Iterator

import pytest

from lopro.core import deadline as module
from lopro.core.deadline import Deadline, OutOfTime, current_deadline, using_clock


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    found = Clock()
    with using_clock(found):
        yield found


def test_the_remaining_time(clock: Clock) -> None:
    d = Deadline(5.0)
    for now, left in ((100.0, 5.0), (103.0, 2.0), (105.0, 0.0), (109.0, 0.0)):
        clock.now = now
        assert (d.left, d.elapsed, d.passed) == (left, now - 100.0, left == 0.0)


def test_without_seconds_it_never_passes(clock: Clock) -> None:
    d = Deadline()
    clock.now = 1e9
    assert d.left == math.inf and not d.passed
    d.check()
    d.need(1e300)


def test_check_raises_when_it_has_passed_and_not_before(clock: Clock) -> None:
    d = Deadline(1.0)
    clock.now = 100.999
    d.check()
    clock.now = 101.0
    with pytest.raises(OutOfTime):
        d.check()


def test_the_final_work_has_a_tenth_more_and_a_quarter_of_a_second(clock: Clock) -> None:
    d = Deadline(10.0)
    clock.now = 110.0
    assert d.passed
    with d.wrapping_up():
        assert d.left == pytest.approx(1.25)
        clock.now = 111.24
        assert not d.passed
        with d.wrapping_up():  # the allowance is not doubled
            assert d.left == pytest.approx(0.01)
        clock.now = 111.25
        assert d.passed
    assert d.left == 0.0


def test_an_outer_deadline_ends_the_inner_call(clock: Clock) -> None:
    with Deadline(3.0).active() as outer:
        inner = Deadline(10.0)
        assert inner.left == 3.0
        assert Deadline(1.0).left == 1.0
        clock.now = 102.5
        assert inner.left == outer.left == 0.5
        clock.now = 103.0
        assert inner.passed


def test_the_current_deadline_is_that_of_the_innermost_block(clock: Clock) -> None:
    assert current_deadline().left == math.inf
    with Deadline(3.0).active() as outer:
        assert current_deadline() is outer
        with Deadline(2.0).active() as inner:
            assert current_deadline() is inner
        assert current_deadline() is outer
    assert current_deadline().left == math.inf


def test_work_that_would_take_too_long_is_not_started(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "operations_per_second", lambda: 1e9)
    d = Deadline(2.0)
    assert d.affords(2e9) and not d.affords(2.0000001e9)
    d.need(2e9)
    assert not d.passed
    with pytest.raises(OutOfTime):
        d.need(3e9)
    # The time left is too short for the next step: the run ends.
    assert d.passed
    with d.wrapping_up():
        assert d.left == pytest.approx(2.45)


def test_ctrl_c_is_noted_once_and_raised_the_second_time(clock: Clock) -> None:
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with Deadline(50.0).active() as d:
            within = Deadline(9.0)
            clock.now = 101.0
            signal.raise_signal(signal.SIGINT)
            assert d.stopped_by_user and within.stopped_by_user
            assert d.passed and within.passed
            with d.wrapping_up():
                assert d.left == pytest.approx(0.25)
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_signal_handler_is_kept() -> None:
    before = signal.getsignal(signal.SIGINT)
    received = []
    try:
        signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
        with Deadline(5.0).active() as d:
            signal.raise_signal(signal.SIGINT)
            assert not d.stopped_by_user
        assert received == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
