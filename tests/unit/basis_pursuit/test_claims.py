"""Claims of basis pursuit: bounds accurate to rounding, proved infeasibility, charges for violations."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro.basis_pursuit.application import bpdn_problem
from lopro.basis_pursuit.problem import SparseProblem
from lopro.constraints import ResidualBall
from lopro.constraints.base import ValidInequality
from lopro.core.exact import support_of_ball
from lopro.driver.incumbent import Incumbent
from lopro.maps import linear_map
from lopro.projections.empty_ball import residual_exceeds
from lopro.protocol import Candidate, Multiplier, Target


def exact_support(y: Any, sigma: float, nu: Any) -> Any:
    with mpmath.workdps(80):
        terms = [
            mpmath.mpc(complex(a)).conjugate() * complex(b) for a, b in zip(y, nu, strict=True)
        ]
        size = mpmath.sqrt(mpmath.fsum(abs(mpmath.mpc(complex(b))) ** 2 for b in nu))
        return mpmath.fsum(t.real for t in terms) + mpmath.mpf(sigma) * size


@pytest.mark.parametrize("unit", [1.0, 1e-150, 1e150])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.complex128])
def test_a_support_value_that_cancels_is_accurate_to_rounding(kind: Any, unit: float) -> None:
    if kind is np.float32:
        unit = 1.0
    rng = np.random.default_rng(0)
    y = rng.standard_normal(50)
    y = (y + 1j * rng.standard_normal(50) if kind is np.complex128 else y).astype(kind)
    nu = (-y * (1.0 + 1e-9 * rng.standard_normal(50))).astype(kind)
    y = y * kind(unit)
    sigma = float(np.linalg.norm(y.astype(np.complex128))) * (1.0 - 1e-13)
    found, exact = support_of_ball(y, sigma, nu), exact_support(y, sigma, nu)
    assert exact <= found <= math.nextafter(math.nextafter(float(exact), math.inf), math.inf)


def test_the_support_of_a_ball_is_rounded_up_by_little() -> None:
    rng = np.random.default_rng(1)
    for sigma in (0.0, 1.0, 100.0):
        y, nu = rng.standard_normal(30), rng.standard_normal(30)
        ball = ResidualBall(np.eye(30), y, sigma)
        exact = exact_support(y, sigma, nu)
        terms = (np.linalg.norm(y) + sigma) * np.linalg.norm(nu)
        assert exact <= ball.support_image((nu,)) <= exact + 9.0 * 2.3e-16 * terms


@pytest.mark.parametrize("below", [1e-3, 1e-7, 1e-11, 1e-13])
def test_a_bound_close_to_y_is_valid_and_tight(below: float) -> None:
    """With one column the solution has a closed form, and the bound equals the value there."""
    rng = np.random.default_rng(2)
    a, y = rng.standard_normal(5), rng.standard_normal(5)
    sigma = float(np.linalg.norm(y)) * (1.0 - below)
    with mpmath.workdps(60):
        aa, ay, yy = (
            mpmath.fsum(mpmath.mpf(float(s)) * float(t) for s, t in zip(u, v, strict=True))
            for u, v in ((a, a), (a, y), (y, y))
        )
        rest = yy - mpmath.mpf(sigma) ** 2
        optimum = rest / (abs(ay) + mpmath.sqrt(ay**2 - aa * rest))
    result = lopro.bpdn(a[:, None], y, sigma, tol=1e-9, time_limit=5.0)
    assert result.certificate.lower_bound <= optimum * (1 + mpmath.mpf(1e-15))
    assert result.success
    assert float(result.fun / optimum) == pytest.approx(1.0, rel=2e-9)


def test_the_gauge_allows_for_the_rounding_of_correlations() -> None:
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((20, 40)), rng.standard_normal(20)
    sparse = SparseProblem.of(bpdn_problem(A, y, 0.1), np.zeros(40))
    g = A.T @ y
    plain, stretched = sparse.proved(y, g, 0.0), sparse.proved(y, g, stretch=1e6, growth=10.0)
    assert plain is not None and stretched is not None
    eps = np.finfo(float).eps
    for found, stretch, growth in (
        (plain, np.linalg.norm(g) / np.linalg.norm(y), 1.0),
        (stretched, 1e6, 10.0),
    ):
        gauge = np.abs(g).max() + 8.0 * eps * growth * stretch * np.linalg.norm(y)
        assert found.dual is not None
        np.testing.assert_allclose(found.dual[0], -y / gauge, rtol=1e-14)
        value = (y @ y - 0.1 * np.linalg.norm(y)) / gauge
        assert -found.support == pytest.approx(value, rel=1e-13)
        assert -found.support <= value


def test_a_violation_is_charged_to_the_gap() -> None:
    """The gain from a violation, ``nu * excess``, is a part of the gap: here it is the whole gap."""
    problem = bpdn_problem(np.eye(1, 2), np.array([2.0]), 1.0)  # x_1 in [1, 3], the optimum is 1
    known = Incumbent(problem, Target(1e-6, 0.0), [])
    outside = np.array([1.0 - 1e-10, 1e-10])
    judged = known.judge(outside)
    assert judged.feasible and judged.fun == 1.0
    inequality = ValidInequality(np.array([-1.0, 0.0]), -1.0, (np.array([-1.0]),))
    known.update(Candidate(outside, Multiplier(inequality)), judged.fun, None)
    assert known.certificate.lower_bound == 1.0
    assert known.certificate.gap == pytest.approx(1e-10, rel=1e-5)


def test_a_bound_that_is_too_large_gives_no_success() -> None:
    """The point violates the false inequality, and the gap is at least that violation."""
    problem = bpdn_problem(np.eye(1), np.array([2.0]), 1.0)
    known = Incumbent(problem, Target(1e-6, 0.0), [])
    x = np.array([1.0])
    judged = known.judge(x)
    bold = ValidInequality(np.array([-1.0]), -1.00001, (np.array([-1.0]),))
    known.update(Candidate(x, Multiplier(bold)), judged.fun, None)
    assert known.certificate.gap == pytest.approx(1e-5, rel=1e-6)
    assert not known.certified


@pytest.mark.parametrize("operator", [False, True])
def test_infeasibility_requires_a_proof(operator: bool) -> None:
    rng = np.random.default_rng(4)
    A, y = rng.standard_normal((30, 8)), rng.standard_normal(30)
    rest = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    least = float(np.linalg.norm(rest))
    form = aslinearoperator(A) if operator else A
    empty = lopro.bpdn(form, y, least * (1.0 - 1e-6), time_limit=10.0)
    assert empty.status is lopro.Status.INFEASIBLE
    there = lopro.bpdn(form, y, least * (1.0 + 1e-6), time_limit=10.0)
    assert there.status is not lopro.Status.INFEASIBLE


def test_a_direction_of_small_singular_value_is_no_proof() -> None:
    U, _ = np.linalg.qr(np.random.default_rng(5).standard_normal((6, 6)))
    y = U[:, -1] + U[:, 0]
    for least, proof in ((1e-12, False), (0.0, True)):
        A = linear_map(U @ np.diag([1.0, 1.0, 1.0, 1.0, 1.0, least]))
        assert residual_exceeds(A, y, 0.5, U[:, -1]) is proof
        assert not residual_exceeds(A, y, 1.0 + 1e-12, U[:, -1])


def test_rounding_to_single_precision_is_not_mistaken_for_low_rank() -> None:
    A = np.diag([1.0, 1e-9]).astype(np.float32)
    result = lopro.bpdn(A, np.ones(2, dtype=np.float32), 0.1, time_limit=5.0)
    assert result.status is not lopro.Status.INFEASIBLE
    assert result.x.dtype == np.float32


@pytest.mark.parametrize("weights", [np.ones(4), np.ones(4, dtype=np.float32)])
def test_weights_do_not_change_the_precision_of_points(weights: Any) -> None:
    A = np.eye(3, 4, dtype=np.float32)
    result = lopro.bpdn(A, np.ones(3, dtype=np.float32), 0.5, weights=weights, tol=1e-3)
    assert result.success and result.x.dtype == np.float32


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_units_beyond_the_range_are_refused_by_name(unit: float) -> None:
    A = unit * np.random.default_rng(0).standard_normal((3, 8))
    for form in (A, aslinearoperator(A)):
        with pytest.raises(ValueError, match="A must be given in other units"):
            lopro.bpdn(form, np.ones(3), 0.1)


@pytest.mark.parametrize("operator", [False, True])
def test_a_start_of_the_wrong_sign_does_no_harm(operator: bool) -> None:
    rng = np.random.default_rng(6)
    A, x = rng.standard_normal((25, 70)), np.zeros(70)
    x[:5] = 1.0
    y = A @ x + 0.1 * rng.standard_normal(25)
    form = aslinearoperator(A) if operator else A
    plain = lopro.bpdn(form, y, 0.5, nonneg=True)
    for x0 in (-x, rng.standard_normal(70), 1e3 * np.ones(70)):
        result = lopro.bpdn(form, y, 0.5, nonneg=True, x0=x0, time_limit=20.0)
        assert result.success and result.x.min() >= 0.0
        assert result.fun == pytest.approx(plain.fun, rel=1e-5)


def test_equations_of_a_map_that_vanishes() -> None:
    """Every correlation is zero: there is no direction to follow, and no nonzero divisor."""
    for y, status in ((np.ones(4), "INFEASIBLE"), (np.zeros(4), "CONVERGED")):
        result = lopro.bpdn(aslinearoperator(np.zeros((4, 6))), y, 0.0, time_limit=10.0)
        assert result.status.name == status


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_columns_nearly_orthogonal_to_y_are_not_mistaken_for_short_ones(form) -> None:
    """Single-precision entries of 1e-12 are valid, even where ``A'y`` is 1e-7 of its largest size."""
    y = np.array([1.0, 0.0], np.float32)
    for size, fine in ((1e-12, True), (1e-17, False)):
        A = np.array([[1e-7 * size, 0.0], [size, size]], np.float32)
        sparse = SparseProblem.of(bpdn_problem(form(A), y, 0.5), np.zeros(2, np.float32))
        if fine:
            sparse.check_units(A.T @ y, y)
            continue
        with pytest.raises(ValueError, match=r"A must be given in other units: .* about 1e-17"):
            sparse.check_units(A.T @ y, y)


@pytest.mark.parametrize("share", [0.9, 0.1])
@pytest.mark.parametrize("kind", ["one", "many", "complex", "ball"])
def test_dual_points_are_feasible_where_y_is_nearly_orthogonal_to_the_columns(kind, share):
    """Correlations are tiny there, with rounding of the size of columns and ``y``; checked exactly."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        a, across = rng.standard_normal((2, 3))
        across -= a * (a @ across) / (a @ a)
        y = 2.0 * across + a * 10.0 ** rng.uniform(-4, -1)
        low, top = float(np.linalg.norm(y - a * (a @ y) / (a @ a))), float(np.linalg.norm(y))
        sigma = low + share * (top - low)
        A = a[:, None] * (1.0 + 0.0j) if kind == "complex" else a[:, None]
        if kind == "many":
            duals = [r.dual for r in lopro.bpdn(A, np.stack([y, -y], axis=1), sigma, tol=1e-7)]
        elif kind == "ball":
            tau = (1.0 - share) * abs(a @ y) / (a @ a)
            duals = [lopro.lasso(A, y, tau, tol=1e-7).dual]
        else:
            duals = [lopro.bpdn(A, y, sigma, tol=1e-7).dual]
        for dual in duals:
            pulled = sum(Fraction(u) * Fraction(v) for u, v in zip(a, dual.real, strict=True))
            assert abs(pulled) <= 1


def test_a_support_of_zero_is_rounded_up():
    """``y`` and ``nu`` are opposite and ``sigma = |y|``: the support is 0, its estimate no less."""
    rng = np.random.default_rng(0)
    for c, k in 10.0 ** rng.uniform(-8, 8, (200, 2)):
        found = support_of_ball(np.array([0.0, c]), c, np.array([0.0, -k]))
        assert 0.0 <= found <= 1e-44 * c * k


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("below", [3e-2, 1e-3, 1e-5, 1e-7])
def test_a_solution_with_one_nonzero_has_a_closed_form(below: float, dtype: Any) -> None:
    """On the first piece of the path the residual has length sigma at the solution: no search is run."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 40)).astype(dtype)
    y = (10.0 * A[:, 3] + 0.5 * rng.standard_normal(20)).astype(dtype)
    length = float(np.linalg.norm(y.astype(np.complex128)))
    result = lopro.bpdn(A, y, (1.0 - below) * length, tol=1e-4)
    assert result.success and list(result.support) == [3]
    assert (result.iterations, result.counts.projections) == (1, 0)
    # |y - t a|^2 = sigma^2 for a real t: t = |x_3|, as the phase of a is that of y.
    a = A[:, 3].astype(np.complex128)
    b, square = abs(np.vdot(a, y)), float(np.vdot(a, a).real)
    rest = length**2 * below * (2.0 - below)
    expected = rest / (b + np.sqrt(b * b - square * rest))
    assert abs(result.x[3]) == pytest.approx(expected, rel=1e-6 if dtype is np.float32 else 1e-8)


def test_multipliers_of_signs_are_those_of_a_lower_bound() -> None:
    """``slope of the norm + A'v + s = 0`` with ``s <= 0`` where x vanishes, as for every set of bounds."""
    A, y = np.eye(2), np.array([3.0, -1.0])
    found = lopro.bpdn(A, y, 1.2, nonneg=True)
    of_ball, of_signs = found.multipliers
    assert of_signs.max() <= 1e-12 and of_signs.min() < -1.0
    assert np.allclose(1.0 + A.T @ of_ball + of_signs, 0.0, atol=1e-12)
