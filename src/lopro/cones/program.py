"""A conic program under construction, and its solution by Clarabel's interior-point method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import scipy  # parts of it load when first used

from lopro.cones.bound import ConicData
from lopro.cones.by_clarabel import run_clarabel
from lopro.cones.cones import (
    Cone,
    ConeRows,
    Exponentials,
    Nonnegative,
    PSDTriangle,
    SecondOrders,
    SetCone,
    Zero,
)
from lopro.core.real_vectors import Vector

__all__ = ["ConicAnswer", "ConicProgram"]


@dataclass(frozen=True, eq=False)
class ConicAnswer:
    """The point, and for every set that was added its slacks and its multipliers.

    ``variables``, ``all_slacks`` and ``all_multipliers`` are those of the whole program.
    """

    point: Vector
    slacks: list[Vector]
    multipliers: list[Vector]
    status: Any
    iterations: int
    variables: Vector
    all_slacks: Vector
    all_multipliers: Vector


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
    >>> from lopro.conic_forms import ConicProgram, set_rows
    >>> from lopro.constraints import Polyhedron
    >>> program = ConicProgram(1)
    >>> program.add_linear(np.array([-1.0]))
    >>> for rows in set_rows(Polyhedron(np.array([[1.0]]), np.array([2.0]))):
    ...     program.add_set(rows)
    >>> answer = program.solve(1e-9)
    >>> answer.point.round(6), answer.multipliers[0].round(6)
    (array([2.]), array([1.]))
    """

    size: int
    #: What objectives add to the value whatever the point is.
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
        """Demand that ``bounds`` minus the sum of the pieces is in a cone."""
        self._blocks.append(_Block(pieces, bounds, cone))

    def add_equations(self, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Demand that ``bounds`` minus the sum of the pieces is zero."""
        self.add_rows(bounds, Zero(len(bounds)), *pieces)

    def add_inequalities(self, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Demand that no entry is negative."""
        self.add_rows(bounds, Nonnegative(len(bounds)), *pieces)

    def add_second_order(self, size: int, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Demand ``|u| <= t`` of every ``size`` consecutive entries ``(t, u)``."""
        self.add_rows(bounds, SecondOrders(len(bounds) // size, size), *pieces)

    def add_exponential(self, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Demand ``b exp(a / b) <= c`` of every three consecutive entries ``(a, b, c)``."""
        self.add_rows(bounds, Exponentials(len(bounds) // 3), *pieces)

    def add_semidefinite(self, order: int, bounds: Vector, *pieces: tuple[Any, int]) -> None:
        """Demand that a scaled upper triangle is that of a positive semidefinite matrix."""
        self.add_rows(bounds, PSDTriangle(order), *pieces)

    def solve(self, accuracy: float) -> ConicAnswer:
        """Return what Clarabel finds, whatever its own opinion of it: the caller judges."""
        blocks = self._all_blocks()
        answer = run_clarabel(
            self._curvature(),
            self._slope(),
            self._matrix(blocks),
            np.concatenate([block.bounds for block in blocks]),
            [cone for block in blocks for cone in block.cone.blocks()],
            accuracy,
            all(hasattr(block.cone, "into_dual") for block in blocks),
        )
        ends = np.cumsum([len(m.bounds) for m in self._sets])
        return ConicAnswer(
            point=answer.x[: self.size],
            slacks=np.split(answer.s, ends)[:-1],
            multipliers=np.split(answer.z, ends)[:-1],
            status=answer.status,
            iterations=answer.iterations,
            variables=answer.x,
            all_slacks=answer.s,
            all_multipliers=answer.z,
        )

    def data(self) -> ConicData | None:
        """Return the program as matrices; None with a cone whose multipliers cannot be moved inside."""
        blocks = self._all_blocks()
        cones = [(block.cone, len(block.bounds)) for block in blocks]
        if not all(hasattr(cone, "into_dual") for cone, _ in cones):
            return None
        b = np.concatenate([block.bounds for block in blocks])
        matrix = scipy.sparse.csr_array(self._matrix(blocks))
        P = scipy.sparse.csr_array(self._curvature())
        return ConicData(P, self._slope(), matrix, b, cast("list[tuple[SetCone, int]]", cones))

    def _all_blocks(self) -> list[_Block]:
        sets = [_Block(((m.rows, 0),), m.bounds, m.cone) for m in self._sets]
        return sets + self._blocks

    def _matrix(self, blocks: list[_Block]) -> Any:
        return scipy.sparse.vstack([self._rows(block) for block in blocks]).tocsc()

    def _curvature(self) -> Any:
        return _assembled(self._quadratic, self._variables, self._variables, diagonal=True)

    def _slope(self) -> Vector:
        q = np.zeros(self._variables)
        for part, at in self._linear:
            q[at : at + len(part)] += part
        return q

    def _rows(self, block: _Block) -> Any:
        return _assembled(block.pieces, len(block.bounds), self._variables)


def _assembled(pieces: Any, rows: int, columns: int, *, diagonal: bool = False) -> Any:
    """Add matrices up, each shifted to its place: to the right, or down the diagonal."""
    total = scipy.sparse.csc_matrix((rows, columns))
    for piece, at in pieces:
        entries = scipy.sparse.coo_array(piece)
        i, j = entries.coords
        place = (i + at if diagonal else i, j + at)
        total = total + scipy.sparse.csc_matrix((entries.data, place), (rows, columns))
    return total
