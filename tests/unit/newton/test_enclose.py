"""Values, gradients and conjugates lie within their error bounds: checked in exact or extended arithmetic."""

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
from lopro.functions.atoms import Atom, HalfSquare, Poisson, SquaredHinge
from lopro.functions.term import Term
from lopro.linalg.dense import EPS, norm
from lopro.linalg.products import enclose_forward
from lopro.maps import linear_map
from lopro.newton.losses import Loss
from lopro.newton.smooth import SmoothSum


def exact_quadratic(P, q, x):
    """Return ``(x'Px/2 + q'x, Px + q)`` of rational numbers."""
    Px = [exact_dot(row, x) for row in P]
    gradient = [a + b for a, b in zip(Px, rational(q), strict=True)]
    value = sum(
        (Fraction(1, 2) * a + b) * c for a, b, c in zip(Px, rational(q), rational(x), strict=True)
    )
    return value, gradient


def assert_encloses(found, value, gradient, factor=1e3):
    assert abs(Fraction(found.value.value) - value) <= Fraction(found.value.error)
    for mine, error, exact in zip(found.gradient, found.error, gradient, strict=True):
        assert abs(Fraction(mine) - exact) <= Fraction(error)
    scale = float(np.abs(found.gradient).max()) + 1e-300
    assert found.error.max() <= factor * EPS * scale


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
    """Where the residual is nothing but rounding, the error bound must be as large."""
    B, x = rng.standard_normal((9, 4)), rng.standard_normal(4)
    f = least_squares(B, B @ x)
    found = f.enclose(x)
    assert found.value.error >= found.value.value * 0.5
    residual = [exact_dot(row, x) - Fraction(c) for row, c in zip(B, (B @ x).tolist(), strict=True)]
    assert abs(Fraction(found.value.value) - sum(r * r for r in residual) / 2) <= Fraction(
        found.value.error
    )


def assert_is_below(found, f, x, at, factor=1e-12):
    """Assert that value and slope at x, less their errors, define a linear minorant of f that touches f at x.

    ``f`` takes a list of rational numbers and returns one; ``at`` are other points.
    """
    scale = abs(found.value.value) + float(np.abs(x) @ np.abs(found.gradient))
    touching = f(rational(x)) - Fraction(found.value.value)
    assert -Fraction(found.value.error) <= touching <= factor * scale
    assert found.value.error <= factor * scale
    for z in at:
        step = [a - b for a, b in zip(rational(z), rational(x), strict=True)]
        slopes = zip(found.gradient, found.error, step, strict=True)
        rise = sum(Fraction(g) * s - Fraction(e) * abs(s) for g, e, s in slopes)
        assert f(rational(z)) >= Fraction(found.value.value) - Fraction(found.value.error) + rise


def points_around(rng, x, count=40):
    """Return points at distances from rounding to ten times as far as x."""
    return [x + 10.0 ** rng.uniform(-16, 1) * rng.standard_normal(len(x)) for _ in range(count)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("delta", [0.3, 100.0])
def test_huber(rng, sparse, delta):
    B, b, x = rng.standard_normal((9, 4)), rng.standard_normal(9), rng.standard_normal(4)
    B, x = 1e4 * B, 1e-4 * x
    f = huber(scipy.sparse.csr_array(B) if sparse else B, b, delta, 0.7)
    most, weight = Fraction(delta), Fraction(0.7)

    def exact(z):
        rows = zip(B.tolist(), b.tolist(), strict=True)
        residual = [
            sum(Fraction(e) * c for e, c in zip(row, z, strict=True)) - Fraction(o)
            for row, o in rows
        ]
        slopes = [max(-most, min(most, r)) for r in residual]
        return weight * sum(s * (r - s / 2) for r, s in zip(residual, slopes, strict=True))

    assert_is_below(f.enclose(x), exact, x, points_around(rng, x))


def test_errors_of_images_do_not_weaken_the_bound(rng):
    """Entries of 1 and -1 cancel in the image, whose error would be 1e-16 |x| for each row: 1e-10 in all."""
    B = np.sign(rng.standard_normal((200, 50)))
    x = 1e3 * rng.standard_normal(50)
    f = huber(B, B @ x + 0.01 * rng.standard_normal(200), 1.0)
    found = f.enclose(x)
    assert found.error.max() <= 2e-14
    assert norm(enclose_forward(f.map, x)[1]) >= 1e-11


def test_linear_and_distance(rng):
    q, x = rng.standard_normal(6), rng.standard_normal(6)
    assert_encloses(linear(q).enclose(x), exact_dot(q, x), rational(q))
    center, scale = x + 1e-9 * rng.standard_normal(6), 0.7
    moved = [a - b for a, b in zip(rational(x), rational(center), strict=True)]
    gradient = [Fraction(scale) * m for m in moved]
    value = sum(g * m for g, m in zip(gradient, moved, strict=True)) / 2
    assert_encloses(squared_distance(center, scale).enclose(x), value, gradient)


def decimal(a):
    return Decimal(a.numerator) / Decimal(a.denominator)


def scores_of(A, z):
    return [
        decimal(sum(Fraction(e) * c for e, c in zip(row, z, strict=True))) for row in A.tolist()
    ]


def test_logistic(rng):
    getcontext().prec = 60
    A, x = 3.0 * rng.standard_normal((15, 4)), rng.standard_normal(4)
    labels = np.where(rng.uniform(size=15) < 0.5, -1.0, 1.0)
    scale = 0.7

    def exact(z):
        margins = [int(s) * score for s, score in zip(labels, scores_of(A, z), strict=True)]
        losses = [(1 + (-margin).exp()).ln() for margin in margins]
        return Fraction(Decimal(scale) / 15 * sum(losses))

    at = points_around(rng, x, 15)
    assert_is_below(logistic(A, labels, scale / 15).enclose(x), exact, x, at)
    far = logistic(1e3 * A, labels, scale / 15)  # most slopes are 0 or 1 to the last digit
    assert_is_below(far.enclose(1e-2 * x), lambda z: exact([1000 * c for c in z]), 1e-2 * x, at)


@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_poisson(rng, scale):
    getcontext().prec = 60
    A, x = rng.standard_normal((15, 4)), rng.standard_normal(4)
    counts = np.floor(rng.exponential(3.0, 15)) * (rng.uniform(size=15) < 0.7)
    loss = Loss(Term(Poisson(counts), linear_map(A), scale=scale))

    def exact(z):
        pairs = zip(scores_of(A, z), counts, strict=True)
        return Fraction(
            Decimal(scale) / 15 * sum(score.exp() - int(k) * score for score, k in pairs)
        )

    assert_is_below(loss.enclose(x), exact, x, points_around(rng, x, 15))
    low = x - 30.0 * np.linalg.lstsq(A, np.ones(15))[0]  # rates far below most counts
    assert_is_below(loss.enclose(low), exact, low, points_around(rng, low, 15), 1e-10)


def test_conjugate_of_poisson(rng):
    """Rates far below their counts cancel in ``n v + k``: 1e-6 beside 1e6, and rates of 0."""
    getcontext().prec = 60
    counts = np.floor(10.0 ** rng.uniform(0, 6, 40))
    rates = np.where(np.arange(40) % 4 == 0, 0.0, 10.0 ** rng.uniform(-10, 1, 40))
    g = Poisson(counts)
    v = g.into_domain((rates - counts) / 40)
    u = [
        decimal(40 * Fraction(a) + Fraction(k))
        for a, k in zip(v.tolist(), counts.tolist(), strict=True)
    ]
    assert min(u) >= 0
    exact = sum((a * a.ln() - a if a > 0 else Decimal(0)) for a in u) / 40
    found = g.enclose_conjugate(v)
    assert abs(Decimal(found.value) - exact) <= Decimal(found.error)
    assert found.error <= 1e-7


@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_squared_hinge(rng, scale):
    A, x = 2.0 * rng.standard_normal((15, 4)), rng.standard_normal(4)
    labels = np.where(rng.uniform(size=15) < 0.5, -1.0, 1.0)
    loss = Loss(Term(SquaredHinge(labels), linear_map(A), scale=scale))

    def exact(z):
        rows = zip(A.tolist(), labels, strict=True)
        scores = [
            int(y) * sum(Fraction(e) * c for e, c in zip(row, z, strict=True)) for row, y in rows
        ]
        return Fraction(scale) / 15 * sum(max(Fraction(0), 1 - s) ** 2 for s in scores)

    assert_is_below(loss.enclose(x), exact, x, points_around(rng, x))


def test_wide_squares(rng):
    B, b, x = rng.standard_normal((4, 9)), rng.standard_normal(4), rng.standard_normal(9)

    def exact(z):
        rows = zip(B.tolist(), b.tolist(), strict=True)
        residual = [
            sum(Fraction(e) * c for e, c in zip(row, z, strict=True)) - Fraction(o)
            for row, o in rows
        ]
        return Fraction(0.7) * sum(r * r for r in residual) / 2

    f = Loss(Term(HalfSquare(), linear_map(B), b, 0.7))
    assert_is_below(f.enclose(x), exact, x, points_around(rng, x))


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


def test_functions_without_error_analysis_raise_an_error():
    with pytest.raises(MissingCapabilityError, match="no rounding analysis"):
        Atom().enclose(np.zeros(1), np.zeros(1))
