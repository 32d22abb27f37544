"""A cone program under construction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector
from lopro.engines.answer import Answer, require_room
from lopro.engines.clarabel import solve_cones
from lopro.engines.cones import (
    Cone,
    ConeRows,
    Nonnegative,
    PSDTriangle,
    SecondOrder,
    Zero,
)
from lopro.engines.exponentials import Exponentials
from lopro.engines.forms import ConeProgram

__all__ = ["ConicProgram"]


@dataclass(frozen=True, eq=False)
class _Block:
    """``sum of pieces + s = bounds``; a piece is a matrix and the first variable it acts on."""

    pieces: tuple[tuple[Any, int], ...]
    bounds: Vector
    cone: Cone


@dataclass(eq=False)
class ConicProgram:
    """``min 1/2 v'P v + q'v`` over cones, where ``v`` is the point followed by auxiliary variables.

    Parameters
    ----------
    size : int
        Entries of the real vector that stands for the point.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints import Polyhedron
    >>> from lopro.engines import ConicProgram
    >>> program = ConicProgram(1)
    >>> program.add_linear(np.array([-1.0]))
    >>> for rows in Polyhedron(np.array([[1.0]]), np.array([2.0])).conic_form():
    ...     program.add_set(rows)
    >>> answer = program.solve(1e-9)
    >>> answer.x[: program.size].round(6), program.of_sets(answer.rows)[0].round(6)
    (array([2.]), array([1.]))
    """

    size: int
    #: The constant term of the objective.
    constant: float = field(default=0.0, init=False)
    _sets: list[ConeRows] = field(default_factory=list, init=False)
    _blocks: list[_Block] = field(default_factory=list, init=False)
    _quadratic: list[tuple[Any, int]] = field(default_factory=list, init=False)
    _linear: list[tuple[Vector, int]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._variables = self.size

    def new_variables(self, count: int) -> int:
        """Add auxiliary variables; return the index of the first."""
        first = self._variables
        self._variables += count
        return first

    def add_quadratic(self, P: Any, at: int = 0) -> None:
        """Add ``1/2 v'P v`` on the variables from ``at`` on."""
        self._quadratic.append((scipy.sparse.coo_array(P), at))

    def add_linear(self, q: Vector, at: int = 0) -> None:
        """Add ``q'v`` on the variables from ``at`` on."""
        self._linear.append((q, at))

    def add_set(self, rows: ConeRows) -> None:
        """Restrict the point to a set."""
        self._sets.append(rows)

    def add_rows(self, bounds: Vector, cone: Cone, *pieces: tuple[Any, int]) -> None:
        """Require that ``bounds`` minus the sum of the pieces is in a cone."""
        self._blocks.append(_Block(pieces, bounds, cone))

    def add_equations(self, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Require that ``bounds`` minus the sum of the pieces is zero."""
        self.add_rows(bounds, Zero(len(bounds)), *pieces)

    def add_inequalities(self, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Require that no entry is negative."""
        self.add_rows(bounds, Nonnegative(len(bounds)), *pieces)

    def add_second_order(self, size: int, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Require ``|u| <= t`` of every ``size`` consecutive entries ``(t, u)``."""
        self.add_rows(bounds, SecondOrder(size, len(bounds) // size), *pieces)

    def add_exponential(self, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Require ``b exp(a / b) <= c`` of every three consecutive entries ``(a, b, c)``."""
        self.add_rows(bounds, Exponentials(len(bounds) // 3), *pieces)

    def require_semidefinite(self, order: int, nonzero: int) -> None:
        """Raise `EngineUnavailable`, before anything is built, if a semidefinite cone exceeds the memory."""
        require_room(PSDTriangle(order), nonzero)

    def add_semidefinite(self, order: int, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Require that a scaled upper triangle is that of a positive semidefinite matrix."""
        self.add_rows(bounds, PSDTriangle(order), *pieces)

    def form(self) -> ConeProgram:
        """Return the program as matrices: the rows of the sets come first, in the order of their addition."""
        blocks = self._all_blocks()
        none = scipy.sparse.csr_array((0, self._variables))
        return ConeProgram(
            _assembled(self._quadratic, self._variables, self._variables, diagonal=True),
            self._slope(),
            scipy.sparse.vstack([none, *(self._rows(block) for block in blocks)]).tocsc(),
            np.concatenate([np.zeros(0), *(block.bounds for block in blocks)]),
            [block.cone for block in blocks],
        )

    def solve(self, accuracy: float) -> Answer:
        """Return Clarabel's iterate whatever its status; the caller judges it."""
        return solve_cones(self.form(), accuracy)

    def of_sets(self, values: Vector) -> list[Vector]:
        """Return the part of each set in slacks or multipliers of the whole program."""
        return np.split(values, np.cumsum([len(m.bounds) for m in self._sets]))[:-1]

    def _all_blocks(self) -> list[_Block]:
        sets = [_Block(((m.rows, 0),), m.bounds, m.cone) for m in self._sets]
        return sets + self._blocks

    def _slope(self) -> Vector:
        q = np.zeros(self._variables)
        for part, at in self._linear:
            q[at : at + len(part)] += part
        return q

    def _rows(self, block: _Block) -> Any:
        return _assembled(block.pieces, len(block.bounds), self._variables)


def _assembled(pieces: Any, rows: int, columns: int, *, diagonal: bool = False) -> Any:
    """Return the sum of matrices, each shifted to its place: to the right, or down the diagonal."""
    total = scipy.sparse.csc_matrix((rows, columns))
    for piece, at in pieces:
        entries = scipy.sparse.coo_array(piece)
        i, j = entries.coords
        place = (i + at if diagonal else i, j + at)
        total = total + scipy.sparse.csc_matrix((entries.data, place), (rows, columns))
    return total
