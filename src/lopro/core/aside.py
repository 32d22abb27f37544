"""Compiled code that ignores Ctrl-C and time limits: it runs in a thread, which is abandoned when late."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from lopro.core.deadline import current_deadline

__all__ = ["run_aside"]

T = TypeVar("T")

#: Seconds between two checks of the deadline: Python handles signals in between.
_INTERVAL = 0.02


def run_aside(work: Callable[[], T]) -> T | None:
    """Return the result of ``work``, or None if it is still running at the deadline or Ctrl-C.

    It runs in a thread of its own, which is left behind where it is late: it ends by itself, or with the
    process, and its result is not used. The work should release the interpreter's lock and have the time that
    is left as its own limit.

    Examples
    --------
    >>> import time
    >>> from lopro.core.aside import run_aside
    >>> from lopro.core.deadline import Deadline
    >>> run_aside(lambda: 42)
    42
    >>> with Deadline(0.01).active():
    ...     run_aside(lambda: time.sleep(2.0)) is None
    True
    """
    deadline, found = current_deadline(), list[T]()
    raised: list[BaseException] = []

    def worked() -> None:
        try:
            found.append(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=worked, daemon=True)
    thread.start()
    thread.join(_INTERVAL)
    with deadline.wrapping_up():  # it has a moment to keep the limit by itself
        while thread.is_alive() and not deadline.passed:
            thread.join(_INTERVAL)
    if raised:
        raise raised[0]
    return found[0] if found else None
