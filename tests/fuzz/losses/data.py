"""Losses in plain NumPy, and feasible points with small values, with which claims are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

__all__ = ["KINDS", "Sample"]

Array = np.ndarray[Any, Any]

#: The text of each loss for the library, with X, y (signs), b (numbers), k (counts) at hand.
KINDS = {
    "squares": "lo.LeastSquares(X, b)",
    "ridge": "lo.LeastSquares(X, b) + 0.1 * lo.L1Norm(shape=(X.shape[1],))",
    "logistic": "lo.Logistic(X, y)",
    "hinge": "lo.HingeLoss(X, y)",
    "squared hinge": "lo.SquaredHingeLoss(X, y)",
    "pinball": "lo.PinballLoss(X, b, 0.3)",
    "huber": "lo.Huber(X, b, 0.5)",
    "poisson": "lo.Poisson(X, k)",
}


@dataclass(frozen=True)
class Sample:
    """A loss in plain units, the units of its columns, and a row ``a'x <= side`` in plain units, or none."""

    loss: str
    X: Array
    y: Array
    b: Array
    k: Array
    units: Array
    row: Array | None = None
    side: float = 0.0

    def value(self, x: Array) -> float:
        """Return the loss at a point in the units of the call."""
        z = (self.X * self.units) @ x
        with np.errstate(over="ignore", invalid="ignore"):
            return float(self._loss(z, x))

    def _loss(self, z: Array, x: Array) -> Any:
        m, y, b = len(z), self.y, self.b
        made: dict[str, Callable[[], Any]] = {
            "squares": lambda: 0.5 * np.sum((z - b) ** 2),
            "ridge": lambda: 0.5 * np.sum((z - b) ** 2) + 0.1 * np.abs(x).sum(),
            "logistic": lambda: np.logaddexp(0.0, -y * z).sum() / m,
            "hinge": lambda: np.maximum(0.0, 1.0 - y * z).sum() / m,
            "squared hinge": lambda: (np.maximum(0.0, 1.0 - y * z) ** 2).sum() / m,
            "pinball": lambda: np.maximum(0.3 * (b - z), 0.7 * (z - b)).sum() / m,
            "huber": lambda: _huber(z - b, 0.5),
            "poisson": lambda: (np.exp(z) - self.k * z).sum() / m,
        }
        return made[self.loss]()

    def excess(self, x: Array) -> float:
        """Return by how much the row is violated, relative to what it compares."""
        if self.row is None:
            return 0.0
        a = self.row * self.units
        size = float(np.abs(a) @ np.abs(x)) + abs(self.side)
        return max(0.0, float(a @ x) - self.side) / size if size > 0.0 else 0.0

    def good_points(self) -> list[Array]:
        """Return points that satisfy the row, one of them near the optimum, in the units of the call."""
        n = self.X.shape[1]
        rows = [] if self.row is None else [{"type": "ineq", "fun": self._slack}]
        found = [np.zeros(n)]
        with np.errstate(all="ignore"):
            for start in (np.zeros(n), np.linalg.lstsq(self.X, self.b, rcond=None)[0]):
                for method in ("SLSQP", "COBYLA") if rows else ("BFGS", "Nelder-Mead"):
                    r = scipy.optimize.minimize(
                        self._plain, start, method=method, constraints=rows or ()
                    )
                    found.append(np.asarray(r.x))
        points = [self._pulled_in(x) / self.units for x in found if np.isfinite(x).all()]
        return [x for x in points if self.excess(x) <= 1e-15]

    def _plain(self, x: Array) -> float:
        return self.value(x / self.units)

    def _slack(self, x: Array) -> float:
        assert self.row is not None
        return self.side - float(self.row @ x)

    def _pulled_in(self, x: Array) -> Array:
        """Return the point moved a little inside of the row, where it is not."""
        if self.row is None or self._slack(x) > 0.0:
            return x
        a = self.row
        return np.asarray(x + (self._slack(x) - 1e-9 * (1.0 + abs(self.side))) / (a @ a) * a)


def _huber(r: Array, delta: float) -> float:
    near = np.minimum(np.abs(r), delta)
    return float(np.sum(near * (np.abs(r) - 0.5 * near)))
