"""`lopro.lasso` with a penalty: independent optima, proofs from the data alone, every kind of input."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import array_api_strict as strict
import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro.basis_pursuit.application import lasso_problem
from lopro.basis_pursuit.levels import Penalty, Radius, Ratio
from lopro.basis_pursuit.recognition import sparse_form
from lopro.objectives import GroupNorm, L1Norm, LeastSquares, SquaredDistance

M, D = 40, 120


def instance(seed: int = 0, *, kind: str = "real") -> tuple[Any, Any, float]:
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((M, D)), np.zeros(D)
    if kind == "complex":
        A, x = A + 1j * rng.standard_normal((M, D)), x + 0j
    x[:6] = [1.0, -2.0, 0.5, 1.5, -1.0, 0.7]
    y = A @ x + 0.3 * rng.standard_normal(M)
    return A, y, float(np.abs(A.conj().T @ y).max())


def value(A: Any, y: Any, x: Any, lam: float, w: Any, ridge: float) -> float:
    r = A @ x - y
    return float(
        0.5 * np.vdot(r, r).real + lam * (w @ np.abs(x)) + 0.5 * ridge * np.vdot(x, x).real
    )


def proved(A: Any, y: Any, u: Any, lam: float, w: Any, ridge: float, nonneg: bool) -> float:
    """Return the bound of a dual point by its formula; minus infinity where it proves nothing."""
    pulled = A.conj().T @ u
    beyond = np.maximum((pulled if nonneg else np.abs(pulled)) - lam * w, 0.0)
    if ridge == 0.0 and beyond.max() > 1e-12 * lam:
        return -math.inf
    paid = float(beyond @ beyond) / (2.0 * ridge) if ridge > 0.0 else 0.0
    return float(np.vdot(y, u).real - 0.5 * np.vdot(u, u).real) - paid


def optimum(A: Any, y: Any, lam: float, w: Any, ridge: float, nonneg: bool) -> float:
    x = cp.Variable(A.shape[1], nonneg=nonneg)
    goal = 0.5 * cp.sum_squares(A @ x - y) + lam * cp.norm1(cp.multiply(w, x))
    cp.Problem(cp.Minimize(goal + 0.5 * ridge * cp.sum_squares(x))).solve(solver=cp.CLARABEL)
    return value(A, y, np.maximum(x.value, 0.0) if nonneg else x.value, lam, w, ridge)


@pytest.mark.parametrize("share", [0.9, 0.3, 0.05, 0.005])
@pytest.mark.parametrize("ridge", [0.0, 0.5, 50.0])
@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_clarabel(share: float, ridge: float, nonneg: bool, weighted: bool) -> None:
    A, y, most = instance()
    w = np.random.default_rng(1).uniform(0.5, 2.0, D) if weighted else np.ones(D)
    lam = share * most
    weights = w if weighted else None
    found = lopro.lasso(A, y, lam=lam, weights=weights, nonneg=nonneg, ridge=ridge, tol=1e-10)
    assert found.success and "WorkingSet" in found.method
    assert found.fun == pytest.approx(value(A, y, found.x, lam, w, ridge), rel=1e-12)
    assert not nonneg or found.x.min() >= 0.0
    best, bound = optimum(A, y, lam, w, ridge, nonneg), found.certificate.lower_bound
    assert bound <= best * (1.0 + 1e-13)
    assert found.fun <= best * (1.0 + 1e-10)
    # The dual point proves the bound, and no more than rounding is lost.
    own = proved(A, y, lam * found.dual, lam, w, ridge, nonneg)
    assert own - 1e-11 * found.fun <= bound <= own + 1e-14 * found.fun


@pytest.mark.parametrize("x_share", [0.3, 1.0])
def test_bounds_hold_for_any_dual_point(x_share: float) -> None:
    """At any point the bound is below the optimum, and uses the best multiple of the dual point."""
    A, y, most = instance(3)
    lam = 0.2 * most
    rng = np.random.default_rng(5)
    for ridge in (0.0, 1.0, 30.0):
        problem = lasso_problem(A, y, lam, ridge=ridge)
        form = sparse_form(problem, np.zeros(D))
        assert form is not None
        solved = lopro.solve(problem, tol=1e-10)
        for size in (0.0, 0.1, 1.0):
            r = y - A @ (x_share * solved.x) + size * rng.standard_normal(M)
            found = form.proved(r, A.T @ r, stretch=20.0)
            bound = form.bound(found)
            assert bound <= solved.fun * (1.0 + 1e-12)
            scales = np.linspace(0.0, 3.0, 3001) * (lam / np.abs(A.T @ r).max())
            others = [proved(A, y, t * r, lam, np.ones(D), ridge, False) for t in scales]
            assert bound >= max(others) - 1e-9 * solved.fun


@pytest.mark.parametrize("share", [0.95, 0.8, 0.6])
def test_square_root(share: float) -> None:
    A, y, most = instance(2)
    lam = share * most / float(np.linalg.norm(y))
    found = lopro.lasso(A, y, lam=lam, square_root=True, tol=1e-10)
    assert found.success and "WorkingSet" in found.method
    r = y - A @ found.x
    assert found.fun == pytest.approx(np.linalg.norm(r) + lam * np.abs(found.x).sum(), rel=1e-12)
    x = cp.Variable(D)
    cp.Problem(cp.Minimize(cp.norm(A @ x - y) + lam * cp.norm1(x))).solve(solver=cp.CLARABEL)
    other = float(np.linalg.norm(A @ x.value - y) + lam * np.abs(x.value).sum())
    assert found.fun <= other * (1.0 + 1e-10)
    u = lam * found.dual
    assert np.linalg.norm(u) <= 1.0 + 1e-14 and np.abs(A.T @ u).max() <= lam * (1.0 + 1e-12)
    assert found.certificate.lower_bound <= min(float(y @ u), other) + 1e-14 * other
    # It is the solution of the LASSO with lam times the length of the residual as the weight.
    same = lopro.lasso(A, y, lam=lam * float(np.linalg.norm(r)), tol=1e-10)
    assert np.allclose(same.x, found.x, atol=1e-6)


def test_square_root_with_a_small_weight_on_a_device() -> None:
    """The solution of the equations and its proof are returned on the device of the data."""
    there = strict.Device("device1")
    A, y, _ = instance(3)
    weight = 0.1 / float(np.linalg.norm(lopro.bpdn(A, y, 0.0, tol=1e-10).dual))
    given = (strict.asarray(values, device=there) for values in (A, y))
    found = lopro.lasso(*given, lam=weight, square_root=True, tol=1e-10)
    expected = lopro.lasso(A, y, lam=weight, square_root=True, tol=1e-10)
    assert found.success and found.x.device == there
    assert found.fun == pytest.approx(expected.fun, rel=1e-10)


@pytest.mark.parametrize("nonneg", [False, True])
def test_square_root_with_a_small_weight_meets_the_equations(nonneg: bool) -> None:
    """Below the inverse length of the dual solution of the equations the residual vanishes."""
    A, y, _ = instance(3)
    ends = lopro.bpdn(A, y, 0.0, nonneg=nonneg, tol=1e-10)
    weight = 1.0 / float(np.linalg.norm(ends.dual))
    below = lopro.lasso(A, y, lam=0.9 * weight, square_root=True, nonneg=nonneg, tol=1e-9)
    assert below.success and below.counts.passes < 200
    assert below.fun == pytest.approx(0.9 * weight * ends.fun, rel=1e-9)
    assert np.linalg.norm(A @ below.x - y) <= 1e-9 * np.linalg.norm(y)
    above = lopro.lasso(A, y, lam=1.2 * weight, square_root=True, nonneg=nonneg, tol=1e-9)
    assert above.success and above.fun < 1.2 * weight * ends.fun
    assert np.linalg.norm(A @ above.x - y) > 1e-3 * np.linalg.norm(y)


@pytest.mark.parametrize(("share", "ridge", "most"), [(0.02, 1.0 / 9.0, 17), (0.02, 1e-3, 22)])
def test_few_products_with_a_ridge(share: float, ridge: float, most: int) -> None:
    """Where there are about as many nonzeros as rows, few columns are added at a time."""
    rng = np.random.default_rng([300, 1500])
    A, x = rng.standard_normal((300, 1500)), np.zeros(1500)
    x[rng.choice(1500, 100, replace=False)] = rng.standard_normal(100)
    y = A @ x + 3.0 * rng.standard_normal(300)
    lam = share * float(np.abs(A.T @ y).max())
    found = lopro.lasso(A, y, lam=lam, ridge=ridge * lam, tol=1e-8)
    assert found.success and found.counts.rmatvecs <= most


def test_square_root_beyond_the_largest_weight() -> None:
    """Zero is the solution; a dual point is no longer than 1, however small its correlations are."""
    A, y, most = instance(2)
    size = float(np.linalg.norm(y))
    found = lopro.lasso(A, y, lam=1.5 * most / size, square_root=True, tol=1e-12)
    assert found.success and not found.x.any() and found.fun == pytest.approx(size, rel=1e-15)
    assert size * (1.0 - 1e-12) <= found.certificate.lower_bound <= size


def test_the_three_forms_are_one_path() -> None:
    A, y, most = instance(4)
    lam = 0.1 * most
    found = lopro.lasso(A, y, lam=lam, tol=1e-11)
    sigma, tau = float(np.linalg.norm(A @ found.x - y)), float(np.abs(found.x).sum())
    ball, bounded = lopro.bpdn(A, y, sigma, tol=1e-11), lopro.lasso(A, y, tau, tol=1e-11)
    for other in (ball, bounded):
        assert np.allclose(other.x, found.x, atol=1e-6)
        assert np.allclose(other.dual, found.dual, atol=1e-6)
    assert sigma / np.linalg.norm(ball.dual) == pytest.approx(lam, rel=1e-6)
    assert lam * np.linalg.norm(found.dual) == pytest.approx(sigma, rel=1e-6)
    assert ball.fun == pytest.approx(tau, rel=1e-9)


def test_levels_satisfy_their_equations() -> None:
    """For given signs the residual is ``rest + alpha tail``; each level satisfies an equation for alpha."""
    rng = np.random.default_rng(0)
    rest, tail = rng.standard_normal(9), 0.1 * rng.standard_normal(9)
    numbers = (float(tail @ tail), float(rest @ tail), float(np.linalg.norm(rest)), 1.0)
    assert Penalty(0.7).alpha(*numbers) == 0.7
    alpha = Ratio(0.4).alpha(*numbers)
    assert alpha is not None
    assert alpha == pytest.approx(0.4 * np.linalg.norm(rest + alpha * tail), rel=1e-12)
    shifted = (
        numbers[0],
        float((rest + 2.0 * tail) @ tail),
        float(np.linalg.norm(rest + 2.0 * tail)),
        1.0,
    )
    assert Ratio(0.4).alpha(*shifted, at=2.0) == pytest.approx(alpha, rel=1e-10)
    sigma = 1.5 * numbers[2]
    alpha = Radius(sigma).alpha(*numbers)
    assert alpha is not None
    assert np.linalg.norm(rest + alpha * tail) == pytest.approx(sigma, rel=2e-12)
    assert Radius(sigma).alpha(*shifted, at=2.0) == pytest.approx(alpha, rel=1e-10)


def kinds(A: Any, folder: Path) -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    np.save(folder / "A.npy", A)
    return {
        "sparse": scipy.sparse.csc_array(A),
        "operator": aslinearoperator(A),
        "torch": torch.tensor(A),
        "memmap": np.load(folder / "A.npy", mmap_mode="r"),
    }


@pytest.mark.parametrize("name", ["sparse", "operator", "torch", "memmap"])
def test_every_kind_of_map(name: str, tmp_path: Path) -> None:
    A, y, most = instance(6)
    B = kinds(A, tmp_path)[name]
    right = type(B).new_tensor(B, y) if name == "torch" else y
    here, there = (
        lopro.lasso(matrix, v, lam=0.1 * most, tol=1e-9) for matrix, v in ((A, y), (B, right))
    )
    assert there.success and type(there.x) is type(right)
    assert there.fun == pytest.approx(here.fun, rel=1e-9)
    assert np.allclose(np.asarray(there.x), here.x, atol=1e-5)
    path = lopro.lasso_path(B, right, [0.5 * most, 0.1 * most], tol=1e-9)
    assert [r.success for r in path] == [True, True]
    assert path[1].fun == pytest.approx(here.fun, rel=1e-9)


def test_a_file_is_read_few_times(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 3000))
    np.save(tmp_path / "A.npy", A)
    y = A[:, :10] @ rng.standard_normal(10) + 0.1 * rng.standard_normal(200)
    lam = 0.05 * float(np.abs(A.T @ y).max())
    found = lopro.lasso(np.load(tmp_path / "A.npy", mmap_mode="r"), y, lam=lam, tol=1e-9)
    assert found.success and found.counts.passes <= 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_units_and_precision(dtype: Any, unit: float) -> None:
    A, y, most = instance(7)
    A, y = A.astype(dtype), (unit * y).astype(dtype)
    lam = 0.1 * most * unit
    found = lopro.lasso(A, y, lam=lam, tol=1e-5)
    assert found.success and found.x.dtype == dtype
    wide = lopro.lasso(A.astype(np.float64), y.astype(np.float64), lam=lam, tol=1e-10)
    assert found.certificate.lower_bound <= wide.fun * (1.0 + 1e-12)
    assert found.fun == pytest.approx(wide.fun, rel=2e-6)
    assert found.certificate.gap >= wide.fun - found.certificate.lower_bound - 1e-12 * wide.fun


def test_groups_and_complex_numbers() -> None:
    A, y, most = instance(8)
    groups = np.arange(D) // 3
    found = lopro.lasso(A, y, lam=0.3 * most, groups=groups, tol=1e-9)
    x = cp.Variable(D)
    lengths = cp.sum(cp.norm(cp.reshape(x, (D // 3, 3), order="C"), 2, axis=1))
    goal = 0.5 * cp.sum_squares(A @ x - y) + 0.3 * most * lengths
    best = cp.Problem(cp.Minimize(goal)).solve(solver=cp.CLARABEL)
    assert found.success and found.fun == pytest.approx(best, rel=1e-7)
    assert found.certificate.lower_bound <= best * (1.0 + 1e-7)
    A, y, most = instance(9, kind="complex")
    found = lopro.lasso(A, y, lam=0.2 * most, tol=1e-9)
    u = 0.2 * most * found.dual
    assert found.success
    assert found.certificate.lower_bound == pytest.approx(
        proved(A, y, u, 0.2 * most, np.ones(D), 0.0, False), rel=1e-10
    )
    assert found.fun == pytest.approx(value(A, y, found.x, 0.2 * most, np.ones(D), 0.0), rel=1e-12)


def test_small_systems_are_solved_by_factors() -> None:
    """Nearly all blocks are nonzero, and the matrix is small enough for factoring to be the fastest step."""
    rng = np.random.default_rng(0)
    A, y = rng.standard_normal((100, 400)), rng.standard_normal(100)
    groups = np.arange(400) // 4
    most = float(np.abs(A.T @ y).max())
    found = lopro.lasso(A, y, lam=1e-3 * most, groups=groups, tol=1e-8)
    assert found.success and "MatrixFree" not in found.method
    assert found.counts.matvecs == 0 and found.counts.rmatvecs <= 50


def test_solve_recognises_groups_of_entries() -> None:
    A, y, most = instance(10)
    lam = 0.2 * most
    expected = lopro.lasso(A, y, lam=lam, groups=np.arange(D) // 2, tol=1e-9)
    f = 3.0 * LeastSquares(A, y) + 3.0 * lam * GroupNorm(group_size=2)
    found = lopro.solve(lopro.Problem(f), tol=1e-9)
    assert found.success and "WorkingSet" in found.method
    assert found.fun == pytest.approx(3.0 * expected.fun, rel=1e-9)
    np.testing.assert_allclose(found.x, expected.x, atol=1e-6)
    for other in (GroupNorm(np.eye(D), 2), GroupNorm(None, 2, b=np.ones(D))):
        assert sparse_form(lopro.Problem(LeastSquares(A, y) + other)) is None


@pytest.mark.parametrize("norm", [L1Norm(), GroupNorm(group_size=2)])
def test_sums_without_a_shape_are_not_of_the_form(norm: Any) -> None:
    """The start determines the shape of user-written functions; recognising the form needs none."""
    f = lopro.objectives.FunctionObjective(
        lambda x: float((x - 1.0) @ (x - 1.0)), lambda x: 2.0 * (x - 1.0)
    )
    assert sparse_form(lopro.Problem(f + norm)) is None


def test_solve_recognises_the_form() -> None:
    A, y, most = instance(10)
    w = np.linspace(0.5, 1.5, D)
    f = 3.0 * LeastSquares(A, y) + 0.1 * most * L1Norm(w) + 2.0 * SquaredDistance(np.zeros(D))
    found = lopro.solve(lopro.Problem(f), tol=1e-9)
    assert found.success and "WorkingSet" in found.method
    assert found.counts.matvecs == 0  # columns of the support give the value
    lam, ridge = 0.1 * most / 3.0, 2.0 / 3.0
    assert found.fun == pytest.approx(3.0 * value(A, y, found.x, lam, w, ridge), rel=1e-12)
    assert found.fun <= 3.0 * optimum(A, y, lam, w, ridge, False) * (1.0 + 1e-9)
    orthant = lopro.constraints.Box(np.zeros(D), np.full(D, np.inf))
    found = lopro.solve(lopro.Problem(f, orthant), tol=1e-9)
    assert "WorkingSet" in found.method and found.x.min() >= 0.0
    assert found.fun <= 3.0 * optimum(A, y, lam, w, ridge, True) * (1.0 + 1e-9)
    # The gradient and the multipliers of x >= 0 cancel.
    (of_signs,) = found.multipliers
    slope = 3.0 * A.T @ (A @ found.x - y) + 0.1 * most * w + 2.0 * found.x
    assert np.abs(slope + of_signs).max() <= 1e-9 * most
    assert of_signs.max() <= 0.0
    others = [
        LeastSquares(A, y) + 1.0 * SquaredDistance(np.ones(D)) + L1Norm(),
        LeastSquares(A, y) + SquaredDistance(np.zeros(D), weights=np.arange(D) + 1.0) + L1Norm(),
        LeastSquares(A, y) + LeastSquares(A, y) + L1Norm(),
        LeastSquares(A, y) + L1Norm(np.where(np.arange(D) > 2, 1.0, 0.0)),
    ]
    assert all(sparse_form(lopro.Problem(g)) is None for g in others)


def test_path() -> None:
    A, y, most = instance(11)
    path = lopro.lasso_path(A, y, count=12, ratio=0.05, tol=1e-10)
    assert path.lams[0] == pytest.approx(most) and path.lams[-1] == pytest.approx(0.05 * most)
    assert not path[0].x.any()
    for lam, each in zip(path.lams, path, strict=True):
        assert each.success
        alone = lopro.lasso(A, y, lam=lam, tol=1e-10)
        assert each.fun == pytest.approx(alone.fun, rel=1e-10)
    # One product with y, then one for each weight, and few more.
    assert sum(each.counts.rmatvecs for each in path) <= len(path) + 4
    back = lopro.lasso_path(A, y, path.lams[::-1], tol=1e-10)
    assert np.allclose(back.coefficients, path.coefficients[::-1], atol=1e-6)
    for options in ({"nonneg": True}, {"ridge": 3.0}, {"square_root": True, "ratio": 0.7}):
        assert all(each.success for each in lopro.lasso_path(A, y, count=5, **options))


@pytest.mark.parametrize("share", [0.5, 0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("rows", [40, 200])
def test_dependent_columns(share: float, rows: int) -> None:
    """Columns that occur twice, and more columns than the rank: where signs cycle, a program is solved."""
    rng = np.random.default_rng(13)
    A = np.repeat(rng.standard_normal((rows, 14)) @ rng.standard_normal((14, 60)), 2, axis=1)
    A[:, 1::2] *= -1.0
    y = rng.standard_normal(rows)
    lam = share * float(np.abs(A.T @ y).max())
    found = lopro.lasso(A, y, lam=lam, tol=1e-8)
    assert found.success
    assert found.fun == pytest.approx(value(A, y, found.x, lam, np.ones(120), 0.0), rel=1e-12)
    own = proved(A, y, lam * found.dual, lam, np.ones(120), 0.0, False)
    assert found.certificate.lower_bound <= own + 1e-13 * found.fun


def test_more_nonzeros_than_rows_with_a_tiny_ridge() -> None:
    """The Gram matrix is nearly singular there, and signs cycle."""
    A, y, most = instance(14)
    found = lopro.lasso(A, y, lam=1e-6 * most, ridge=1e-6, tol=1e-8)
    assert found.success
    own = proved(A, y, 1e-6 * most * found.dual, 1e-6 * most, np.ones(D), 1e-6, False)
    assert found.certificate.lower_bound <= own + 1e-12 * found.fun


def test_zero_solutions_are_found_without_division_by_zero() -> None:
    A, y, most = instance(12)
    found = lopro.lasso(A, y, lam=1.0001 * most, tol=1e-12)
    assert found.success and not found.x.any()
    assert found.fun == pytest.approx(0.5 * float(y @ y), rel=1e-15)
    found = lopro.lasso(A, 0.0 * y, lam=1.0)
    assert found.success and not found.x.any() and found.fun == 0.0
    found = lopro.lasso(0.0 * A, y, lam=1.0)
    assert found.success and not found.x.any()


def test_arguments() -> None:
    A, y, _ = instance()
    with pytest.raises(TypeError, match="exactly one of tau"):
        lopro.lasso(A, y)
    with pytest.raises(TypeError, match="exactly one of tau"):
        lopro.lasso(A, y, 1.0, lam=1.0)
    with pytest.raises(TypeError, match="go with lam"):
        lopro.lasso(A, y, 1.0, ridge=1.0)
    with pytest.raises(ValueError, match="lam must be"):
        lopro.lasso(A, y, lam=0.0)
    with pytest.raises(ValueError, match="ridge is for"):
        lopro.lasso(A, y, lam=1.0, ridge=1.0, square_root=True)
    with pytest.raises(ValueError, match="must not be empty"):
        lopro.lasso_path(A, y, [])
    with pytest.raises(ValueError, match="orthogonal"):
        lopro.lasso_path(0.0 * A, y)


def test_a_time_limit_leaves_a_point_with_its_gap() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 4000))
    y = rng.standard_normal(400)
    found = lopro.lasso(A, y, lam=0.01, time_limit=1e-3, tol=1e-12)
    r = y - A @ found.x
    assert found.fun == pytest.approx(0.5 * float(r @ r) + 0.01 * np.abs(found.x).sum(), rel=1e-10)
    assert found.certificate.lower_bound <= found.fun
