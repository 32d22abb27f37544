"""`lopro.theory`: weights, slopes, smoothness and epochs as numbers, error bounds as they are measured."""

from __future__ import annotations

import math

import pytest
from support.theory_problems import Known, t2, t3, t4, t5, t6_box, t6_ellipsoid, t9

from lopro.methods.theory import ProblemConstants, epochs_needed, probe_error_bound


def test_weight_slope_and_printed_factor() -> None:
    """``lam = G / rho``, ``Gbar = G + lam G_c``, ``p = lam rho / (lam rho - G)``."""
    c = ProblemConstants(G=3.0, Gc=5.0, rho=0.5)
    assert c.weight == 6.0
    assert c.subgradient_bound(7.0) == 38.0
    assert c.printed_factor(8.0) == pytest.approx(4.0)
    assert c.printed_factor(24.0) == pytest.approx(4.0 / 3.0)
    assert math.isinf(c.printed_factor(6.0)) and math.isinf(c.printed_factor(5.0))


@pytest.mark.parametrize(
    ("Gc", "slope", "factor"),
    [
        (2.0, 4.0, 1.0),  # the Lipschitz constant is the smaller one: Prop 1
        (9.0, 24.0, 1.3009),  # 2 L_c m_0 = 24 < 81: P2
        (math.inf, 24.0, 1.3009),
    ],
)
def test_smoothness_of_softplus(Gc: float, slope: float, factor: float) -> None:
    """``L_f + factor lam L_c + lam^2 slope / (4 gamma)``, the slope squared."""
    c = ProblemConstants(G=1.0, Gc=Gc, rho=1.0, Lf=0.7, Lc=4.0, c_min=-3.0)
    lam, gamma = 2.5, 0.1
    assert c.squared_slope == slope
    assert c.base_smoothness(lam) == pytest.approx(0.7 + factor * lam * 4.0)
    other = 1.0 if factor == 1.0 else 2.0
    assert c.base_smoothness(lam, 2.0) == pytest.approx(0.7 + other * lam * 4.0)
    expected = 0.7 + factor * lam * 4.0 + lam**2 * slope / (4.0 * gamma)
    assert c.smoothness(lam, gamma) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("eps0", "eps", "K"),
    [(1.0, 2.0, 0), (1.0, 1.0, 0), (1.0, 0.99, 1), (1.0, 0.5, 1), (1.0, 0.49, 2), (3.0, 0.01, 9)],
)
def test_epochs(eps0: float, eps: float, K: int) -> None:
    """The least K with ``eps0 / 2^K <= eps``."""
    assert epochs_needed(eps0, eps) == K
    assert eps0 / 2.0**K <= eps
    assert K == 0 or eps0 / 2.0 ** (K - 1) > eps


PROBED = [t2(), t3(), t4(), t5(), t6_box(), t6_ellipsoid(), t9()]


@pytest.mark.parametrize("known", PROBED, ids=lambda k: k.name)
def test_probed_error_bounds(known: Known) -> None:
    """A2 (iii): theta to a percent, and a sigma that random directions attain but do not exceed.

    The nearest point of a box (T6) has a gap of exactly half the squared distance in some directions.
    """
    found = probe_error_bound(known.problem, known.solution)
    assert found.theta == pytest.approx(known.theta, abs=0.01)
    # Near 1/2 a deviation of theta by 5e-4 is worth a percent of sigma over the distances used.
    assert 0.4 * known.sigma <= found.sigma <= 1.02 * known.sigma
    if known.name == "T6 box":
        assert found.sigma == pytest.approx(math.sqrt(2.0), rel=1e-6)
