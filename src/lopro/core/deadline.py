"""Time limit and Ctrl-C: one object that every long computation checks.

`lopro.solve` and the other entry points set a deadline for the whole call; code inside uses the current
one. A loop calls `Deadline.check`, which raises `OutOfTime` after the time limit or Ctrl-C, and the driver
turns that into a result. Work that cannot be interrupted, such as one LAPACK call, is not started if
`Deadline.affords` estimates that it would exceed the limit.
"""

from __future__ import annotations

# The functions of `signal` convert handlers to enums and back: 20 us a call, a twentieth of a small quadratic
# program, against 0.6 us (timeit, Python 3.11).
import _signal  # type: ignore[import-not-found]
import functools
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, Token
from types import FrameType

__all__ = [
    "EIGH",
    "Deadline",
    "OutOfTime",
    "current_deadline",
    "operations_per_second",
    "using_clock",
]

#: Cost of a symmetric eigendecomposition, in operations of a matrix product per ``n^3``. It has 9 n^3
#: operations (Golub and Van Loan, Matrix Computations, section 8.3), of which the 4/3 n^3 of the tridiagonal
#: reduction run at the speed of memory, assumed to be a tenth of that of products: (8 + 13) n^3.
EIGH = 20.0
#: Extra time to finish the last point: a share of the limit plus seconds; after Ctrl-C, the seconds alone.
#: Half of the overrun that tests/deadline allows (1.2 times the limit plus 0.5 s).
WRAP_UP_SHARE, WRAP_UP_SECONDS = 0.1, 0.25


class OutOfTime(Exception):
    """The deadline has passed, or the user has pressed Ctrl-C."""


_clock: ContextVar[Callable[[], float]] = ContextVar("lopro_clock", default=time.perf_counter)


@contextmanager
def using_clock(clock: Callable[[], float]) -> Iterator[None]:
    """Use this clock for deadlines that are created in the block; tests advance it explicitly."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


class Deadline:
    """A time limit, which Ctrl-C ends early.

    Parameters
    ----------
    seconds : float, optional
        The time limit; None for no limit.

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
        self._ended_early = False
        self._clock = _clock.get()
        self._start = self._clock()
        #: The deadline of the enclosing call, which ends this one as well.
        self._outer = _current.get()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._start

    @property
    def left(self) -> float:
        """Seconds left; not negative."""
        return max(0.0, self._left(self._wrapping > 0))

    def _left(self, wrapping: bool) -> float:
        if self._ended_early and not wrapping:
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
        """Whether no time is left."""
        return self.left <= 0.0

    @property
    def stopped_by_user(self) -> bool:
        """Whether the user has pressed Ctrl-C."""
        outer = self._outer
        return self._interrupted_at < math.inf or (outer is not None and outer.stopped_by_user)

    def wrapping_up(self) -> AbstractContextManager[None]:
        """Extend the deadline in the block by the time in which a late run may finish its last point."""
        return _WrappingUp(self)

    def check(self) -> None:
        """Raise `OutOfTime` if no time is left."""
        if self.passed:
            raise OutOfTime

    def affords(self, operations: float, seconds: float = math.inf) -> bool:
        """Whether there is time for a number of floating-point operations that cannot be interrupted.

        They may take at most ``seconds``, where these are given.
        """
        left = min(self.left, seconds)
        return left == math.inf or (left > 0.0 and operations <= operations_per_second() * left)

    def need(self, operations: float, otherwise: str = "") -> None:
        """Raise `OutOfTime` unless there is time for a number of operations that cannot be interrupted.

        ``otherwise`` is the message of the error, which becomes a warning of the result.
        """
        if not self.affords(operations):
            # The next operation does not fit in the time left: the deadline counts as passed.
            self._ended_early = True
            raise OutOfTime(otherwise)

    def active(self) -> AbstractContextManager[Deadline]:
        """Make this the current deadline of the block, and handle Ctrl-C there."""
        return _Active(self)

    def _on_sigint(self, number: int, frame: FrameType | None) -> None:
        if self._interrupted_at < math.inf:
            raise KeyboardInterrupt
        self._interrupted_at = self.elapsed


class _Active:
    """A block with a current deadline; faster to enter than a generator-based context manager."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._token: Token[Deadline | None] | None = None
        self._handles_sigint = False

    def __enter__(self) -> Deadline:
        deadline, current = self._deadline, _current.get()
        if current is deadline:
            return deadline
        self._token = _current.set(deadline)
        # The enclosing call may handle Ctrl-C already.
        self._handles_sigint = not (current is deadline._outer is not None) and _sigint_is_free()
        if self._handles_sigint:
            _signal.signal(_signal.SIGINT, deadline._on_sigint)
        return deadline

    def __exit__(self, *exception: object) -> None:
        if self._handles_sigint:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        if self._token is not None:
            _current.reset(self._token)


class _WrappingUp:
    """A block in which a deadline has extra time."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline

    def __enter__(self) -> None:
        self._deadline._wrapping += 1

    def __exit__(self, *exception: object) -> None:
        self._deadline._wrapping -= 1


def _sigint_is_free() -> bool:
    """Whether SIGINT has its default handler, and this is the main thread, which alone may change it."""
    main = threading.current_thread() is threading.main_thread()
    return main and _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler


@functools.cache
def operations_per_second() -> float:
    """Return the speed of matrix products on this machine, from the best of three of size 256."""
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
    """Return the deadline of the running call; outside of calls, one without a limit."""
    return _current.get() or _NEVER


_NEVER = Deadline()
