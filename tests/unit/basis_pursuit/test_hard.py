"""`lopro.bpdn` where solutions have almost as many nonzeros as rows, and where A is ill-conditioned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

import lopro


def noisy(seed: int, m: int, d: int, nonzeros: int) -> tuple[Any, Any, float]:
    """Return the paper's recipe at another size: matrix, measurements, and the norm of the noise."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1, 1, (m, d))
    x = np.zeros(d)
    x[rng.choice(d, nonzeros, replace=False)] = rng.uniform(-1, 1, nonzeros)
    e = rng.uniform(-0.01, 0.01, m)
    return A, A @ x + e, float(np.linalg.norm(e))


def ill_conditioned(
    seed: int, decades: float, noise: float, *, m: int = 200, d: int = 800
) -> tuple[Any, Any, float, Any]:
    """Return a matrix whose singular values are spread over some decades, measurements of a sparse
    vector, the norm of the noise, and that vector.
    """
    rng = np.random.default_rng(seed)
    U, _ = np.linalg.qr(rng.standard_normal((m, m)))
    V, _ = np.linalg.qr(rng.standard_normal((d, m)))
    A = (U * np.geomspace(1.0, 10.0**-decades, m)) @ V.T
    x = np.zeros(d)
    x[rng.choice(d, 12, replace=False)] = rng.uniform(-1, 1, 12)
    clean = A @ x
    e = rng.standard_normal(m)
    e *= noise * np.linalg.norm(clean) / np.linalg.norm(e)
    return A, clean + e, float(np.linalg.norm(e)), x


@pytest.mark.parametrize("part", [3.0, 10.0, 100.0])
@pytest.mark.parametrize(("m", "d"), [(300, 1200), (200, 2600)])
def test_a_small_radius_is_reached_along_the_path(m: int, d: int, part: float) -> None:
    """The support nearly fills the rows; Newton's method reaches it without first-order steps."""
    A, y, sigma = noisy(4, m, d, 20)
    result = lopro.bpdn(A, y, sigma / part, tol=1e-8)
    assert result.success, str(result)
    assert result.iterations <= 150
    assert len(result.support) > 0.7 * m
    assert result.certificate.violation <= 1e-9


@pytest.mark.parametrize("seed", [2, 12])
def test_basis_pursuit_with_as_many_nonzeros_as_rows(seed: int) -> None:
    """Any 60 columns solve the equations: only the path leads to the right ones. A linear program agrees."""
    A, y, _ = noisy(seed, 60, 220, 8)
    result = lopro.bpdn(A, y, 0.0, tol=1e-8)
    reference = linprog(np.ones(440), A_eq=np.hstack([A, -A]), b_eq=y).fun
    assert result.success, str(result)
    assert result.fun == pytest.approx(reference, rel=1e-7)
    assert np.count_nonzero(np.abs(result.x) > 1e-9) == 60


@pytest.mark.parametrize("noise", [1e-2, 1e-3, 1e-6])
@pytest.mark.parametrize("seed", range(2))
def test_singular_values_over_eight_decades(seed: int, noise: float) -> None:
    A, y, sigma, _ = ill_conditioned(seed, 8.0, noise)
    result = lopro.bpdn(A, y, sigma, tol=1e-8)
    assert result.success, str(result)
    assert float(np.linalg.norm(A @ result.x - y)) <= sigma * (1.0 + 1e-9)
    # The bound is checked independently: the dual point is feasible and proves it.
    assert np.abs(A.T @ result.dual).max() <= 1.0 + 1e-9
    proved = float(y @ result.dual) - sigma * float(np.linalg.norm(result.dual))
    assert result.fun - proved <= 1e-7 * result.fun


@pytest.mark.parametrize("seed", range(3))
def test_twelve_decades_are_solved_as_far_as_can_be_proved(seed: int) -> None:
    """A radius of 1e-9: a feasible point, five digits with a proof, and eight only where they are proved.

    The vector that was measured is feasible up to rounding, so the optimum is no larger, and a bound above
    its length would be wrong.
    """
    A, y, sigma, measured = ill_conditioned(seed, 12.0, 1e-9, m=60, d=200)
    length = float(np.abs(measured).sum())
    result = lopro.bpdn(A, y, sigma, tol=1e-8, max_iter=2000)
    assert 0.9 * length < result.fun <= length
    assert result.certificate.relative_gap <= 1e-5
    assert result.success == (result.certificate.relative_gap <= 1e-8)
    nu = result.dual.astype(np.longdouble)
    feasible = max(np.abs(A.T.astype(np.longdouble) @ nu).max(), 1.0)
    proved = (y @ nu - sigma * np.sqrt(nu @ nu)) / feasible
    assert result.certificate.lower_bound <= float(proved) * (1.0 + 1e-6)
    assert float(np.linalg.norm(A @ result.x - y)) <= sigma * (1.0 + 1e-9)
    assert result.certificate.violation <= 1e-9
    assert 0.0 < result.certificate.lower_bound <= length * (1.0 + 1e-6)
    # The gap includes the charge: the multiplier times the violation that rounding of the residual may hide.
    gap = float(np.abs(result.x).sum()) - result.certificate.lower_bound + result.certificate.charge
    assert result.certificate.gap == pytest.approx(gap, rel=1e-12)
    assert result.certificate.relative_gap == pytest.approx(gap / result.fun, rel=1e-12)
