"""Worker processes under a watchdog: calls that hang are killed, processes that die are replaced."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any

from fuzz.judge.verdict import Class, Verdict
from fuzz.kinds import make
from fuzz.machine.record import Record
from fuzz.machine.worker import Task, patience, serve

__all__ = ["Pool"]

#: Seconds for a judge, and for making a case.
JUDGING = 120.0
#: Factor on these times where limits are in processor time.
BUSY = 8.0


class _Worker:
    """A process, its task, and the time by which it has to complete its phase."""

    def __init__(self, context: Any, cpu_clock: bool) -> None:
        self._patience = BUSY if cpu_clock else 1.0
        self.pipe: Connection
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, cpu_clock), daemon=True)
        self.process.start()
        other.close()
        self.task: Task | None = None
        self.phase, self.since, self.allowed = "idle", 0.0, 0.0

    def give(self, task: Task) -> None:
        self.task = task
        self._enter("making", JUDGING)
        self.pipe.send(task)

    def receive(self) -> Any:
        """Return the outcome of the task, or None while it runs."""
        word, value = self.pipe.recv()
        if word == "done":
            return value
        self._enter(word, patience(value) if word == "calling" else JUDGING)
        return None

    def _enter(self, phase: str, allowed: float) -> None:
        self.phase, self.since = phase, time.monotonic()
        self.allowed = self._patience * allowed

    @property
    def late(self) -> bool:
        return self.task is not None and time.monotonic() - self.since > self.allowed

    def stop(self) -> None:
        """End the process, by force if it is running a task."""
        if self.task is None and self.process.is_alive():
            self.pipe.send(None)
            self.process.join(5.0)
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.pipe.close()


class Pool:
    """Runs tasks on several processes.

    With ``cpu_clock`` time limits count the processor time of a call, not what other programs took.
    """

    def __init__(self, jobs: int, cpu_clock: bool = False) -> None:
        self._cpu_clock = cpu_clock
        # Fresh interpreters: what one call leaves behind must not reach the parent.
        self._context = multiprocessing.get_context("spawn")
        self._workers = [_Worker(self._context, cpu_clock) for _ in range(jobs)]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exc: Any) -> None:
        for worker in self._workers:
            worker.stop()

    def run(
        self, tasks: Iterable[Task], go_on: Callable[[], bool] = lambda: True
    ) -> Iterator[tuple[Task, Any]]:
        """Yield each task with its outcome on completion; start no new ones once ``go_on`` returns False."""
        waiting = iter(tasks)
        self._feed(waiting, go_on)
        while any(worker.task is not None for worker in self._workers):
            busy = {worker.pipe: worker for worker in self._workers if worker.task is not None}
            for pipe in wait(list(busy), timeout=0.5):
                worker = busy[pipe]  # type: ignore[index]
                task = worker.task
                assert task is not None
                try:
                    answer = worker.receive()
                except (EOFError, ConnectionError):
                    answer = self._replaced(worker, _died(worker))
                if answer is not None:
                    worker.task = None
                    yield task, answer
            for worker in [w for w in self._workers if w.late]:
                task = worker.task
                assert task is not None
                yield task, self._replaced(worker, _killed(worker))
            self._feed(waiting, go_on)

    def _feed(self, waiting: Iterator[Task], go_on: Callable[[], bool]) -> None:
        for worker in self._workers:
            if worker.task is None and go_on():
                task = next(waiting, None)
                if task is None:
                    return
                worker.give(task)

    def _replaced(self, worker: _Worker, verdict: Verdict) -> Any:
        """Replace a lost process by a new one; return the outcome of its task."""
        task = worker.task
        assert task is not None
        worker.stop()
        self._workers[self._workers.index(worker)] = _Worker(self._context, self._cpu_clock)
        if len(task) > 2:
            return f"# {verdict}\n"
        kind, seed = task
        seconds = time.monotonic() - worker.since
        return Record.of(kind, seed, verdict, seconds=seconds, tags=make(kind, seed).tags)


def _died(worker: _Worker) -> Verdict:
    worker.process.join(5.0)
    if worker.process.exitcode == -getattr(signal, "SIGPROF", 0) and worker.phase == "calling":
        return Verdict(Class.OVERRUN, "hang", "killed after too much processor time")
    words = f"exit code {worker.process.exitcode} while {worker.phase}"
    return Verdict(Class.CRASH, "process died", words)


def _killed(worker: _Worker) -> Verdict:
    seconds = time.monotonic() - worker.since
    if worker.phase == "calling":
        return Verdict(Class.OVERRUN, "hang", f"killed after {seconds:.1f} s")
    return Verdict(Class.UNKNOWN, f"{worker.phase} took too long", f"{seconds:.0f} s")
