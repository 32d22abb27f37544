"""Error bounds against exact rational arithmetic: never too small, and not too large."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from support.exact_arithmetic import exact_dot, rational, wild
from support.newton_examples import composed, interval, linear

from lopro.linalg.dense import EPS
from lopro.linalg.rounding import (
    Estimate,
    adjoint_product,
    dot,
    extended_adjoint,
    gamma,
    length,
    product,
    total,
)
from lopro.newton.inner import Evaluation
from lopro.newton.lagrangian import CompositeLagrangian, PointWithImages


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 64, 1000])
def test_dot_and_sum(rng, n):
    x, y = wild(rng, n), wild(rng, n)
    estimate, exact = dot(x, y), exact_dot(x, y)
    assert abs(Fraction(estimate.value) - exact) <= Fraction(estimate.error)
    size = float(np.sum(np.abs(x * y)))
    assert estimate.error <= (2 + np.log2(max(n, 1))) * EPS * size
    estimate = total(x)
    assert abs(Fraction(estimate.value) - sum(rational(x), Fraction(0))) <= Fraction(estimate.error)


def test_dot_with_uncertain_entries(rng):
    """The bound covers every vector within the error, and is nearly reached by the worst of them."""
    x, y, e = rng.standard_normal(50), rng.standard_normal(50), rng.uniform(0, 1e-3, 50)
    estimate = dot(x, y, e)
    worst = exact_dot(x + e * np.sign(y), y)
    reached = abs(float(worst - Fraction(estimate.value)))
    assert reached <= estimate.error * (1 + 1e-10)
    assert reached >= 0.999 * estimate.error


def test_a_bound_for_one_rounding_less_would_be_wrong():
    """Half a unit is reached: 1 + u rounds to 1."""
    x = np.array([1.0, EPS / 2])
    estimate = total(x)
    missed = abs(Fraction(estimate.value) - sum(rational(x)))
    assert missed == Fraction(EPS / 2)
    assert Fraction(estimate.error) >= missed > Fraction(0.99 * estimate.error) - Fraction(EPS**2)


@pytest.mark.parametrize("sparse", [False, True])
def test_products(rng, sparse):
    dense = wild(rng, 300 * 9).reshape(300, 9) * (rng.uniform(size=(300, 9)) < 0.7)
    M = scipy.sparse.csr_array(dense) if sparse else dense
    x, v = wild(rng, 9), wild(rng, 300)
    y, error = product(M, x)
    for i in range(0, 300, 17):
        assert abs(Fraction(y[i]) - exact_dot(dense[i], x)) <= Fraction(error[i])
    assert np.all(error <= 12 * EPS * (np.abs(dense) @ np.abs(x)))
    z, error = adjoint_product(M, v)
    for j in range(9):
        assert abs(Fraction(z[j]) - exact_dot(dense[:, j], v)) <= Fraction(error[j])
    assert np.all(error <= 200 * EPS * (np.abs(v) @ np.abs(dense)))


def test_products_with_uncertain_vectors(rng):
    M, x, e = rng.standard_normal((5, 4)), rng.standard_normal(4), rng.uniform(0, 1e-4, 4)
    y, error = product(M, x, e)
    z, adjoint_error = adjoint_product(M.T, x, e)
    for i in range(5):
        worst = M[i] @ (x + e * np.sign(M[i]))
        assert 0.999 * error[i] <= worst - y[i] <= error[i]
        assert 0.999 * adjoint_error[i] <= worst - z[i] <= adjoint_error[i]


def test_length_is_an_upper_bound_at_any_scale(rng):
    for scale in (1e-200, 1.0, 1e200):
        x = scale * rng.standard_normal(30)
        squared = exact_dot(x, x)
        bound = Fraction(length(x))
        assert squared <= bound * bound <= squared * Fraction(1 + 1e-12)
    assert length(np.zeros(3)) == 0.0
    assert length(np.array([3.0, 0.0]), np.array([0.0, 4.0])) == pytest.approx(5.0, rel=1e-13)


def test_arithmetic_of_estimates():
    a, b = Estimate(0.1, 1e-20), Estimate(0.2, 2e-20)
    for result, exact in (
        (a + b, Fraction(0.1) + Fraction(0.2)),
        (a - b, Fraction(0.1) - Fraction(0.2)),
        (a * 0.3, Fraction(0.1) * Fraction(0.3)),
        (a / 0.3, Fraction(0.1) / Fraction(0.3)),
    ):
        assert Fraction(result.lower()) <= exact <= Fraction(result.upper())
        assert result.error < 1e-16
    assert gamma(10) >= 10 * EPS / 2


def test_sums_in_extended_precision_enclose_the_exact_ones(rng):
    """Columns whose terms cancel: the error is that of the wider format, and the exact sum is within it."""
    M = scipy.sparse.random_array((40, 12), density=0.5, rng=rng, format="csr")
    v = rng.standard_normal(40) * 10.0 ** rng.integers(0, 8, 40)
    found, error = extended_adjoint(M, v)
    sizes = abs(M).T @ np.abs(v)
    dense, wide = M.toarray(), float(np.finfo(np.longdouble).eps)
    for j in range(12):
        exact = sum(
            Fraction(float(a)) * Fraction(float(b)) for a, b in zip(dense[:, j], v, strict=True)
        )
        high = float(found[j])
        computed = Fraction(high) + Fraction(float(found[j] - np.longdouble(high)))
        assert abs(computed - exact) <= Fraction(float(error[j]))
        assert 0.0 < error[j] <= 30.0 * wide * sizes[j]


@pytest.mark.parametrize("bits", [4, 11, 40])
def test_sums_of_few_digits_are_exact(rng, bits):
    """Multipliers with a number of bits: the error is zero only where the sum is exact."""
    M = scipy.sparse.random_array((40, 12), density=0.5, rng=rng, format="csr")
    v = rng.integers(-(2**bits), 2**bits, 40) * 2.0 ** (-bits)
    found, error = extended_adjoint(M, v)
    assert (error == 0.0).all() if bits == 4 else (error > 0.0).any()
    dense = M.toarray()
    for j in np.flatnonzero(error == 0.0):
        pairs = zip(dense[:, j].tolist(), v.tolist(), strict=True)
        high = float(found[j])
        computed = Fraction(high) + Fraction(float(found[j] - np.longdouble(high)))
        assert computed == sum(Fraction(a) * Fraction(b) for a, b in pairs)


def test_columns_without_entries_have_the_product_zero():
    M = scipy.sparse.csr_array(np.array([[0.0, 2.0, 0.0, 3.0, 0.0]]))
    found, error = extended_adjoint(M, np.array([5.0]))
    np.testing.assert_array_equal(found.astype(float), [0.0, 10.0, 0.0, 15.0, 0.0])
    np.testing.assert_array_equal(error[[0, 2, 4]], 0.0)


@pytest.mark.parametrize("unit", [1.0, 2.0**30, 2.0**-30])
def test_rounding_of_a_row_is_that_of_its_terms(unit):
    """``x_1 - x_2 >= 1`` at 1e8: the error of a row is relative to its terms, not to other entries."""
    rows = (interval(lower=np.full(1, unit)), np.array([[1.0, -1.0, 0.0]]))
    problem = composed(linear(np.array([0.0, 0.0, 1e-3 * unit])), [rows])
    x = 1e8 * unit * np.array([1.0, 1.0, 0.0])
    F = CompositeLagrangian(problem, [np.zeros(1)], [np.ones(1)])
    noise = Evaluation.of(F, PointWithImages(x, problem.smooth.image(x), (np.zeros(1),))).noise
    assert EPS * 1e8 <= noise / unit <= 16.0 * EPS * 1e8
