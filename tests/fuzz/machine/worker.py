"""A worker process: it makes a case, calls and judges, or shrinks a failure, and reports every phase."""

from __future__ import annotations

import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzz.judge.contract import deadline
from fuzz.judge.verdict import Class, Verdict
from fuzz.kinds import make
from fuzz.machine.attempt import attempt
from fuzz.machine.case import Case, decide
from fuzz.machine.record import Record
from fuzz.machine.shrink import shrunk

__all__ = ["Task", "patience", "run_case", "serve"]

#: Seconds beyond the deadline after which a call counts as hanging.
GRACE = 15.0
#: Seconds for a call without a limit: the problems are small.
PATIENCE = 40.0

#: ``(kind, seed)`` to judge it, ``(kind, seed, folder)`` to shrink it and store the outcome.
Task = tuple[Any, ...]

#: Repetitions of a call that missed its deadline: the machine may have been busy.
_REPETITIONS = 2


def serve(pipe: Connection, cpu_clock: bool = False) -> None:
    """Answer tasks until there are no more."""
    # A shell starts background jobs with SIGINT ignored, and the library does not change that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if cpu_clock:
        # The library and `attempt` read the clock by these names: the load of the machine does not count.
        time.perf_counter = time.monotonic = time.process_time

    def announce(case: Case) -> None:
        pipe.send(("calling", case.limit))
        if cpu_clock and hasattr(signal, "setitimer"):
            # The signal ends the process; the parent interprets it.
            signal.setitimer(signal.ITIMER_PROF, patience(case.limit))

    def judging() -> None:
        if cpu_clock and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0.0)
        pipe.send(("judging", None))

    while True:
        task = pipe.recv()
        if task is None:
            return

        kind, seed, *folder = task
        if folder:
            pipe.send(("done", store(kind, seed, Path(folder[0]), announce)))
        else:
            record = run_case(kind, seed, announce, judging)
            pipe.send(("done", record))


def patience(limit: float | None) -> float:
    """Return the seconds after which a call with this limit counts as hanging."""
    return PATIENCE if limit is None else deadline(limit) + GRACE


def run_case(kind: str, seed: int, announce: Any = None, judging: Any = None) -> Record:
    """Make a case, run it and judge it."""
    case = make(kind, seed)
    for _ in range(1 + _REPETITIONS):
        if announce is not None:
            announce(case)
        outcome = attempt(case.script())
        if judging is not None:
            judging()
        verdict = decide(case, outcome)
        if verdict.kind is not Class.OVERRUN:
            break
    return Record.of(
        kind, seed, verdict, seconds=outcome.seconds, tags=case.tags, warnings=outcome.warnings
    )


def store(kind: str, seed: int, folder: Path, announce: Any) -> str:
    """Shrink a failure, write the program that shows it, and return its text."""
    case = make(kind, seed)
    announce(case)
    verdict = decide(case, attempt(case.script()))
    if verdict.fails:
        case, verdict = shrunk(case, verdict, announce=announce)
    return written(case, verdict, kind, seed, folder)


def written(case: Case, verdict: Verdict, kind: str, seed: int, folder: Path) -> str:
    """Write a case as a program with its verdict above it."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{kind}-{seed}"
    head = [f"# {kind}:{seed}", *(f"# {line}" for line in str(verdict).splitlines())]
    text = "\n".join(head) + "\n" + case.script().text(folder, stem)
    (folder / f"{stem}.py").write_text(text, encoding="utf-8")
    return text
