"""The positive semidefinite cone (P5): regularity, slopes and exactness of its four functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.known_problem import Known
from support.theorem_checks import SLACK, constraint_ratio, lipschitz_ratio, penalised, size
from support.theory_problems import rotation, t9

from lopro.constraints import Distance, KyFan, MinEigenvalue, NegativeSum, PSDCone
from lopro.penalties import Hinge


def indefinite(rng: Any, d: int, negative: int, *, equal: bool = False) -> Any:
    """Return a symmetric matrix with this many negative eigenvalues."""
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = rng.uniform(0.0, 1.0, d)
    values[:negative] = -1.0 if equal else -rng.exponential(1.0, negative)
    return (V * values) @ V.T


def pointwise_rho(form: Any, r: int) -> float:
    """Rho at a point with r negative eigenvalues (P5)."""
    match form:
        case MinEigenvalue():
            return 1.0 / math.sqrt(r)
        case KyFan(k):
            return min(1.0, k / math.sqrt(r))
    return 1.0


CONE_FORMS = [MinEigenvalue(), KyFan(2), KyFan(3), NegativeSum(), Distance()]


@pytest.mark.parametrize("form", CONE_FORMS, ids=repr)
def test_cone_regularity(form: Any, rng: Any) -> None:
    """PSD rho, P5: ``rho_r dist <= c`` at matrices with r negative eigenvalues, all r and scales."""
    cone = PSDCone(7, form)
    for r in range(1, 8):
        points = [10.0**s * indefinite(rng, 7, r) for s in range(-3, 4) for _ in range(3)]
        assert constraint_ratio(cone, pointwise_rho(form, r), points) <= SLACK
    assert cone.regularity().value == pytest.approx(pointwise_rho(form, 7))


@pytest.mark.parametrize("form", CONE_FORMS, ids=repr)
def test_cone_regularity_is_attained(form: Any, rng: Any) -> None:
    """PSD rho, P5: equality at ``-I_r`` plus a positive part, for the r with the least constant."""
    cone = PSDCone(7, form)
    best = 0.0
    for r in range(1, 8):
        points = [indefinite(rng, 7, r, equal=True) for _ in range(12)]
        best = max(best, constraint_ratio(cone, cone.regularity().value, points))
    assert best == pytest.approx(1.0, abs=1e-9)


def test_cone_rejects_rho_one_for_the_smallest_eigenvalue() -> None:
    """PSD rho, negative control: rho = 1 for ``-lambda_min`` fails at ``X = -I``, 1/sqrt(d) does not."""
    cone, points = PSDCone(4), [-s * np.eye(4) for s in np.geomspace(1e-3, 1e3, 12)]
    assert constraint_ratio(cone, 1.0, points) == pytest.approx(2.0)
    assert constraint_ratio(cone, 0.5, points) <= SLACK


@pytest.mark.parametrize("form", CONE_FORMS, ids=repr)
def test_cone_slopes(form: Any, rng: Any) -> None:
    """P5: ``c`` is Gc-Lipschitz with the Gc of its form, and no better."""
    cone = PSDCone(7, form)
    points = []
    for r in range(8):
        X = indefinite(rng, 7, r)
        points += [X, X + 1e-4 * cone.subgradient(X), 1e2 * X]
    Gc = cone.lipschitz().value
    assert lipschitz_ratio(cone.value, Gc, points) <= SLACK
    assert lipschitz_ratio(cone.value, 0.99 * Gc, points) > 1.0


@pytest.mark.parametrize("r", [1, 2, 3, 5])
def test_cone_least_subgradient(r: int, rng: Any) -> None:
    """PSD rho: at a matrix of nullity r the least norm over ``{-U S U' : S psd, tr S = 1}`` is 1/sqrt(r).

    Each of these is a subgradient: it lies below ``-lambda_min`` everywhere.
    """
    V = rotation(6, seed=r)
    values = np.concatenate([np.zeros(r), rng.uniform(0.5, 2.0, 6 - r)])
    X, U = (V * values) @ V.T, V[:, :r]
    norms = []
    for i in range(200):
        W = rng.standard_normal((r, r))
        S = np.eye(r) / r if i == 0 else W @ W.T / np.trace(W @ W.T)
        g = -U @ S @ U.T
        Y = X + 0.1 * indefinite(rng, 6, 3)
        # c(X) = 0 on the boundary, so the subgradient inequality is <g, Y - X> <= c(Y).
        assert float(np.vdot(g, Y - X)) <= -np.linalg.eigvalsh(Y)[0] + 1e-12
        norms.append(size(g))
    assert min(norms) == pytest.approx(1.0 / math.sqrt(r))
    own = size(PSDCone(6).subgradient(X))
    assert own >= 1.0 / math.sqrt(r) - 1e-9


THRESHOLDS = {
    MinEigenvalue(): 3.0,
    KyFan(2): 2.0,
    NegativeSum(): 2.0,
    Distance(): math.sqrt(5.0),
}


def least_near_solution(known: Known, lam: float, rng: Any) -> float:
    """Return the least ``F - f_*`` over random matrices and over ``M + U``, U commuting with M."""
    F = penalised(known, Hinge(lam))
    V, least = rotation(4), math.inf
    values = np.array([-1.0, -2.0, 0.5, 3.0])
    for s in np.linspace(0.0, 1.0, 41):
        for t in np.linspace(0.0, 2.0, 81):
            X = (V * (values + np.array([s, t, 0.0, 0.0]))) @ V.T
            least = min(least, F.value(X) - known.optimum)
    for scale in (1e-3, 1e-2, 1e-1, 1.0):
        for _ in range(25):
            X = known.solution + scale * indefinite(rng, 4, 2)
            least = min(least, F.value(X) - known.optimum)
    return least


@pytest.mark.parametrize(("form", "threshold"), THRESHOLDS.items(), ids=repr)
def test_cone_exactness_thresholds(form: Any, threshold: float, rng: Any) -> None:
    """P5 on T9: the hinge is exact at ``lam`` = trace, spectral or Frobenius norm of the dual slack.

    Just below the threshold, F falls under the optimal value; the same search finds nothing at it.
    """
    known = t9(form)
    assert least_near_solution(known, threshold, rng) >= -1e-12
    assert least_near_solution(known, 0.98 * threshold, rng) < -1e-4
