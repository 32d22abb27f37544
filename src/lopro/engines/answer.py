"""Answers of engines, and their limits: time, memory, and whether the package is installed.

HiGHS and Clarabel have time limits of their own, PIQP a limit of iterations. Clarabel calls back between its
iterations, so that Ctrl-C ends it; HiGHS runs in a thread, and Ctrl-C takes effect after PIQP has returned. A
program that exceeds the memory, or whose first factorisation takes longer than the time left, is refused
before any matrix is built for it.
"""

from __future__ import annotations

import enum
import importlib.util
import math
import os
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.engines.cones import Cone, PSDTriangle
from lopro.errors import MissingCapabilityError

__all__ = [
    "Answer",
    "AnswerStatus",
    "EngineUnavailable",
    "available_memory",
    "cone_entries",
    "cone_work",
    "installed",
    "not_installed",
    "require_memory",
    "require_room",
    "time_left",
]


class EngineUnavailable(MissingCapabilityError):
    """An engine cannot take a program: its package is not installed, or the program exceeds the memory."""


class AnswerStatus(enum.Enum):
    """The status that the engine reports; nothing is claimed from it without a proof."""

    SOLVED = "solved"
    INACCURATE = "solved to less than the required accuracy"
    EMPTY = "primal infeasible"
    NEARLY_EMPTY = "primal infeasible to less than the required accuracy"
    UNBOUNDED = "dual infeasible"
    NEARLY_UNBOUNDED = "dual infeasible to less than the required accuracy"
    TIME = "time or iterations used up"
    FAILED = "numerical trouble"

    @property
    def empty(self) -> bool:
        """Whether the engine reports that there is no feasible point."""
        return self in (AnswerStatus.EMPTY, AnswerStatus.NEARLY_EMPTY)

    @property
    def unbounded(self) -> bool:
        """Whether the engine reports that the objective has no lower bound."""
        return self in (AnswerStatus.UNBOUNDED, AnswerStatus.NEARLY_UNBOUNDED)


@dataclass(frozen=True, eq=False)
class Answer:
    """A point and multipliers with ``P x + q + A' rows + box = 0`` at a solution.

    Attributes
    ----------
    status : AnswerStatus
        How the engine ended.
    x : array
        The point; the ray of an unbounded program, if the engine returns one. NaN if there is neither.
    rows : array
        Multipliers of the rows. Of a quadratic program: positive at upper sides, negative at lower ones. Of a
        cone program: in the dual cone. Of an empty program: a Farkas certificate, if the engine returns one.
    box : array
        Multipliers of the bounds of a quadratic program, positive at upper ones; empty for cone programs.
    iterations : int
        Of the engine.
    seconds : float
        The time of the engine, including the translation of the program.
    slacks : array
        The engine's value of ``b - A x`` of a cone program, inside the cones; empty for quadratic programs.
    message : str
        The status in the words of the engine, for error messages.
    """

    status: AnswerStatus
    x: Vector
    rows: Vector
    box: Vector
    iterations: int
    seconds: float = 0.0
    slacks: Vector = field(default_factory=lambda: np.zeros(0))
    message: str = ""

    @cached_property
    def finite(self) -> bool:
        """Whether the point and all multipliers are finite."""
        every = np.logical_and.reduce
        x, rows, box = np.isfinite(self.x), np.isfinite(self.rows), np.isfinite(self.box)
        return bool(every(x) and every(rows) and every(box))


#: Bytes that Clarabel takes for each entry of its matrix, at least: 113 to 169 for dense semidefinite cones,
#: 133 to 152 for dense rows, 215 for sparse ones (``python -m benchmarks.engine_memory``).
BYTES_OF_CLARABEL = 100.0
#: Bytes that PIQP's dense solver takes for each entry of ``P`` and of the rows: a copy of the data and the
#: matrix it factors; measured likewise, 28.
BYTES_OF_PIQP = 16.0
#: Bytes that engines take for each nonzero of sparse rows, 8 for a number and 4 for an index: HiGHS has them
#: by columns and by rows, PIQP has them and a factor.
BYTES_OF_SPARSE = 24.0
#: Bytes up to which a program is not compared with the memory: reading that takes 0.1 ms.
_SMALL = float(2**28)


def time_left(seconds: float | None) -> float:
    """Return the time limit of an engine: ``seconds``, and at most the time left to the enclosing call.

    Examples
    --------
    >>> from lopro.core.deadline import Deadline
    >>> from lopro.engines.answer import time_left
    >>> with Deadline(2.0).active():
    ...     time_left(None) <= 2.0, time_left(1.0), time_left(5.0) <= 2.0
    (True, 1.0, True)
    """
    left = current_deadline().left
    return left if seconds is None else min(seconds, left)


def installed(package: str) -> bool:
    """Whether a package can be imported."""
    return sys.modules.get(package) is not None or importlib.util.find_spec(package) is not None


def not_installed(package: str) -> EngineUnavailable:
    """Return the error that says which package to install."""
    return EngineUnavailable(
        f"this needs the package {package}, which is not installed: pip install {package}"
    )


def available_memory() -> float:
    """Return the bytes of available memory; infinity if the system does not report them.

    The least of the memory that is available without swapping (``MemAvailable`` of Linux, elsewhere all
    physical memory by ``os.sysconf``), the limit of the control group, and the remaining part of the limit of
    the address space (``resource.RLIMIT_AS``). Windows reports none of these.
    """
    return min(_physical(), _of_control_group(), _of_address_space())


def _physical() -> float:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024.0 * float(line.split()[1])
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def _of_control_group() -> float:
    limit = _lines("/sys/fs/cgroup/memory.max")
    return float(limit[0]) if limit and limit[0].isdigit() else math.inf


def _of_address_space() -> float:
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    pages = _lines("/proc/self/statm")
    used = float(pages[0].split()[0]) * resource.getpagesize() if pages else 0.0
    return max(0.0, limit - used)


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return []


def require_memory(size: float, what: str) -> None:
    """Raise `EngineUnavailable` if this number of bytes is not available.

    Parameters
    ----------
    size : float
        A lower bound of the bytes needed, so that no program is refused that would fit.
    what : str
        The subject of the message.
    """
    if size <= _SMALL:
        return
    available = available_memory()
    if size > available:
        raise EngineUnavailable(
            f"{what} would take at least {size / 1e9:.3g} GB of memory, "
            f"and {available / 1e9:.3g} GB are available"
        )


def require_room(cone: Cone, nonzero: int | None = None) -> None:
    """Raise `EngineUnavailable` if Clarabel's matrix of one cone alone exceeds the memory.

    Parameters
    ----------
    cone : Cone
        A cone of the program, before the program is built.
    nonzero : int, optional
        The number of its rows with an entry; all of them by default.

    Examples
    --------
    >>> from lopro.engines.cones import PSDTriangle
    >>> from lopro.engines.answer import require_room
    >>> require_room(PSDTriangle(50))
    >>> require_room(PSDTriangle(100_000))  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    lopro.engines.answer.EngineUnavailable: a program over PSDTriangle(order=100000) would take ...
    """
    require_memory(BYTES_OF_CLARABEL * cone_entries(cone, nonzero), f"a program over {cone!r}")


def cone_entries(cone: Cone, nonzero: int | None = None) -> float:
    """Return a lower bound of the entries of Clarabel's matrix for the scaling of a cone.

    A semidefinite cone of ``t`` rows has a dense symmetric block of that order, of which one triangle is
    stored. If rows are empty, Clarabel may split the cone into smaller ones (`_least_clique`).

    Examples
    --------
    >>> from lopro.engines.cones import Nonnegative, PSDTriangle
    >>> from lopro.engines.answer import cone_entries
    >>> cone_entries(Nonnegative(7)), cone_entries(PSDTriangle(3)), cone_entries(PSDTriangle(3), 5)
    (0.0, 21.0, 6.0)
    """
    t = _rows_of_clique(cone, nonzero)
    return t * (t + 1.0) / 2.0


def cone_work(cone: Cone, nonzero: int | None = None) -> float:
    """Return a lower bound of the operations that the dense block of a cone adds to one factorisation.

    Examples
    --------
    >>> from lopro.engines.cones import Nonnegative, PSDTriangle
    >>> from lopro.engines.answer import cone_work
    >>> cone_work(Nonnegative(7)), cone_work(PSDTriangle(2))
    (0.0, 18.0)
    """
    return 2.0 / 3.0 * _rows_of_clique(cone, nonzero) ** 3


def _rows_of_clique(cone: Cone, nonzero: int | None) -> float:
    if not isinstance(cone, PSDTriangle):
        return 0.0
    order = _least_clique(cone.order, nonzero)
    return order * (order + 1.0) / 2.0


def _least_clique(order: int, nonzero: int | None) -> float:
    """Return a lower bound of the largest clique into which Clarabel's chordal decomposition splits a cone.

    The entries off the diagonal with nonzero rows are the edges of a graph. Every chordal graph that contains
    it has a clique of more vertices than the degeneracy of the graph, and that is at least half of the mean
    degree: the edges divided by the vertices.
    """
    full = order * (order + 1) // 2
    if nonzero is None or nonzero >= full:
        return float(order)
    edges = max(0, nonzero - order)
    return 1.0 + math.ceil(edges / order) if order else 0.0
