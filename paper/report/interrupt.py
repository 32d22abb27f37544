"""Ctrl-C for a whole job: `lopro.solve` would take it for the end of one run and return what it has."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interruptible"]


class _Stop(BaseException):
    """The exception that the handler raises; no code in between catches it."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stop


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end everything inside with a KeyboardInterrupt, solvers that would catch it included.

    Examples
    --------
    >>> from paper.report.interrupt import interruptible
    >>> with interruptible():
    ...     2 + 2
    4
    """
    here = threading.current_thread() is threading.main_thread()
    # A job in the background of a shell must go on ignoring it.
    if not here or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGINT, _stop)
    try:
        yield
    except _Stop:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)
