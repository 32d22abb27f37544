"""Programs with exponentials, logarithms and entropies, made around their solution and its multipliers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax, xlogy

from fuzz.judge.points import Known
from fuzz.planted.program import Array

__all__ = ["ATOMS", "WAYS", "Exponential", "draw_exponential"]

#: What `draw_exponential` makes, with shares; ``limit`` has an infimum of 0 that no point attains.
WAYS = {"regular": 0.4, "feasibility": 0.15, "empty": 0.2, "unbounded": 0.15, "limit": 0.1}
#: The functions of the images in the value, as CVXPY writes them.
ATOMS = {
    "exp": "w @ cvxpy.exp(B @ x - c)",
    "logistic": "w @ cvxpy.logistic(B @ x - c)",
    "entropy": "-(w @ cvxpy.entr(B @ x - c))",
    "lse": "w[0] * cvxpy.log_sum_exp(B @ x - c)",
}


@dataclass(frozen=True)
class Exponential:
    """``min q'z + w'phi(B z - c)`` with ``exp(e'z - k) <= g'z + h`` and ``A z <= b``.

    These are plain units. The call has ``x = z / columns``, the exponential row times ``cone``, each other
    row times ``rows`` and the value times ``unit``, all of them powers of two.
    """

    atom: str
    q: Array
    w: Array
    B: Array
    c: Array
    e: Array
    k: float
    g: Array
    h: float
    A: Array
    b: Array
    solution: Array
    columns: Array
    rows: Array
    cone: float = 1.0
    unit: float = 1.0
    way: str = "regular"
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
        u = self.columns
        return {
            "q": self.unit * self.q * u,
            "w": self.unit * self.w,
            "B": self.B * u,
            "c": self.c,
            "e": self.e * u,
            "k": np.array(self.k),
            "cone": np.array(self.cone),
            "g": self.cone * self.g * u,
            "h": np.array(self.cone * self.h),
            "A": self.rows[:, None] * self.A * u,
            "b": self.rows * self.b,
        }

    def _terms(self, z: Any) -> Array:
        if not self.w.any():  # the call does not have them
            return np.zeros(1)
        t = self.B @ z - self.c
        with np.errstate(all="ignore"):
            if self.atom == "exp":
                return np.asarray(self.w * np.exp(t))
            if self.atom == "logistic":
                return np.asarray(self.w * np.logaddexp(0.0, t))
            if self.atom == "entropy":
                return np.asarray(np.where(t < 0.0, np.inf, self.w * xlogy(t, t)))
            return np.asarray(self.w[:1] * logsumexp(t))

    def value(self, x: Any) -> float:
        """Return the value of a point of the call."""
        z = x * self.columns
        return self.unit * (float(self.q @ z) + float(self._terms(z).sum()))

    def size(self, x: Any) -> float:
        """Return the sum of the absolute terms of the value, those of the images among them."""
        z = x * self.columns
        images = np.abs(self.B) @ np.abs(z) + np.abs(self.c)
        found = float(np.abs(self.q) @ np.abs(z)) + float(np.abs(self._terms(z)).sum())
        if self.atom != "exp":  # these grow as slowly as their images
            found += float(self.w @ images)
        return self.unit * found

    def excess(self, x: Any) -> float:
        """Return the largest relative violation of a row by its own terms; exponents count as rows, too."""
        z, size = x * self.columns, np.maximum(np.abs(x * self.columns), 1.0)
        inner, outer = float(self.e @ z) - self.k, float(self.g @ z) + self.h
        inner_size = float(np.abs(self.e) @ size) + abs(self.k) + 1.0
        outer_size = float(np.abs(self.g) @ size) + abs(self.h) + 1.0
        with np.errstate(all="ignore"):
            raised = (np.exp(inner) - outer) / outer_size
            lowered = (inner - np.log(outer)) / inner_size if outer > 0.0 else np.inf
        rows = (self.A @ z - self.b) / (np.abs(self.A) @ size + np.abs(self.b))
        found = [float(min(raised, lowered)), *rows]
        if self.atom == "entropy" and self.w.any():
            t, of_t = self.B @ z - self.c, np.abs(self.B) @ size + np.abs(self.c)
            found += list(-t / of_t)
        return float(max(0.0, *found))

    def known(self) -> Known:
        """Return the known properties of the problem, for the judge."""
        best = self.solution / self.columns
        typical = max(self.size(best), self.unit * float(np.abs(self.q).sum() + self.w.sum()))
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

    def simpler(self) -> Iterator[Exponential]:
        """Yield programs in plainer units."""
        for units in ("columns", "rows"):
            values = getattr(self, units)
            if (values != 1.0).any():
                changes: dict[str, Any] = {units: np.ones(len(values))}
                yield replace(self, **changes)
        yield from [replace(self, cone=1.0)] * (self.cone != 1.0)
        yield from [replace(self, unit=1.0)] * (self.unit != 1.0)


def draw_exponential(rng: np.random.Generator) -> Exponential:
    """Return a program of some way, in units that may differ by 24 decades."""
    way = str(rng.choice(list(WAYS), p=list(WAYS.values())))
    program = _optimal(rng, way)
    if way == "empty":
        program = _empty(rng, program)
    elif way in ("unbounded", "limit"):
        program = _falling(rng, program, way)
    return _in_units(rng, replace(program, way=way))


def _optimal(rng: np.random.Generator, way: str) -> Exponential:
    """Return a program with a solution: the slope of the linear part is what multipliers leave."""
    n, m, r = (int(rng.integers(low, high)) for low, high in ((1, 6), (1, 4), (1, 5)))
    atom = "exp" if way == "limit" else str(rng.choice(list(ATOMS)))
    z = rng.integers(-3, 4, n).astype(float) * (rng.random() < 0.8)

    def integers(*shape: int) -> Array:
        return rng.integers(-2, 3, shape).astype(float)

    B, A, w = integers(r, n), integers(m, n), rng.integers(0, 4, r).astype(float)
    A[:, 0] = np.where(A.any(axis=1), A[:, 0], 1.0)
    if atom == "lse":
        w = np.append(w[:1], np.zeros(r - 1))
    t = 2.0 ** rng.integers(-3, 3, r) if atom == "entropy" else integers(r)
    e, g = integers(n), integers(n) * (rng.random() < 0.5)
    level = 0.0 if way == "empty" else float(rng.integers(-3, 4))
    room = float(rng.integers(0, 2)) * float(rng.integers(1, 4))
    weight = 0.0 if room else float(rng.integers(0, 3))
    y = rng.integers(0, 3, m).astype(float)
    h = float(np.exp(level)) + room - float(g @ z)
    if way in ("feasibility", "limit"):
        w, q = 0.0 * w, np.zeros(n)
    else:
        slopes = {"exp": np.exp, "logistic": lambda t: 1.0 / (1.0 + np.exp(-t)), "lse": softmax}
        slope = 1.0 + np.log(t) if atom == "entropy" else slopes[atom](t)
        shared = w[0] if atom == "lse" else w
        q = -(B.T @ (shared * slope)) - weight * (np.exp(level) * e - g) - A.T @ y
    return Exponential(
        atom, q, w, B, B @ z - t, e, float(e @ z) - level, g, h, A, A @ z + (y == 0.0), z,
        np.ones(n), np.ones(m),
    )  # fmt: skip


def _empty(rng: np.random.Generator, p: Exponential) -> Exponential:
    """Add a row that contradicts the others, which have ``1 + e'z - k <= exp(e'z - k) <= g'z + h``."""
    y, m = rng.integers(0, 3, len(p.A)).astype(float), float(rng.integers(1, 3))
    level = m * (p.h - 1.0 + p.k) + float(y @ p.b)
    row = m * (p.g - p.e) - y @ p.A
    side = -level - float(rng.integers(1, 5))
    p = replace(
        p, A=np.vstack([p.A, row]), b=np.append(p.b, side), rows=np.append(p.rows, 1.0), empty=True
    )
    return _with_column(p, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0) if rng.random() < 0.5 else p


def _falling(rng: np.random.Generator, p: Exponential, way: str) -> Exponential:
    """Add a variable that may grow for ever: the value falls without end, or to an infimum of 0."""
    falls = -rng.integers(0, 3, len(p.A)).astype(float)
    e, g = -float(rng.integers(0, 3)), float(rng.integers(0, 3))
    if way == "limit":
        p = _with_column(p, 0.0, -1.0, e, g, falls, 100.0)
        # Entries of the images keep their signs: only the new variable counts.
        B = np.column_stack([0.0 * p.B[:, :-1], p.B[:, -1]])
        return replace(p, w=rng.integers(1, 4, len(p.w)).astype(float), B=B, c=0.0 * p.c)
    of_image = 0.0 if p.atom == "entropy" else -rng.integers(0, 2, len(p.B)).astype(float)
    p = _with_column(p, -float(rng.integers(1, 4)), of_image, e, g, falls, 0.0)
    return replace(p, unbounded=True)


def _with_column(
    p: Exponential, cost: float, B: Any, e: float, g: float, A: Any, at: float
) -> Exponential:
    """Return the program with one more variable, and its entry of the solution."""

    def beside(values: Array, column: Any) -> Array:
        return np.column_stack([values, np.broadcast_to(column, len(values))])

    return replace(
        p, q=np.append(p.q, cost), B=beside(p.B, B), A=beside(p.A, A), e=np.append(p.e, e),
        g=np.append(p.g, g), solution=np.append(p.solution, at), columns=np.append(p.columns, 1.0),
    )  # fmt: skip


def _in_units(rng: np.random.Generator, program: Exponential) -> Exponential:
    changes: dict[str, Any] = {}
    for name in ("columns", "rows"):
        size = len(getattr(program, name))
        if rng.random() < 0.4:
            share = float(rng.choice([1.0 / size, 0.5]))
            powers = 2.0 ** rng.integers(-40, 41, size)
            changes[name] = np.where(rng.random(size) < share, powers, 1.0)
    for name in ("cone", "unit"):
        if rng.random() < 0.2:
            changes[name] = float(2.0 ** rng.integers(-40, 41))
    return replace(program, **changes)
