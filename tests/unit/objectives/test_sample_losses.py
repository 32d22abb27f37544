"""Hinge, squared hinge, pinball and Poisson losses: values by hand, optima by other solvers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import lopro
import lopro.constraints as lc
import lopro.objectives as lo
from lopro import Problem


def data(rng: Any, n: int = 120, d: int = 5) -> tuple[Any, Any, Any, Any]:
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    y = np.where(X @ w + rng.standard_normal(n) > 0.0, 1.0, -1.0)
    counts = rng.poisson(np.exp(0.4 * X @ w)).astype(float)
    return X, y, X @ w + rng.standard_normal(n), counts


def test_values_by_hand() -> None:
    X, y = np.array([[1.0], [2.0], [-1.0]]), np.array([1, 0, 1])
    x = np.array([0.5])
    # Margins 0.5, -1, -0.5: the violations are 0.5, 2, 1.5.
    assert lo.HingeLoss(X, y).value(x) == pytest.approx(4.0 / 3.0, rel=1e-15)
    assert lo.SquaredHingeLoss(X, y).value(x) == pytest.approx(6.5 / 3.0, rel=1e-15)
    # Predictions 0.5, 1, -0.5 for targets 1, 0, 1: residuals 0.5, -1, 1.5.
    pinball = lo.PinballLoss(X, [1.0, 0.0, 1.0], quantile=0.8, l2=2.0)
    assert pinball.value(x) == pytest.approx((0.4 + 0.2 + 1.2) / 3.0 + 0.25, rel=1e-15)
    poisson = lo.Poisson(X, [1.0, 0.0, 1.0])
    rates = np.exp([0.5, 1.0, -0.5])
    assert poisson.value(x) == pytest.approx((rates.sum() - 0.5 + 0.5) / 3.0, rel=1e-15)


def by_linprog(X: Any, b: Any, q: float) -> float:
    """Quantile regression as a linear program: residuals split into two signs."""
    n, d = X.shape
    cost = np.r_[np.zeros(d), np.full(n, q / n), np.full(n, (1.0 - q) / n)]
    A = np.hstack([X, np.eye(n), -np.eye(n)])
    bounds = [(None, None)] * d + [(0.0, None)] * (2 * n)
    return float(scipy.optimize.linprog(cost, A_eq=A, b_eq=b, bounds=bounds).fun)


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array])
def test_quantile_regression_is_the_linear_program(wrap: Any, rng: Any) -> None:
    X, _, b, _ = data(rng)
    for q in (0.5, 0.9):
        result = lopro.solve(Problem(lo.PinballLoss(wrap(X), b, q)), tol=1e-8)
        assert result.success
        assert result.fun == pytest.approx(by_linprog(X, b, q), rel=1e-7)
        assert "NewtonMultipliers" in repr(result.method)


def test_a_support_vector_machine_satisfies_its_optimality_conditions(rng: Any) -> None:
    """l2 w = mean of y x over violated margins, plus shares between 0 and 1 of those on the margin."""
    X, y, _, _ = data(rng)
    result = lopro.solve(Problem(lo.HingeLoss(X, y, l2=0.05)), tol=1e-10)
    assert result.success
    margins = y * (X @ result.x)
    on = np.abs(margins - 1.0) <= 1e-7
    needed = 0.05 * result.x * len(y) - (y[:, None] * X)[margins < 1.0 - 1e-7].sum(axis=0)
    shares, miss = scipy.optimize.nnls((y[:, None] * X)[on].T, needed)
    assert miss <= 1e-5 and shares.max() <= 1.0 + 1e-5


@pytest.mark.parametrize("kind", ["squared hinge", "poisson", "logistic", "least squares", "huber"])
def test_smooth_losses_without_a_constraint_have_a_vanishing_gradient(kind: str, rng: Any) -> None:
    X, y, b, counts = data(rng)
    f = {
        "squared hinge": lo.SquaredHingeLoss(X, y),
        "poisson": lo.Poisson(X, counts),
        "logistic": lo.Logistic(X, y),
        "least squares": lo.LeastSquares(X, b),
        "huber": lo.Huber(X, b, 0.5),
    }[kind]
    result = lopro.solve(Problem(f), tol=1e-9)
    assert result.success and result.counts.projections == 0
    assert np.linalg.norm(f.subgradient(result.x)) <= 1e-4 * (
        1.0 + np.linalg.norm(f.subgradient(0 * result.x))
    )
    reference = scipy.optimize.minimize(f.value, np.zeros(5), jac=f.subgradient, method="BFGS")
    assert result.fun <= reference.fun + 1e-9 * abs(reference.fun)
    assert result.certificate.lower_bound <= reference.fun + 1e-12


def test_large_counts_and_starts_beyond_the_range_of_numbers(rng: Any) -> None:
    """The first Newton step of an exponential is far too long; exp(5000) is infinite."""
    X, w = rng.standard_normal((300, 6)), rng.standard_normal(6)
    f = lo.Poisson(X, rng.poisson(np.exp(2.0 * X @ w)).astype(float))
    result = lopro.solve(Problem(f), tol=1e-8)
    assert result.success and result.iterations <= 100
    far = lopro.solve(Problem(f), 5000.0 * rng.standard_normal(6), tol=1e-8)
    assert far.success and far.fun == pytest.approx(result.fun, rel=1e-8)


@pytest.mark.parametrize("lam", [0.5, 5.0, 50.0])
def test_the_penalised_lasso_is_certified(lam: float, rng: Any) -> None:
    A, y = rng.standard_normal((30, 80)), 3.0 * rng.standard_normal(30)
    f = lo.LeastSquares(A, y) + lam * lo.L1Norm()
    result = lopro.solve(Problem(f), tol=1e-8)
    assert result.success
    # The correlations with the residual are at most lam, and lam on the support.
    correlations = A.T @ (y - A @ result.x)
    assert np.abs(correlations).max() <= lam * (1.0 + 1e-4)
    support = np.abs(result.x) > 1e-5
    np.testing.assert_allclose(correlations[support], lam * np.sign(result.x[support]), rtol=1e-3)


def test_losses_over_rows_and_boxes(rng: Any) -> None:
    """A support vector machine with a fairness row and a box, against CVXPY."""
    cp = pytest.importorskip("cvxpy")
    X, y, b, counts = data(rng)
    row, box = rng.standard_normal((1, 5)), lc.Box(np.full(5, -0.4), np.full(5, 0.4))
    s = lc.Intersection(lc.Affine(row, -0.1, 0.1), box)
    x = cp.Variable(5)
    sets = [cp.abs(row @ x) <= 0.1, cp.abs(x) <= 0.4]
    margins = cp.pos(1.0 - cp.multiply(y, X @ x))
    residual = b - X @ x
    cases = {
        "hinge": (lo.HingeLoss(X, y), cp.sum(margins) / 120),
        "squared hinge": (lo.SquaredHingeLoss(X, y), cp.sum_squares(margins) / 120),
        "pinball": (
            lo.PinballLoss(X, b, 0.3),
            cp.sum(cp.maximum(0.3 * residual, -0.7 * residual)) / 120,
        ),
        "poisson": (
            lo.Poisson(X, counts),
            cp.sum(cp.exp(X @ x) - cp.multiply(counts, X @ x)) / 120,
        ),
    }
    for name, (f, expression) in cases.items():
        problem = cp.Problem(cp.Minimize(expression), sets)
        problem.solve(solver="CLARABEL")
        result = lopro.solve(Problem(f, s), tol=1e-8)
        assert result.success, name
        assert result.fun == pytest.approx(problem.value, rel=1e-5), name


def test_minimize_without_a_constraint() -> None:
    result = lopro.minimize(lambda x: float((x - 1) @ (x - 1)), np.zeros(3), lambda x: 2 * (x - 1))
    assert result.success
    np.testing.assert_allclose(result.x, 1.0, atol=1e-6)


def test_a_linear_function_without_a_constraint_has_no_minimum() -> None:
    result = lopro.solve(Problem(lo.Linear(np.array([1.0, -2.0]))))
    assert result.status.name == "UNBOUNDED"
    assert float(result.ray @ np.array([1.0, -2.0])) < 0.0


def test_arguments_are_checked_by_name() -> None:
    X = np.ones((2, 1))
    with pytest.raises(ValueError, match="labels must be -1 and 1"):
        lo.HingeLoss(X, [1.0, 3.0])
    with pytest.raises(ValueError, match="counts must be nonnegative"):
        lo.Poisson(X, [1.0, -1.0])
    for quantile in (0.0, 1.0, 1.5):
        with pytest.raises(ValueError, match="quantile"):
            lo.PinballLoss(X, [1.0, 2.0], quantile)
    with pytest.raises(ValueError, match="b must have shape"):
        lo.PinballLoss(X, [1.0])


def test_no_method_is_tried_twice(rng: Any) -> None:
    X, y, _, _ = data(rng)
    choices = lopro.Auto().choices(Problem(lo.HingeLoss(X, y)))
    names = [type(choice.method).__name__ for choice in choices]
    assert names == ["NewtonMultipliers", "InteriorPoint"]


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_losses_without_smooth_part_take_few_steps(unit: float) -> None:
    """Penalties are scaled by the distance of kinks from zero, in the units of the data.

    Scaled by the way that a step of 1 moves zero, they are too large by the number of samples: 1771 and
    5000 steps.
    """
    rng = np.random.default_rng(7)
    X = rng.standard_normal((400, 60))
    scores = X @ (rng.standard_normal(60) * (rng.random(60) < 0.2))
    labels = np.sign(scores + 0.6 * rng.standard_normal(400))
    losses: list[Any] = [
        lo.HingeLoss(X / unit, labels) + 0.01 / unit * lo.L1Norm(),
        lo.PinballLoss(X, unit * (scores + rng.standard_normal(400)), 0.3),
        lo.LInfNorm(D=X, b=unit * (scores + rng.standard_normal(400))),
    ]
    for f in losses:
        result = lopro.solve(Problem(f), method=lopro.NewtonMultipliers())
        assert result.success and result.iterations <= 200, f


@pytest.mark.parametrize("delta", [0.1, 1.0])
def test_bounds_of_huber_regression_do_not_lose_the_error_of_images(delta: float) -> None:
    """400 x 100 without a constraint: 1.3e-4 was proved, with the error of 100 terms of each score."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((400, 100))
    y = X @ rng.standard_normal(100) + 0.1 * rng.standard_normal(400)
    result = lopro.solve(Problem(lo.Huber(X, y, delta)), method=lopro.NewtonMultipliers())
    assert result.success and result.certificate.relative_gap <= 1e-6
