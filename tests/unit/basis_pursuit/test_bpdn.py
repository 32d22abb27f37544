"""`lopro.bpdn` on problems whose solution is known by construction, and on special cases.

Construction: choose the solution x* and a dual point nu with ``A_S' nu = w_S sign(x*_S)`` and strict
inequality elsewhere (columns are shrunk where that fails); then ``y = A x* + sigma nu / |nu|``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator
from support.bpdn_constructed import Constructed, check, constructed
from support.theorem_checks import Recorded

import lopro
from lopro.methods.paper.adaptive import AdaptiveSmoothing


@pytest.mark.parametrize("decades", [0.0, 6.0])
@pytest.mark.parametrize("kind", ["dense", "sparse", "weighted", "nonneg", "complex"])
@pytest.mark.parametrize("block", range(3))
def test_constructed_optima_are_found(kind: str, decades: float, block: int) -> None:
    """240 instances: value to 1e-8 relative, and the point itself; dynamic range 1 and 1e6."""
    for seed in range(8 * block, 8 * block + 8):
        known = constructed(seed, kind=kind, decades=decades)
        A = scipy.sparse.csr_array(known.A) if kind == "sparse" else known.A
        weights = known.weights if kind == "weighted" else None
        result = lopro.bpdn(A, known.y, known.sigma, weights=weights, nonneg=known.nonneg, tol=1e-9)
        check(known, result, 1e-8)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["dense", "complex"])
def test_constructed_optima_are_found_with_operators(kind: str, seed: int) -> None:
    """Operators are solved by a matrix-free method."""
    known = constructed(seed, kind=kind)
    result = lopro.bpdn(aslinearoperator(known.A), known.y, known.sigma, tol=1e-7)
    optimum = float(known.weights @ np.abs(known.x))
    assert result.success, str(result)
    assert abs(result.fun - optimum) <= 2e-7 * optimum
    assert result.certificate.lower_bound <= optimum * (1.0 + 1e-10)


@pytest.mark.parametrize("seed", range(10))
def test_without_strict_complementarity(seed: int) -> None:
    """Correlations exactly at their limit: the value is accurate, or the run is not reported as a success."""
    known = constructed(seed, kind="dense", slack=1.0)
    result = lopro.bpdn(known.A, known.y, known.sigma, tol=1e-8, max_iter=50_000)
    optimum = float(np.abs(known.x).sum())
    assert result.certificate.lower_bound <= optimum * (1.0 + 1e-10)
    assert result.success, str(result)
    assert abs(result.fun - optimum) <= 2e-8 * optimum


def test_the_check_detects_a_wrong_answer() -> None:
    """Negative control: the solution for another sigma is not accepted."""
    known = constructed(0, kind="dense")
    with pytest.raises(AssertionError):
        check(known, lopro.bpdn(known.A, known.y, 0.5 * known.sigma, tol=1e-9), 1e-8)


def test_products_with_the_whole_matrix_are_few() -> None:
    rng = np.random.default_rng(0)
    A = rng.uniform(-1, 1, (200, 1000))
    x = np.zeros(1000)
    S = rng.choice(1000, 20, replace=False)
    x[S] = rng.uniform(-1, 1, 20)
    e = rng.uniform(-0.01, 0.01, 200)
    result = lopro.bpdn(A, A @ x + e, float(np.linalg.norm(e)), tol=1e-8)
    c, k = result.counts, result.certificate_counts
    assert result.success
    assert c.matvecs + c.rmatvecs + k.matvecs + k.rmatvecs <= 20
    warm = lopro.bpdn(A, A @ x + e, float(np.linalg.norm(e)), x0=result.x, tol=1e-8)
    assert warm.iterations == 1


@pytest.mark.parametrize("order", ["C", "F"])
def test_the_matrix_is_neither_copied_nor_changed(order: str) -> None:
    known = constructed(1, kind="dense", d=400)
    A = np.asarray(known.A, order=order)
    A.setflags(write=False)
    y = known.y.copy()
    result = lopro.bpdn(A, y, known.sigma)
    assert result.success
    np.testing.assert_array_equal(y, known.y)


def test_single_precision_is_kept() -> None:
    known = constructed(2, kind="dense")
    result = lopro.bpdn(
        known.A.astype(np.float32), known.y.astype(np.float32), known.sigma, tol=1e-4
    )
    assert result.success and result.x.dtype == np.float32


def test_zero_solution_duplicates_zero_columns_and_more_rows_than_columns() -> None:
    known = constructed(3, kind="dense")
    zero = lopro.bpdn(known.A, known.y, 2.0 * float(np.linalg.norm(known.y)))
    assert zero.success and zero.fun == 0.0 and zero.certificate.gap == 0.0
    optimum = float(np.abs(known.x).sum())
    doubled = np.hstack([known.A, known.A, np.zeros((40, 3))])
    result = lopro.bpdn(doubled, known.y, known.sigma, tol=1e-8)
    assert result.success and abs(result.fun - optimum) <= 1e-7 * optimum
    rng = np.random.default_rng(3)
    tall = rng.standard_normal((60, 20))
    result = lopro.bpdn(tall, tall @ rng.standard_normal(20), 0.5, tol=1e-8)
    assert result.success


def test_an_unreachable_sigma_is_infeasible() -> None:
    rng = np.random.default_rng(4)
    for rows, columns in (
        (60, 20),
        (900, 400),
    ):  # below and above the size up to which A is factored first
        A, y = rng.standard_normal((rows, columns)), rng.standard_normal(rows)
        result = lopro.bpdn(A, y, 0.1)
        assert result.status is lopro.Status.INFEASIBLE
        assert any("least-squares residual" in w for w in result.warnings)


def test_real_measurements_of_a_complex_map() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 50)) + 1j * rng.standard_normal((20, 50))
    y = rng.standard_normal(20)
    result = lopro.bpdn(A, y, sigma=0.1)
    same = lopro.bpdn(A, y + 0j, sigma=0.1)
    assert result.success and np.iscomplexobj(result.dual)
    assert np.array_equal(result.x, same.x) and np.array_equal(result.dual, same.dual)


def test_basis_pursuit() -> None:
    known = constructed(5, kind="dense")
    y = known.A @ known.x
    result = lopro.bpdn(known.A, y, 0.0, tol=1e-8)
    optimum = float(np.abs(known.x).sum())
    assert result.success and abs(result.fun - optimum) <= 1e-8 * optimum


def test_dual_solution_bounds_the_optimum() -> None:
    known = constructed(6, kind="weighted")
    result = lopro.bpdn(known.A, known.y, known.sigma, weights=known.weights, tol=1e-8)
    nu = result.dual
    assert (np.abs(known.A.T @ nu) <= known.weights * (1 + 1e-12)).all()
    value = known.y @ nu - known.sigma * np.linalg.norm(nu)
    assert value == pytest.approx(float(known.weights @ np.abs(known.x)), rel=1e-8)
    assert sorted(result.support) == sorted(np.flatnonzero(known.x))


def dual_value(known: Constructed, result: lopro.BPDNResult) -> float:
    """Return the bound that the dual point proves, after checking that the point is dual feasible."""
    correlations = known.A.conj().T @ result.dual
    size = correlations.real if known.nonneg else np.abs(correlations)
    assert (size <= known.weights * (1 + 1e-12)).all()
    pairing = float(np.vdot(known.y, result.dual).real)
    return pairing - known.sigma * float(np.linalg.norm(result.dual))


@pytest.mark.parametrize("method", [None, lopro.MatrixFree()], ids=["default", "matrix-free"])
@pytest.mark.parametrize("kind", ["weighted", "complex", "nonneg"])
def test_the_dual_proves_the_bound_of_the_certificate(kind: str, method: Any) -> None:
    known = constructed(8, kind=kind)
    result = lopro.bpdn(
        known.A,
        known.y,
        known.sigma,
        method=method,
        weights=known.weights,
        nonneg=known.nonneg,
        tol=1e-5,
    )
    assert result.success, str(result)
    assert dual_value(known, result) == pytest.approx(result.certificate.lower_bound, rel=1e-11)


@pytest.mark.parametrize(
    "method",
    [lopro.MultiplierMethod(), lopro.LoPNAG(AdaptiveSmoothing())],
    ids=["multipliers", "LoPNAG"],
)
def test_the_dual_of_other_methods_is_a_bound(method: Any) -> None:
    known = constructed(8, kind="dense")
    result = lopro.bpdn(known.A, known.y, known.sigma, method=method, tol=1e-5)
    assert result.success, str(result)
    optimum = float(np.abs(known.x).sum())
    assert (1.0 - 1e-2) * optimum <= dual_value(known, result) <= (1.0 + 1e-12) * optimum


def residual_value(known: Constructed, x: Any) -> float:
    """Return the lower bound from the residual at a point, scaled to be dual feasible."""
    r = known.y - known.A @ x
    pairing = float(known.y @ r) - known.sigma * float(np.linalg.norm(r))
    return pairing / float(np.abs(known.A.T @ r).max())


@pytest.mark.parametrize("steps", [10, 40, 160])
def test_the_dual_of_other_methods_is_the_better_of_two_residuals(steps: int) -> None:
    """The residuals of the answer and of the point before its projection: either bound may be the larger."""
    known = constructed(8, kind="dense")
    inner = lopro.inner.AcceleratedGradient(restart=True)
    method = Recorded(lopro.OneProjection(inner, lopro.penalties.Softplus(3.0, 0.01), steps))
    result = lopro.bpdn(known.A, known.y, known.sigma, method=method, tol=1e-5)
    values = [residual_value(known, x) for x in (result.x, method.seen[0].x_hat)]
    assert abs(values[0] - values[1]) > 1e-6 * max(values)
    assert dual_value(known, result) == pytest.approx(max(values), rel=1e-10)


def test_several_right_hand_sides_and_paths() -> None:
    known = constructed(7, kind="dense")
    Y = np.column_stack([known.y, 2.0 * known.y])
    results = lopro.bpdn(known.A, Y, [known.sigma, 2.0 * known.sigma], tol=1e-8)
    assert results[1].fun == pytest.approx(2.0 * results[0].fun, rel=1e-7)
    path = lopro.bpdn_path(known.A, known.y, [0.05, 0.5, 0.1], tol=1e-8)
    assert all(r.success for r in path)
    assert path[1].fun < path[2].fun < path[0].fun


BAD = {
    "sigma": (lambda A, y: lopro.bpdn(A, y, -1.0), ValueError, "sigma"),
    "shape": (lambda A, y: lopro.bpdn(A, y[:-1], 0.1), ValueError, "y"),
    "nan": (lambda A, y: lopro.bpdn(A, np.nan * y, 0.1), ValueError, "y"),
    "matrix": (lambda A, y: lopro.bpdn(np.inf * A, y, 0.1), ValueError, "A"),
    "weights": (lambda A, y: lopro.bpdn(A, y, 0.1, weights=0.0), ValueError, "weights"),
    "complex nonneg": (lambda A, y: lopro.bpdn(1j * A, y, 0.1, nonneg=True), TypeError, "nonneg"),
    "x0": (lambda A, y: lopro.bpdn(A, y, 0.1, x0=np.zeros(3)), ValueError, "x0"),
    "path": (lambda A, y: lopro.bpdn_path(A, y, []), ValueError, "sigmas"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, error, argument = BAD[name]
    A = np.random.default_rng(0).standard_normal((5, 8))
    with pytest.raises(error, match=argument):
        call(A, A[:, 0])
