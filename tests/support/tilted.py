"""A strongly convex problem with known constants, on which projections do not correct errors.

The nearest point of a set is the worst problem to test methods on that project at the end: the
projection alone solves it. Here the level sets are ellipses, and the set is a half-space.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.known_problem import Known
from support.theory_problems import rotation

from lopro.constraints import Polyhedron
from lopro.objectives import FunctionObjective, Quadratic


def tilted(spectrum: tuple[float, ...] = (1.0, 1.5, 4.0), reach: float = 1.0) -> Known:
    """Return ``min 1/2 (x - z)' H (x - z)`` for ``a x <= b``.

    ``G`` holds on the ball around the start that holds the solution, made ``reach`` times as large.
    """
    values = np.array(spectrum)
    d = len(values)
    V = rotation(d)
    H = (V * values) @ V.T
    a = V @ np.ones(d)  # all of the spectrum counts
    z, b = 0.6 * np.cos(np.arange(d)) + a, -1.0
    spread = float(a @ np.linalg.solve(H, a))
    zeta = (float(a @ z) - b) / spread
    # Where a projection of z would end, and a little inside.
    x0 = z - (float(a @ z) - b) / float(a @ a) * a - 0.1 * a
    slope = float(np.linalg.norm(H @ (x0 - z)))
    low, high = float(values.min()), float(values.max())
    length = float(np.linalg.norm(a))
    return Known(
        name="tilted",
        objective=Quadratic((H + H.T) / 2.0, -H @ z, 0.5 * float(z @ H @ z)),
        constraint=Polyhedron(a[None, :], np.array([b])),
        x0=x0,
        solution=z - zeta * np.linalg.solve(H, a),
        optimum=0.5 * zeta**2 * spread,
        zeta=zeta,
        G=slope + high * reach * slope / low,
        Gc=length,
        rho=length,
        Lf=high,
        Lc=0.0,
        mu=low,
        theta=0.5,
        sigma=float(np.sqrt(2.0 / low)),
    )


def outside(known: Known) -> np.ndarray:
    """Return a point that is not feasible."""
    x = known.solution + known.constraint.subgradient(known.solution)
    assert known.constraint.value(x) > 0.0
    return x


def first_bound(known: Known) -> float:
    """Return ``V = |g_1|^2 / (2 mu)``, which strong convexity puts above the gap of the start."""
    g = known.objective.subgradient(known.x0)
    return float(g @ g) / (2.0 * known.mu)


def ball_radius(known: Known) -> float:
    """Return ``|g_1| / mu``: the solution is no farther from the start."""
    return float(np.linalg.norm(known.objective.subgradient(known.x0))) / known.mu


def noisy(known: Known, deviation: float) -> Known:
    """Return the problem with sampled gradients whose error has this root mean square."""
    f, d = known.objective, known.x0.size

    def sampled(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return f.subgradient(x) + deviation / np.sqrt(d) * rng.standard_normal(d)

    objective = FunctionObjective(
        f.value,
        f.subgradient,
        stochastic_subgradient=sampled,
        shape=known.x0.shape,
        lipschitz=known.G,
        smoothness=known.Lf,
        strong_convexity=known.mu,
    )
    return replace(known, objective=objective)
