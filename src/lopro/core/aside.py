"""Run compiled code that ignores Ctrl-C and limits in a thread, which is stopped or abandoned when late."""

from __future__ import annotations

import atexit
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from lopro.core.deadline import current_deadline

__all__ = ["run_aside"]

T = TypeVar("T")

#: Seconds between two checks of the deadline: Python handles signals in between.
_INTERVAL = 0.02
#: Seconds for which the end of the process waits for abandoned work. HiGHS on an optimal transport of
#: 90,000 variables and on Netlib's pilot87 ended within 0.25 s of 23 interrupts, 0.54 s after the 24th: ten
#: times that.
_WAIT_AT_EXIT = 5.0


def run_aside(work: Callable[[], T], stop: Callable[[int], None] | None = None) -> T | None:
    """Return the result of ``work``, or None if it is still running at the deadline or Ctrl-C.

    It runs in another thread, which is abandoned where it is late: its result is not used. The work should
    release the interpreter's lock and have the time that is left as its own limit. After the deadline or
    Ctrl-C, ``stop`` is called with the identifier of the thread every 20 ms until the work has ended: work
    that has only begun may not notice the first call.

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
    deadline, task, worker = current_deadline(), _Task(work), _worker()
    worker.begin(task, stop)
    while not task.done.wait(_INTERVAL):
        if deadline.passed:
            worker.stop(task)
            with deadline.wrapping_up():  # for a moment, in which the work may end by itself
                if deadline.passed:
                    _ABANDONED.add(worker)
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
    """A thread that runs one task after the other.

    It is kept for the next call: HiGHS takes 20 % longer in a new thread, whose memory the system allocates
    page by page (400 rows, 40,000 variables: 0.131 and 0.107 s; 0.105 s in the main thread).
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._tasks: queue.SimpleQueue[_Task[Any]] = queue.SimpleQueue()
        self.task: _Task[Any] | None = None
        self._end_task: Callable[[int], None] | None = None

    def begin(self, task: _Task[Any], stop: Callable[[int], None] | None) -> None:
        """Run a task, which ``stop`` can end."""
        self.task, self._end_task = task, stop
        self._tasks.put(task)

    def stop(self, task: _Task[Any]) -> None:
        """Ask a task to end if it is still the one that runs."""
        if self._end_task is not None and self.task is task and self.ident is not None:
            self._end_task(self.ident)

    def run(self) -> None:
        while True:
            task = self._tasks.get()
            task.run()
            self.task = self._end_task = None
            _ABANDONED.discard(self)
            _IDLE.append(self)
            task.done.set()
            del task  # and with it the data of the program


_IDLE: list[_Worker] = []
_ABANDONED: set[_Worker] = set()


def _worker() -> _Worker:
    """Return an idle thread, a new one if there is none."""
    while True:
        try:
            worker = _IDLE.pop()
        except IndexError:
            worker = _Worker()
            worker.start()
        if worker.is_alive():  # in a process that was forked it is not
            return worker


@atexit.register
def _await_abandoned() -> None:
    """Stop abandoned work before the interpreter ends.

    Until Python 3.13, a thread that takes the interpreter's lock after that is ended by ``pthread_exit``,
    which unwinds the stack of the compiled code. Its destructors must not throw: the process aborts, with the
    message "terminate called without an active exception".
    """
    end = time.perf_counter() + _WAIT_AT_EXIT
    for worker in tuple(_ABANDONED):
        task = worker.task
        # In a process that was forked no thread is alive.
        while task is not None and worker.is_alive() and time.perf_counter() < end:
            worker.stop(task)
            if task.done.wait(_INTERVAL):
                break
