"""The solution path of small problems: the signs of an independent optimum, and reported failures."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import lopro
from lopro.basis_pursuit import working_set
from lopro.basis_pursuit.columns import exact_path
from lopro.basis_pursuit.columns.exact_path import signs_at_radius


def instance(seed: int) -> tuple[Any, Any, Any, float]:
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(4, 25)), int(rng.integers(5, 60))
    A, x = rng.standard_normal((m, d)), np.zeros(d)
    x[: max(1, min(m, d) // 5)] = rng.uniform(0.5, 2.0, max(1, min(m, d) // 5))
    e = rng.standard_normal(m)
    y = A @ x
    e *= float(rng.choice([0.02, 0.1, 0.3])) * np.linalg.norm(y) / np.linalg.norm(e)
    return A, y + e, rng.uniform(0.4, 2.5, d), float(np.linalg.norm(e))


def reference(A: Any, y: Any, weights: Any, sigma: float, nonneg: bool) -> Any:
    """Return the solution of an interior point method."""
    x = cp.Variable(A.shape[1], nonneg=nonneg)
    problem = cp.Problem(cp.Minimize(weights @ cp.abs(x)), [cp.norm2(A @ x - y) <= sigma])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return x.value


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_signs_are_those_of_the_optimum(seed: int, nonneg: bool) -> None:
    A, y, weights, sigma = instance(seed)
    expected = reference(A, y, weights, sigma, nonneg)
    if expected is None:
        pytest.skip("no point within the radius")
    size = np.abs(expected).max()
    signs = signs_at_radius(A, y, weights, sigma, nonneg)
    np.testing.assert_array_equal(
        signs, np.where(np.abs(expected) > 1e-6 * size, np.sign(expected), 0.0)
    )


@pytest.mark.parametrize("nonneg", [False, True])
def test_one_round_is_enough(nonneg: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signs are right from the start: one product verifies it, and the point is exact."""
    followed = []

    def watched(*arguments: Any) -> Any:
        followed.append(signs_at_radius(*arguments))
        return followed[-1]

    monkeypatch.setattr(working_set, "signs_at_radius", watched)
    for seed in range(12):
        A, y, weights, sigma = instance(seed)
        result = lopro.bpdn(A, y, sigma, weights=weights, nonneg=nonneg, tol=1e-10)
        if result.status is lopro.Status.INFEASIBLE:
            continue
        assert result.success and result.iterations == 1
        assert result.counts.rmatvecs == 2  # with y, and with the residual
        np.testing.assert_array_equal(np.sign(result.x), followed[-1])
    assert len(followed) == 12


def test_entries_leave_the_support_again() -> None:
    """With correlated columns, some that enter the support leave it before the end of the path."""
    left = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((12, 6)) @ rng.standard_normal((6, 30)) + 0.3 * rng.standard_normal(
            (12, 30)
        )
        y = A[:, :4] @ np.array([1.0, -2.0, 1.5, 1.0]) + 0.05 * rng.standard_normal(12)
        sigma = 0.1 * float(np.linalg.norm(y))
        signs = signs_at_radius(A, y, np.ones(30), sigma, False)
        result = lopro.bpdn(A, y, sigma, tol=1e-9, method=lopro.WorkingSet(first=10))
        assert result.success and signs is not None
        np.testing.assert_array_equal(signs, np.sign(result.x))
        far = signs_at_radius(A, y, np.ones(30), 4.0 * sigma, False)
        left += int(np.count_nonzero((far != 0.0) & (signs == 0.0)))
    assert left > 5


def test_degenerate_and_infeasible_paths_are_not_followed() -> None:
    A = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    y, ones = np.array([2.0, 1.0]), np.ones(3)
    # Two equal columns enter at the same time: one suffices; the path has one of them, or is not followed.
    signs = signs_at_radius(A, y, ones, 0.1, False)
    assert signs is None or np.count_nonzero(signs[:2]) == 1
    result = lopro.bpdn(A, y, 0.1)
    assert result.success
    # Infeasible: the residual of the third row alone exceeds the radius.
    B = np.array([[1.0, 0.5], [0.0, 1.0], [0.0, 0.0]])
    assert signs_at_radius(B, np.array([1.0, 2.0, 3.0]), np.ones(2), 1.0, False) is None
    assert lopro.bpdn(B, np.array([1.0, 2.0, 3.0]), 1.0).status is lopro.Status.INFEASIBLE


def test_larger_problems_and_given_starts_do_not_follow_the_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("the path was followed")

    monkeypatch.setattr(working_set, "signs_at_radius", never)
    rng = np.random.default_rng(0)
    for m, d in (
        (exact_path.SETTINGS.few_rows + 1, 60),
        (20, exact_path.SETTINGS.few_columns + 1),
    ):
        A = rng.standard_normal((m, d))
        assert lopro.bpdn(A, A[:, 0] - A[:, 1], 0.1).success
    A = rng.standard_normal((20, 50))
    x0 = np.zeros(50)
    x0[:2] = 1.0, -1.0
    assert lopro.bpdn(A, A[:, 0] - A[:, 1], 0.1, x0=x0).success
    assert lopro.bpdn(
        A.astype(np.float32), (A[:, 0] - A[:, 1]).astype(np.float32), 0.1, tol=1e-4
    ).success
