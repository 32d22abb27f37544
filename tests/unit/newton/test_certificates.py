"""Certificates from given points and multipliers: exact values, and no false claims."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from support.exact_arithmetic import exact_dot as rational_dot
from support.exact_arithmetic import wild

from lopro.certificates import TOUCHING, check_descent, check_empty
from lopro.certificates.exact import exact_dot

INF = np.inf


def test_dot_products_are_rounded_once(rng):
    for n in (1, 5, 300):
        x, y = wild(rng, n), wild(rng, n)
        assert exact_dot(x, y) == float(rational_dot(x, y))
    x = np.array([1e16, 1.0, -1e16])
    assert exact_dot(x, np.array([1.0 + 2**-30, 2**-40, 1.0 + 2**-30])) == 2**-40


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array])
def test_radius_of_a_nearly_exact_certificate(wrap):
    """X <= 0 and (1 + e) x >= 1: the only feasible points are beyond 1 / e, on the negative side.

    Multipliers (1, -1) leave a slope of -e and a support of -1, so the radius is 1 / e, less `TOUCHING`.
    """
    e = 2.0**-20
    A = wrap(np.array([[1.0], [1.0 + e]]))
    rows = [(A, np.array([-INF, 1.0]), np.array([0.0, INF]))]
    found = check_empty(rows, [np.array([1.0, -1.0])], 1)
    assert found.margin == pytest.approx(1.0 - TOUCHING, rel=1e-14)
    assert found.residual == pytest.approx(e, rel=1e-14)
    assert found.radius == pytest.approx((1.0 - TOUCHING) / e, rel=1e-13)
    # The claim is true and cannot be sharpened: these multipliers do not exclude the point -1/e.
    assert found.radius <= 1.0 / e


def test_multipliers_of_a_missing_side_are_dropped():
    rows = [(np.eye(1), np.array([1.0]), np.array([INF]))]
    assert check_empty(rows, [np.array([5.0])], 1).radius == 0.0
    assert check_empty(rows, [np.array([-1.0])], 1).radius == pytest.approx(1.0)


def test_feasible_systems_get_no_radius_beyond_their_points(rng):
    """Whatever the multipliers, the radius is at most the norm of the shortest known feasible point."""
    A = rng.standard_normal((12, 4))
    x = rng.standard_normal(4)
    rows = [
        (A, A @ x - 0.1, A @ x + rng.uniform(0, 1, 12)),
        (None, np.full(4, -3.0), np.full(4, 3.0)),
    ]
    for _ in range(500):
        y = [wild(rng, 12), wild(rng, 4) * (rng.uniform(size=4) < 0.5)]
        assert check_empty(rows, y, 4).radius <= np.linalg.norm(x) * (1 + 1e-12)


def test_exact_emptiness():
    rows = [
        (None, np.array([2.0]), np.array([INF])),
        (np.array([[3.0]]), np.array([-INF]), np.array([3.0])),
    ]
    found = check_empty(rows, [np.array([-3.0]), np.array([1.0])], 1)
    assert found.residual == 0.0
    assert found.radius == INF
    assert Fraction(found.margin) <= 3


def test_rays(rng):
    A = np.array([[1.0, -1.0], [-1.0, 0.0]])
    rows = [(A, np.full(2, -INF), np.zeros(2))]
    P = np.array([[1.0, -1.0], [-1.0, 1.0]])
    found = check_descent(P, np.array([-1.0, 0.0]), rows, np.array([3.0, 3.0]))
    assert found.exact
    assert found.slope == pytest.approx(np.sqrt(0.5))
    assert found.proved
    uphill = check_descent(P, np.array([1.0, 0.0]), rows, np.array([1.0, 1.0]))
    assert not uphill.exact and not uphill.proved
    leaving = check_descent(None, np.array([-1.0, 0.0]), rows, np.array([1.0, 0.0]))
    assert leaving.drift == pytest.approx(np.sqrt(0.5)) and not leaving.proved
    curved = check_descent(P, np.array([-1.0, 0.0]), [], np.array([1.0, 0.0]))
    assert curved.curvature == pytest.approx(1.0)
    assert not curved.proved
    # A residual is rounding or not, row by row: compared with 1 or with itself.
    tilted = np.array([1.0 + 2.0**-52, 1.0])
    assert check_descent(P, np.array([-1.0, 0.0]), rows, tilted).proved
    assert not check_descent(
        None, np.array([-1.0]), [(np.ones((1, 1)), [-INF], [0.0])], [1e-20]
    ).proved
    assert not check_descent(None, np.array([-1.0]), [], np.zeros(1)).exact


def test_rays_that_violate_a_side():
    """Along -1 the objective x falls, but x >= 0 stops it at once; x <= 0 does not."""
    below = check_descent(None, [1.0], [(None, [0.0], [np.inf])], [-2.0])
    assert (below.slope, below.drift, below.exact) == (pytest.approx(1.0), 1.0, False)
    above = check_descent(None, [1.0], [(None, [-np.inf], [0.0])], [-2.0])
    assert (above.drift, above.exact) == (0.0, True)
    turned = check_descent(None, [-1.0], [(None, [-np.inf], [0.0])], [2.0])
    assert (turned.drift, turned.exact) == (1.0, False)


def test_sparse_rays_and_equalities(rng):
    A = scipy.sparse.csr_array(np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]))
    rows = [(A, np.array([0.0, -1.0]), np.array([0.0, 1.0]))]
    assert check_descent(None, np.array([-1.0, 0.0, 0.0]), rows, np.array([1.0, 1.0, 0.0])).exact
    assert not check_descent(
        None, np.array([-1.0, 0.0, 0.0]), rows, np.array([1.0, 1.0, 0.1])
    ).exact
