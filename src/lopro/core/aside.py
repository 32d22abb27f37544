"""Compiled code that ignores Ctrl-C and time limits: it runs in a thread, which is abandoned when late."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from lopro.core.deadline import current_deadline

__all__ = ["run_aside"]

T = TypeVar("T")

#: Seconds between two checks of the deadline: Python handles signals in between.
_INTERVAL = 0.02


def run_aside(work: Callable[[], T]) -> T | None:
    """Return the result of ``work``, or None if it is still running at the deadline or Ctrl-C.

    It runs in another thread, which is left alone where it is late: the work ends by itself, or with the
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
    deadline, task = current_deadline(), _Task(work)
    _worker().tasks.put(task)
    task.done.wait(_INTERVAL)
    with deadline.wrapping_up():  # it has a moment to keep the limit by itself
        while not task.done.is_set() and not deadline.passed:
            task.done.wait(_INTERVAL)
    if not task.done.is_set():
        return None
    if task.raised is not None:
        raise task.raised
    return task.result


class _Task(Generic[T]):
    """Work with its result, or with what it has raised."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.result: T | None = None
        self.raised: BaseException | None = None
        self.done = threading.Event()

    def run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:
            self.raised = error


class _Worker(threading.Thread):
    """A thread that does one task after the other.

    It is kept for the next one: HiGHS takes 20 % longer in a new thread, whose memory the system has to hand
    out page by page (400 rows, 40,000 variables: 0.131 and 0.107 s; 0.105 s in the main thread).
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.tasks: queue.SimpleQueue[_Task[Any]] = queue.SimpleQueue()

    def run(self) -> None:
        while True:
            task = self.tasks.get()
            task.run()
            _IDLE.append(self)
            task.done.set()
            del task  # and with it the data of the program


_IDLE: list[_Worker] = []


def _worker() -> _Worker:
    """Return a thread that has nothing to do."""
    while True:
        try:
            worker = _IDLE.pop()
        except IndexError:
            worker = _Worker()
            worker.start()
        if worker.is_alive():  # in a process that was forked it is not
            return worker
