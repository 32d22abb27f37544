"""Semidefinite and second-order cone programs made around their solution and its multipliers, in integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.judge.points import Known
from fuzz.planted.program import Array

__all__ = ["WAYS", "Conic", "draw_cones", "draw_conic"]

#: What `draw_cones` makes, with shares.
WAYS = {"empty": 0.35, "unbounded": 0.15, "feasibility": 0.15, "zero": 0.15, "norm": 0.2}


@dataclass(frozen=True)
class Conic:
    """``min q'z`` with ``M_0 + sum z_j M_j`` semidefinite, ``|D z - e| <= g'z + h`` and ``A z <= b``.

    Where ``F`` is given, the value has ``5 |F z - f|`` as well.

    These are plain units. The call has ``x = z / columns``, the matrix with rows and columns times
    ``indices``, the cone times ``cone``, each row times ``rows`` and the value times ``unit``, all of them
    powers of two.
    """

    q: Array
    M: Array
    D: Array
    e: Array
    g: Array
    h: float
    A: Array
    b: Array
    solution: Array
    columns: Array
    indices: Array
    rows: Array
    cone: float = 1.0
    unit: float = 1.0
    way: str = "conic"
    F: Array | None = None
    f: Array | None = None
    #: By construction: no feasible point, or a direction along which the value falls for ever.
    empty: bool = False
    unbounded: bool = False

    @property
    def dim(self) -> int:
        return len(self.q)

    @property
    def of_columns(self) -> Array:
        return self.columns

    def data(self) -> dict[str, Array]:
        """Return the arrays of the call, in its units."""
        u, s = self.columns, self.indices
        M = self.M * s[:, None] * s
        norm = {}
        if self.F is not None and self.f is not None:
            norm = {"F": 5.0 * self.unit * self.F * u, "f": 5.0 * self.unit * self.f}
        return norm | {
            "q": self.unit * self.q * u,
            "M0": M[0],
            "M": M[1:] * u[:, None, None],
            "D": self.cone * self.D * u,
            "e": self.cone * self.e,
            "g": self.cone * self.g * u,
            "h": np.array(self.cone * self.h),
            "A": self.rows[:, None] * self.A * u,
            "b": self.rows * self.b,
        }

    def value(self, x: Any) -> float:
        """Return the value of a point of the call."""
        z = x * self.columns
        norm = 0.0 if self.F is None else 5.0 * float(np.linalg.norm(self.F @ z - self.f))
        return self.unit * (float(self.q @ z) + norm)

    def size(self, x: Any) -> float:
        """Return the sum of the absolute terms of the value."""
        z, norm = np.abs(x * self.columns), 0.0
        if self.F is not None and self.f is not None:
            norm = 5.0 * float(np.linalg.norm(np.abs(self.F) @ z + np.abs(self.f)))
        return self.unit * (float(np.abs(self.q) @ z) + norm)

    def excess(self, x: Any) -> float:
        """Return the largest relative violation: of matrix, cone and rows by their own terms."""
        z = x * self.columns
        w = np.concatenate([[1.0], np.maximum(np.abs(z), 1.0)])
        X, terms = np.tensordot(np.append(1.0, z), self.M, 1), np.tensordot(w, np.abs(self.M), 1)
        d = np.ones(len(X))
        for _ in range(60):  # until d_i d_j is what the terms of the entry i, j compare, at least
            largest = (terms / (d[:, None] * d)).max(axis=1)
            d *= np.sqrt(np.where(largest > 0.0, largest, 1.0))
        found = [-float(np.linalg.eigvalsh(X / (d[:, None] * d))[0])]
        out = float(np.linalg.norm(self.D @ z - self.e)) - float(self.g @ z + self.h)
        size = float(np.linalg.norm(np.abs(self.D) @ w[1:] + np.abs(self.e)))
        found.append(out / max(float(np.abs(self.g) @ w[1:]) + abs(self.h), 1e-6 * size))
        found += list((self.A @ z - self.b) / (np.abs(self.A) @ w[1:] + np.abs(self.b)))
        return max(0.0, *found)

    def known(self) -> Known:
        """Return the known properties of the problem, for the judge."""
        best = self.solution / self.columns
        typical = max(self.size(best), self.size(1.0 / self.columns))
        return Known(
            self.value,
            self.excess,
            self.size,
            [] if self.empty else [best],
            typical,
            (self.dim,),
            empty=self.empty,
            unbounded=self.unbounded,
        )

    def simpler(self) -> Iterator[Conic]:
        """Yield programs in plainer units."""
        for units in ("columns", "indices", "rows"):
            values = getattr(self, units)
            if (values != 1.0).any():
                changes: dict[str, Any] = {units: np.ones(len(values))}
                yield replace(self, **changes)
        yield from [replace(self, cone=1.0)] * (self.cone != 1.0)
        yield from [replace(self, unit=1.0)] * (self.unit != 1.0)


def draw_conic(rng: np.random.Generator) -> Conic:
    """Return a program whose slope is what multipliers of its matrix, cone and rows make."""
    return _in_units(rng, _optimal(rng))


def draw_cones(rng: np.random.Generator) -> Conic:
    """Return a program without a feasible point, without a least value, or with one of another form."""
    way = str(rng.choice(list(WAYS), p=list(WAYS.values())))
    program = _optimal(rng, zero=way == "zero")
    if way == "empty":
        program = _empty(rng, program)
    elif way == "unbounded":
        program = _unbounded(rng, program)
    elif way == "feasibility":
        program = replace(program, q=0.0 * program.q)
    elif way == "norm":
        F = rng.integers(-2, 3, (2, program.dim)).astype(float)
        normal = np.array([3.0, 4.0])[:: rng.choice([-1, 1])] * rng.choice([-1.0, 1.0], 2)
        f = F @ program.solution - float(rng.integers(1, 4)) * normal
        program = replace(program, F=F, f=f, q=program.q - F.T @ normal)
    return _in_units(rng, replace(program, way=way))


def _empty(rng: np.random.Generator, p: Conic) -> Conic:
    """Add a row that contradicts the matrix, the cone and the other rows together.

    Slacks of all of them, times multipliers, sum to a negative number at every point. Now and then a variable
    that no constraint has lets the value fall for ever.
    """
    V = rng.integers(-1, 2, (p.M.shape[1], int(rng.integers(1, 3)))).astype(float)
    Z = (V @ V.T) * float(rng.integers(0, 2))
    t = float(rng.integers(0, 3))
    w = t * np.array([0.6, 0.8])[:: rng.choice([-1, 1])] * 5.0 * rng.choice([-1.0, 1.0], 2)
    t *= 5.0
    y = rng.integers(0, 3, len(p.A)).astype(float)
    level = float(np.sum(Z * p.M[0])) + t * p.h - float(w @ p.e) + float(y @ p.b)
    row = np.tensordot(p.M[1:], Z) + t * p.g + p.D.T @ w - p.A.T @ y
    side = -level - float(rng.integers(1, 5))
    p = replace(
        p, A=np.vstack([p.A, row]), b=np.append(p.b, side), rows=np.append(p.rows, 1.0), empty=True
    )
    return _with_column(p, -1.0) if rng.random() < 0.5 else p


def _unbounded(rng: np.random.Generator, p: Conic) -> Conic:
    """Add a variable that may grow for ever, and lowers the value."""
    v = rng.integers(-2, 3, p.M.shape[1]).astype(float)
    w = float(rng.integers(0, 2)) * np.array([3.0, 4.0])
    room = 5.0 * w.any() + float(rng.integers(0, 3))
    falls = -rng.integers(0, 3, len(p.A)).astype(float)
    p = _with_column(p, -float(rng.integers(1, 4)), np.outer(v, v), w, room, falls)
    return replace(p, unbounded=True)


def _with_column(
    p: Conic, cost: float, M: Any = 0.0, D: Any = 0.0, g: float = 0.0, A: Any = 0.0
) -> Conic:
    """Return the program with one more variable, which is 0 at the solution."""

    def beside(values: Array, column: Any) -> Array:
        return np.column_stack([values, np.broadcast_to(column, len(values))])

    last = np.broadcast_to(M, p.M.shape[1:])[None]
    return replace(
        p, q=np.append(p.q, cost), M=np.concatenate([p.M, last]), D=beside(p.D, D), A=beside(p.A, A),
        g=np.append(p.g, g), solution=np.append(p.solution, 0.0), columns=np.append(p.columns, 1.0),
    )  # fmt: skip


def _optimal(rng: np.random.Generator, zero: bool = False) -> Conic:
    n, k, m = (int(rng.integers(low, high)) for low, high in ((1, 6), (2, 6), (1, 4)))
    z = rng.integers(-3, 4, n).astype(float) * (not zero)

    def integers(*shape: int) -> Array:
        return rng.integers(-2, 3, shape).astype(float)

    # With a triangular L both L S L' and its complement are integer matrices; their product is 0.
    L = np.tril(integers(k, k), -1) * (rng.random((k, k)) < 0.4) + np.eye(k)
    active = rng.random(k) < 0.4
    inverse = np.rint(np.linalg.inv(L))
    slack = (L * np.where(active, 0.0, rng.integers(1, 5, k))) @ L.T
    dual = (inverse.T * np.where(active, rng.integers(1, 4, k), 0.0)) @ inverse
    M = integers(n, k, k)
    M = M + M.transpose(0, 2, 1)
    D, g = integers(2, n), integers(n) * (rng.random() < 0.5)
    normal = np.array([3.0, 4.0])[:: rng.choice([-1, 1])] * rng.choice([-1.0, 1.0], 2)
    room = float(rng.integers(0, 2)) * float(rng.integers(1, 4))
    weight = 0.0 if room else float(rng.integers(0, 3))
    # A centre far away beside a small radius, now and then.
    length = float(rng.choice([1.0, 1.0, 2.0**-20]))
    A = integers(m, n)
    A[:, 0] = np.where(A.any(axis=1), A[:, 0], 1.0)
    y = rng.integers(0, 3, m).astype(float)
    q = np.tensordot(M, dual) - weight * (D.T @ normal) + 5.0 * weight * g - A.T @ y
    return Conic(
        q, np.concatenate([[slack - np.tensordot(z, M, 1)], M]), D, D @ z - length * normal, g,
        5.0 * length + room - float(g @ z), A, A @ z + (y == 0.0), z, np.ones(n), np.ones(k), np.ones(m),
    )  # fmt: skip


def _in_units(rng: np.random.Generator, program: Conic) -> Conic:
    changes: dict[str, Any] = {}
    for name, reach in (("columns", 40), ("indices", 20), ("rows", 40)):
        size = len(getattr(program, name))
        if rng.random() < 0.4:
            share = float(rng.choice([1.0 / size, 0.5]))
            powers = 2.0 ** rng.integers(-reach, reach + 1, size)
            changes[name] = np.where(rng.random(size) < share, powers, 1.0)
    for name in ("cone", "unit"):
        if rng.random() < 0.2:
            changes[name] = float(2.0 ** rng.integers(-40, 41))
    return replace(program, **changes)
