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
    """Raised inside a peer that has used up its time; no peer catches a BaseException by accident."""


@contextmanager
def time_cap(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` in the block after so many seconds (compiled code ends its call first)."""

    def ring(*_: Any) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Answer:
    """The point a method returned and what it cost; None where it cannot be counted."""

    x: Any
    forward: int | None = None
    adjoint: int | None = None
    projections: int | None = None
    iterations: int | None = None
    status: str = ""
    #: The bound of the optimum that the method itself claims to have proved.
    lower_bound: float | None = None
    #: Rows (seconds, products, relative gap) that the method itself reports.
    history: list[tuple[float, int, float]] = field(default_factory=list)
    #: Points on the way, (seconds, products, x), for the judge.
    snapshots: list[tuple[float, int, Any]] = field(default_factory=list)

    @property
    def products(self) -> int | None:
        """Products with A and with its adjoint together."""
        if self.forward is None or self.adjoint is None:
            return None
        return self.forward + self.adjoint


class Adapter:
    """One method. Subclasses say where they do not apply, and how to call it."""

    name: str
    #: Import names of what has to be installed.
    requires: tuple[str, ...] = ()
    needs_matrix = False
    needs_real = False
    #: Largest number of matrix entries it runs on.
    max_entries: float = float("inf")

    def missing(self) -> str | None:
        """Return which package is not installed, if any."""
        absent = [name for name in self.requires if importlib.util.find_spec(name) is None]
        return f"{', '.join(absent)} not installed" if absent else None

    def refuses(self, instance: Instance) -> str | None:
        """Return why the method does not apply, if so."""
        if self.needs_matrix and not instance.explicit:
            return "needs a matrix"
        if self.needs_real and instance.is_complex:
            return "needs real data"
        if instance.entries > self.max_entries:
            return f"more than {self.max_entries:.0e} entries"
        return None

    def solve(self, instance: Instance, cap: float) -> Answer:
        """Run the method once; ``cap`` is for methods that can watch the clock themselves."""
        raise NotImplementedError

    def prepare(self, instance: Instance, cap: float) -> None:
        """Determine, untimed, the parameters of the method."""

    def curve(self, instance: Instance, cap: float) -> list[tuple[float, int, Any]]:
        """Return points on the way where they take runs of their own (untimed otherwise)."""
        return []


def elapsed(start: float) -> float:
    """Return the seconds since ``start``."""
    return time.perf_counter() - start
