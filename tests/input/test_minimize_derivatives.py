"""Second derivatives, automatic differentiation and constants in `lopro.minimize`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint

import lopro

TOTAL = LinearConstraint([[1.0, 1.0, 1.0]], lb=3.0, ub=3.0)


def value(x: Any) -> float:
    return float(np.sum(np.exp(x)))


@pytest.mark.parametrize(
    "derivatives",
    [{"hess": lambda x: np.diag(np.exp(x))}, {"hessp": lambda x, p: np.exp(x) * p}],
    ids=["hess", "hessp"],
)
def test_newton_takes_second_derivatives(derivatives: dict[str, Any]) -> None:
    box = Bounds([0.0] * 3, [2.0] * 3)
    result = lopro.minimize(value, np.zeros(3), np.exp, constraint=[box, TOTAL], **derivatives)
    assert result.success
    assert result.method == "Auto() -> NewtonMultipliers()"
    np.testing.assert_allclose(result.x, 1.0, atol=1e-7)
    # The optimum is 3 e; bounds from callables take their values as exact, up to a few roundings.
    best = 3.0 * math.e
    assert best * (1.0 - 1e-10) <= result.certificate.lower_bound <= best * (1.0 + 1e-14)


def test_without_bounds_of_the_variables_the_radius_is_reported() -> None:
    result = lopro.minimize(
        value, np.zeros(3), np.exp, hess=lambda x: np.diag(np.exp(x)), constraint=TOTAL
    )
    assert result.success
    assert 1e4 * math.sqrt(3.0) <= result.certificate.radius * (1.0 + 1e-6) < math.inf
    assert "within a distance" in result.message


def test_strong_convexity_bounds_the_optimum_everywhere() -> None:
    def square(x: Any) -> float:
        return 0.5 * float(x @ x)

    result = lopro.minimize(
        square, np.zeros(3), lambda x: 1.0 * x, hess=lambda x: np.eye(3), strong_convexity=1.0,
        constraint=TOTAL,
    )  # fmt: skip
    assert result.success
    assert result.certificate.radius == math.inf
    assert 1.5 * (1.0 - 1e-12) <= result.certificate.lower_bound <= 1.5


def test_solution_norm_and_gap_scale_reach_the_problem() -> None:
    def slanted(x: Any) -> float:
        return float(x[0])

    with pytest.raises(ValueError, match="solution_norm"):
        lopro.minimize(slanted, np.ones(3), jac=None, constraint=TOTAL, solution_norm=-1.0)
    with pytest.raises(ValueError, match="gap_scale"):
        lopro.minimize(slanted, np.ones(3), jac=None, constraint=TOTAL, gap_scale=-1.0)


def test_autodiff_in_torch() -> None:
    torch = pytest.importorskip("torch")
    start = torch.zeros(3, dtype=torch.float64)
    result = lopro.minimize(
        lambda x: torch.sum(torch.exp(x) - 2.0 * x), start, "autodiff",
        constraint=Bounds([0.0] * 3, [0.5] * 3),
    )  # fmt: skip
    assert isinstance(result.x, torch.Tensor)
    # The derivative vanishes at log 2, beyond the upper bound.
    assert torch.allclose(result.x, torch.full((3,), 0.5, dtype=torch.float64), atol=1e-6)


def test_wrong_derivatives_are_named() -> None:
    with pytest.raises(ValueError, match='"autodiff"'):
        lopro.minimize(value, np.zeros(3), "forward", constraint=TOTAL)
    with pytest.raises(ValueError, match="PyTorch or JAX"):
        lopro.minimize(value, np.zeros(3), "autodiff", constraint=TOTAL)
    with pytest.raises(ValueError, match=r"hess\(x\)"):
        lopro.minimize(value, np.zeros(3), np.exp, hess=lambda x: np.eye(2), constraint=TOTAL)
    with pytest.raises(ValueError, match="derivatives of the gradient"):
        lopro.objectives.FunctionObjective(value, subgradient=np.exp, hess=lambda x: np.eye(3))
