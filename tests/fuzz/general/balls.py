"""Balls of the l1 norm and of residuals for the judge, without library code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.general.sets import EXACT, Array, Equations, Set
from fuzz.judge.conic import Program
from fuzz.judge.contract import eps_of
from fuzz.judge.wide import EPS, norm, power_of_two, residual_length, wide
from fuzz.machine.script import Script
from fuzz.sparse.shrink import chunks

__all__ = ["L1Ball", "ResidualBall"]


@dataclass(frozen=True)
class L1Ball(Set):
    """``sum |x_i| <= size``."""

    dim: int
    size: float

    @property
    def untyped(self) -> bool:
        return True  # a size and numbers, no array

    def violation(self, x: Any, unit: float) -> float:
        total, size = np.sum(np.abs(wide(x))), np.longdouble(self.size)
        return float(max(total - size, np.longdouble(0)) / max(total, size))

    def holds(self, x: Any) -> bool:
        total = np.sum(np.abs(wide(x)))
        return bool(total * (1 + len(x) * EPS) <= self.size)

    def add_to(self, program: Program) -> None:
        t, one = program.lift(self.dim), sp.eye_array(self.dim, format="csr")
        program.positive([(t, one), (program.x, -one)], np.zeros(self.dim))
        program.positive([(t, one), (program.x, one)], np.zeros(self.dim))
        program.positive([(t, -np.ones((1, self.dim)))], [self.size])

    def stretched(self, s: float) -> L1Ball:
        return replace(self, size=self.size * s)

    def restricted(self, kept: Array) -> L1Ball:
        return replace(self, dim=len(kept))

    def text(self, script: Script) -> str:
        return f"lc.L1Ball({self.dim}, {self.size!r})"


@dataclass(frozen=True)
class ResidualBall(Set):
    """``|A x - y| <= sigma``; as the library's set, or as callables with values and slopes only."""

    A: Array
    y: Array
    sigma: float
    #: "" for the squared form, "norm" for the plain one; "sparse", "operator": how the matrix is given;
    #: "callable" for a smooth FunctionConstraint, "kinked" for one that is not smooth.
    form: str = ""

    @property
    def untyped(self) -> bool:
        return self.form in ("callable", "kinked")

    def violation(self, x: Any, unit: float) -> float:
        if self.untyped:
            return self._first_order_distance(x, unit)
        excess = residual_length(self.A, x, self.y).low - self.sigma
        size = norm(self.y)
        scale = max(np.longdouble(self.sigma), 1e-6 * size) if self.sigma > 0.0 else size
        if scale == 0:
            # ``A x = 0`` has no size of its own: compare with the largest possible product.
            scale = np.longdouble(np.linalg.norm(self.A, 2)) * norm(x)
        terms = norm(np.abs(wide(self.A)) @ np.abs(wide(x))) + size
        excess -= 8.0 * eps_of(np.asarray(x).dtype) * terms  # the rounding of x
        return float(max(excess, np.longdouble(0)) / scale) if excess > 0 else 0.0

    def _first_order_distance(self, x: Any, unit: float) -> float:
        """Return ``c / |g|`` over the size of ``x``: of callables nothing but values and slopes is known.

        That is what `Constraint.violation` documents for them; ``c = |A x - y| - sigma`` has the slope
        ``A'r / |r|``, and squares have half the distance at least.
        """
        excess = residual_length(self.A, x, self.y).low - self.sigma
        terms = norm(np.abs(wide(self.A)) @ np.abs(wide(x))) + norm(self.y)
        excess -= 8.0 * eps_of(np.asarray(x).dtype) * terms
        if excess <= 0:
            return 0.0
        r = wide(self.A) @ wide(x) - wide(self.y)
        slope = norm(wide(self.A).T @ r) / norm(r)
        size = max(norm(x), np.longdouble(unit))
        return float(excess / (slope * size)) if slope > 0 else float("inf")

    def holds(self, x: Any) -> bool:
        found = residual_length(self.A, x, self.y)
        if self.sigma > 0.0:
            return bool(found.high <= self.sigma)
        terms = norm(np.abs(wide(self.A)) @ np.abs(wide(x))) + norm(self.y)
        return bool(found.low <= EXACT * len(x) * terms)

    def add_to(self, program: Program) -> None:
        unit = power_of_two(max(float(np.abs(self.A).max()), float(np.abs(self.y).max())))
        A, y = self.A / unit, self.y / unit
        if self.sigma == 0.0:
            program.zero([(program.x, A)], -y)
            return
        head = np.vstack([np.zeros((1, A.shape[1])), A])
        program.second_order([(program.x, head)], np.concatenate([[self.sigma / unit], -y]))

    def equations(self) -> Equations:
        return (self.A, self.y) if self.sigma == 0.0 else None

    def stretched(self, s: float) -> ResidualBall:
        return replace(self, y=self.y * s, sigma=self.sigma * s)

    def restricted(self, kept: Array) -> ResidualBall:
        return replace(self, A=self.A[:, kept])

    def text(self, script: Script) -> str:
        A, y = script.array(self.A), script.array(self.y)
        if self.form == "kinked":
            value = f"lambda x: float(np.linalg.norm({A} @ x - {y})) / {self.sigma!r} - 1.0"
            r = f"({A} @ x - {y})"
            slope = f"lambda x: {A}.T @ {r} / (np.linalg.norm({r}) + 1e-300) / {self.sigma!r}"
            return f"lc.FunctionConstraint({value}, {slope}, shape=({self.A.shape[1]},))"
        if self.form == "callable":
            # The distance from the centre over the radius keeps values near 1 in any units.
            r = f"(({A} @ x - {y}) / {self.sigma!r})"
            value = f"lambda x: float({r} @ {r}) - 1.0"
            slope = f"lambda x: 2.0 * ({A}.T @ {r}) / {self.sigma!r}"
            return (
                f"lc.FunctionConstraint({value}, {slope}, smooth=True, shape=({self.A.shape[1]},))"
            )
        form = ", lc.ResidualNorm()" if self.form == "norm" else ""
        if self.form == "sparse":
            A = f"scipy.sparse.csr_array({A})"
        elif self.form == "operator":
            A = f"scipy.sparse.linalg.aslinearoperator({A})"
        return f"lc.ResidualBall({A}, {y}, {self.sigma!r}{form})"

    def simpler(self) -> Iterator[ResidualBall]:
        for kept in chunks(len(self.y)):
            yield replace(self, A=self.A[kept], y=self.y[kept])
        if self.form:
            yield replace(self, form="")
