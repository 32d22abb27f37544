"""Multipliers moved a little inside: bounds that need no radius, at a price that is known."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from support.newton_examples import composed, interval, linear, quadratic

from lopro.linalg.eigenvalues import negative_curvature
from lopro.newton.bounds import lower_bound, strictly_feasible


def standard_form(rng, n=30, m=12):
    """``min q'x, A x = b, x >= 0`` with a known vertex."""
    A = rng.standard_normal((m, n))
    x = np.zeros(n)
    x[:m] = rng.uniform(0.5, 2.0, m)
    y = rng.standard_normal(m)
    slack = np.zeros(n)
    slack[m:] = rng.uniform(0.5, 1.0, n - m)
    q = A.T @ y + slack
    b = A @ x
    return composed(linear(q), [(interval(b, b), A), (interval(lower=np.zeros(n)), None)]), x, -y


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array])
def test_no_radius_is_left_and_little_is_lost(rng, wrap):
    for _ in range(5):
        problem, x, y = standard_form(rng)
        rows = problem.terms[0]
        problem = composed(
            problem.smooth, [(rows, wrap(rows.map.matrix)), (problem.terms[1], None)]
        )
        plain = lower_bound(problem, x, [y, np.zeros(30)])
        assert plain.slope > 0.0
        strict = lower_bound(problem, *strictly_feasible(problem, x, [y, np.zeros(30)]))
        value = problem.smooth.value(x)
        assert strict.slope == 0.0
        assert value - 1e-11 * (1 + abs(value)) <= strict.value <= value


def test_noise_in_the_multipliers_is_repaired(rng):
    problem, x, y = standard_form(rng)
    noisy = y + 1e-7 * rng.standard_normal(len(y))
    found = lower_bound(problem, *strictly_feasible(problem, x, [noisy, np.zeros(30)]))
    assert found.slope == 0.0
    assert found.value == pytest.approx(problem.smooth.value(x), rel=1e-9)


def test_free_variables_keep_a_radius(rng):
    problem, x, y = standard_form(rng)
    lower = np.zeros(30)
    lower[0] = -np.inf
    free = composed(
        problem.smooth,
        [(problem.terms[0], problem.terms[0].map), (interval(lower=lower, upper=np.inf), None)],
    )
    point, v = strictly_feasible(free, x, [y, np.zeros(30)])
    bound = lower_bound(free, point, v)
    assert 0.0 < bound.slope < 1e-12


def test_nothing_to_move(rng):
    inside = composed(quadratic(np.eye(2), np.ones(2)), [(interval(-1.0, 1.0, size=2), None)])
    assert strictly_feasible(inside, np.zeros(2), [np.zeros(2)]) is None


def test_negative_curvature(rng):
    Q, _ = np.linalg.qr(rng.standard_normal((40, 40)))
    values = np.geomspace(1e-8, 1.0, 40)
    for least, expected in (
        (1e-8, False),
        (0.0, False),
        (-1e-17, False),
        (-1e-9, True),
        (-1.0, True),
    ):
        values[0] = least
        P = (Q * values) @ Q.T
        P = 0.5 * (P + P.T)
        for M in (P, scipy.sparse.csc_array(P)):
            d = negative_curvature(M)
            assert (d is not None) == expected, least
            if expected:
                assert d @ P @ d == pytest.approx(least, rel=1e-3)
    big = scipy.sparse.diags_array(np.r_[np.ones(1999), -1e-3])
    assert negative_curvature(scipy.sparse.csc_array(big)) is not None
