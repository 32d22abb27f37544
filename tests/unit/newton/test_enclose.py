"""Values, gradients and conjugates lie within their error bounds: judged in exact or long arithmetic."""

from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from support.exact_arithmetic import exact_dot, rational
from support.newton_examples import (
    huber,
    interval,
    least_squares,
    linear,
    logistic,
    quadratic,
    squared_distance,
)

from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import Atom
from lopro.newton.arrays import EPS
from lopro.newton.smooth import SmoothSum


def exact_quadratic(P, q, x):
    """Return ``(x'Px/2 + q'x, Px + q)`` of rational numbers."""
    Px = [exact_dot(row, x) for row in P]
    gradient = [a + b for a, b in zip(Px, rational(q), strict=True)]
    value = sum(
        (Fraction(1, 2) * a + b) * c for a, b, c in zip(Px, rational(q), rational(x), strict=True)
    )
    return value, gradient


def assert_encloses(found, value, gradient, timid=1e3):
    assert abs(Fraction(found.value.value) - value) <= Fraction(found.value.error)
    for mine, error, exact in zip(found.gradient, found.error, gradient, strict=True):
        assert abs(Fraction(mine) - exact) <= Fraction(error)
    scale = float(np.abs(found.gradient).max()) + 1e-300
    assert found.error.max() <= timid * EPS * scale


@pytest.mark.parametrize("sparse", [False, True])
def test_quadratic(rng, sparse):
    M = rng.standard_normal((7, 7))
    P, q, x = M @ M.T, rng.standard_normal(7), rng.standard_normal(7)
    P = 0.5 * (P + P.T)
    f = quadratic(scipy.sparse.csr_array(P) if sparse else P, q, 0.1)
    value, gradient = exact_quadratic(P, q, x)
    assert_encloses(f.enclose(x), value + Fraction(0.1), gradient)


@pytest.mark.parametrize("sparse", [False, True])
def test_least_squares(rng, sparse):
    B, b, x = rng.standard_normal((9, 4)), rng.standard_normal(9), rng.standard_normal(4)
    f = least_squares(scipy.sparse.csr_array(B) if sparse else B, b)
    residual = [exact_dot(row, x) - Fraction(c) for row, c in zip(B, b.tolist(), strict=True)]
    gradient = [sum(Fraction(B[i, j]) * residual[i] for i in range(9)) for j in range(4)]
    assert_encloses(f.enclose(x), sum(r * r for r in residual) / 2, gradient)


def test_least_squares_with_cancellation(rng):
    """Where the residual is all rounding the error must say so."""
    B, x = rng.standard_normal((9, 4)), rng.standard_normal(4)
    f = least_squares(B, B @ x)
    found = f.enclose(x)
    assert found.value.error >= found.value.value * 0.5
    residual = [exact_dot(row, x) - Fraction(c) for row, c in zip(B, (B @ x).tolist(), strict=True)]
    assert abs(Fraction(found.value.value) - sum(r * r for r in residual) / 2) <= Fraction(
        found.value.error
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("delta", [0.3, 100.0])
def test_huber(rng, sparse, delta):
    B, b, x = rng.standard_normal((9, 4)), rng.standard_normal(9), rng.standard_normal(4)
    f = huber(scipy.sparse.csr_array(B) if sparse else B, b, delta, 0.7)
    residual = [exact_dot(row, x) - Fraction(c) for row, c in zip(B, b.tolist(), strict=True)]
    most, weight = Fraction(delta), Fraction(0.7)
    slopes = [max(-most, min(most, r)) for r in residual]
    gradient = [weight * sum(Fraction(B[i, j]) * slopes[i] for i in range(9)) for j in range(4)]
    value = weight * sum(s * (r - s / 2) for r, s in zip(residual, slopes, strict=True))
    assert_encloses(f.enclose(x), value, gradient)


def test_linear_and_distance(rng):
    q, x = rng.standard_normal(6), rng.standard_normal(6)
    assert_encloses(linear(q).enclose(x), exact_dot(q, x), rational(q))
    center, scale = x + 1e-9 * rng.standard_normal(6), 0.7
    moved = [a - b for a, b in zip(rational(x), rational(center), strict=True)]
    gradient = [Fraction(scale) * m for m in moved]
    value = sum(g * m for g, m in zip(gradient, moved, strict=True)) / 2
    assert_encloses(squared_distance(center, scale).enclose(x), value, gradient)


def test_logistic(rng):
    getcontext().prec = 60
    A, x = 3.0 * rng.standard_normal((15, 4)), rng.standard_normal(4)
    labels = np.where(rng.uniform(size=15) < 0.5, -1.0, 1.0)
    scale = 0.7
    scores = [exact_dot(row, x) for row in A]
    margins = [
        int(s) * Decimal(a.numerator) / Decimal(a.denominator)
        for s, a in zip(labels, scores, strict=True)
    ]
    value, gradient = Decimal(0), [Decimal(0)] * 4
    for i, margin in enumerate(margins):
        weight = Decimal(scale) / 15
        value += weight * (1 + (-margin).exp()).ln()
        odds = 1 / (1 + margin.exp())
        for j in range(4):
            gradient[j] -= weight * int(labels[i]) * odds * Decimal(float(A[i, j]))
    found = logistic(A, labels, scale / 15).enclose(x)
    assert_encloses(found, Fraction(value), [Fraction(g) for g in gradient])


def test_sum(rng):
    q, x, center = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal(3)
    found = SmoothSum([linear(q), squared_distance(center)]).enclose(x)
    moved = [a - b for a, b in zip(rational(x), rational(center), strict=True)]
    gradient = [a + b for a, b in zip(rational(q), moved, strict=True)]
    assert_encloses(found, exact_dot(q, x) + sum(m * m for m in moved) / 2, gradient)


def test_conjugate_of_intervals(rng):
    v = rng.standard_normal(20)
    lower, upper = -rng.uniform(0.5, 1.0, 20), rng.uniform(0.5, 1.0, 20)
    found = interval(lower, upper).enclose_conjugate(v)
    exact = exact_dot(v, np.where(v > 0, upper, lower))
    assert abs(Fraction(found.value) - exact) <= Fraction(found.error) <= Fraction(1e-13)
    half_line = interval(upper=np.ones(1))
    assert half_line.enclose_conjugate(np.array([-1.0])).value == np.inf


def test_a_function_without_analysis_is_refused():
    with pytest.raises(MissingCapabilityError, match="no rounding analysis"):
        Atom().enclose(np.zeros(1), np.zeros(1))
