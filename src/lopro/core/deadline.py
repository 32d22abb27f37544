"""The time a call may take, and Ctrl-C: one object that everything which can take long looks at.

`lopro.solve` and the other entry points open a deadline for the whole call; what runs inside asks the
current one. A loop calls `Deadline.check`, which raises `OutOfTime` once the time is up or the user has
pressed Ctrl-C, and the driver turns that into a result. Work that cannot be interrupted, one LAPACK call for
instance, is asked for with `Deadline.affords` and not started if it would take too long.
"""

from __future__ import annotations

import functools
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from types import FrameType

__all__ = ["EIGH", "Deadline", "OutOfTime", "current_deadline", "using_clock"]

#: An eigendecomposition takes about as long as a product of so many times as many operations as ``n^3``.
EIGH = 20.0
#: What wrapping up may take: a share of the limit and some seconds; after Ctrl-C, these seconds.
WRAP_UP_SHARE, WRAP_UP_SECONDS = 0.1, 0.25


class OutOfTime(Exception):
    """The deadline has passed, or the user has pressed Ctrl-C."""


_clock: ContextVar[Callable[[], float]] = ContextVar("lopro_clock", default=time.perf_counter)


@contextmanager
def using_clock(clock: Callable[[], float]) -> Iterator[None]:
    """Let deadlines that are made in the block read this clock: tests move it by hand."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


class Deadline:
    """When to stop: after some seconds, or when the user says so.

    Parameters
    ----------
    seconds : float, optional
        How long it may take; None for as long as it takes.

    Examples
    --------
    >>> from lopro.core.deadline import Deadline, current_deadline
    >>> with Deadline(5.0).active():
    ...     current_deadline().left <= 5.0
    True
    >>> current_deadline().left
    inf
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = math.inf if seconds is None else float(seconds)
        self._interrupted_at = math.inf
        self._wrapping = 0
        self._given_up = False
        self._clock = _clock.get()
        self._start = self._clock()
        #: The deadline of the call around this one; it ends this one as well.
        self._outer = _current.get()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    @property
    def left(self) -> float:
        """Seconds that are left; not negative."""
        return max(0.0, self._left(self._wrapping > 0))

    def _left(self, wrapping: bool) -> float:
        if self._given_up and not wrapping:
            return 0.0
        own = math.inf
        if self.seconds < math.inf:
            extra = WRAP_UP_SHARE * self.seconds + WRAP_UP_SECONDS if wrapping else 0.0
            own = self.seconds + extra - self.elapsed
        if self._interrupted_at < math.inf:
            end = self._interrupted_at + (WRAP_UP_SECONDS if wrapping else 0.0)
            own = min(own, end - self.elapsed)
        return own if self._outer is None else min(own, self._outer._left(wrapping))

    @property
    def passed(self) -> bool:
        """Whether it is time to stop."""
        return self.left <= 0.0

    @property
    def stopped_by_user(self) -> bool:
        """Whether the user has pressed Ctrl-C."""
        outer = self._outer
        return self._interrupted_at < math.inf or (outer is not None and outer.stopped_by_user)

    @contextmanager
    def wrapping_up(self) -> Iterator[None]:
        """Let the block have a little more time: a run that is late may still finish its last point."""
        self._wrapping += 1
        try:
            yield
        finally:
            self._wrapping -= 1

    def check(self) -> None:
        """Raise `OutOfTime` if it is time to stop."""
        if self.passed:
            raise OutOfTime

    def affords(self, operations: float, seconds: float = math.inf) -> bool:
        """Whether there is time for so many floating-point operations that cannot be interrupted.

        No more of it than ``seconds``, where these are given.
        """
        left = min(self.left, seconds)
        return left == math.inf or (left > 0.0 and operations <= _operations_per_second() * left)

    def need(self, operations: float, otherwise: str = "") -> None:
        """Raise `OutOfTime` unless there is time for so many operations that cannot be interrupted.

        What to say otherwise is the message of the error, and a warning of the result.
        """
        if not self.affords(operations):
            # What is left is too short for what has to come next: it is over.
            self._given_up = True
            raise OutOfTime(otherwise)

    def active(self) -> AbstractContextManager[Deadline]:
        """Make this the current deadline of the block, and listen to Ctrl-C there."""
        return _Active(self)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted_at < math.inf:
            raise KeyboardInterrupt
        self._interrupted_at = self.elapsed


class _Active:
    """A block with a current deadline. Every call has several, and the smallest ones take a millisecond."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._token: Token[Deadline | None] | None = None
        self._listens = False

    def __enter__(self) -> Deadline:
        deadline, current = self._deadline, _current.get()
        if current is deadline:
            return deadline
        self._token = _current.set(deadline)
        # The call around this one may listen already.
        self._listens = not (current is deadline._outer is not None) and _nobody_listens()
        if self._listens:
            signal.signal(signal.SIGINT, deadline._note)
        return deadline

    def __exit__(self, *exception: object) -> None:
        if self._listens:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._token is not None:
            _current.reset(self._token)


def _nobody_listens() -> bool:
    """Whether Ctrl-C is free: only the main thread may listen, and only if nobody else has taken it over."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


@functools.cache
def _operations_per_second() -> float:
    """Return the speed of matrix products on this machine, measured once in a few milliseconds."""
    import numpy as np

    n = 256
    A = np.ones((n, n))
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        A @ A
        seconds.append(time.perf_counter() - start)
    return 2.0 * n**3 / max(min(seconds), 1e-9)


_current: ContextVar[Deadline | None] = ContextVar("lopro_deadline", default=None)


def current_deadline() -> Deadline:
    """Return the deadline of the call that is running; one that never passes where there is none."""
    return _current.get() or _NEVER


_NEVER = Deadline()
