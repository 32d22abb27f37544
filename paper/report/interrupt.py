"""Ctrl-C for the whole job; `lopro.solve` alone would end one run and return its best point."""

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
    """Make Ctrl-C end the block with a KeyboardInterrupt, also inside solvers that would catch it.

    Examples
    --------
    >>> from paper.report.interrupt import interruptible
    >>> with interruptible():
    ...     2 + 2
    4
    """
    here = threading.current_thread() is threading.main_thread()
    # A background job of a shell ignores Ctrl-C, and continues to.
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
