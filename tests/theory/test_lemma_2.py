"""Lemma 2: how far a point is from a sublevel set, in terms of the values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from support.theorem_checks import SLACK, noise, size
from support.theory_problems import Known, t2, t3, t4


def lemma_ratio(away: float, D: float, eps: float, drop: float) -> float:
    """Return ``|x - x^| / ((D_eps / eps) (f(x) - f(x^)))``."""
    return away / (D / eps * drop)


@pytest.mark.parametrize("eps", [1e-3, 0.1, 2.0])
def test_lemma_2_in_one_dimension(eps: float) -> None:
    """Lemma 2 for ``x^2`` (``D_eps = sqrt(eps)``) and for ``|x|``, where it is an equality."""
    edge = math.sqrt(eps)
    for x in np.geomspace(1.001, 100.0, 40):
        assert lemma_ratio(edge * (x - 1.0), edge, eps, eps * (x * x - 1.0)) <= 1.0
        assert lemma_ratio(eps * (x - 1.0), eps, eps, eps * (x - 1.0)) == pytest.approx(1.0)
        # Negative control: a smaller D_eps is rejected where the lemma is an equality.
        assert lemma_ratio(eps * (x - 1.0), 0.99 * eps, eps, eps * (x - 1.0)) > 1.0


def into_sublevel(known: Known, x: Any, eps: float) -> Any:
    """Return the point of ``S_eps`` nearest to a feasible x, f being linear.

    The multiplier of ``f <= f_* + eps`` is found by bisection: given it, the rest is a projection on Omega.
    """
    a = known.objective.subgradient(x)

    def excess(multiplier: float) -> float:
        return known.gap(known.constraint.project(x - multiplier * a)) - eps

    top = 1.0
    while excess(top) > 0.0:
        top *= 2.0
    found = scipy.optimize.brentq(excess, 0.0, top, xtol=1e-14, rtol=1e-14)
    return known.constraint.project(x - found * a)


def worst_on(known: Known, eps: float, D: float, rng: Any) -> float:
    """Return the worst ratio of Lemma 2 over random feasible points outside of ``S_eps``."""
    worst, used = 0.0, 0
    for _ in range(150):
        x = known.constraint.project(known.solution + rng.uniform(0.0, 4.0) * noise(known, rng))
        if known.gap(x) > 1.01 * eps:
            used += 1
            nearest = into_sublevel(known, x, eps)
            assert known.gap(nearest) == pytest.approx(eps, rel=1e-6)
            drop = known.objective.value(x) - known.objective.value(nearest)
            worst = max(worst, lemma_ratio(size(x - nearest), D, eps, drop))
    assert used >= 20
    return worst


@pytest.mark.parametrize("known", [t2(), t4()], ids=lambda k: k.name)
@pytest.mark.parametrize("eps", [1e-2, 0.1, 0.5])
def test_lemma_2_with_the_error_bound(known: Known, eps: float, rng: Any) -> None:
    """Lemma 2 with A2: ``|x - x^| <= sigma / eps^(1-theta) (f(x) - f(x^))`` on T2 and T4."""
    assert worst_on(known, eps, known.sigma * eps**known.theta, rng) <= SLACK


def widest(known: Known, eps: float) -> float:
    """Return ``D_eps`` of T4 in the plane: the level line cuts the ellipse in two points."""
    a, Q = (
        known.objective.subgradient(known.x0),
        known.constraint.A.matrix.T @ known.constraint.A.matrix,
    )
    middle, along = (known.optimum + eps) / float(a @ a) * a, np.array([-a[1], a[0]]) / size(a)
    # |middle + s along|_Q = 1 is a quadratic equation for s.
    p, q, r = along @ Q @ along, middle @ Q @ along, middle @ Q @ middle - 1.0
    roots = [(-q + sign * math.sqrt(q * q - p * r)) / p for sign in (-1.0, 1.0)]
    return max(size(middle + s * along - known.solution) for s in roots)


@pytest.mark.parametrize("eps", [1e-3, 1e-2, 0.1, 0.5])
def test_lemma_2_with_the_exact_radius(eps: float, rng: Any) -> None:
    """Lemma 2 on T4 in the plane, where ``D_eps`` is known exactly; a fifth of it is rejected."""
    known = t4(2)
    D = widest(known, eps)
    assert known.sigma * eps**known.theta * (1.0 + 1e-9) >= D
    assert worst_on(known, eps, D, rng) <= SLACK
    assert worst_on(known, eps, 0.2 * D, rng) > 1.0


def test_lemma_2_on_a_polyhedron(rng: Any) -> None:
    """Lemma 2 on T3 (both nonlinear f and theta = 1), with the nearest point from an outside solver."""
    known, eps = t3(), 0.05
    a, b = np.array([0.6, 1.5, 2.0, 0.9]), 1.5
    for _ in range(15):
        x = known.constraint.project(known.solution + rng.uniform(0.5, 3.0) * noise(known, rng))
        # In x = u - v with u, v >= 0 the sublevel set is a polyhedron.
        G = np.vstack([np.concatenate([a, -a])])
        found = scipy.optimize.minimize(
            lambda w, x=x: 0.5 * float(np.sum((w[:4] - w[4:] - x) ** 2)),
            np.concatenate([known.solution, np.zeros(4)]),
            jac=lambda w, x=x: np.concatenate([w[:4] - w[4:] - x, -(w[:4] - w[4:] - x)]),
            bounds=[(0.0, None)] * 8,
            constraints=[
                {"type": "ineq", "fun": lambda w, G=G: G @ w - b, "jac": lambda w, G=G: G},
                {
                    "type": "ineq",
                    "fun": lambda w: known.optimum + eps - w.sum(),
                    "jac": lambda w: -np.ones(8),
                },
            ],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 300},
        )
        nearest = found.x[:4] - found.x[4:]
        assert known.gap(nearest) <= eps + 1e-8
        drop = known.objective.value(x) - known.objective.value(nearest)
        assert lemma_ratio(size(x - nearest), known.sigma * eps, eps, drop) <= 1.0 + 1e-6
