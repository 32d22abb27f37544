"""A Gram matrix in single precision gives the same answers as one in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro.basis_pursuit.columns.column_set import ColumnSet, column_set
from lopro.basis_pursuit.columns.support_newton import SupportNewton
from lopro.basis_pursuit.levels import Radius
from lopro.maps import linear_map

ROWS, COLUMNS = 120, 40


def both(
    A: Any, y: Any, weights: Any, sigma: float, nonneg: bool = False
) -> tuple[SupportNewton, SupportNewton]:
    """Return the problem on all columns, with a Gram matrix in single and one in double precision."""
    rough = SupportNewton(ColumnSet(y, weights, single=True), Radius(sigma), nonneg)
    exact = SupportNewton(ColumnSet(y, weights), Radius(sigma), nonneg)
    for problem in (rough, exact):
        problem.columns.extend(np.arange(A.shape[1]), lambda at: A[:, at], A.T @ y)
    return rough, exact


def instance(seed: int, noise: float = 0.1) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((ROWS, COLUMNS))
    y = A[:, :10] @ rng.uniform(-1, 1, 10) + noise * rng.standard_normal(ROWS)
    return A, y, rng.uniform(0.5, 2.0, COLUMNS), rng


def least_squares(A: Any, y: Any) -> float:
    return float(np.linalg.norm(y - A @ np.linalg.lstsq(A, y)[0]))


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_solution_is_that_of_double_precision(seed: int, nonneg: bool) -> None:
    A, y, weights, rng = instance(seed)
    if nonneg:
        y = A[:, :10] @ rng.uniform(0.2, 1.0, 10) + 0.1 * rng.standard_normal(ROWS)
    sigma = 1.3 * least_squares(A, y)
    rough, exact = both(A, y, weights, sigma, nonneg)
    start = np.where(A.T @ y > 0.0, 1.0, 0.0 if nonneg else -1.0)
    found, expected = rough.solve(start, 0.0, 30), exact.solve(start, 0.0, 30)
    assert found.settled and found.reached and expected.settled
    assert rough.columns.single and rough.columns.gram.dtype == np.float32
    np.testing.assert_array_equal(found.signs, expected.signs)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-12)
    assert found.alpha == pytest.approx(expected.alpha, rel=1e-11)
    np.testing.assert_allclose(found.residual, y - A @ found.x, atol=1e-14)
    on = found.signs != 0.0
    np.testing.assert_allclose((A.T @ found.dual)[on], (weights * found.signs)[on], rtol=1e-11)
    assert np.linalg.norm(found.residual) == pytest.approx(sigma, rel=2e-12)


def test_two_steps_agree_with_two_steps_in_double_precision() -> None:
    """In single precision with a floor: the point is accurate to single precision, its residual to double."""
    A, y, weights, _ = instance(7)
    rough, exact = both(A, y, weights, 0.9 * least_squares(A, y))
    floor = 0.3 * exact.columns.most
    start = np.sign(A.T @ y)
    found, expected = rough.solve(start, floor, 2), exact.solve(start, floor, 2)
    assert not found.reached and not found.settled and found.alpha == floor == expected.alpha
    np.testing.assert_array_equal(found.signs, expected.signs)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6 * np.abs(expected.x).max())
    np.testing.assert_allclose(found.residual, y - A @ found.x, atol=1e-13)
    np.testing.assert_allclose(found.dual, found.residual / floor, rtol=1e-15)


def test_a_small_coefficient_does_not_seem_to_flip(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of one step exceeds the coefficient; an estimate of the next correction prevents a flip."""
    A, _, _, rng = instance(3)
    x = rng.uniform(1.0, 2.0, COLUMNS)
    x[5] = 1e-9
    q = np.linalg.solve(A.T @ A, np.ones(COLUMNS))
    rest = rng.standard_normal(ROWS)
    rest -= A @ np.linalg.lstsq(A, rest)[0]
    alpha = 1.0
    y = A @ (x + alpha * q) + rest
    sigma = float(np.linalg.norm(rest + alpha * A @ q))
    rough, _ = both(A, y, np.ones(COLUMNS), sigma)
    original = ColumnSet.factor

    def rougher(self: ColumnSet, support: Any) -> Any:
        solve = original(self, support)

        def off_by_a_little(right: Any) -> Any:
            solved = solve(right)
            solved[support == 5] -= 1e-6 * np.abs(solved).max(axis=0)
            return solved

        return off_by_a_little

    monkeypatch.setattr(ColumnSet, "factor", rougher)
    found = rough.solve(np.ones(COLUMNS), 0.0, 30)
    assert rough.columns.single and found.settled and (found.signs == 1.0).all()
    assert 0.0 < found.x[5] < 1e-8


def test_columns_that_are_too_close_are_solved_for_in_double_precision() -> None:
    A, y, weights, rng = instance(11)
    A[:, 1] = A[:, 0] + 1e-4 * rng.standard_normal(ROWS)
    rough, exact = both(A, y, weights, 1.3 * least_squares(A, y))
    start = np.sign(A.T @ y)
    found, expected = rough.solve(start, 0.0, 30), exact.solve(start, 0.0, 30)
    assert not rough.columns.single
    np.testing.assert_array_equal(rough.columns.gram, exact.columns.gram)
    np.testing.assert_array_equal(found.x, expected.x)
    # Columns added later are in double precision, too.
    rough.columns.extend(np.array([0]), lambda at: A[:, at], A[:, :1].T @ y)
    assert rough.columns.gram.dtype == np.float64 and len(rough.columns) == COLUMNS + 1
    np.testing.assert_allclose(rough.columns.gram[-1, :-1], A[:, 0] @ A, rtol=1e-12)


def test_a_factor_that_does_not_improve_points_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    A, y, weights, _ = instance(1)
    rough, exact = both(A, y, weights, 1.3 * least_squares(A, y))
    original = ColumnSet.factor

    def useless_later(self: ColumnSet, support: Any) -> Any:
        solve, calls = original(self, support), []

        def partly(right: Any) -> Any:
            calls.append(right)
            solved = (1.0 - 1e-4) * solve(right)
            if len(calls) > 1:
                correction = solved if right.ndim == 1 else solved[:, 0]
                correction[:] = 0.0
            return solved

        return partly

    start = exact.solve(np.sign(A.T @ y), 0.0, 30).signs
    monkeypatch.setattr(ColumnSet, "factor", useless_later)
    found, expected = rough.solve(start, 0.0, 30), exact.solve(start, 0.0, 30)
    assert not rough.columns.single and found.settled
    np.testing.assert_array_equal(found.x, expected.x)


def test_the_dual_point_of_a_short_residual_is_as_good_as_that_of_a_long_one() -> None:
    """The residual has rounding errors of the size of those of y, which division by alpha magnifies."""
    A, y, weights, _ = instance(4, noise=1e-6)
    rough, _ = both(A, y, weights, 1.5 * least_squares(A, y))
    found = rough.solve(np.sign(np.linalg.lstsq(A, y)[0]), 0.0, 30)
    assert rough.columns.single and found.settled and found.reached
    assert found.alpha < 1e-4
    on = found.signs != 0.0
    np.testing.assert_allclose((A.T @ found.dual)[on], (weights * found.signs)[on], rtol=1e-13)
    np.testing.assert_array_equal(found.residual, y - rough.columns.forward(found.x))


@pytest.mark.parametrize("unit", [2.0**-400, 2.0**-60, 2.0**60, 2.0**400])
def test_units_do_not_matter(unit: float) -> None:
    """Squares of such entries are out of the range of single precision."""
    A, y, weights, _ = instance(5)
    sigma = 1.3 * least_squares(A, y)
    start = np.sign(A.T @ y)
    here = both(A, y, weights, sigma)[0].solve(start, 0.0, 30)
    there = both(unit * A, y, weights, sigma)[0]
    found = there.solve(start, 0.0, 30)
    assert there.columns.single
    np.testing.assert_allclose(found.x * unit, here.x, atol=1e-13)
    weighed = both(A, unit * y, weights / unit, unit * sigma)[0]
    found = weighed.solve(start, 0.0, 30)
    assert weighed.columns.single
    np.testing.assert_allclose(found.x / unit, here.x, atol=1e-13)


def test_columns_are_added_and_dropped() -> None:
    A, y, weights, _ = instance(2)
    columns = ColumnSet(y, weights, single=True)
    columns.extend(np.arange(30), lambda at: A[:, at], A[:, :30].T @ y)
    reference = np.arange(30) % 3 != 0
    columns.keep(reference)
    columns.extend(np.arange(30, 40), lambda at: A[:, at], A[:, 30:].T @ y)
    held = A[:, columns.indices]
    np.testing.assert_array_equal(columns.toarray(), held)
    in_units = columns.gram / columns._scale**2
    np.testing.assert_allclose(in_units, held.T @ held, rtol=1e-5, atol=1e-3)
    x = np.linspace(-1.0, 1.0, len(columns))
    np.testing.assert_allclose(
        columns.forward(np.stack([x, 2.0 * x], axis=1))[:, 1], 2.0 * held @ x, atol=1e-13
    )
    columns.to_double()
    np.testing.assert_allclose(columns.gram, held.T @ held, rtol=1e-12, atol=1e-12)


def test_which_gram_matrices_are_in_single_precision() -> None:
    """Dense ones with many rows and columns in double precision; equations need all digits."""

    def kind(
        rows: int, sigma: float = 1.0, dtype: Any = np.float64, make: Any = np.array, d: int = 1000
    ) -> tuple[bool, bool]:
        A, y = linear_map(make(np.ones((rows, d), dtype=dtype))), np.ones(rows)
        found = column_set(A, np.zeros(1, dtype=dtype), y, np.ones(d), sigma == 0.0)
        return found.widens, found.single

    assert kind(1000) == (False, True)
    assert kind(999) == (False, False)
    assert kind(1000, d=999) == (False, False)
    assert kind(1000, sigma=0.0) == (False, False)
    assert kind(1000, make=scipy.sparse.csc_array) == (False, False)
    assert kind(1000, dtype=np.float32) == (True, False)
    assert kind(1000, dtype=np.float32, make=scipy.sparse.csc_array) == (False, False)


@pytest.mark.parametrize("tol", [1e-6, 1e-12])
def test_answers_have_the_required_accuracy(tol: float) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1000, 1500))
    e = 0.05 * rng.standard_normal(1000)
    y, sigma = A[:, :40] @ rng.uniform(-1, 1, 40) + e, float(np.linalg.norm(e))
    found = lopro.bpdn(A, y, sigma, tol=tol)
    assert found.success and found.certificate.relative_gap <= tol
    # The columns in use prove the point feasible, without a product with A or a projection.
    assert found.counts.projections == 0 and found.counts.matvecs == 0
    assert np.linalg.norm(A @ found.x - y) <= sigma * (1.0 + 1e-15)
    nu = (y - A @ found.x) / np.abs(A.T @ (y - A @ found.x)).max()
    bound = float(y @ nu - sigma * np.linalg.norm(nu))
    assert found.fun == pytest.approx(bound, rel=1e-6)
