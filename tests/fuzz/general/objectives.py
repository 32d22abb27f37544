"""Objectives for the judge, without library code: values in long double, conic form, text of calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.general.sets import Array
from fuzz.judge.conic import Program, Slot
from fuzz.judge.wide import norm, wide
from fuzz.machine.script import Script
from fuzz.sparse.shrink import chunks

__all__ = [
    "L1",
    "LeastSquares",
    "Linear",
    "Objective",
    "Quadratic",
    "SquaredDistance",
    "lift_modulus",
]


class Objective:
    """An objective as a judge evaluates it."""

    @property
    def untyped(self) -> bool:
        """Whether the library is given callables alone, which have no precision of their own."""
        return False

    def value(self, x: Any) -> Any:
        """Return the value in long double."""
        raise NotImplementedError

    def size(self, x: Any) -> float:
        """Return the size of the terms that were added up: what rounding is relative to."""
        return float(np.abs(self.value(x)))

    def terms(self, x: Any) -> float:
        """Return the sum of the absolute terms of the value as documented: what gaps are relative to."""
        return float(np.abs(self.value(x)))

    def add_to(self, program: Program, factor: float) -> None:
        """Add a multiple of the objective to a conic program."""
        raise NotImplementedError

    def stretched(self, s: float) -> Objective:
        """Return ``x -> f(x / s)``."""
        raise NotImplementedError

    def restricted(self, kept: Array) -> Objective:
        """Return the objective where all other coordinates are 0."""
        raise NotImplementedError

    def text(self, script: Script) -> str:
        """Return an expression for the library's objective."""
        raise NotImplementedError

    def callables(self, script: Script) -> tuple[str, str]:
        """Return lambdas for the value and for a slope."""
        raise NotImplementedError

    def simpler(self) -> Iterator[Objective]:
        """Yield simpler objectives."""
        return iter(())


def lift_modulus(program: Program, slot: Slot, weights: Any) -> None:
    """Add ``sum w_i |x_i|`` to the objective of a program."""
    t, one = program.lift(slot.size), sp.eye_array(slot.size, format="csr")
    program.minimise(t, weights)
    program.positive([(t, one), (slot, -one)], np.zeros(slot.size))
    program.positive([(t, one), (slot, one)], np.zeros(slot.size))


@dataclass(frozen=True)
class Linear(Objective):
    """``<a, x>``."""

    a: Array

    def value(self, x: Any) -> Any:
        return np.sum(wide(self.a) * wide(x))

    def size(self, x: Any) -> float:
        return float(np.sum(np.abs(wide(self.a) * wide(x))))

    def terms(self, x: Any) -> float:
        return self.size(x)

    def add_to(self, program: Program, factor: float) -> None:
        program.minimise(program.x, factor * self.a.ravel())

    def stretched(self, s: float) -> Linear:
        return Linear(self.a / s)

    def restricted(self, kept: Array) -> Linear:
        return Linear(self.a[np.ix_(*[kept] * self.a.ndim)])

    def text(self, script: Script) -> str:
        return f"lo.Linear({script.array(self.a)})"

    def callables(self, script: Script) -> tuple[str, str]:
        a = script.array(self.a)
        return f"lambda x: float({a} @ x)", f"lambda x: {a}.copy()"


@dataclass(frozen=True)
class L1(Objective):
    """``sum w_i |x_i|``."""

    weights: Array

    def value(self, x: Any) -> Any:
        return np.sum(wide(self.weights) * np.abs(wide(x)))

    def add_to(self, program: Program, factor: float) -> None:
        lift_modulus(program, program.x, factor * self.weights.ravel())

    def stretched(self, s: float) -> L1:
        return L1(self.weights / s)

    def restricted(self, kept: Array) -> L1:
        return L1(self.weights[np.ix_(*[kept] * self.weights.ndim)])

    def text(self, script: Script) -> str:
        return f"lo.L1Norm({script.array(self.weights)})"

    def callables(self, script: Script) -> tuple[str, str]:
        w = script.array(self.weights)
        return f"lambda x: float({w} @ np.abs(x))", f"lambda x: {w} * np.sign(x)"


@dataclass(frozen=True)
class LeastSquares(Objective):
    """``1/2 |A x - b|^2``."""

    A: Array
    b: Array

    def _residual(self, x: Any) -> Any:
        return wide(self.A) @ wide(x) - wide(self.b)

    def value(self, x: Any) -> Any:
        return 0.5 * np.sum(self._residual(x) ** 2)

    def size(self, x: Any) -> float:
        terms = np.abs(wide(self.A)) @ np.abs(wide(x)) + np.abs(wide(self.b))
        return float(norm(self._residual(x)) * norm(terms))

    def add_to(self, program: Program, factor: float) -> None:
        # The residual as a variable: squaring A would square its condition number.
        r = program.lift(len(self.b))
        program.zero([(program.x, self.A), (r, -sp.eye_array(len(self.b)))], -self.b)
        program.minimise_square(r, factor=factor)

    def stretched(self, s: float) -> LeastSquares:
        return replace(self, A=self.A / s)

    def restricted(self, kept: Array) -> LeastSquares:
        return replace(self, A=self.A[:, kept])

    def text(self, script: Script) -> str:
        return f"lo.LeastSquares({script.array(self.A)}, {script.array(self.b)})"

    def callables(self, script: Script) -> tuple[str, str]:
        A, b = script.array(self.A), script.array(self.b)
        value = f"lambda x: 0.5 * float(np.sum(({A} @ x - {b}) ** 2))"
        return value, f"lambda x: {A}.T @ ({A} @ x - {b})"

    def simpler(self) -> Iterator[LeastSquares]:
        for kept in chunks(len(self.b)):
            yield LeastSquares(self.A[kept], self.b[kept])


@dataclass(frozen=True)
class Quadratic(Objective):
    """``1/2 x'P x + q'x``."""

    P: Array
    q: Array

    def value(self, x: Any) -> Any:
        x = wide(x)
        return 0.5 * np.sum(x * (wide(self.P) @ x)) + np.sum(wide(self.q) * x)

    def size(self, x: Any) -> float:
        x = np.abs(wide(x))
        return float(
            0.5 * np.sum(x * (np.abs(wide(self.P)) @ x)) + np.sum(np.abs(wide(self.q)) * x)
        )

    def terms(self, x: Any) -> float:
        x = wide(x)
        curved = 0.5 * abs(np.sum(x * (wide(self.P) @ x)))
        return float(curved + np.sum(np.abs(wide(self.q) * x)))

    def add_to(self, program: Program, factor: float) -> None:
        program.minimise_square(program.x, self.P, factor)
        program.minimise(program.x, factor * self.q)

    def stretched(self, s: float) -> Quadratic:
        return Quadratic(self.P / s / s, self.q / s)

    def restricted(self, kept: Array) -> Quadratic:
        return Quadratic(self.P[np.ix_(kept, kept)], self.q[kept])

    def text(self, script: Script) -> str:
        return f"lo.Quadratic({script.array(self.P)}, {script.array(self.q)})"

    def callables(self, script: Script) -> tuple[str, str]:
        P, q = script.array(self.P), script.array(self.q)
        return f"lambda x: 0.5 * float(x @ {P} @ x) + float({q} @ x)", f"lambda x: {P} @ x + {q}"


@dataclass(frozen=True)
class SquaredDistance(Objective):
    """``1/2 |x - z|^2``, for vectors and matrices, with a factor that units need."""

    z: Array
    factor: float = 1.0

    def value(self, x: Any) -> Any:
        return 0.5 * np.longdouble(self.factor) * np.sum((wide(x) - wide(self.z)) ** 2)

    def size(self, x: Any) -> float:
        away = norm(wide(x) - wide(self.z))
        return float(self.factor * away * (norm(x) + norm(self.z)))

    def add_to(self, program: Program, factor: float) -> None:
        factor *= self.factor
        program.minimise_square(program.x, factor=factor)
        program.minimise(program.x, -factor * self.z.ravel())
        program.constant += 0.5 * factor * float(np.sum(self.z**2))

    def stretched(self, s: float) -> SquaredDistance:
        return SquaredDistance(self.z * s, self.factor / s / s)

    def restricted(self, kept: Array) -> SquaredDistance:
        return replace(self, z=self.z[np.ix_(*[kept] * self.z.ndim)])

    def text(self, script: Script) -> str:
        plain = f"lo.SquaredDistance({script.array(self.z)})"
        return plain if self.factor == 1.0 else f"({self.factor!r} * {plain})"

    def callables(self, script: Script) -> tuple[str, str]:
        z, c = script.array(self.z), repr(self.factor)
        return f"lambda x: 0.5 * {c} * float(np.sum((x - {z}) ** 2))", f"lambda x: {c} * (x - {z})"
