"""Ill-conditioned problems in singular coordinates: exact cases, proofs, and refused problems."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.rotated_program import RotatedProgram, rotated_solution
from lopro.objectives import L1Norm


def spread(rng: np.random.Generator, m: int, n: int, fall: float) -> np.ndarray:
    """Return a matrix whose singular values fall from 1 to ``fall``."""
    U, _ = np.linalg.qr(rng.standard_normal((m, m)))
    V, _ = np.linalg.qr(rng.standard_normal((n, m)))
    return U @ np.diag(np.geomspace(1.0, fall, m)) @ V.T


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_a_diagonal_problem_has_a_known_answer(unit, nonneg, sigma):
    """``min |x1| + 2 |x2|, |diag(1, 1e-6) x - (0, 1)| <= sigma``: ``x2 = (1 - sigma) / 1e-6``, by ``nu2``."""
    A, y = np.diag([1.0, 1e-6]), unit * np.array([0.0, 1.0])
    found = rotated_solution(A, y, sigma * unit, L1Norm(np.array([1.0, 2.0])), nonneg)
    assert found is not None
    x2 = unit * (1.0 - sigma) / 1e-6
    assert found.x == pytest.approx([0.0, x2], rel=1e-8, abs=1e-8 * x2)
    value = float(found.nu @ y) - sigma * unit * float(np.linalg.norm(found.nu))
    assert value == pytest.approx(2.0 * x2, rel=1e-8)
    assert found.stretch == pytest.approx(1.0)


def test_the_residual_outside_the_range_of_a_tall_matrix_is_in_the_dual_point():
    """``(x - 3)^2 + 4 <= 4.25`` leaves ``x = 2.5``; the residual (0.5, 2) is half of the dual point."""
    A, y = np.array([[1.0], [0.0]]), np.array([3.0, 2.0])
    found = rotated_solution(A, y, 4.25**0.5, L1Norm(), False)
    assert found is not None
    assert found.x == pytest.approx([2.5], rel=1e-7)
    assert found.nu == pytest.approx([1.0, 4.0], rel=1e-6)


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_directions_of_complex_numbers_and_of_blocks(sigma):
    """One block of length 1 / a, in the direction of the measurement, reduced by what the radius allows."""
    towards = np.array([0.6, 0.8])
    A, norm = np.diag([1e-3, 1e-3, 1.0]), BlockNorm([1, 1, 0], weights=[1.0, 2.0])
    found = rotated_solution(A, np.append(towards, 0.0), sigma, norm, False)
    assert found is not None and found.x.dtype == np.float64
    length = (1.0 - sigma) / 1e-3
    assert found.x == pytest.approx([*(length * towards), 0.0], rel=1e-8, abs=1e-6)
    # The slope of the norm, pulled back: A'nu is w times the direction on the block.
    assert A.T @ found.nu == pytest.approx([*(2.0 * towards), 0.0], rel=1e-8, abs=1e-8)
    phase = complex(*towards)
    found = rotated_solution(1e-3j * np.eye(1), np.array([phase]), sigma, L1Norm(2.0), False)
    assert found is not None
    assert found.x == pytest.approx([-1j * phase * length], rel=1e-8)
    assert found.nu == pytest.approx([2e3 * phase], rel=1e-8)


@pytest.mark.parametrize("kind", [float, complex])
def test_interior_points_take_blocks_of_several_sizes(kind):
    """Blocks of 3, 1 and 2 entries in no order: the nearest point of the dual ball gives the value."""
    labels = [4, 7, 4, 9, 4, 9]
    y = np.array([2.0, 3.0, 0.0, 3.0, 1.0, 4.0], dtype=kind)
    y = y * np.exp(0.7j) if kind is complex else y
    problem = lopro.basis_pursuit.bpdn_problem(np.eye(6), y, 1.0, groups=labels)
    found = lopro.solve(problem, method=lopro.baselines.InteriorPoint(), tol=1e-8)
    known = lopro.bpdn(np.eye(6), y, 1.0, groups=labels, tol=1e-10)
    assert found.success and known.success
    assert found.fun == pytest.approx(known.fun, rel=1e-7)


@pytest.mark.parametrize("nonneg", [False, True])
def test_groups_of_an_ill_conditioned_matrix(nonneg):
    A = spread(np.random.default_rng(3), 12, 24, 1e-7)
    x = np.zeros(24)
    x[4:8] = 1.0
    problem = lopro.basis_pursuit.bpdn_problem(
        A, A @ x, 1e-3, groups=np.arange(24) // 4, nonneg=nonneg
    )
    found = lopro.solve(problem, method=RotatedProgram(), tol=1e-6)
    assert found.success and found.fun <= 2.0


@pytest.mark.parametrize("real_y", [False, True])
@pytest.mark.parametrize("sigma", [0.0, 0.05])
def test_complex_and_coherent_problems_are_solved_with_a_proof(sigma, real_y):
    """Columns with correlations of 0.9 and more: Newton's method cycles there."""
    rng = np.random.default_rng(4)
    common = rng.standard_normal((25, 1)) + 1j * rng.standard_normal((25, 1))
    A = 3.0 * common + rng.standard_normal((25, 80)) + 1j * rng.standard_normal((25, 80))
    y = rng.standard_normal(25) + (0.0 if real_y else 1j * rng.standard_normal(25))
    radius = sigma * float(np.linalg.norm(y))
    found = rotated_solution(A, y, radius, L1Norm(), False)
    assert found is not None
    assert np.linalg.norm(A @ found.x - y) <= radius * (1 + 1e-7) + 1e-9
    gauge = float(np.abs(A.conj().T @ found.nu).max())
    bound = float(np.vdot(found.nu, y).real) - radius * float(np.linalg.norm(found.nu))
    assert bound / gauge == pytest.approx(float(np.abs(found.x).sum()), rel=1e-8)
    for given in (A, aslinearoperator(A)):
        result = lopro.bpdn(given, y, radius, time_limit=20.0)
        assert result.success and result.fun == pytest.approx(bound / gauge, rel=1e-6)


def test_an_unreachable_radius_is_left_to_other_methods():
    assert rotated_solution(np.ones((2, 1)), np.array([1.0, -1.0]), 1.0, L1Norm(), False) is None


@pytest.mark.parametrize("fall", [1e-6, 1e-8])
@pytest.mark.parametrize("shape", [(9, 14), (20, 70)])
def test_ill_conditioned_problems_are_solved_with_a_proof(fall, shape):
    rng = np.random.default_rng(1)
    A, y = spread(rng, *shape, fall), rng.standard_normal(shape[0])
    sigma = 0.05 * float(np.linalg.norm(y))
    result = lopro.bpdn(A, y, sigma, time_limit=20.0)
    assert result.success and np.linalg.norm(A @ result.x - y) <= sigma * (1 + 1e-9)
    # The bound is computed in long double from the dual point alone.
    nu = result.dual.astype(np.longdouble)
    gauge = np.abs(A.T.astype(np.longdouble) @ nu).max()
    shown = (y @ nu - sigma * np.sqrt(nu @ nu)) / max(gauge, 1)
    assert shown >= result.fun * (1 - 1e-5)


def test_a_good_start_is_not_mistaken_for_bad_units():
    """The residual of a start that nearly meets the equations is tiny, and no reason to refuse ``y``."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((10, 20)).astype(np.float32)
    x = np.zeros(20, np.float32)
    x[:2] = 1e-9
    y = A @ x
    products = lopro.MatrixFree()
    sigma = 1e-3 * float(np.linalg.norm(y))
    start = np.where(x > 0.0, np.nextafter(x, np.float32(1.0)), x)
    result = lopro.bpdn(A, y, sigma, x0=start, tol=1e-2, method=products, time_limit=5.0)
    assert result.certificate.violation <= 1e-5
    small = np.float32(1e-7) * y
    with pytest.raises(ValueError, match="y must be given in other units"):
        lopro.bpdn(A, small, 1e-7 * sigma, tol=1e-2, method=products)
    # Equations are solved on columns in double precision, where these units are within the range.
    solved = lopro.bpdn(A, small, 0.0, tol=1e-2, method=products)
    assert solved.success and solved.fun == pytest.approx(2e-16, rel=1e-5, abs=0.0)
