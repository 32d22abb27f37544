"""The optimum does not depend on the unit of a column, and neither does its proof."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lopro
import lopro.constraints as lc
import lopro.objectives as lo
from lopro import Problem
from lopro.driver.result import Status

N, D = 300, 6
KINDS = ["hinge", "squared hinge", "pinball", "logistic", "huber", "least squares", "poisson"]


def objective(kind: str, units: Any) -> Any:
    """Return a loss whose fourth column is in other units."""
    rng = np.random.default_rng(5)
    X, w = rng.standard_normal((N, D)), rng.standard_normal(D)
    y = np.where(X @ w + rng.standard_normal(N) > 0.0, 1.0, -1.0)
    b, k = X @ w + rng.standard_normal(N), rng.poisson(np.exp(0.4 * X @ w)).astype(float)
    made: Any = {
        "hinge": lambda X: lo.HingeLoss(X, y),
        "squared hinge": lambda X: lo.SquaredHingeLoss(X, y),
        "pinball": lambda X: lo.PinballLoss(X, b, 0.3),
        "logistic": lambda X: lo.Logistic(X, y),
        "huber": lambda X: lo.Huber(X, b, 0.5),
        "least squares": lambda X: lo.LeastSquares(X, b),
        "poisson": lambda X: lo.Poisson(X, k),
    }[kind]
    return made(X * units)


def constraint(name: str, units: Any) -> Any:
    """Return nothing, a row that leaves most variables free, or a ball in which all of them are bounded."""
    if name == "none":
        return None
    if name == "row":
        return lc.Polyhedron(np.array([[1.0, 1.0, 0.0, 0.5, 0.0, 0.0]]) * units, [0.1])
    return lc.ResidualBall(np.diag(units), np.zeros(D), 0.5)


def solved(kind: str, name: str, unit: float) -> Any:
    units = np.ones(D)
    units[3] = unit
    f, c = objective(kind, units), constraint(name, units)
    return lopro.solve(Problem(f) if c is None else Problem(f, c), tol=1e-6)


@pytest.mark.parametrize("name", ["none", "row", "ball"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_column_in_other_units_changes_neither_the_optimum_nor_the_proof(
    kind: str, name: str
) -> None:
    plain = solved(kind, name, 1.0)
    assert plain.success
    for unit in (1e-12, 1e-5, 1e5, 1e12):
        result = solved(kind, name, unit)
        assert result.status is Status.CONVERGED, (unit, result)
        assert result.fun == pytest.approx(plain.fun, rel=2e-6)
        assert result.x[3] * unit == pytest.approx(plain.x[3], abs=1e-2)


@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_certify_charges_a_slope_in_the_unit_of_its_column(unit: float) -> None:
    """At the optimum of all columns but one, whose slope is small in its units, there is no success."""
    units = np.ones(D)
    units[3] = unit
    f = objective("squared hinge", units)
    short = lopro.solve(Problem(objective("squared hinge", np.where(units == 1.0, 1.0, 0.0))))
    x = np.where(units == 1.0, short.x, 0.0)
    best = solved("squared hinge", "none", 1.0).fun
    found = lopro.certify(Problem(f), x)
    assert f.value(x) > 1.01 * best
    assert found.lower_bound <= best and found.relative_gap > 1e-3
