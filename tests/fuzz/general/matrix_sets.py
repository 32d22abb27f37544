"""Sets of symmetric matrices for the judge, without library code; points are square arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import mpmath
import numpy as np
import scipy.sparse as sp

from fuzz.general.sets import EXACT, Array, Equations, Set
from fuzz.judge.conic import Program
from fuzz.judge.wide import norm, wide
from fuzz.machine.script import Script

__all__ = ["PSDCone", "Spectrahedron", "least_eigenvalue", "symmetric_basis"]


def least_eigenvalue(x: Any) -> Any:
    """Return the smallest eigenvalue to thirty digits (of the symmetric part), in long double."""
    x = wide(x)
    size = float(np.abs(x).max())
    if size == 0.0:
        return np.longdouble(0)
    x = (x + x.T) / (2 * np.longdouble(size))
    with mpmath.workdps(30):
        rows = [
            [mpmath.mpf(float(v)) + mpmath.mpf(float(v - np.longdouble(float(v)))) for v in row]
            for row in x
        ]
        lowest = min(mpmath.eigsy(mpmath.matrix(rows), eigvals_only=True))
        high = float(lowest)
        rest = float(lowest - mpmath.mpf(high))
    return (np.longdouble(high) + np.longdouble(rest)) * np.longdouble(size)


def symmetric_basis(dim: int) -> Any:
    """Return the map from the upper triangle of a symmetric matrix to all its entries."""
    rows, columns = [], []
    pairs = [(i, j) for i in range(dim) for j in range(i, dim)]
    for k, (i, j) in enumerate(pairs):
        rows += [i * dim + j] + ([j * dim + i] if i != j else [])
        columns += [k] * (1 if i == j else 2)
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(dim * dim, len(pairs)))


@dataclass(frozen=True)
class PSDCone(Set):
    """Symmetric matrices without negative eigenvalues."""

    dim: int
    form: str = ""

    @property
    def untyped(self) -> bool:
        return True  # a size and numbers, no array

    def violation(self, x: Any, unit: float) -> float:
        skew = norm(wide(x) - wide(x).T)
        found = max(-least_eigenvalue(x), skew)
        return float(found / max(norm(x), np.longdouble(unit))) if found > 0 else 0.0

    def holds(self, x: Any) -> bool:
        return bool((x == x.T).all() and least_eigenvalue(x) >= 0)

    def add_to(self, program: Program) -> None:
        program.semidefinite(
            self.dim, [(program.x, sp.eye_array(self.dim**2))], np.zeros(self.dim**2)
        )

    def stretched(self, s: float) -> PSDCone:
        return self

    def restricted(self, kept: Array) -> PSDCone:
        return replace(self, dim=len(kept), form="")

    def text(self, script: Script) -> str:
        return f"lc.PSDCone({self.dim}{', ' + self.form if self.form else ''})"


@dataclass(frozen=True)
class Spectrahedron(Set):
    """Psd matrices whose trace is given, or bounded."""

    dim: int
    trace: float
    equality: bool

    @property
    def untyped(self) -> bool:
        return True  # a size and numbers, no array

    def violation(self, x: Any, unit: float) -> float:
        x, trace = wide(x), np.longdouble(self.trace)
        surplus = np.trace(x) - trace
        beyond = np.abs(surplus) if self.equality else max(surplus, np.longdouble(0))
        found = max(beyond, -least_eigenvalue(x), norm(x - x.T))
        return float(found / (trace + norm(x))) if found > 0 else 0.0

    def holds(self, x: Any) -> bool:
        surplus = np.trace(wide(x)) - np.longdouble(self.trace)
        slack = EXACT * self.dim * np.longdouble(self.trace)
        right = np.abs(surplus) <= slack if self.equality else surplus <= 0
        return bool(right and (x == x.T).all() and least_eigenvalue(x) >= 0)

    def add_to(self, program: Program) -> None:
        PSDCone(self.dim).add_to(program)
        add = program.zero if self.equality else program.positive
        add([(program.x, -np.eye(self.dim).reshape(1, -1))], [self.trace])

    def equations(self) -> Equations:
        row = np.eye(self.dim).reshape(1, -1)
        return (row, np.array([self.trace])) if self.equality else None

    def stretched(self, s: float) -> Spectrahedron:
        return replace(self, trace=self.trace * s)

    def restricted(self, kept: Array) -> Spectrahedron:
        return replace(self, dim=len(kept))

    def text(self, script: Script) -> str:
        return f"lc.Spectrahedron({self.dim}, {self.trace!r}, equality={self.equality})"
