"""Calls of `solve` on sums of functions of images, with or without a set, as data with their judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.composite.atoms import ATOMS, Array
from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.points import Known, judge_by_points
from fuzz.judge.verdict import Class, Verdict
from fuzz.machine.script import Script

__all__ = ["CompositeCase", "composite_case"]


@dataclass(frozen=True)
class CompositeCase:
    """``sum of factor * g(D x, b) + a'x`` over a box, rows or a simplex, around its solution."""

    terms: tuple[tuple[str, float, Array, Array], ...]
    a: Array
    solution: Array
    units: Array
    way: str
    sides: tuple[Array, ...]
    tol: float
    kind: str = "composite"

    @property
    def limit(self) -> float | None:
        return 2.0

    @property
    def tags(self) -> dict[str, Any]:
        return {"two_seconds": True, "way": "+".join(sorted(t[0] for t in self.terms))}

    def script(self) -> Script:
        script, u = Script(), self.units
        parts = [f"lo.Linear({script.array(self.a * u, 'a')})"]
        for k, (name, factor, D, b) in enumerate(self.terms):
            words = {"D": script.array(D * u, f"D{k}"), "b": script.array(b, f"b{k}")}
            parts.append(f"{factor!r} * {ATOMS[name].text.format(**words)}")
        set_ = ""
        if self.way == "box":
            low, high = (script.array(s / u, n) for s, n in zip(self.sides, "lh", strict=True))
            set_ = f", lc.Box({low}, {high})"
        elif self.way == "rows":
            C, side = script.array(self.sides[0] * u, "C"), script.array(self.sides[1], "d")
            set_ = f", lc.Polyhedron({C}, {side})"
        elif self.way == "simplex":
            set_ = f", lc.Simplex({len(u)}, {float(self.sides[0])!r})"
        script.setup = [f"problem = lopro.Problem({' + '.join(parts)}{set_})"]
        script.call = f"result = lopro.solve(problem, tol={self.tol!r}, time_limit=2.0)"
        return script

    def _values(self, x: Array) -> list[float]:
        z = x * self.units
        with np.errstate(over="ignore"):
            own = [c * float(ATOMS[name].value(D @ z, b)) for name, c, D, b in self.terms]
        return [*own, *(self.a * z).tolist()]

    def _value(self, x: Array) -> float:
        return float(sum(self._values(x)))

    def _size(self, x: Array) -> float:
        found = float(np.abs(self._values(x)).sum())
        for name, factor, D, b in self.terms:
            if name == "poisson":  # its terms have both signs
                found += factor * float(np.mean(np.abs(b * (D @ (x * self.units)))))
        return found

    def _excess(self, x: Array) -> float:
        z = x * self.units
        size = np.maximum(np.abs(z), 1.0)
        if self.way == "box":
            low, high = self.sides
            out = np.maximum(low - z, z - high)
            return max(0.0, float((out / size).max()))
        if self.way == "rows":
            C, side = self.sides
            return max(0.0, float(((C @ z - side) / (np.abs(C) @ size + np.abs(side))).max()))
        if self.way == "simplex":
            total = float(self.sides[0])
            return max(abs(float(z.sum()) - total), float(-z.min()), 0.0) / total
        return 0.0

    def known(self) -> Known:
        best = self.solution / self.units
        typical = max(self._size(best), self._size(0.0 * best), self._size(1.0 / self.units))
        value, excess, size = self._value, self._excess, self._size
        return Known(value, excess, size, [best], typical, best.shape, rounding=1e-12)

    def judge(self, outcome: Outcome) -> Verdict:
        if len(outcome.claims) != 1:
            return Verdict(Class.WRONG, "results missing", repr(outcome.value))
        return judge_by_points(self.known(), self.tol, outcome.claims[0])

    def excuse(self, raised: Raised) -> Verdict | None:
        return None

    def simpler(self) -> Iterator[CompositeCase]:
        if (self.units != 1.0).any():
            yield replace(self, units=np.ones_like(self.units))


def composite_case(seed: int) -> CompositeCase:
    """A sum of one to three functions, columns in units of their own now and then."""
    rng = np.random.default_rng([15, seed])
    n = int(rng.integers(1, 7))
    way = str(rng.choice(["free", "box", "rows", "simplex"]))
    z = rng.integers(-3, 4, n) * (rng.random(n) < 0.7) * 1.0
    if way == "simplex":
        z = np.abs(z)
        z[0] += 1.0
    terms = []
    a = np.zeros(n)
    for name in rng.choice(list(ATOMS), int(rng.integers(1, 4))):
        atom, m = ATOMS[name], 2 * int(rng.integers(1, 9))
        D = rng.integers(-2, 3, (m, n)) * (rng.random((m, n)) < 0.6) * 1.0
        if name == "poisson":
            D = D / 8.0  # exponentials of small numbers
        b = rng.integers(-3, 4, m).astype(float)
        b = {"signs": np.where(b >= 0.0, 1.0, -1.0), "counts": np.abs(b)}.get(atom.data, b)
        factor = float(2.0 ** rng.integers(-6, 7))
        terms.append((str(name), factor, D, b))
        a -= factor * (D.T @ atom.slope(rng, D @ z, b))
    normal, sides = _normal(rng, z, way)
    units = np.ones(n)
    if rng.random() < 0.3 and way != "simplex":
        units = np.where(rng.random(n) < 0.5, 2.0 ** rng.integers(-40, 41, n), 1.0)
    tol = float(rng.choice([1e-3, 1e-6, 1e-6, 1e-8]))
    return CompositeCase(tuple(terms), a - normal, z, units, way, sides, tol)


def _normal(rng: np.random.Generator, z: Array, way: str) -> tuple[Array, tuple[Array, ...]]:
    """Return a normal of the set at the point, and the data of the set."""
    n = len(z)
    y = rng.integers(0, 4, n).astype(float)
    if way == "box":
        kind, room = rng.integers(0, 3, n), rng.integers(1, 4, (2, n)).astype(float)
        low = np.where(kind == 0, z, z - room[0])
        high = np.where(kind == 1, z, z + room[1])
        return np.where(kind == 0, -y, np.where(kind == 1, y, 0.0)), (low, high)
    if way == "rows":
        C = rng.integers(-2, 3, (n, n)).astype(float)
        C[np.arange(n), rng.integers(0, n, n)] = 1.0
        active = rng.random(n) < 0.5
        return C.T @ (y * active), (C, C @ z + np.where(active, 0.0, 1.0))
    if way == "simplex":
        return float(rng.integers(-3, 4)) - np.where(z == 0.0, y, 0.0), (np.array(z.sum()),)
    return np.zeros(n), ()
