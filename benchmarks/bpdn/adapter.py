"""Adapters: the name of a method, the problems it applies to, and its call."""

from __future__ import annotations

import importlib.util
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from benchmarks.bpdn.problems import Instance

__all__ = ["Adapter", "Answer", "OutOfTime", "time_cap"]


class OutOfTime(BaseException):
    """Raised inside another solver at its time limit; a BaseException, so that it is not caught there."""


@contextmanager
def time_cap(seconds: float, processor: bool = False) -> Iterator[None]:
    """Raise `OutOfTime` in the block after a number of seconds, or of seconds of processor time.

    A call of compiled code ends first.
    """
    number, timer = (
        (signal.SIGVTALRM, signal.ITIMER_VIRTUAL)
        if processor
        else (signal.SIGALRM, signal.ITIMER_REAL)
    )

    def stop(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(number, stop)
    signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        signal.setitimer(timer, 0.0)
        signal.signal(number, before)


@dataclass
class Answer:
    """The point a method returned and what it cost; None where it cannot be counted."""

    x: Any
    forward: int | None = None
    adjoint: int | None = None
    projections: int | None = None
    iterations: int | None = None
    status: str = ""
    #: The lower bound that the method itself has proved.
    lower_bound: float | None = None
    #: Rows (seconds, products, relative gap) that the method itself reports.
    history: list[tuple[float, int, float]] = field(default_factory=list)
    #: Intermediate points, (seconds, products, x), for the judge.
    snapshots: list[tuple[float, int, Any]] = field(default_factory=list)

    @property
    def products(self) -> int | None:
        """Products with A and with its adjoint together."""
        if self.forward is None or self.adjoint is None:
            return None
        return self.forward + self.adjoint


class Adapter:
    """One method. Subclasses define where it does not apply and how it is called."""

    name: str
    #: Import names of the packages required.
    requires: tuple[str, ...] = ()
    needs_matrix = False
    needs_real = False
    #: The largest number of matrix entries for which it is run.
    max_entries: float = float("inf")

    def missing(self) -> str | None:
        """Return which package is not installed, if any."""
        absent = [name for name in self.requires if importlib.util.find_spec(name) is None]
        return f"{', '.join(absent)} not installed" if absent else None

    def refuses(self, instance: Instance) -> str | None:
        """Return the reason why the method does not apply, if there is one."""
        if self.needs_matrix and not instance.explicit:
            return "needs a matrix"
        if self.needs_real and instance.is_complex:
            return "needs real data"
        if instance.entries > self.max_entries:
            return f"more than {self.max_entries:.0e} entries"
        return None

    def solve(self, instance: Instance, cap: float) -> Answer:
        """Run the method once; ``cap`` is the time limit for methods that have one."""
        raise NotImplementedError

    def prepare(self, instance: Instance, cap: float) -> None:
        """Determine the parameters of the method; not timed."""

    def curve(self, instance: Instance, cap: float) -> list[tuple[float, int, Any]]:
        """Return intermediate points where they take separate runs (not timed otherwise)."""
        return []


def elapsed(start: float) -> float:
    """Return the seconds since ``start``."""
    return time.perf_counter() - start
