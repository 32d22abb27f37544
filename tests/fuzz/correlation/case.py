"""Calls of `nearest_correlation` around their answer, as data with their judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.points import Known, judge_by_points
from fuzz.judge.verdict import Class, Verdict
from fuzz.machine.script import Script

__all__ = ["CorrelationCase", "correlation_case"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class CorrelationCase:
    """``lopro.nearest_correlation(G, weights, fixed, least)``; the weights of entries are ``W``."""

    G: Array
    W: Array
    weights: Array | None
    fixed: Array | None
    least: float
    solution: Array
    tol: float
    kind: str = "correlation"

    @property
    def limit(self) -> float | None:
        return 2.0

    @property
    def tags(self) -> dict[str, Any]:
        way = "plain" if self.weights is None else f"weights of {self.weights.ndim} axes"
        return {"two_seconds": True, "way": way + " fixed" * (self.fixed is not None)}

    def script(self) -> Script:
        script = Script()
        words = [script.array(self.G, "G")]
        words += [f"weights={script.array(self.weights, 'w')}"] * (self.weights is not None)
        words += [f"fixed={script.array(self.fixed, 'fixed')}"] * (self.fixed is not None)
        words += [f"min_eigenvalue={self.least!r}", f"tol={self.tol!r}", "time_limit=2.0"]
        script.call = f"result = lopro.nearest_correlation({', '.join(words)})"
        return script

    def _value(self, X: Array) -> float:
        return 0.5 * float(np.sum(self.W * (X - self.G) ** 2))

    def _excess(self, X: Array) -> float:
        found = [float(np.abs(X.diagonal() - 1.0).max()), float(np.abs(X - X.T).max())]
        found.append(self.least - float(np.linalg.eigvalsh(X)[0]) - 1e-14 * len(X))
        if self.fixed is not None:
            found.append(float(np.abs((X - self.G)[self.fixed]).max(initial=0.0)))
        return max(0.0, *found)

    def judge(self, outcome: Outcome) -> Verdict:
        if len(outcome.claims) != 1:
            return Verdict(Class.WRONG, "results missing", repr(outcome.value))
        typical = 0.5 * float(np.sum(self.W * self.G**2))
        known = Known(
            self._value, self._excess, self._value, [self.solution], typical, self.G.shape, 1e-12
        )
        return judge_by_points(known, self.tol, outcome.claims[0])

    def excuse(self, raised: Raised) -> Verdict | None:
        return None

    def simpler(self) -> Iterator[CorrelationCase]:
        return iter(())


def correlation_case(seed: int) -> CorrelationCase:
    """A matrix for which X is optimal: multipliers of the right signs balance the slope of the distance."""
    rng = np.random.default_rng([16, seed])
    n = int(rng.integers(2, 13))
    rank = int(rng.integers(1, n + 1))
    V = rng.standard_normal((n, rank))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    least = float(rng.choice([0.0, 0.0, 0.01, 0.2]))
    X = (1.0 - least) * (V @ V.T) + least * np.eye(n)
    X = 0.5 * (X + X.T)
    X[np.diag_indices(n)] = 1.0
    away = np.linalg.svd(V)[0][:, min(rank, n) :]  # the null space of V V'
    N = away * rng.exponential(size=away.shape[1]) * (rng.random() < 0.9)
    Z = N @ N.T
    way = str(rng.choice(["plain", "variables", "entries"]))
    W, weights = np.ones((n, n)), None
    if way == "variables":
        weights = 2.0 ** rng.integers(-6, 7, n) if rng.random() < 0.5 else rng.uniform(0.5, 2.0, n)
        W = np.outer(weights, weights)
    elif way == "entries":
        W = rng.uniform(0.2, 3.0, (n, n))
        W = weights = np.where(rng.random((n, n)) < 0.1, 30.0, W)
        W = weights = np.maximum(W, W.T)
    G = X - (Z + np.diag(rng.standard_normal(n))) / W
    if way == "entries" and not Z.any():  # the answer is X whatever unknown entries are
        unknown = np.triu(rng.random((n, n)) < 0.2, 1)
        unknown = unknown | unknown.T
        W = weights = np.where(unknown, 0.0, W)
        G = np.where(unknown, rng.standard_normal(), G)
    G = 0.5 * (G + G.T)
    fixed = None
    if way != "entries" and rng.random() < 0.25:
        fixed = np.triu(rng.random((n, n)) < 0.2, 1)
        fixed = fixed | fixed.T
        G = np.where(fixed, X, G)
    tol = float(rng.choice([1e-3, 1e-6, 1e-6, 1e-8]))
    return CorrelationCase(G, W, weights, fixed, least, X, tol)
