"""The norms of the rows: another solver, the prox by brute force, bounds by hand, features that vanish."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from support.metric_known import all_pairs, by_clarabel, classes, value

import lopro
from lopro.constraints import PSDCone
from lopro.functions.atoms import GroupNorm
from lopro.functions.atoms.group_norm import row_prox
from lopro.metric import PairMultiplier, SparseMetric, metric_problem
from lopro.metric import dual as dual_module
from lopro.objectives.group_norm import RowNorms

Matrix = Any


@pytest.mark.parametrize("weights", [(0.0, 0.0, 0.05), (0.02, 0.0, 0.1), (0.02, 0.05, 0.02)])
@pytest.mark.parametrize("shape", [(14, 4), (6, 9), (30, 6)])
@pytest.mark.parametrize("units", [1.0, 30.0])
def test_clarabel_agrees(
    shape: tuple[int, int], weights: tuple[float, float, float], units: float
) -> None:
    X, labels = classes(sum(shape), *shape)
    X = X * np.geomspace(1.0, units, shape[1])
    l1, trace, features = weights
    objective = SparseMetric(all_pairs(X, labels), *weights)
    result = lopro.learn_metric(
        X, labels, l1=l1, trace=trace, features=features, tol=1e-4, max_iter=40_000
    )
    assert result.success, str(result)
    assert result.fun == pytest.approx(value(objective, result.x), rel=1e-9)
    optimum, _ = by_clarabel(objective)
    assert result.fun == pytest.approx(optimum, rel=2e-4, abs=1e-9)
    assert result.certificate.lower_bound <= optimum * (1.0 + 1e-6) + 1e-9


def test_the_prox_minimises(rng: np.random.Generator) -> None:
    for _ in range(20):
        v, weight = rng.standard_normal(4), float(10.0 ** rng.uniform(-2, 1))
        units = 10.0 ** rng.uniform(-1, 1, 4)

        def total(g: Matrix, v: Matrix = v, weight: float = weight, units: Matrix = units) -> float:
            return 0.5 * float(np.sum((g - v) ** 2)) + weight * float(np.linalg.norm(units * g))

        g = row_prox(v[None], np.array([weight]), units)[0]
        options = {"xatol": 1e-9, "fatol": 1e-12}
        best = scipy.optimize.minimize(total, g + 0.01, method="Nelder-Mead", options=options)
        assert total(g) <= best.fun + 1e-9
        assert total(g) <= min(total(g + 1e-4 * rng.standard_normal(4)) for _ in range(50))
        assert g.any() == (np.linalg.norm(v / units) > weight)


def test_the_prox_has_the_units_of_its_point(rng: np.random.Generator) -> None:
    V, units = rng.standard_normal((20, 4)), 10.0 ** rng.uniform(-1, 1, 4)
    found = row_prox(V, 0.1 * np.ones(20), units)
    assert found.any(axis=1).sum() >= 10
    for unit in (2.0**-60, 2.0**60):
        scaled = row_prox(unit * V, 0.1 * unit * np.ones(20), units)
        np.testing.assert_array_equal(scaled, unit * found)


def test_rows_vanish_exactly_where_they_should() -> None:
    V = np.array([[3.0, 4.0], [0.3, 0.4]])
    np.testing.assert_allclose(row_prox(V, np.ones(2), np.ones(2)), [[2.4, 3.2], [0.0, 0.0]])
    np.testing.assert_allclose(GroupNorm(2, 1.0).into_domain(V), [[0.6, 0.8], [0.3, 0.4]])
    f = RowNorms(2, 2.0)
    np.testing.assert_allclose(f.prox(V, 0.5), [[2.4, 3.2], [0.0, 0.0]])
    np.testing.assert_allclose(f.subgradient(V), [[1.2, 1.6], [1.2, 1.6]])
    assert f.value(V) == pytest.approx(11.0) and f.lipschitz().value == pytest.approx(8**0.5)


def test_bounds_by_hand(rng: np.random.Generator) -> None:
    """``S + s diag(M1)`` psd: R absorbs ``off(M1)``, which lengthens its rows."""
    objective = SparseMetric(all_pairs(*classes(1, 9, 5)), 0.0, 0.0, 0.3)
    loss, n = objective.loss, objective.loss.count
    optimum, _ = by_clarabel(objective)
    Z = loss.X[loss.pairs[0]] - loss.X[loss.pairs[1]]
    M1 = Z.T @ Z
    longest = float(np.linalg.norm(M1 - np.diag(np.diag(M1)), axis=1).max())
    root = 1.0 / np.sqrt(np.diag(M1))
    tight = 0
    problem = metric_problem(loss, 0.0, 0.0, 0.3)
    solved = lopro.solve(problem, tol=1e-6).multiplier
    assert isinstance(solved, PairMultiplier) and solved.rows is not None
    for size in np.geomspace(1e-5, 0.3, 60):
        # Around the solution, where some but not all slacks need a repair.
        w = solved.weights * (1.0 + size * rng.standard_normal(n))
        R = solved.rows * (1.0 + size * rng.standard_normal((5, 5)))
        R = GroupNorm(5, 0.3).into_domain(R)
        S = 0.5 * (R + R.T) - Z.T @ (w[:, None] * Z)
        s = max(0.0, -float(np.linalg.eigvalsh(root[:, None] * S * root)[0]))
        most = 0.3 / (0.3 + s * longest)
        t, v = loss.targets, w - s
        c = np.clip((t @ v) / (n * (v @ v)), 0.0, most)
        expected = c * (t @ v) - 0.5 * n * c**2 * (v @ v)
        ((found, _),) = dual_module._by_rows(loss, 0.3, objective.spread, S, w)
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-10)
        multiplier = PairMultiplier(0.0 * R, 0.0, weights=w, rows=3.0 * R)
        bound, _ = objective.dual_bound(PSDCone(5), 0.0 * R, multiplier, 2.0)
        assert max(found, bound) <= optimum * (1.0 + 1e-7)
        tight += c == most < 1.0
    assert tight >= 10


@pytest.mark.parametrize("l1", [0.0, 0.02])
def test_features_vanish(l1: float) -> None:
    """Two features of twenty separate the classes. The larger the weight, the fewer are used."""
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    X = rng.standard_normal((40, 20))
    X[:, [3, 7]] += 4.0 * labels[:, None]
    used = [
        set(lopro.learn_metric(X, labels, l1=l1, features=phi, tol=1e-4).features.tolist())
        for phi in (0.0, 0.1, 1.0, 4.0)
    ]
    sizes = [len(features) for features in used]
    assert sizes[0] >= 15 > sizes[2] >= sizes[3] and sizes[3] <= 4, sizes
    assert {3, 7} <= used[3]


def test_a_bad_weight_is_named() -> None:
    with pytest.raises(ValueError, match="features must be"):
        lopro.learn_metric(*classes(8, 25, 4), features=-1.0)
