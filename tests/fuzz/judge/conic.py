"""Conic programs for Clarabel, built block by block, with a gap that is checked afterwards.

``minimise 1/2 v'P v + q'v  s.t.  b - A v in K``. The first variables are the point in question, given by
their coordinates in a basis (symmetric matrices have fewer coordinates than entries); lifts come after.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp

from fuzz.judge.wide import norm, wide

__all__ = ["Program", "Reference", "Slot"]

Matrix = Any


@dataclass(frozen=True)
class Slot:
    """A block of variables in a basis: it represents ``basis @ v[start:stop]``."""

    start: int
    stop: int
    basis: Matrix

    @property
    def size(self) -> int:
        """The number of rows of the block."""
        return int(self.basis.shape[0])


@dataclass(frozen=True)
class Reference:
    """Clarabel's answer: a point, its value, a lower bound, and their accuracy."""

    status: str
    point: np.ndarray[Any, Any]
    value: float
    lower: float
    multipliers: list[np.ndarray[Any, Any]]

    @property
    def solved(self) -> bool:
        """Whether a point and a bound came out."""
        return self.status in ("Solved", "AlmostSolved")


@dataclass
class Program:
    """A program under construction."""

    basis: Matrix
    constant: float = 0.0
    _columns: int = 0
    _linear: list[tuple[int, np.ndarray[Any, Any]]] = field(default_factory=list)
    _quadratic: list[tuple[int, Matrix]] = field(default_factory=list)
    _rows: list[tuple[list[tuple[int, Matrix]], np.ndarray[Any, Any]]] = field(default_factory=list)
    _cones: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.x = Slot(0, int(self.basis.shape[1]), sp.csr_array(self.basis))
        self._columns = self.x.stop

    def lift(self, size: int) -> Slot:
        """Add variables."""
        slot = Slot(self._columns, self._columns + size, sp.eye_array(size, format="csr"))
        self._columns += size
        return slot

    def minimise(self, slot: Slot, slope: Any) -> None:
        """Add ``slope' x`` to the objective."""
        self._linear.append((slot.start, slot.basis.T @ np.asarray(slope, dtype=float)))

    def minimise_square(self, slot: Slot, matrix: Any = None, factor: float = 1.0) -> None:
        """Add ``factor/2 x'matrix x`` to the objective; the identity for None."""
        middle = slot.basis if matrix is None else sp.csr_array(matrix) @ slot.basis
        self._quadratic.append((slot.start, factor * (slot.basis.T @ middle)))

    def require(self, cone: Any, parts: list[tuple[Slot, Any]], constant: Any) -> None:
        """Require ``constant + sum of matrix @ slot`` to be in a cone."""
        blocks = [(slot.start, sp.csr_array(matrix) @ slot.basis) for slot, matrix in parts]
        self._rows.append((blocks, np.asarray(constant, dtype=float).ravel()))
        self._cones.append(cone)

    def zero(self, parts: list[tuple[Slot, Any]], constant: Any) -> None:
        """Add equations."""
        self.require(clarabel.ZeroConeT(np.size(constant)), parts, constant)

    def positive(self, parts: list[tuple[Slot, Any]], constant: Any) -> None:
        """Add inequalities."""
        self.require(clarabel.NonnegativeConeT(np.size(constant)), parts, constant)

    def second_order(self, parts: list[tuple[Slot, Any]], constant: Any) -> None:
        """Require the first entry of ``constant + ...`` to be at least the norm of the others."""
        self.require(clarabel.SecondOrderConeT(np.size(constant)), parts, constant)

    def semidefinite(self, dim: int, parts: list[tuple[Slot, Any]], constant: Any) -> None:
        """Require a symmetric matrix, given by its ``dim * dim`` entries, to be positive semidefinite."""
        T = _triangle(dim)
        parts = [(slot, T @ sp.csr_array(matrix)) for slot, matrix in parts]
        self.require(clarabel.PSDTriangleConeT(dim), parts, T @ np.asarray(constant).ravel())

    def exponential(self, parts: list[tuple[Slot, Any]], constant: Any) -> None:
        """Require ``v exp(u / v) <= w`` for ``(u, v, w)``."""
        self.require(clarabel.ExponentialConeT(), parts, constant)

    def solve(self) -> Reference:
        """Return Clarabel's answer, with a lower bound from its multipliers."""
        P, q, A, b = self._assembled()
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.max_threads = 1
        settings.time_limit = 20.0
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
        solver = clarabel.DefaultSolver(sp.triu(P).tocsc(), q, A.tocsc(), b, self._cones, settings)
        solution = solver.solve()
        v, z = np.asarray(solution.x), np.asarray(solution.z)
        cuts = np.cumsum([len(constant) for _, constant in self._rows])[:-1]
        return Reference(
            status=str(solution.status),
            point=self.basis @ v[: self.x.stop],
            value=float(solution.obj_val) + self.constant,
            lower=_lower(P, q, A, b, v, z) + self.constant,
            multipliers=list(np.split(z, cuts)),
        )

    def _assembled(self) -> tuple[Matrix, np.ndarray[Any, Any], Matrix, np.ndarray[Any, Any]]:
        n = self._columns
        q = np.zeros(n)
        for start, slope in self._linear:
            q[start : start + len(slope)] += slope
        P = sp.csr_array((n, n))
        for start, block in self._quadratic:
            P = P + _placed(block, start, start, (n, n))
        rows = []
        for blocks, constant in self._rows:
            shape = (len(constant), n)
            rows.append(
                sum((_placed(-B, 0, start, shape) for start, B in blocks), sp.csr_array(shape))
            )
        b = np.concatenate([constant for _, constant in self._rows])
        return P, q, sp.vstack(rows), b


def _placed(block: Matrix, row: int, column: int, shape: tuple[int, int]) -> Matrix:
    block = sp.coo_array(block)
    return sp.csr_array((block.data, (block.row + row, block.col + column)), shape=shape)


def _lower(P: Matrix, q: Any, A: Matrix, b: Any, v: Any, z: Any) -> float:
    """Return the dual value, less a bound on the effect of the remaining slope near the point found."""
    if not (np.isfinite(v).all() and np.isfinite(z).all()):
        return -np.inf
    # Long double, column by column of what is not zero: the matrices are small.
    Pv = _product(P, v)
    slope = Pv + wide(q) + _product(A.T, z)
    value = -0.5 * np.sum(wide(v) * Pv) - np.sum(wide(b) * wide(z))
    return float(value - 10.0 * norm(slope) * (norm(v) + 1.0))


def _product(M: Matrix, v: Any) -> Any:
    M = sp.coo_array(M)
    out = np.zeros(M.shape[0], dtype=np.longdouble)
    np.add.at(out, M.row, wide(M.data) * wide(v)[M.col])
    return out


def _triangle(dim: int) -> Matrix:
    """Return the map from the entries of a matrix to its upper triangle, as Clarabel stacks it."""
    pairs = [(i, j) for j in range(dim) for i in range(j + 1)]
    columns = [i * dim + j for i, j in pairs]
    factors = [1.0 if i == j else np.sqrt(2.0) for i, j in pairs]
    return sp.csr_array((factors, (range(len(pairs)), columns)), shape=(len(pairs), dim * dim))
