"""Objectives beyond quadratics and norms: logistic loss, exponentials, maxima, pairs, sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.general.objectives import Objective, lift_modulus
from fuzz.general.sets import Array
from fuzz.judge.conic import Program
from fuzz.judge.wide import wide
from fuzz.machine.script import Script

__all__ = ["Exponentials", "Farthest", "Logistic", "OffDiagonal", "Sum"]


@dataclass(frozen=True)
class Logistic(Objective):
    """``mean log(1 + exp(-y_i x_i'w)) + l2/2 |w|^2``."""

    X: Array
    labels: Array
    l2: float

    def value(self, x: Any) -> Any:
        margins = -wide(self.labels) * (wide(self.X) @ wide(x))
        ridge = 0.5 * np.longdouble(self.l2) * np.sum(wide(x) ** 2)
        return np.mean(np.logaddexp(np.longdouble(0), margins)) + ridge

    def size(self, x: Any) -> float:
        terms = np.mean(np.abs(wide(self.X)) @ np.abs(wide(x)))
        return float(self.value(x) + terms) + 1.0

    def add_to(self, program: Program, factor: float) -> None:
        n = len(self.labels)
        t, u, v = program.lift(n), program.lift(n), program.lift(n)
        program.minimise(t, np.full(n, factor / n))
        one = sp.eye_array(n, format="csr")
        program.positive([(u, -one), (v, -one)], np.ones(n))
        for i in range(n):
            at = _unit(n, i)
            margin = np.vstack([-self.labels[i] * self.X[i], np.zeros((2, self.X.shape[1]))])
            # exp(margin - t) <= u and exp(-t) <= v with u + v <= 1
            program.exponential([(program.x, margin), (t, -at(0)), (u, at(2))], [0.0, 1.0, 0.0])
            program.exponential([(t, -at(0)), (v, at(2))], [0.0, 1.0, 0.0])
        if self.l2 > 0.0:
            program.minimise_square(program.x, factor=factor * self.l2)

    def stretched(self, s: float) -> Logistic:
        return replace(self, X=self.X / s, l2=self.l2 / s / s)

    def restricted(self, kept: Array) -> Logistic:
        return replace(self, X=self.X[:, kept])

    def text(self, script: Script) -> str:
        return f"lo.Logistic({script.array(self.X)}, {script.array(self.labels)}, {self.l2!r})"

    def callables(self, script: Script) -> tuple[str, str]:
        Z, c = script.array(-self.labels[:, None] * self.X), repr(self.l2)
        value = f"lambda x: float(np.mean(np.logaddexp(0.0, {Z} @ x)) + 0.5 * {c} * (x @ x))"
        slope = (
            f"lambda x: {Z}.T @ (0.5 * (1.0 + np.tanh(0.5 * ({Z} @ x)))) / {len(self.X)} + {c} * x"
        )
        return value, slope


def _unit(n: int, i: int) -> Any:
    return lambda row: sp.csr_array(([1.0], ([row], [i])), shape=(3, n))


@dataclass(frozen=True)
class Exponentials(Objective):
    """``sum exp(b_i'x)`` as callables: smooth, without a Lipschitz constant anywhere."""

    B: Array

    @property
    def untyped(self) -> bool:
        return True

    def value(self, x: Any) -> Any:
        return np.sum(np.exp(wide(self.B) @ wide(x)))

    def size(self, x: Any) -> float:
        z = wide(self.B) @ wide(x)
        return float(np.sum(np.exp(z) * (1 + np.abs(wide(self.B)) @ np.abs(wide(x)))))

    def add_to(self, program: Program, factor: float) -> None:
        n = len(self.B)
        t = program.lift(n)
        program.minimise(t, np.full(n, factor))
        for i in range(n):
            rows = np.vstack([self.B[i], np.zeros((2, self.B.shape[1]))])
            program.exponential([(program.x, rows), (t, _unit(n, i)(2))], [0.0, 1.0, 0.0])

    def stretched(self, s: float) -> Exponentials:
        return Exponentials(self.B / s)

    def restricted(self, kept: Array) -> Exponentials:
        return Exponentials(self.B[:, kept])

    def text(self, script: Script) -> str:
        value, slope = self.callables(script)
        return f"lo.FunctionObjective({value}, gradient={slope}, shape=({self.B.shape[1]},))"

    def callables(self, script: Script) -> tuple[str, str]:
        B = script.array(self.B)
        return f"lambda x: float(np.sum(np.exp({B} @ x)))", f"lambda x: {B}.T @ np.exp({B} @ x)"


@dataclass(frozen=True)
class Farthest(Objective):
    """``max |x_i - c_i|`` as callables: not smooth, no prox."""

    c: Array

    @property
    def untyped(self) -> bool:
        return True

    def value(self, x: Any) -> Any:
        return np.max(np.abs(wide(x) - wide(self.c)))

    def size(self, x: Any) -> float:
        return float(np.max(np.abs(wide(x)) + np.abs(wide(self.c))))

    def add_to(self, program: Program, factor: float) -> None:
        n = len(self.c)
        t, one = program.lift(1), sp.eye_array(n, format="csr")
        program.minimise(t, [factor])
        program.positive([(t, np.ones((n, 1))), (program.x, -one)], self.c)
        program.positive([(t, np.ones((n, 1))), (program.x, one)], -self.c)

    def stretched(self, s: float) -> Sum:
        return Sum((Farthest(self.c * s),), (1.0 / s,))

    def restricted(self, kept: Array) -> Farthest:
        return Farthest(self.c[kept])

    def text(self, script: Script) -> str:
        value, slope = self.callables(script)
        return f"lo.FunctionObjective({value}, subgradient={slope}, shape=({len(self.c)},))"

    def callables(self, script: Script) -> tuple[str, str]:
        c, n = script.array(self.c), len(self.c)
        value = f"lambda x: float(np.max(np.abs(x - {c})))"
        i = f"np.argmax(np.abs(x - {c}))"
        return value, f"lambda x: np.sign(x - {c}) * (np.arange({n}) == {i})"


@dataclass(frozen=True)
class OffDiagonal(Objective):
    """``weight * sum over i != j of |X_ij|``."""

    dim: int
    weight: float

    def _weights(self) -> Array:
        return self.weight * (1.0 - np.eye(self.dim))

    def value(self, x: Any) -> Any:
        return np.sum(wide(self._weights()) * np.abs(wide(x)))

    def add_to(self, program: Program, factor: float) -> None:
        lift_modulus(program, program.x, factor * self._weights().ravel())

    def stretched(self, s: float) -> OffDiagonal:
        return replace(self, weight=self.weight / s)

    def restricted(self, kept: Array) -> OffDiagonal:
        return replace(self, dim=len(kept))

    def text(self, script: Script) -> str:
        return f"lo.OffDiagonalL1({self.dim}, {self.weight!r})"


@dataclass(frozen=True)
class Sum(Objective):
    """A sum of multiples of objectives."""

    parts: tuple[Objective, ...]
    factors: tuple[float, ...]

    @property
    def untyped(self) -> bool:
        return all(p.untyped for p in self.parts)

    def value(self, x: Any) -> Any:
        pairs = zip(self.parts, self.factors, strict=True)
        return sum((np.longdouble(c) * p.value(x) for p, c in pairs), np.longdouble(0))

    def size(self, x: Any) -> float:
        return sum(c * p.size(x) for p, c in zip(self.parts, self.factors, strict=True))

    def terms(self, x: Any) -> float:
        return sum(c * p.terms(x) for p, c in zip(self.parts, self.factors, strict=True))

    def add_to(self, program: Program, factor: float) -> None:
        for part, c in zip(self.parts, self.factors, strict=True):
            part.add_to(program, factor * c)

    def stretched(self, s: float) -> Sum:
        return Sum(tuple(p.stretched(s) for p in self.parts), self.factors)

    def restricted(self, kept: Array) -> Sum:
        return Sum(tuple(p.restricted(kept) for p in self.parts), self.factors)

    def text(self, script: Script) -> str:
        pairs = zip(self.parts, self.factors, strict=True)
        words = []
        for part, c in pairs:
            text = f"({part.text(script)})" if isinstance(part, Sum) else part.text(script)
            words.append(text if c == 1.0 else f"{c!r} * {text}")
        return " + ".join(words)

    def callables(self, script: Script) -> tuple[str, str]:
        values, slopes = zip(*(p.callables(script) for p in self.parts), strict=True)
        return _combined(self.factors, values), _combined(self.factors, slopes)

    def simpler(self) -> Iterator[Objective]:
        yield from self.parts
        for i, part in enumerate(self.parts):
            for other in part.simpler():
                yield Sum((*self.parts[:i], other, *self.parts[i + 1 :]), self.factors)
        if any(c != 1.0 for c in self.factors):
            yield Sum(self.parts, (1.0,) * len(self.parts))


def _combined(factors: tuple[float, ...], lambdas: tuple[str, ...]) -> str:
    terms = [f"{c!r} * ({f})(x)" for c, f in zip(factors, lambdas, strict=True)]
    return f"lambda x: {' + '.join(terms)}"
