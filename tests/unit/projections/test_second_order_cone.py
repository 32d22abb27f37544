"""Second-order cones as sets: every kind of projection, exact constants, proofs of problems over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint, minimize
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro.constraints import Intersection, Polyhedron, SecondOrderCone


def test_the_standard_cone_is_projected_on_by_its_formula() -> None:
    cone = SecondOrderCone(np.eye(3)[1:], c=np.eye(3)[0])
    assert cone.projects_in_closed_form
    np.testing.assert_allclose(cone.project(np.array([0.0, 3.0, 4.0])), [2.5, 1.5, 2.0], rtol=1e-15)
    np.testing.assert_allclose(cone.project(np.array([-6.0, 3.0, 4.0])), np.zeros(3), atol=1e-15)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_a_projection_is_that_of_another_solver(shape: tuple[int, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b, c = (
        rng.standard_normal(shape),
        rng.standard_normal(shape[0]),
        rng.standard_normal(shape[1]),
    )
    inside = rng.standard_normal(shape[1])
    d = float(np.linalg.norm(A @ inside + b) - c @ inside) + 0.1
    cone = SecondOrderCone(A, b, c, d)
    x = inside + 5.0 * rng.standard_normal(shape[1])
    z = cone.project(x)
    assert cone.violation(z) <= 1e-14
    reference = minimize(
        lambda v: float((v - x) @ (v - x)), inside, jac=lambda v: 2.0 * (v - x), method="SLSQP",
        constraints=NonlinearConstraint(lambda v: c @ v + d - np.linalg.norm(A @ v + b), 0.0, np.inf),
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    np.testing.assert_allclose(z, reference.x, atol=2e-6)
    assert np.linalg.norm(z - x) <= np.linalg.norm(reference.x - x) * (1.0 + 1e-9)


def test_the_boundary_is_an_equation_with_its_slope() -> None:
    A, b = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([0.5, 1.0])
    cone = SecondOrderCone(A, b, np.array([0.3, -0.2]), 4.0)
    z, one = np.array([1.5, -0.5]), np.ones(3)
    (equation,) = cone.boundary(z, 0.0 * one, np.array([np.sqrt(2.0), 1.0, 1.0]))
    assert equation.value(z) == pytest.approx(np.linalg.norm(A @ z + b) - 4.55, rel=1e-14)
    for step in 1e-5 * np.eye(2):
        change = equation.value(z + step) - equation.value(z - step)
        assert change == pytest.approx(2.0 * equation.slope(z) @ step, rel=1e-8)


def test_a_valid_inequality_is_the_linearisation() -> None:
    A, b = np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([0.5, 1.0])
    cone, x = SecondOrderCone(A, b, np.array([0.3, -0.2]), 4.0), np.array([3.0, 1.0])
    found, slope = cone.valid_inequality(x, 2.0), cone.subgradient(x)
    np.testing.assert_allclose(found.direction, 2.0 * slope, rtol=1e-13)
    assert found.support == pytest.approx(2.0 * (slope @ x - cone.value(x)), rel=1e-13)


def test_points_in_the_normal_cone_are_projected_on_the_apex() -> None:
    rng = np.random.default_rng(3)
    A, c, apex = rng.standard_normal((2, 4)), rng.standard_normal(4), rng.standard_normal(4)
    cone = SecondOrderCone(A, -A @ apex, c, -float(c @ apex))
    D = np.vstack([c, A])
    z = cone.project(apex - D.T @ np.array([3.0, 1.0, -1.0]))
    np.testing.assert_allclose(z, apex, atol=1e-13)
    assert not cone.projects_in_closed_form


def test_repeated_projections_start_from_the_last_result() -> None:
    rng = np.random.default_rng(0)
    cone = SecondOrderCone(
        rng.standard_normal((6, 4)), rng.standard_normal(6), rng.standard_normal(4), 3.0
    )
    project, x = cone.projector(), 5.0 * rng.standard_normal(4)
    for _ in range(4):
        np.testing.assert_allclose(project(x), cone.project(x), rtol=1e-9, atol=1e-12)
        x = x + 0.01 * rng.standard_normal(4)


def test_constants_and_sides() -> None:
    cone = SecondOrderCone([[3.0, 0.0]], [1.0], [0.0, 4.0], 2.0)
    x = np.array([1.0, 0.5])
    assert cone.value(x) == 0.0
    # At x = (1, -1): 4 + 4 - 2, over the sizes of (c'x, A x) and of (d, b).
    y = np.array([1.0, -1.0])
    assert cone.value(y) == 6.0
    assert cone.violation(y) == pytest.approx(6.0 / (5.0 + np.sqrt(5.0)), rel=1e-14)
    G = cone.lipschitz()
    assert G is not None
    assert G.value == pytest.approx(np.sqrt(2.0) * 4.0, rel=1e-9)
    assert cone.infeasibility() is None
    assert SecondOrderCone(np.eye(2), d=-1.0).infeasibility() is not None


@pytest.mark.parametrize("kind", [np.asarray, aslinearoperator])
def test_a_linear_cost_over_a_cone_and_rows_is_proved(kind: Any) -> None:
    """The optimum of a robust portfolio by hand: min -x2 with |x| <= 1 + x1 and x1 <= 1: x2 = sqrt(3)."""
    cone = SecondOrderCone(kind(np.eye(2)), c=np.array([1.0, 0.0]), d=1.0)
    rows = Polyhedron([[1.0, 0.0]], [1.0])
    f = lopro.objectives.Linear(np.array([0.0, -1.0]))
    result = lopro.solve(lopro.Problem(f, Intersection(cone, rows)))
    assert result.success
    assert result.fun == pytest.approx(-np.sqrt(3.0), rel=1e-6)


def test_newton_proves_by_multipliers_in_the_polar_cone() -> None:
    rng = np.random.default_rng(1)
    f = lopro.objectives.LeastSquares(rng.standard_normal((8, 4)), 5.0 * rng.standard_normal(8))
    cone = SecondOrderCone(rng.standard_normal((3, 4)), np.ones(3), 0.1 * np.ones(4), 2.0)
    problem = lopro.Problem(f, cone)
    result = lopro.solve(problem, method=lopro.NewtonMultipliers(), tol=1e-8)
    assert result.success
    (v,) = result.multipliers
    assert np.linalg.norm(v[1:]) <= -v[0]
    assert lopro.certify(problem, result.x, [v]).relative_gap <= 1e-7


def test_empty_cones_are_proved_empty() -> None:
    cone = SecondOrderCone([[1.0, 0.0]], [0.0], [0.0, 0.0], 1.0)
    far = Polyhedron([[-1.0, 0.0]], [-2.0])
    f = lopro.objectives.SquaredDistance(np.zeros(2))
    result = lopro.solve(lopro.Problem(f, Intersection(cone, far)))
    assert result.status.name == "INFEASIBLE"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"b": np.ones(3)}, "b must have shape"),
        ({"c": np.ones(3)}, "c must have shape"),
        ({"d": np.nan}, "d must be"),
        ({"A": 1j * np.eye(2)}, "must be real"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        SecondOrderCone(**({"A": np.eye(2)} | arguments))
