"""Lower bounds of `MatrixFree`: the value of a dual point, less its rounding error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator
from support.point_histories import history_of

import lopro
from lopro.basis_pursuit.operators.history import Point
from lopro.basis_pursuit.operators.mixing import Blend
from lopro.basis_pursuit.problem import SparseProblem


def problem(seed: int, dtype: Any) -> tuple[Any, LinearOperator, Any, float]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((40, 120))
    if np.dtype(dtype).kind == "c":
        A = A + 1j * rng.standard_normal(A.shape)
    A = A.astype(dtype)
    x = np.zeros(120)
    x[:5] = [1.0, -2.0, 3.0, 1.0, 1.0]
    y = (A @ x + 0.1 * rng.standard_normal(40)).astype(dtype)
    operator = LinearOperator(
        A.shape, matvec=lambda v: A @ v, rmatvec=lambda u: A.conj().T @ u, dtype=dtype
    )
    return A, operator, y, 0.7


def charged(seed: int, dtype: Any, steps: int) -> float:
    """Return the slack ``1 - |A'nu|_inf`` of the dual point, in units of its rounding.

    The unit is ``8 eps |A'nu|``: the rounding error of the largest correlation. The lower bound is the value
    of the dual point, which is computed in extended precision here.
    """
    A, operator, y, sigma = problem(seed, dtype)
    eps = float(np.finfo(dtype).eps)
    result = lopro.bpdn(
        operator, y, sigma, tol=1e3 * eps, max_iter=steps, method=lopro.MatrixFree()
    )
    wide = np.clongdouble if A.dtype.kind == "c" else np.longdouble
    nu, data = np.asarray(result.dual).astype(wide), y.astype(wide)
    length, size = (np.sqrt(np.sum(np.abs(v) ** 2)) for v in (nu, data))
    value = np.sum(data.conj() * nu).real - sigma * length
    double = float(np.finfo(np.float64).eps)
    assert 0.0 <= value - result.certificate.lower_bound <= 32.0 * double * (size + sigma) * length
    pulled = A.conj().T.astype(wide) @ nu
    unit = 8.0 * eps * np.sqrt(np.sum(np.abs(pulled) ** 2))
    return float((1.0 - np.abs(pulled).max()) / unit)


DTYPES = [np.float32, np.complex64, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", range(4))
def test_the_dual_of_a_point_is_shortened_by_one_unit_of_rounding(seed: int, dtype: Any) -> None:
    """After one step there is no mixture. The comparison itself has an error of an eighth of the unit."""
    assert charged(seed, dtype, 1) == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_dual_of_a_mixture_is_shortened_for_rounding_magnified_by_its_weights(
    dtype: Any,
) -> None:
    found = [charged(seed, dtype, steps) for seed in range(4) for steps in (2, 3, 5, 8, 12, 16)]
    assert min(found) >= 0.75
    assert max(found) >= 2.0


def test_the_growth_of_rounding_includes_cancellation_between_the_parts_of_a_mixture() -> None:
    """Weights are affine in the parameter: both terms may be large where their sum is small."""
    rng = np.random.default_rng(3)
    points = []
    for alpha in (1.0, 1.00001, 1.00003):
        rho, r = (rng.standard_normal(6).astype(np.float32) for _ in range(2))
        points.append((Point(np.ones(6, dtype=np.float32), r, r, alpha, 0.0), rho))
    blend = Blend(history_of(points))
    lengths = np.array([p.length for p, _ in points])
    for alpha in (0.9, 1.1):
        mixture = blend.at(alpha)
        at, slope = blend._line
        parts = np.abs(at) @ lengths + abs(alpha / 1.00003 - 1.0) * (np.abs(slope) @ lengths)
        assert mixture.growth == pytest.approx(parts / mixture.length, rel=1e-5)
        exact = sum(
            t * p.r.astype(np.float64)
            for t, (p, _) in zip(blend._weights(alpha), points, strict=True)
        )
        error = np.linalg.norm(mixture.r - exact)
        assert error <= 4.0 * np.finfo(np.float32).eps * mixture.growth * mixture.length


def test_rounding_is_estimated_by_the_size_of_the_map_at_a_start_with_an_orthogonal_residual(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Near the least-squares residual ``A'r`` is tiny; rounding of ``A'r`` is still that of a large ``A``."""
    rng = np.random.default_rng(5)
    U, _ = np.linalg.qr(rng.standard_normal((5, 5)))
    A = (U[:, :3] * np.array([3e6, 2e6, 9e5])) @ np.linalg.qr(rng.standard_normal((17, 3)))[0].T
    y = U[:, :3] @ rng.standard_normal(3) + 0.003 * U[:, 3]
    x0 = np.linalg.pinv(A, rcond=1e-10) @ y
    sigma = float(np.linalg.norm(y - A @ x0)) * (1.0 + 1e-9)
    proved, seen = SparseProblem.proved, []

    def recorded(self: Any, r: Any, g: Any, stretch: float = 0.0, *more: Any, **named: Any) -> Any:
        seen.append(stretch)
        return proved(self, r, g, stretch, *more, **named)

    monkeypatch.setattr(SparseProblem, "proved", recorded)
    lopro.bpdn(A, y, sigma, x0=x0, tol=1e-10, max_iter=30, method=lopro.MatrixFree())
    assert seen and min(seen) >= 8e5
