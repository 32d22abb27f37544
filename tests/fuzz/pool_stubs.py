"""Workers that misbehave, for the tests of the watchdog."""

from __future__ import annotations

import os
import time
from multiprocessing.connection import Connection

from fuzz.judge.verdict import Class, Verdict
from fuzz.machine.record import Record

__all__ = ["misbehave"]


def misbehave(pipe: Connection, cpu_clock: bool) -> None:
    """Hang, die, or judge for ever, as the seed says."""
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
