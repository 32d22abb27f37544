"""Sets of vectors for the judge, without library code: membership in long double, conic rows, text of calls.

A set measures violations without units: an inequality ``c'x <= b`` by its excess over ``|c| |x| + |b|``,
where points smaller than ``unit``, the size that points of the problem have, count as that large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.judge.conic import Program
from fuzz.judge.wide import EPS, exact_product, norm, power_of_two, wide
from fuzz.machine.script import Script
from fuzz.sparse.shrink import chunks

__all__ = ["Box", "Polyhedron", "Set", "Simplex"]

Array = np.ndarray[Any, Any]

Equations = tuple[Array, Array] | None

#: An equation holds exactly if it holds up to this share of its terms in long double.
EXACT = 64.0 * EPS


class Set:
    """A set as a judge evaluates it."""

    @property
    def untyped(self) -> bool:
        """Whether the library is given callables or numbers, which have no precision of their own."""
        return False

    def violation(self, x: Any, unit: float) -> float:
        """Return how far ``x`` is outside, relative to the numbers involved."""
        raise NotImplementedError

    def holds(self, x: Any) -> bool:
        """Whether ``x`` (long double) is in the set, equations up to the rounding of long double."""
        raise NotImplementedError

    def add_to(self, program: Program) -> None:
        """Add the rows of the set to a conic program."""
        raise NotImplementedError

    def equations(self) -> Equations:
        """Return ``(E, e)`` with ``E x = e`` on the set, for ``x`` as a flat vector."""
        return None

    def stretched(self, s: float) -> Set:
        """Return the set of all ``s x``; exact for a power of two."""
        raise NotImplementedError

    def restricted(self, kept: Array) -> Set:
        """Return the set in the space of the coordinates ``kept``."""
        raise NotImplementedError

    def text(self, script: Script) -> str:
        """Return an expression for the library's constraint."""
        raise NotImplementedError

    def simpler(self) -> Iterator[Set]:
        """Yield simpler sets."""
        return iter(())


@dataclass(frozen=True)
class Polyhedron(Set):
    """``C x <= b`` and ``E x = e``; the library receives equations as two rows with opposite signs."""

    C: Array
    b: Array
    E: Array
    e: Array
    form: str = ""
    sparse: bool = False

    def violation(self, x: Any, unit: float) -> float:
        worst = 0.0
        for M, c, equation in ((self.C, self.b, False), (self.E, self.e, True)):
            if len(c) == 0:
                continue
            excess, scale = self._rows(M, c, x, unit)
            excess = np.abs(excess) if equation else excess
            with np.errstate(all="ignore"):
                share = np.where(excess > 0, excess / scale, 0.0)
            worst = max(worst, float(np.max(share)))
        return worst

    @staticmethod
    def _rows(M: Array, c: Array, x: Any, unit: float) -> tuple[Any, Any]:
        M, x = wide(M), wide(x)
        lengths = np.sqrt(np.sum(M**2, axis=1))
        size = max(norm(x), np.longdouble(unit))
        return M @ x - wide(c), lengths * size + np.abs(wide(c))

    def holds(self, x: Any) -> bool:
        if len(self.b) and not _below(self.C, self.b, x):
            return False
        if len(self.e):
            excess, scale = self._rows(self.E, self.e, x, 0.0)
            return bool((np.abs(excess) <= EXACT * len(x) * scale).all())
        return True

    def add_to(self, program: Program) -> None:
        if len(self.b):
            unit = _units(self.C, self.b)
            program.positive([(program.x, -self.C / unit[:, None])], self.b / unit)
        if len(self.e):
            unit = _units(self.E, self.e)
            program.zero([(program.x, -self.E / unit[:, None])], self.e / unit)

    def equations(self) -> Equations:
        return (self.E, self.e) if len(self.e) else None

    def stretched(self, s: float) -> Polyhedron:
        return replace(self, b=self.b * s, e=self.e * s)

    def restricted(self, kept: Array) -> Polyhedron:
        return replace(self, C=self.C[:, kept], E=self.E[:, kept])

    def text(self, script: Script) -> str:
        C = np.vstack([self.C, self.E, -self.E])
        b = np.concatenate([self.b, self.e, -self.e])
        name, bound = script.array(C), script.array(b)
        matrix = f"scipy.sparse.csr_array({name})" if self.sparse else name
        form = f", {self.form}" if self.form else ""
        return f"lc.Polyhedron({matrix}, {bound}{form})"

    def simpler(self) -> Iterator[Polyhedron]:
        for kept in chunks(len(self.b)):
            yield replace(self, C=self.C[kept], b=self.b[kept])
        for kept in chunks(len(self.e)):
            yield replace(self, E=self.E[kept], e=self.e[kept])
        if self.form or self.sparse:
            yield replace(self, form="", sparse=False)


def _below(C: Array, b: Array, x: Any) -> bool:
    """Whether ``C x <= b`` beyond doubt: cases that long double leaves undecided are computed exactly."""
    M, x = wide(C), wide(x)
    excess = M @ x - wide(b)
    error = (M.shape[1] + 4) * EPS * (np.abs(M) @ np.abs(x) + np.abs(wide(b)))
    if (excess - error > 0).any():
        return False
    open_rows = np.flatnonzero(excess + error > 0)
    return all(exact_product(C[i], x) <= float(b[i]) for i in open_rows)


def _units(M: Array, c: Array) -> Array:
    sizes = np.abs(M).max(axis=1, initial=0.0)
    return np.array([power_of_two(max(a, abs(b))) for a, b in zip(sizes, c, strict=True)])


@dataclass(frozen=True)
class Box(Set):
    """``lower <= x <= upper``; infinite bounds allowed."""

    lower: Array
    upper: Array

    def violation(self, x: Any, unit: float) -> float:
        x = wide(x)
        below, above = wide(self.lower) - x, x - wide(self.upper)
        size = max(norm(x), np.longdouble(unit))
        found = 0.0
        for excess, bound in ((below, self.lower), (above, self.upper)):
            outside = excess > 0
            if outside.any():
                scale = size + np.abs(wide(bound[outside]))
                found = max(found, float((excess[outside] / scale).max()))
        return found

    def holds(self, x: Any) -> bool:
        return bool((wide(self.lower) <= x).all() and (x <= wide(self.upper)).all())

    def add_to(self, program: Program) -> None:
        eye = sp.eye_array(len(self.lower), format="csr")
        fixed = self.lower == self.upper
        below = np.isfinite(self.lower) & ~fixed
        above = np.isfinite(self.upper) & ~fixed
        if fixed.any():
            program.zero([(program.x, -eye[fixed])], self.lower[fixed])
        if below.any():
            program.positive([(program.x, eye[below])], -self.lower[below])
        if above.any():
            program.positive([(program.x, -eye[above])], self.upper[above])

    def equations(self) -> Equations:
        fixed = self.lower == self.upper
        return (np.eye(len(fixed))[fixed], self.lower[fixed]) if fixed.any() else None

    def stretched(self, s: float) -> Box:
        return Box(self.lower * s, self.upper * s)

    def restricted(self, kept: Array) -> Box:
        return Box(self.lower[kept], self.upper[kept])

    def text(self, script: Script) -> str:
        return f"lc.Polyhedron.box({script.array(self.lower)}, {script.array(self.upper)})"


@dataclass(frozen=True)
class Simplex(Set):
    """``x >= 0`` with a sum that is given, or bounded."""

    dim: int
    total: float
    equality: bool

    @property
    def untyped(self) -> bool:
        return True  # a size and numbers, no array

    def violation(self, x: Any, unit: float) -> float:
        x, total = wide(x), np.longdouble(self.total)
        scale = total + np.sum(np.abs(x))
        surplus = np.sum(x) - total
        beyond = np.abs(surplus) if self.equality else max(surplus, np.longdouble(0))
        negative = max(-x.min(), np.longdouble(0))
        return float(max(beyond, negative) / scale)

    def holds(self, x: Any) -> bool:
        surplus = np.sum(wide(x)) - np.longdouble(self.total)
        slack = EXACT * len(x) * np.longdouble(self.total)
        right = np.abs(surplus) <= slack if self.equality else surplus <= 0
        return bool((x >= 0).all() and right)

    def add_to(self, program: Program) -> None:
        program.positive([(program.x, sp.eye_array(self.dim))], np.zeros(self.dim))
        add = program.zero if self.equality else program.positive
        add([(program.x, -np.ones((1, self.dim)))], [self.total])

    def equations(self) -> Equations:
        return (np.ones((1, self.dim)), np.array([self.total])) if self.equality else None

    def stretched(self, s: float) -> Simplex:
        return replace(self, total=self.total * s)

    def restricted(self, kept: Array) -> Simplex:
        return replace(self, dim=len(kept))

    def text(self, script: Script) -> str:
        return f"lc.Simplex({self.dim}, {self.total!r}, equality={self.equality})"
