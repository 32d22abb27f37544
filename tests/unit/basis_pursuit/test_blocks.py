"""Blocks: complex coefficients, rows of several right-hand sides, groups; against formulas and Clarabel."""

from __future__ import annotations

import dataclasses
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.blocks.systems import newton_solver

Vector = Any


def problem(m: int, d: int, k: int, seed: int, *, iscomplex: bool, nonneg: bool = False) -> Any:
    """Return a matrix, and measurements of three rows with some noise."""
    rng = np.random.default_rng(seed)
    A, X = rng.standard_normal((m, d)), np.zeros((d, k))
    X[:3] = rng.standard_normal((3, k))
    X = np.abs(X) if nonneg else X
    if iscomplex:
        A = A + 1j * rng.standard_normal((m, d))
        X = X * np.exp(2j * np.pi * rng.random((d, k)))
    return A, A @ X + 0.05 * rng.standard_normal((m, k))


def by_clarabel(
    A: Vector, Y: Vector, sigma: float, weights: Vector, groups: Vector, *, nonneg: bool = False
) -> float:
    d, k = A.shape[1], Y.shape[1]
    X = cp.Variable((d, k), complex=bool(np.iscomplexobj(A)))
    lengths = [
        w * cp.norm(cp.vec(X[np.flatnonzero(groups == g)], order="C"))
        for w, g in zip(weights, np.unique(groups), strict=True)
    ]
    constraints = [cp.norm(cp.vec(A @ X - Y, order="C")) <= sigma]
    constraints += [X >= 0] if nonneg else []
    tight = dict.fromkeys(("tol_gap_rel", "tol_gap_abs", "tol_feas"), 1e-9)
    value = cp.Problem(cp.Minimize(sum(lengths)), constraints).solve(solver="CLARABEL", **tight)
    return float(value)


def of_groups(X: Vector, groups: Vector, weights: Vector) -> float:
    """Return the sum of weighted lengths, written out."""
    return float(
        sum(
            w * np.linalg.norm(X[groups == g])
            for w, g in zip(weights, np.unique(groups), strict=True)
        )
    )


@pytest.mark.parametrize("sigma", [0.1, 0.0])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(
    ("iscomplex", "nonneg"), [(False, False), (False, True), (True, False)], ids=str
)
def test_the_optimum_agrees_with_clarabel(
    iscomplex: bool, nonneg: bool, grouped: bool, k: int, sigma: float
) -> None:
    A, Y = problem(15, 40, k, k, iscomplex=iscomplex, nonneg=nonneg)
    groups = np.arange(40) % 13 if grouped else np.arange(40)
    weights = np.random.default_rng(1).random(groups.max() + 1) + 0.5
    radius = sigma * float(np.linalg.norm(Y))
    result = lopro.bpdn(
        A, Y, radius, joint=True, groups=groups if grouped else None, weights=weights, nonneg=nonneg
    )
    assert result.success
    assert result.x.shape == (40, k) and result.dual.shape == Y.shape
    assert result.fun == pytest.approx(of_groups(result.x, groups, weights), rel=1e-12)
    assert result.fun == pytest.approx(
        by_clarabel(A, Y, radius, weights, groups, nonneg=nonneg), rel=2e-6
    )
    slack = 1e-9 * np.linalg.norm(Y)
    assert np.linalg.norm(A @ result.x - Y) <= radius + slack
    if nonneg:
        assert result.x.min() >= 0.0


@pytest.mark.parametrize("nonneg", [False, True])
def test_the_dual_point_is_feasible_block_by_block(nonneg: bool) -> None:
    """``|A_g^H nu| <= w_g``, and its value is the bound."""
    A, Y = problem(15, 40, 2, 5, iscomplex=not nonneg, nonneg=nonneg)
    groups = np.arange(40) % 13
    weights = np.linspace(0.5, 2.0, 13)
    result = lopro.bpdn(A, Y, 0.4, joint=True, groups=groups, weights=weights, nonneg=nonneg)
    correlations = A.conj().T @ result.dual
    correlations = np.maximum(correlations, 0.0) if nonneg else correlations
    lengths = np.array([np.linalg.norm(correlations[groups == g]) for g in range(13)]) / weights
    assert 1.0 - 1e-6 <= lengths.max() <= 1.0 + 1e-12
    value = np.vdot(Y, result.dual).real - 0.4 * np.linalg.norm(result.dual)
    assert value == pytest.approx(result.certificate.lower_bound, rel=1e-9)
    assert value <= result.fun


def test_rows_of_an_orthogonal_matrix_shrink_by_a_formula() -> None:
    """With ``A = I`` rows shrink by the same length ``t`` each, and the residual is ``t`` in every row."""
    Y = np.array([[3.0, 4.0], [0.0, 2.0], [0.1, 0.0]])
    t = 0.5
    sigma = float(np.sqrt(2.0 * t**2 + 0.1**2))
    result = lopro.bpdn(np.eye(3), Y, sigma, joint=True, tol=1e-10)
    expected = np.array([[3.0 * 0.9, 4.0 * 0.9], [0.0, 1.5], [0.0, 0.0]])
    np.testing.assert_allclose(result.x, expected, atol=1e-8)
    np.testing.assert_array_equal(result.support, [0, 1])
    assert result.fun == pytest.approx(4.5 + 1.5, rel=1e-9)


def test_groups_take_weights_in_the_order_of_their_numbers() -> None:
    y = np.array([3.0, 1.0, 4.0])
    groups, weights = np.array([7, -1, 7]), np.array([3.0, 1.0])  # the group -1 comes first
    result = lopro.bpdn(np.eye(3), y, 1.0, groups=groups, weights=weights, tol=1e-10)
    # Blocks of the identity shrink by t times their weight, and t^2 (9 + 1) = 1.
    t = 10.0**-0.5
    expected = [3.0 * (1.0 - t / 5.0), 1.0 - 3.0 * t, 4.0 * (1.0 - t / 5.0)]
    np.testing.assert_allclose(result.x, expected, atol=1e-8)
    one = lopro.bpdn(np.eye(3), y, 0.5, groups=[0, 1, 2], weights=[1.0, 2.0, 1.0])
    same = lopro.bpdn(np.eye(3), y, 0.5, weights=[1.0, 2.0, 1.0])
    np.testing.assert_array_equal(one.x, same.x)


@pytest.mark.parametrize("iscomplex", [False, True])
@pytest.mark.parametrize(("k", "starts"), [(1, [0, 1, 2, 3, 4]), (2, [0, 2, 3]), (3, [0, 1, 4])])
def test_systems_with_newtons_matrix_are_solved(iscomplex: bool, k: int, starts: list[int]) -> None:
    rng = np.random.default_rng(3)

    def numbers(*shape: int) -> Vector:
        real = rng.standard_normal(shape)
        return real + 1j * rng.standard_normal(shape) if iscomplex else real

    A, Z, F = numbers(7, 5), numbers(5, k), numbers(5, k)
    sizes = np.diff([*starts, 5])
    lengths = np.repeat(np.sqrt(np.add.reduceat((np.abs(Z) ** 2).sum(axis=1), starts)), sizes)
    weights, alpha = np.repeat(rng.random(len(starts)) + 0.5, sizes), 0.7
    u, stiff = Z / lengths[:, None], alpha * weights / lengths
    step = newton_solver(A.conj().T @ A, u, 1.0 / np.sqrt(stiff), np.array(starts))(F)
    along = np.add.reduceat((u.conj() * step).real.sum(axis=1), starts).repeat(sizes)
    across = step - along[:, None] * u
    np.testing.assert_allclose(A.conj().T @ (A @ step) + stiff[:, None] * across, F, atol=1e-12)


@pytest.mark.parametrize(("closeness", "off"), [(0.0, 1e-12), (1e-2, 1e-9), (1e-5, 1e-3)])
def test_newtons_matrix_of_nearly_equal_columns(closeness: float, off: float) -> None:
    rng, n = np.random.default_rng(4), 128
    A = rng.standard_normal((160, n)) + 1j * rng.standard_normal((160, n))
    if closeness:
        A[:, 1] = A[:, 0] + closeness * A[:, 1]
    z = np.exp(rng.uniform(-3.0, 3.0, n)) * np.exp(2j * np.pi * rng.random(n))
    z[1] = 2.0 * z[0]
    u, stiff = (z / np.abs(z))[:, None], 0.3 / np.abs(z)
    F = rng.standard_normal((n, 1)) + 1j * rng.standard_normal((n, 1))
    for size in (1.0, 1e-60, 1e60):
        solve = newton_solver(A.conj().T @ A, u, 1.0 / np.sqrt(stiff), np.arange(n))
        step = solve(size * F)
        across = step - (u.conj() * step).real * u
        found = A.conj().T @ (A @ step) + stiff[:, None] * across
        assert np.linalg.norm(found - size * F) <= off * size * np.linalg.norm(F)


def test_norm_of_blocks() -> None:
    f = BlockNorm([0, 1, 0, 2], weights=[2.0, 1.0, 0.5])
    x = np.array([3.0, -1.0, 4.0, 0.0])
    assert f.value(x) == 11.0 and f.lipschitz().value == pytest.approx(np.sqrt(5.25))
    np.testing.assert_allclose(f.subgradient(x), [1.2, -1.0, 1.6, 0.0])
    np.testing.assert_allclose(f.prox(x, 0.5), [2.4, -0.5, 3.2, 0.0])
    assert f.scale_into_domain(np.array([0.0, 4.0, 0.0, 0.0])) == 0.25
    assert f.minorant(x, 10.0 * x)[0] == 0.0
    np.testing.assert_allclose(f.minorant(x, 10.0 * x)[1], f.subgradient(x))
    np.testing.assert_array_equal(f.moduli(x), [5.0, 1.0, 5.0, 0.0])
    assert f.sublevel_radius(3.0).value == 6.0


@pytest.mark.parametrize("unit", [2.0**-30, 2.0**30])
def test_units_change_nothing(unit: float) -> None:
    A, Y = problem(20, 50, 1, 7, iscomplex=True)
    y = Y[:, 0]
    plain = lopro.bpdn(A, y, 0.3)
    np.testing.assert_array_equal(lopro.bpdn(A, unit * y, unit * 0.3).x, unit * plain.x)
    np.testing.assert_array_equal(lopro.bpdn(unit * A, y, 0.3).x, plain.x / unit)


@pytest.mark.parametrize("kind", ["joint", "complex", "groups"])
def test_single_precision_is_kept(kind: str) -> None:
    A, Y = problem(20, 50, 2, 8, iscomplex=kind == "complex")
    single = np.complex64 if kind == "complex" else np.float32
    A, Y = A.astype(single), Y.astype(single)
    before = A.copy(), Y.copy()
    options: dict[str, Any] = {"tol": 1e-4}
    if kind == "groups":
        options["groups"] = np.arange(50) // 2
    y = Y if kind == "joint" else Y[:, 0]
    result = lopro.bpdn(A, y, 0.5, joint=kind == "joint", **options)
    assert result.success and result.x.dtype == single
    assert np.linalg.norm(A @ result.x - y) <= 0.5 * (1.0 + 1e-5)
    np.testing.assert_array_equal(A, before[0])
    np.testing.assert_array_equal(Y, before[1])


def test_few_products_where_columns_are_available() -> None:
    A, Y = problem(120, 400, 1, 9, iscomplex=True)
    result = lopro.bpdn(A, Y[:, 0], 0.05 * np.linalg.norm(Y))
    assert result.success and result.counts.rmatvecs <= 20 and result.counts.projections == 0


def test_sparse_matrices_and_operators_agree() -> None:
    A, Y = problem(30, 60, 2, 10, iscomplex=True)
    A[np.abs(A) < 1.0] = 0.0
    dense = lopro.bpdn(A, Y, 0.5, joint=True)
    for form in (scipy.sparse.csc_array(A), aslinearoperator(A)):
        result = lopro.bpdn(form, Y, 0.5, joint=True)
        assert result.success
        assert result.fun == pytest.approx(dense.fun, rel=2e-6)


@pytest.mark.parametrize("joint", [False, True])
def test_emptiness_is_proved(joint: bool) -> None:
    A, Y = problem(30, 8, 2, 11, iscomplex=True)
    rest = Y - A @ np.linalg.lstsq(A, Y, rcond=None)[0]
    y, least = (Y, np.linalg.norm(rest)) if joint else (Y[:, 0], np.linalg.norm(rest[:, 0]))
    empty = lopro.bpdn(A, y, least * (1.0 - 1e-6), joint=joint, time_limit=10.0)
    assert empty.status is lopro.Status.INFEASIBLE
    there = lopro.bpdn(A, y, least * (1.0 + 1e-4), joint=joint, time_limit=10.0)
    assert there.success


def test_a_start_saves_work_and_a_zero_solution_is_found() -> None:
    A, Y = problem(40, 120, 3, 12, iscomplex=True)
    cold = lopro.bpdn(A, Y, 0.7, joint=True)
    warm = lopro.bpdn(A, Y, 0.7, joint=True, x0=cold.x)
    assert warm.success and warm.iterations < cold.iterations
    zero = lopro.bpdn(A, Y, 2.0 * np.linalg.norm(Y), joint=True)
    assert zero.success and not zero.x.any()
    near = lopro.bpdn(A, Y, np.linalg.norm(Y) * (1.0 - 1e-10), joint=True)
    assert near.success and len(near.support) == 1


def test_callbacks_are_called_with_matrices() -> None:
    A, Y = problem(15, 40, 2, 13, iscomplex=False)
    seen: list[tuple[int, ...]] = []
    lopro.bpdn(A, Y, 0.5, joint=True, callback=lambda iterate: seen.append(iterate.x.shape))
    assert seen and set(seen) == {(40, 2)}
    stopped = lopro.bpdn(A, Y, 0.5, joint=True, stop=lambda iterate: iterate.x.shape == (40, 2))
    assert stopped.x.shape == (40, 2)


def test_one_joint_right_hand_side_is_the_plain_problem() -> None:
    A, Y = problem(15, 40, 1, 14, iscomplex=False)
    plain = lopro.bpdn(A, Y[:, 0], 0.3)
    together = lopro.bpdn(A, Y[:, 0], 0.3, joint=True)
    np.testing.assert_array_equal(plain.x, together.x)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": [0, 1]}, "groups"),
        ({"groups": np.zeros(4), "weights": [1.0, 2.0]}, "one for each group"),
        ({"groups": np.zeros(4), "weights": [-1.0]}, "nonnegative"),
        ({"groups": np.zeros(4), "weights": 0.0}, "positive"),
        ({"joint": True, "x0": np.zeros(4)}, "x0"),
        ({"joint": True, "weights": [1.0, 2.0]}, "weights"),
    ],
)
def test_bad_input_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lopro.bpdn(np.eye(3, 4), np.ones((3, 2)), 0.1, **options)


def test_a_deadline_holds() -> None:
    A, Y = problem(200, 3000, 1, 15, iscomplex=True)
    result = lopro.bpdn(A, Y[:, 0], 1e-5, time_limit=0.2)
    assert result.seconds < 2.0


def test_many_blocks_are_solved_without_factorisations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The work of a factorisation grows with the cube of the number of blocks, that of a product does not."""
    from lopro.basis_pursuit.blocks import search as block_search

    A, Y = problem(200, 600, 1, 12, iscomplex=True)  # too many entries for a cone program
    sigma = 0.05 * float(np.linalg.norm(Y))
    by_newton = lopro.bpdn(A, Y[:, 0], sigma)
    settings = dataclasses.replace(block_search.SETTINGS, expensive=1e-3, quick=0.0)
    monkeypatch.setattr(block_search, "SETTINGS", settings)
    by_products = lopro.bpdn(A, Y[:, 0], sigma)
    assert by_newton.success and by_newton.counts.matvecs == 0
    assert by_products.success and by_products.counts.matvecs > 10
    assert by_products.fun == pytest.approx(by_newton.fun, rel=2e-6)
    # For equations and for single precision there is no alternative method.
    single = A.astype(np.complex64), Y[:, 0].astype(np.complex64)
    assert lopro.bpdn(*single, sigma, tol=1e-4).counts.matvecs == 0
    assert lopro.bpdn(A, Y[:, 0], 0.0, tol=1e-6).counts.matvecs == 0
