"""Workers that fail in several ways, for the tests of the watchdog."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing.connection import Connection
from typing import Any

from fuzz.judge.verdict import Class, Verdict
from fuzz.kinds import make
from fuzz.machine import worker
from fuzz.machine.record import Record

__all__ = ["burn", "misbehave", "report_handler"]


def misbehave(pipe: Connection, cpu_clock: bool) -> None:
    """Hang, exit, or judge without end, depending on the seed."""
    while (task := pipe.recv()) is not None:
        kind, seed = task[:2]
        pipe.send(("calling", 0.0))
        if seed == 1:
            time.sleep(600.0)
        if seed == 2:
            os._exit(7)
        pipe.send(("judging", None))
        if seed == 3:
            time.sleep(600.0)
        pipe.send(("done", Record.of(kind, seed, Verdict(Class.CERTIFIED))))


def burn(pipe: Connection, cpu_clock: bool) -> None:
    """Use processor time without end in the call of a real worker."""
    worker.patience = lambda limit: 0.3
    worker.run_case = _burn  # type: ignore[assignment]
    worker.serve(pipe, cpu_clock)


def report_handler(pipe: Connection, cpu_clock: bool) -> None:
    """Return the handler of SIGINT in the calls of a real worker."""
    worker.run_case = _handler  # type: ignore[assignment]
    worker.serve(pipe, cpu_clock)


def _handler(kind: str, seed: int, announce: Any, judging: Any) -> Record:
    handler = getattr(signal.getsignal(signal.SIGINT), "__name__", "none")
    return Record.of(kind, seed, Verdict(Class.CERTIFIED, handler))


def _burn(kind: str, seed: int, announce: Any, judging: Any) -> Record:
    announce(make("bpdn", 0))
    while True:
        sum(range(1000))
