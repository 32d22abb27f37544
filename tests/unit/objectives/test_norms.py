"""Nuclear and l-infinity norms and Huber's function: values by hand, by every method that applies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro import AlternatingDirections, MultiplierMethod, Problem, Status
from lopro.constraints import Affine, Polyhedron, ResidualBall
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import InteriorPoint
from lopro.objectives import Huber, L1Norm, LInfNorm, NuclearNorm, SquaredDistance

UNITS = [1e-9, 1.0, 1e9]


def row(values: Any, side: float) -> Affine:
    return Affine(np.array([values]), side, side)


def is_right(result: lopro.Result, fun: float, tol: float = 1e-6) -> None:
    """Assert convergence to the known value, with a close lower bound."""
    assert result.status is Status.CONVERGED
    assert result.fun == pytest.approx(fun, rel=2.0 * tol)
    assert result.certificate.lower_bound <= fun * (1.0 + 1e-9)
    assert result.certificate.lower_bound == pytest.approx(fun, rel=2.0 * tol)


# Values.


def test_nuclear_norm_by_hand() -> None:
    X = np.array([[3.0, 0.0, 0.0], [0.0, -4.0, 0.0]])
    f = NuclearNorm((2, 3))
    assert f.value(X) == pytest.approx(7.0)
    np.testing.assert_allclose(f.subgradient(X), [[1, 0, 0], [0, -1, 0]], atol=1e-15)
    np.testing.assert_allclose(f.prox(X, 3.5), [[0, 0, 0], [0, -0.5, 0]], atol=1e-15)
    assert f.scale_into_domain(X) == pytest.approx(0.25)
    assert f.scale_into_domain(X) <= 0.25
    assert f.lipschitz().value == math.sqrt(2.0)
    np.testing.assert_allclose(f.minorant(X, 2.0 * X)[1], [[1, 0, 0], [0, -1, 0]], atol=1e-13)
    # The slope at a matrix of rank one has rank one.
    assert np.linalg.matrix_rank(f.subgradient(np.outer([1.0, 2.0], [2.0, 0.0, 1.0]))) == 1


def test_nuclear_norm_of_an_image() -> None:
    """The map puts a vector on the diagonal: then it is the l1 norm."""
    D = np.zeros((4, 2))
    D[0, 0] = D[3, 1] = 1.0
    f = NuclearNorm((2, 2), D)
    assert f.value(np.array([3.0, -4.0])) == pytest.approx(7.0)
    np.testing.assert_allclose(f.subgradient(np.array([3.0, -4.0])), [1.0, -1.0], atol=1e-15)
    assert not f.proximable and f.scale_into_domain(np.ones(2)) is None


def test_linf_norm_by_hand() -> None:
    f, x = LInfNorm(shape=(3,)), np.array([1.0, -5.0, 2.0])
    assert f.value(x) == 5.0
    np.testing.assert_array_equal(f.subgradient(x), [0.0, -1.0, 0.0])
    # Five falls to 2.5 before the step of 3 is used up by two entries: 5 - 3 = 2, then both to 2.
    np.testing.assert_allclose(f.prox(x, 3.0), [1.0, -2.0, 2.0])
    np.testing.assert_allclose(f.prox(x, 4.0), [1.0, -1.5, 1.5])
    assert f.scale_into_domain(x) == 1.0 / 8.0
    np.testing.assert_array_equal(LInfNorm().subgradient(np.array([2.0, -2.0])), [0.5, -0.5])
    assert LInfNorm(np.array([[1.0, 1.0], [1.0, -1.0]])).value(np.array([3.0, 4.0])) == 7.0


def test_huber_by_hand() -> None:
    f, x = Huber(b=np.array([1.0, 1.0, 1.0]), delta=2.0), np.array([2.0, 9.0, -3.0])
    # Residuals 1, 8, -4: 1/2, 16 - 2, 8 - 2.
    assert f.value(x) == 0.5 + 14.0 + 6.0
    np.testing.assert_array_equal(f.subgradient(x), [1.0, 2.0, -2.0])
    np.testing.assert_allclose(f.prox(x, 1.0), [1.5, 7.0, -1.0])
    assert f.smoothness().value == 1.0 and f.lipschitz().value == pytest.approx(
        2.0 * math.sqrt(3.0)
    )
    alpha, g = f.minorant(x, np.array([0.5, 5.0, -0.1]))
    np.testing.assert_array_equal(g, [0.5, 2.0, -0.1])
    # Minus the conjugate: |g|^2 / 2 + <g, b>.
    assert alpha == pytest.approx(-(0.5 * (0.25 + 4.0 + 0.01) + 2.4))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NuclearNorm((2, 2, 2)), "2 numbers"),
        (lambda: NuclearNorm((2, 2), np.eye(3)), "4 rows"),
        (lambda: Huber(delta=0.0), "delta"),
        (lambda: Huber(np.eye(2), np.ones(3)), "b must have shape"),
        (lambda: LInfNorm(np.eye(2) * 1j), "D must be real"),
        (lambda: Huber().value(np.ones(2) * 1j), "x must be real"),
        (lambda: NuclearNorm((2, 2)).value(np.ones(4)), "x must have shape"),
    ],
)
def test_bad_input_is_named(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


# Problems.


@pytest.mark.parametrize("method", [MultiplierMethod(), InteriorPoint(), lopro.Auto()], ids=repr)
@pytest.mark.parametrize("unit", UNITS)
def test_the_least_linf_norm_on_a_row(unit: float, method: Any) -> None:
    """Least max |x_i| with x1 + 2 x2 = 3: 3 over the l1 norm of the row."""
    result = lopro.solve(Problem(LInfNorm(), row([1.0, 2.0], 3.0 * unit)), method=method)
    is_right(result, unit)
    assert result.x == pytest.approx([unit, unit], rel=1e-5)


@pytest.mark.parametrize("method", [InteriorPoint(), lopro.Auto()], ids=repr)
@pytest.mark.parametrize("unit", UNITS)
def test_the_least_linf_norm_of_an_image(unit: float, method: Any) -> None:
    """With D = diag(1, 2), y = D x and x1 + 2 x2 = 3 imply y1 + y2 = 3: 1.5."""
    f = LInfNorm(scipy.sparse.diags_array([1.0, 2.0]))
    is_right(lopro.solve(Problem(f, row([1.0, 2.0], 3.0 * unit)), method=method), 1.5 * unit)


@pytest.mark.parametrize("method", [MultiplierMethod(), InteriorPoint(), lopro.Auto()], ids=repr)
def test_huber_on_a_row(method: Any) -> None:
    """Within delta the answer is that of squares, beyond it the multiplier is delta."""
    is_right(lopro.solve(Problem(Huber(shape=(2,)), row([1.0, 1.0], 1.0)), method=method), 0.25)
    far = lopro.solve(Problem(Huber(shape=(2,)), row([1.0, 1.0], 4.0)), method=method)
    is_right(far, 3.0)


@pytest.mark.parametrize("method", [InteriorPoint(), lopro.Auto()], ids=repr)
def test_huber_location_of_three_points_and_an_outlier(method: Any) -> None:
    """3 x - 1 = 0 at the minimiser: 1/3 for any outlier."""
    f = Huber(np.ones((4, 1)), np.array([0.0, 0.0, 0.0, 100.0]))
    result = lopro.solve(Problem(f, Polyhedron.box([-5.0], [50.0])), method=method, tol=1e-8)
    assert result.status is Status.CONVERGED
    assert result.x == pytest.approx([1.0 / 3.0], abs=1e-4)
    assert result.fun == pytest.approx(1.0 / 6.0 + 100.0 - 1.0 / 3.0 - 0.5, rel=1e-8)


@pytest.mark.parametrize("unit", UNITS)
def test_huber_regression_by_newton_steps(unit: float) -> None:
    """With and without outliers, in any units, against Clarabel; no more than a few dozen steps."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 10))
    b = A @ np.ones(10) + 0.1 * rng.standard_normal(200)
    b[:20] += 50.0
    rows = Affine(np.ones((1, 10)), 8.0 * unit, 9.0 * unit)
    f = Huber(A, unit * b, delta=0.3 * unit)
    newton = lopro.solve(Problem(f, rows), method=lopro.NewtonMultipliers(), tol=1e-9)
    assert newton.status is Status.CONVERGED and newton.iterations <= 60
    clarabel = lopro.solve(Problem(f, rows), method=InteriorPoint())
    assert newton.fun == pytest.approx(clarabel.fun, rel=1e-7)
    assert newton.certificate.lower_bound <= newton.fun
    assert "1. NewtonMultipliers" in lopro.explain(Problem(f, rows))
    # The row is active at its upper side, and its multiplier balances the slope of f there.
    assert newton.multiplier is not None
    assert -f.subgradient(newton.x) == pytest.approx(
        newton.multiplier.direction, abs=1e-5 * float(np.abs(newton.multiplier.direction).max())
    )


@pytest.mark.parametrize(
    "method", [AlternatingDirections(), MultiplierMethod(), InteriorPoint()], ids=repr
)
@pytest.mark.parametrize("unit", UNITS)
def test_rank_one_from_three_entries(unit: float, method: Any) -> None:
    """[[4, 2], [2, t]] has the least nuclear norm at t = 1, where its rank is one: 5."""
    known = unit * np.array([4.0, 2.0, 2.0])
    set_ = Affine.entries([0, 1, 2], known, known, (2, 2))
    result = lopro.solve(Problem(NuclearNorm((2, 2)), set_), method=method)
    is_right(result, 5.0 * unit)
    assert result.x[1, 1] == pytest.approx(unit, rel=2e-2)


def test_nuclear_norm_of_an_image_over_a_row() -> None:
    D = np.zeros((4, 2))
    D[0, 0] = D[3, 1] = 1.0
    result = lopro.solve(Problem(NuclearNorm((2, 2), D), row([1.0, 2.0], 2.0)))
    is_right(result, 1.0)
    assert result.x == pytest.approx([0.0, 1.0], abs=1e-5)


def test_a_sum_with_a_smooth_part_is_the_prox() -> None:
    """1/2 |X - Z|^2 + t |X|_* over an inactive box: singular values minus t."""
    Z = np.random.default_rng(0).standard_normal((4, 3))
    f = SquaredDistance(Z) + 0.5 * NuclearNorm((4, 3))
    box = Polyhedron.box(np.full((4, 3), -9.0), np.full((4, 3), 9.0))
    result = lopro.solve(Problem(f, box), tol=1e-8)
    assert result.status is Status.CONVERGED
    assert result.x == pytest.approx(NuclearNorm((4, 3)).prox(Z, 0.5), abs=1e-4)


def completion(n: int, rank: int, noise: float = 0.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    L = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n))
    return L + noise * rng.standard_normal((n, n)), rng.random((n, n)) < 0.5


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_completion_is_found_and_proved_and_its_iterations_are_few(noise: float) -> None:
    L, mask = completion(60, 3, noise)
    problem = Problem(NuclearNorm((60, 60)), Affine.entries(mask, L[mask], L[mask]))
    result = lopro.solve(problem)
    assert result.status is Status.CONVERGED
    assert result.method.startswith("Auto() -> AlternatingDirections")
    assert result.iterations <= (100 if noise == 0.0 else 400)
    np.testing.assert_array_equal(result.x[mask], L[mask])
    c, multiplier = result.certificate, result.multiplier
    assert c.lower_bound <= result.fun <= c.lower_bound * (1.0 + 1.1e-6)
    # The bound again, by hand: <Y, L> over the known entries, with singular values up to 1.
    assert multiplier is not None
    Y = -multiplier.direction
    assert np.count_nonzero(Y[~mask]) == 0
    by_hand = float((Y * L).sum()) / max(1.0, float(np.linalg.norm(Y, 2)))
    assert by_hand == pytest.approx(c.lower_bound, rel=1e-9)
    if noise == 0.0:
        assert np.linalg.norm(result.x - L) <= 1e-3 * np.linalg.norm(L)


def test_two_sided_bounds_are_complemented() -> None:
    """Known entries up to an error: the bound must use the right side of each."""
    L, mask = completion(20, 2)
    tight = Problem(NuclearNorm((20, 20)), Affine.entries(mask, L[mask], L[mask]))
    loose = Problem(NuclearNorm((20, 20)), Affine.entries(mask, L[mask] - 0.1, L[mask] + 0.1))
    results = [lopro.solve(p) for p in (tight, loose)]
    assert all(r.status is Status.CONVERGED for r in results)
    assert results[1].fun < results[0].fun
    assert results[1].fun == pytest.approx(
        lopro.solve(loose, method=MultiplierMethod()).fun, rel=3e-6
    )


def test_alternating_directions_require_a_prox_and_a_formula() -> None:
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0)
    with pytest.raises(MissingCapabilityError, match="no closed form"):
        AlternatingDirections().check(Problem(L1Norm(), ball))
    with pytest.raises(MissingCapabilityError, match="no prox"):
        AlternatingDirections().check(Problem(LInfNorm(np.eye(2)), row([1.0, 1.0], 1.0)))
    with pytest.raises(ValueError, match="below 2"):
        AlternatingDirections(relaxation=2.0)


def test_explain_names_the_method_of_each_norm() -> None:
    known = Affine.entries([0], 1.0, 1.0, (2, 2))
    said = lopro.explain(Problem(2.0 * NuclearNorm((2, 2)), known))
    assert "1. AlternatingDirections" in said and "singular values" in said
    said = lopro.explain(Problem(LInfNorm(np.eye(2)), row([1.0, 1.0], 1.0)))
    assert "1. InteriorPoint" in said
