"""`lopro.minimize`: plain callables with the constraint objects of SciPy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import lopro
from lopro.constraints import Intersection, Polyhedron, ResidualBall
from lopro.errors import PrecisionWarning
from lopro.minimize import as_constraint

CENTER = np.array([3.0, -0.5])


def fun(x):
    return float(np.sum((x - CENTER) ** 2))


def jac(x):
    return 2.0 * (x - CENTER)


def both(x):
    return fun(x), jac(x)


BOX = Bounds([-1.0, -1.0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("fun", "jac", "atol"),
    [(fun, jac, 1e-3), (both, True, 1e-3), (fun, None, 1e-2)],
    ids=["callable", "true", "differences"],
)
def test_gradients(fun, jac, atol):
    result = lopro.minimize(fun, np.zeros(2), jac, constraint=BOX, tol=1e-6, max_iter=3000)
    np.testing.assert_allclose(result.x, [1.0, -0.5], atol=atol)
    assert result.fun == pytest.approx(4.0, abs=atol)
    assert np.all(np.abs(result.x) <= 1.0)


def test_a_box_stops_with_a_certificate():
    assert lopro.minimize(fun, np.zeros(2), jac, constraint=BOX).success


def test_nonsmooth_functions():
    result = lopro.minimize(
        lambda x: float(np.abs(x - CENTER).sum()),
        np.zeros(2),
        lambda x: np.sign(x - CENTER),
        constraint=BOX,
        smooth=False,
        max_iter=20_000,
        tol=1e-3,
    )
    assert result.method.startswith("Auto() -> LoPGD(") and result.fun == pytest.approx(
        2.0, abs=5e-3
    )


def reference(constraints):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.optimize.OptimizeWarning)  # a row without bounds
        return scipy.optimize.minimize(fun, np.zeros(2), jac=jac, constraints=constraints).x


ROWS = np.array([[1.0, 1.0], [1.0, -2.0]])


@pytest.mark.parametrize(
    "constraint",
    [
        LinearConstraint(ROWS, -np.inf, [1.0, 2.0]),
        LinearConstraint(ROWS, -1.0, 1.0),
        LinearConstraint(ROWS, [-0.5, -np.inf], [0.5, np.inf]),
        LinearConstraint([1.0, 1.0], 0.5, 0.5),
        LinearConstraint(ROWS, [-np.inf, 1.0], [1.0, np.inf]),
    ],
    ids=["upper", "interval", "mixed", "equation", "one-sided"],
)
def test_linear_constraints(constraint):
    result = lopro.minimize(fun, np.zeros(2), jac, constraint=constraint, max_iter=20_000)
    np.testing.assert_allclose(result.x, reference(constraint), atol=2e-3)
    row_values = np.atleast_2d(constraint.A) @ result.x
    assert np.all(row_values <= constraint.ub + 1e-8)
    assert np.all(row_values >= constraint.lb - 1e-8)


def test_a_sparse_linear_constraint():
    C = LinearConstraint(scipy.sparse.csr_array(ROWS), -1.0, 1.0)
    dense = LinearConstraint(ROWS, -1.0, 1.0)
    x = lopro.minimize(fun, np.zeros(2), jac, constraint=C).x
    np.testing.assert_allclose(x, reference(dense), atol=2e-3)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        (Bounds(0.0, 1.0), [1.0, 0.0]),
        (Bounds([0.0, 0.0]), [3.0, 0.0]),
        (Bounds(ub=[1.0, -2.0]), [1.0, -2.0]),
        (Bounds([-np.inf, 1.0], [2.0, np.inf]), [2.0, 1.0]),
        (Bounds([0.0, 0.25], [0.0, 0.25]), [0.0, 0.25]),
    ],
    ids=["numbers", "lower", "upper", "infinite", "fixed"],
)
def test_bounds(bounds, expected):
    result = lopro.minimize(fun, np.zeros(2), jac, constraint=bounds, max_iter=20_000)
    np.testing.assert_allclose(result.x, expected, atol=2e-3)


def disc(x):
    return x[0] ** 2 + x[1] ** 2


def disc_jac(x):
    return 2.0 * x


def squares(x):
    return x**2


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        (NonlinearConstraint(disc, -np.inf, 1.0, jac=disc_jac), CENTER / np.linalg.norm(CENTER)),
        (NonlinearConstraint(disc, -np.inf, 1.0), CENTER / np.linalg.norm(CENTER)),
        (NonlinearConstraint(squares, -np.inf, 0.04, jac=lambda x: np.diag(2 * x)), [0.2, -0.2]),
        (NonlinearConstraint(squares, -np.inf, [1.0, 0.04]), [1.0, -0.2]),
        (NonlinearConstraint(squares, -np.inf, [np.inf, 0.04]), [3.0, -0.2]),
    ],
    ids=["jac", "differences", "one-bound-for-all", "bounds", "one-without"],
)
def test_nonlinear_constraints(constraint, expected):
    """A single upper bound holds for every entry, as in SciPy."""
    result = lopro.minimize(
        fun, np.full(2, 0.1), jac, constraint=constraint, max_iter=20_000, max_projections=20
    )
    np.testing.assert_allclose(result.x, expected, atol=5e-3)
    assert np.all(np.atleast_1d(constraint.fun(result.x)) <= np.asarray(constraint.ub) + 1e-7)


def test_a_sequence_is_an_intersection():
    constraint = [
        Bounds([0.0, 0.0], [1.0, 1.0]),
        LinearConstraint([[1.0, 1.0]], -np.inf, 0.5),
        ResidualBall(np.eye(2), np.zeros(2), 2.0),
    ]
    result = lopro.minimize(fun, np.zeros(2), jac, constraint=constraint, max_iter=20_000)
    np.testing.assert_allclose(result.x, [0.5, 0.0], atol=2e-3)
    assert isinstance(as_constraint(constraint, np.zeros(2)), Intersection)


def test_constraints_of_lopro_are_accepted():
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0)
    assert as_constraint(ball) is ball
    result = lopro.minimize(fun, np.zeros(2), jac, constraint=ball)
    np.testing.assert_allclose(result.x, CENTER / np.linalg.norm(CENTER), atol=2e-3)


def test_bounds_become_a_box_with_a_formula_for_its_projection():
    box = as_constraint(BOX, np.zeros(2))
    assert isinstance(box, Polyhedron) and box.radius().value == pytest.approx(np.sqrt(2.0))


def test_options_reach_solve():
    seen = []
    result = lopro.minimize(
        fun,
        np.zeros(2),
        jac,
        constraint=BOX,
        method=lopro.LoPGD(),
        max_iter=7,
        callback=seen.append,
    )
    assert result.iterations == 7 and len(seen) == 1 and result.method.startswith("LoPGD")


def test_start_and_points_share_no_memory():
    x0 = np.zeros(2)

    def vandal(x):
        value = fun(x)
        x[:] = 99.0
        return value

    result = lopro.minimize(vandal, x0, jac, constraint=BOX)
    np.testing.assert_allclose(result.x, [1.0, -0.5], atol=1e-3)
    np.testing.assert_array_equal(x0, 0.0)


def test_differences_of_tensors_in_single_precision_are_taken_in_double() -> None:
    torch = pytest.importorskip("torch")
    target = torch.asarray([1.0, -2.0, 3.0], dtype=torch.float32)
    seen = set()

    def fun(x):
        seen.add(x.dtype)
        return 0.5 * float(((x - target) ** 2).sum())

    box = lopro.constraints.Polyhedron.box(-torch.ones(3), torch.ones(3))
    result = lopro.minimize(fun, torch.zeros(3), constraint=box, tol=1e-3)
    assert result.success
    assert result.x.dtype == torch.float32
    assert seen == {torch.float64}


def test_functions_of_single_precision_only_give_a_warning_before_the_run() -> None:
    torch = pytest.importorskip("torch")
    A = torch.eye(2, dtype=torch.float32)
    with pytest.warns(PrecisionWarning, match="give jac") as caught:
        result = lopro.minimize(
            lambda x: float(((A @ x - 1.0) ** 2).sum()), torch.zeros(2), max_iter=50
        )
    assert result.x.dtype == torch.float32
    assert len(caught) == 1  # no second warning, of the gap that points in single precision allow
