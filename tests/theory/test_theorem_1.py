"""Theorem 1 for any algorithm: R1 (factor 1), R2 (run-time certificate), R3 (small weights), R4 (bias)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from support.theorem_checks import exactness_ratio, penalised, samples, size, theorem_1_ratio
from support.theory_problems import Known, all_problems, t1, t2, t3, t4, t5, t6_ellipsoid, t7, t8

from lopro.constraints import ResidualNorm
from lopro.penalties import Hinge, QuadraticHinge, Softplus

PROBLEMS = [pytest.param(known, id=known.name) for known in all_problems()]


def points(known: Known, rng: Any) -> Iterator[Any]:
    """Yield points at all scales at which the constant G of the problem is valid."""
    # Strongly convex objectives are Lipschitz near the set only.
    scales = (1e-4, 1e-3, 1e-2, 0.1, 0.5) if known.mu else (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e3)
    yield from samples(known, rng, scales=scales)
    for s in np.geomspace(1e-3, 0.5, 10):  # where the minimiser lies if the weight is too small
        yield (1.0 - s) * known.solution


@pytest.mark.parametrize("known", PROBLEMS)
def test_r1_for_every_point(known: Known, rng: Any) -> None:
    """Thm 1 with R1, without any algorithm: ``f(P x) <= F(x)`` at every x for ``lam = G / rho``."""
    lam = known.G / known.rho
    for penalty in (Hinge(lam), Softplus(lam, 1e-4), Softplus(lam, 1.0), QuadraticHinge(lam, 0.1)):
        assert exactness_ratio(known, penalty, points(known, rng)) <= 1.0


@pytest.mark.parametrize("share", [0.5, 0.9])
@pytest.mark.parametrize("known", [t3(), t4(), t5(), t7(), t8()], ids=lambda k: k.name)
def test_r1_rejects_small_weights(known: Known, share: float, rng: Any) -> None:
    """Thm 1, negative control: below the multiplier ``f(P x) <= F(x)`` fails somewhere."""
    assert exactness_ratio(known, Hinge(share * known.zeta), points(known, rng)) > 1.0


@pytest.mark.parametrize("known", PROBLEMS)
def test_theorem_1(known: Known, rng: Any) -> None:
    """Thm 1: ``f(x~) - f_* <= p (C gamma + B)``, with p = 1 at ``G / rho`` and the printed p at twice."""
    lam = known.G / known.rho
    for penalty in (Hinge(lam), Softplus(lam, 0.01), QuadraticHinge(lam, 0.01)):
        assert theorem_1_ratio(known, penalty, 1.0, points(known, rng)) <= 1.0 + 1e-6
    twice = Softplus(2.0 * lam, 0.01)
    assert known.constants.printed_factor(2.0 * lam) == pytest.approx(2.0)
    assert theorem_1_ratio(known, twice, 2.0, points(known, rng)) <= 1.0 + 1e-6
    assert theorem_1_ratio(known, twice, 1.0, points(known, rng)) <= 1.0 + 1e-6


def test_theorem_1_is_nearly_tight(rng: Any) -> None:
    """R1: on T5 the factor 1 cannot be improved by more than a few percent."""
    known = t5()
    assert theorem_1_ratio(known, Hinge(known.G / known.rho), 0.9, points(known, rng)) > 1.0


@pytest.mark.parametrize("known", [t3(), t4(), t4(form=ResidualNorm())], ids=lambda k: k.name)
@pytest.mark.parametrize("place", [0.1, 0.5, 0.9, 1.0])
def test_r3(known: Known, place: float, rng: Any) -> None:
    """R3: between the multiplier and ``G / rho`` the factor is ``(G/rho - zeta) / (lam - zeta)``."""
    lam = known.zeta + place * (known.G / known.rho - known.zeta)
    p = (known.G / known.rho - known.zeta) / (lam - known.zeta)
    for penalty in (Hinge(lam), Softplus(lam, 0.01)):
        assert theorem_1_ratio(known, penalty, p, points(known, rng)) <= 1.0 + 1e-6


def test_r3_rejects(rng: Any) -> None:
    """R3, negative controls: factor 1 for a small weight, and a weight below the multiplier."""
    known = t3()
    lam = known.zeta + 0.1 * (known.G / known.rho - known.zeta)
    assert theorem_1_ratio(known, Hinge(lam), 1.0, points(known, rng)) > 1.0
    for share in (0.5, 0.9):
        assert theorem_1_ratio(known, Hinge(share * known.zeta), 100.0, points(known, rng)) > 1.0


def least_value(known: Known, penalty: Any) -> tuple[float, Any]:
    """Return the minimum of F and where it is, by an outside optimiser (smooth F only)."""
    F = penalised(known, penalty)

    def value_and_slope(x: Any) -> tuple[float, Any]:
        value, gradient = F.linearize_at(F.image(x))
        return value, gradient()

    x = known.x0
    for _ in range(3):
        options = {"maxiter": 5000, "ftol": 0.0, "gtol": 1e-13}
        x = scipy.optimize.minimize(
            value_and_slope, x, jac=True, method="L-BFGS-B", options=options
        ).x
    return F.value(x), x


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_r3_below_the_multiplier(share: float) -> None:
    """R3: for ``lam < zeta*`` the minimum of ``f + lam [c]_+`` is below ``f_*`` (T3, T4)."""
    l1 = t3()
    assert penalised(l1, Hinge(share * l1.zeta)).value(np.zeros(4)) < l1.optimum - 1e-3
    known = t4()
    # The smoothed minimum is above that of the hinge: it is enough that it is below f_*.
    assert least_value(known, Softplus(share * known.zeta, 1e-3))[0] < known.optimum - 1e-3


@pytest.mark.parametrize("known", [t3(), t4(), t6_ellipsoid(), t8()], ids=lambda k: k.name)
def test_r2(known: Known, rng: Any) -> None:
    """R2: for every ``lam >= 0`` the gap is at most ``C gamma + B + [f(x~) - F(x^)]_+``.

    Without the last term the same bound is rejected for weights that are too small.
    """
    rejected = False
    for lam in (0.0, 0.3 * known.zeta, known.zeta, 2.0 * known.G / known.rho):
        for penalty in (Hinge(lam), Softplus(lam, 0.05)):
            F = penalised(known, penalty)
            at_solution = F.value(known.solution)
            for x in points(known, rng):
                projected = known.constraint.project(x)
                B, f = F.value(x) - at_solution, known.objective.value(projected)
                unit = 1e-11 * (1.0 + abs(f) + known.G * size(x))
                correction = max(0.0, f - F.value(x))
                assert known.gap(projected) <= penalty.above + B + correction + unit
                assert known.optimum >= F.value(x) - penalty.above - B - unit
                rejected |= known.gap(projected) > penalty.above + B + unit
    assert rejected


# R4: the bias of softplus.


def divergence_from_half(q: float) -> float:
    """Return ``KL(q || 1/2) = ln 2 - H(q)``."""
    return math.log(2.0) + q * math.log(q) + (1.0 - q) * math.log1p(-q)


def bias_ratio(known: Known, factor: float, gamma: float, formula: float) -> float:
    """Return ``(F(x*) - min F) / (gamma formula)`` for ``lam = factor zeta*``."""
    penalty = Softplus(factor * known.zeta, gamma)
    least, _ = least_value(known, penalty)
    return (penalised(known, penalty).value(known.solution) - least) / (gamma * formula)


@pytest.mark.parametrize("gamma", [1e-2, 0.1, 1.0, 10.0])
def test_r4_no_bias_at_twice_the_multiplier(gamma: float) -> None:
    """R4 on T4: at ``lam = 2 zeta*`` softplus has its minimum at the solution for every gamma."""
    known = t4()
    _, x = least_value(known, Softplus(2.0 * known.zeta, gamma))
    assert size(x - known.solution) <= 1e-5
    for factor in (1.5, 3.0):  # negative control: the same minimisation elsewhere
        _, moved = least_value(known, Softplus(factor * known.zeta, gamma))
        assert size(moved - known.solution) > 1e-3


@pytest.mark.parametrize("factor", [1.2, 1.5, 3.0, 10.0])
@pytest.mark.parametrize("gamma", [1e-3, 1e-2, 0.1, 1.0])
def test_r4_bias(factor: float, gamma: float) -> None:
    """R4 on T4: ``F(x*) - min F <= gamma KL(zeta*/lam || 1/2)``, with equality as gamma vanishes."""
    known = t4()
    q = 1.0 / factor
    ratio = bias_ratio(known, factor, gamma, divergence_from_half(q))
    assert ratio <= 1.0 + 1e-6
    if gamma == 1e-3:
        assert ratio >= 0.98
        assert bias_ratio(known, factor, gamma, 0.9 * divergence_from_half(q)) > 1.0


@pytest.mark.parametrize("lam", [1.3, 2.0, 5.0])
def test_r4_closed_form(lam: float) -> None:
    """R4 on T1: the minimiser is ``(gamma/lam) ln(1/(lam-1))``, and the bias is exactly gamma KL."""
    known, gamma = t1(), 0.3
    F = penalised(known, Softplus(lam, gamma))
    x = np.array([gamma / lam * math.log(1.0 / (lam - 1.0))])
    assert size(F.linearize_at(F.image(x))[1]()) <= 1e-12
    bias = F.value(known.solution) - F.value(x)
    assert bias == pytest.approx(gamma * divergence_from_half(1.0 / lam), abs=1e-12)


def test_r4_box_hides_a_small_weight(rng: Any) -> None:
    """On the box T2 the projection of a wrong minimiser is still the right vertex.

    This is why T2 serves for positive tests only.
    """
    known = t2()
    far = 5.0 * known.solution  # where a weight below the multiplier lets the iterates run
    assert known.gap(known.constraint.project(far)) == 0.0
    assert exactness_ratio(known, Hinge(0.9 * known.zeta), iter([far])) > 1.0
