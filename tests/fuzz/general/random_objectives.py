"""Random objectives for vectors. Frozen, like every generator here."""

from __future__ import annotations

import numpy as np

from fuzz.general.more_objectives import Exponentials, Farthest, Logistic, Sum
from fuzz.general.objectives import L1, LeastSquares, Linear, Objective, Quadratic, SquaredDistance

__all__ = ["any_objective", "coercive", "with_callables"]

Rng = np.random.Generator


def linear(rng: Rng, n: int) -> Linear:
    """A linear function, sometimes with zeros or ties."""
    if rng.random() < 0.3:
        return Linear(rng.integers(-2, 3, n).astype(float))
    return Linear(rng.standard_normal(n))


def l1(rng: Rng, n: int) -> L1:
    """A weighted norm; a few weights may vanish."""
    w = rng.uniform(0.1, 3.0, n) if rng.random() < 0.5 else np.ones(n)
    if n > 1 and rng.random() < 0.15:
        w[rng.integers(0, n)] = 0.0
    return L1(w)


def least_squares(rng: Rng, n: int) -> LeastSquares:
    """Tall, square or wide."""
    m = int(rng.integers(1, 2 * n + 3))
    A = rng.standard_normal((m, n))
    if rng.random() < 0.2:
        A *= 10.0 ** rng.uniform(-3.0, 3.0, (1, n))
    return LeastSquares(A, rng.standard_normal(m) * rng.uniform(0.1, 10.0))


def quadratic(rng: Rng, n: int) -> Quadratic:
    """Definite or singular; the slope is in the range, so that it is bounded below."""
    k = int(rng.integers(1, n + 1)) if rng.random() < 0.4 else n + 2
    R = rng.standard_normal((k, n))
    P = R.T @ R
    return Quadratic(0.5 * (P + P.T), P @ rng.standard_normal(n))


def squared_distance(rng: Rng, n: int) -> SquaredDistance:
    """From a point near or far."""
    return SquaredDistance(rng.standard_normal(n) * 10.0 ** rng.uniform(-1.0, 2.0))


def logistic(rng: Rng, n: int) -> Logistic:
    """Labels at random, with or without ridge."""
    m = int(rng.integers(2, 12))
    l2 = float(rng.choice([0.0, 0.01, 1.0]))
    return Logistic(rng.standard_normal((m, n)), rng.choice([-1.0, 1.0], m), l2)


def exponentials(rng: Rng, n: int) -> Exponentials:
    """Steep in some directions."""
    return Exponentials(rng.standard_normal((int(rng.integers(1, n + 3)), n)))


def farthest(rng: Rng, n: int) -> Farthest:
    """From a point near the origin."""
    return Farthest(3.0 * rng.standard_normal(n))


def _sum(rng: Rng, n: int) -> Sum:
    first = (least_squares, quadratic, squared_distance, linear, logistic)[rng.integers(0, 5)]
    second = (l1, squared_distance, linear)[rng.integers(0, 3)]
    factors = tuple(float(c) for c in 10.0 ** rng.uniform(-2.0, 2.0, 2))
    return Sum((first(rng, n), second(rng, n)), factors)


_MAKERS = {
    linear: 20.0,
    l1: 18.0,
    least_squares: 18.0,
    quadratic: 12.0,
    squared_distance: 10.0,
    logistic: 5.0,
    exponentials: 3.0,
    farthest: 2.0,
    _sum: 12.0,
}
_CALLABLES = {
    least_squares: 25.0,
    quadratic: 20.0,
    squared_distance: 15.0,
    exponentials: 15.0,
    logistic: 10.0,
    linear: 8.0,
    l1: 4.0,
    farthest: 3.0,
}


def _draw(rng: Rng, n: int, makers: dict[object, float]) -> Objective:
    p = np.array(list(makers.values()))
    maker = list(makers)[rng.choice(len(p), p=p / p.sum())]
    found: Objective = maker(rng, n)  # type: ignore[operator]
    return found


def any_objective(rng: Rng, n: int) -> Objective:
    """Draw an objective for `solve`."""
    return _draw(rng, n, _MAKERS)  # type: ignore[arg-type]


def with_callables(rng: Rng, n: int) -> Objective:
    """Draw an objective for `minimize`."""
    return _draw(rng, n, _CALLABLES)  # type: ignore[arg-type]


def coercive(objective: Objective) -> bool:
    """Whether values are large far away in every direction: then solutions need no bounded set."""
    if isinstance(objective, Sum):
        growing = any(coercive(p) for p in objective.parts)
        return growing and not any(isinstance(p, (Linear, Quadratic)) for p in objective.parts)
    if isinstance(objective, L1):
        return bool((objective.weights > 0).all())
    if isinstance(objective, LeastSquares):
        return len(objective.b) > int(objective.A.shape[1])
    if isinstance(objective, Quadratic):
        return bool(np.linalg.eigvalsh(objective.P)[0] > 1e-6 * np.abs(objective.P).max())
    if isinstance(objective, Logistic):
        return objective.l2 > 0.0
    return isinstance(objective, (SquaredDistance, Farthest))
