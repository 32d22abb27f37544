"""P7: re-centring the penalty is an entropic proximal point method on the dual."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from support.theorem_checks import Recorded, penalised, size
from support.theory_problems import Known, t1, t4

import lopro
from lopro import LoPNAG
from lopro.methods.paper.adaptive import Recentring
from lopro.penalties import CentredSoftplus, Softplus


def divergence(q: float, r: float) -> float:
    """Return ``KL(q || r)`` between two coins."""
    return q * math.log(q / r) + (1.0 - q) * math.log((1.0 - q) / (1.0 - r))


def dual(known: Known, zeta: float) -> float:
    """The dual function of T4: ``min_x a x + zeta (x'Qx - 1) = -w^2 / (4 zeta) - zeta``."""
    return -(known.optimum**2) / (4.0 * zeta) - zeta


def minimiser(known: Known, zeta: float) -> Any:
    """Return where the Lagrangian of T4 is least: on the ray of the solution."""
    return known.solution * known.zeta / zeta


def exact_step(known: Known, h: CentredSoftplus) -> tuple[Any, float]:
    """Minimise ``f + h`` on T4 exactly: the slope of h at the minimiser is the multiplier of the ray."""

    def mismatch(zeta: float) -> float:
        return h.slope(known.constraint.value(minimiser(known, zeta))) - zeta

    zeta = scipy.optimize.brentq(mismatch, 1e-9, h.lam * (1.0 - 1e-12), xtol=1e-15)
    return minimiser(known, zeta), zeta


CASES = [(1.5, 1.0, 0.2), (4.0, 0.3, 0.5), (10.0, 5.0, 0.02), (2.0, 0.05, 0.9)]


@pytest.mark.parametrize(("factor", "gamma", "share"), CASES)
def test_p7_is_a_proximal_step_on_the_dual(factor: float, gamma: float, share: float) -> None:
    """P7 on T4: ``min f + h = max_zeta D(zeta) - gamma KL(zeta/lam || zeta_k/lam)``, at the slope of h."""
    known = t4()
    lam = factor * known.zeta
    h = CentredSoftplus(lam, gamma, share * lam)
    x, zeta = exact_step(known, h)
    F = penalised(known, h)
    assert size(F.linearize_at(F.image(x))[1]()) <= 1e-9
    found = scipy.optimize.minimize_scalar(
        lambda z: -(dual(known, z) - gamma * divergence(z / lam, share)),
        bounds=(1e-9 * lam, (1.0 - 1e-9) * lam),
        method="bounded",
        options={"xatol": 1e-12},
    )
    assert F.value(x) == pytest.approx(-found.fun, abs=1e-9)
    assert zeta == pytest.approx(found.x, rel=1e-4)
    centred = h.recentred(known.constraint, known.constraint.image(x))
    assert centred.multiplier == pytest.approx(zeta, rel=1e-9)


def dual_rate_ratio(
    factor: float, gamma: float, share: float, penalty: Any, epochs: int = 40
) -> float:
    """Return the worst ``K (D(zeta*) - D(zeta_K)) / (gamma KL(zeta*/lam || zeta_0/lam))`` over K."""
    known = t4()
    lam = factor * known.zeta
    allowed = gamma * divergence(1.0 / factor, share)
    h, worst = penalty(lam, gamma, share * lam), 0.0
    for K in range(1, epochs + 1):
        _, zeta = exact_step(known, h)
        worst = max(worst, K * (known.optimum - dual(known, zeta)) / allowed)
        h = penalty(lam, gamma, min(zeta, (1.0 - 1e-12) * lam))
    return worst


@pytest.mark.parametrize(
    ("factor", "gamma", "share"), [*CASES, (1.5, 100.0, 0.02), (3.0, 30.0, 0.99)]
)
def test_p7_dual_rate(factor: float, gamma: float, share: float) -> None:
    """P7 on T4 with exact inner solves: ``D(zeta*) - D(zeta_K) <= gamma KL(zeta*/lam || zeta_0/lam) / K``."""
    assert dual_rate_ratio(factor, gamma, share, CentredSoftplus) <= 1.0 + 1e-6


@dataclass(frozen=True)
class Uncentred(CentredSoftplus):
    """A penalty that ignores the multiplier it is given (broken): LoPNAG with gamma fixed."""

    @property
    def shift(self) -> float:
        return 0.0


def test_p7_rejects_a_penalty_without_memory() -> None:
    """P7, negative control: with the shift dropped the dual does not converge, and the rate is broken."""
    assert dual_rate_ratio(4.0, 0.3, 0.5, CentredSoftplus) <= 1.0
    assert dual_rate_ratio(4.0, 0.3, 0.5, Uncentred) > 1.0


@pytest.mark.parametrize("gamma", [0.01, 1.0, 100.0])
def test_p7_right_multiplier_has_no_bias(gamma: float) -> None:
    """P7 on T4: with ``zeta_k = zeta*`` the solution minimises ``f + h`` for every gamma."""
    known = t4()
    for factor in (1.2, 2.0, 7.0):
        F = penalised(known, CentredSoftplus(factor * known.zeta, gamma, known.zeta))
        assert size(F.linearize_at(F.image(known.solution))[1]()) <= 1e-12
    plain = penalised(known, Softplus(7.0 * known.zeta, gamma))  # negative control: not centred
    assert size(plain.linearize_at(plain.image(known.solution))[1]()) > 0.1


def epochs_to(known: Known, method: Any, accuracy: float, limit: int) -> int:
    """Return after how many epochs (projections) the gap is below the accuracy; ``limit + 1`` if never."""
    recorded = Recorded(method)
    lopro.solve(known.problem, known.x0, recorded, tol=0, max_projections=limit)
    for k, epoch in enumerate(recorded.seen, start=1):
        if known.gap(epoch.x) <= accuracy:
            return k
    return limit + 1


def test_p7_reaches_high_accuracy() -> None:
    """P7 on T4: 60 steps per epoch reach a gap of 1e-10 within a dozen epochs; LoPNAG's halving does not."""
    assert epochs_to(t4(), LoPNAG(Recentring(steps=60)), 1e-10, 12) <= 12
    halving = lopro.theorems.HalvingSmoothing(lam=4.0 * t4().zeta, gamma=0.3, steps=60, epochs=12)
    assert epochs_to(t4(), LoPNAG(halving), 1e-10, 12) > 12


def test_p7_finds_the_multiplier() -> None:
    """P7 on T4: the multipliers of the penalties converge to ``zeta*``, gamma stays as it was."""
    known = t4()
    recorded = Recorded(LoPNAG(Recentring(steps=60)))
    lopro.solve(known.problem, known.x0, recorded, tol=0, max_projections=12)
    penalties = [epoch.F.penalty for epoch in recorded.seen]
    errors = [abs(h.multiplier / known.zeta - 1.0) for h in penalties]
    assert errors[-1] <= 1e-5
    assert errors[-1] <= 1e-3 * errors[0]
    assert len({h.gamma for h in penalties}) == 1


def logit(q: float) -> float:
    return math.log(q / (1.0 - q))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.89, 0.91, 0.999])
def test_p7_room_for_the_multiplier(share: float) -> None:
    """P7 on T1: the slope found is the next multiplier; lam doubles where that is above nine tenths of it."""
    lam, gamma, first = 4.0, 0.5, 0.4
    h, line = CentredSoftplus(lam, gamma, first * lam), t1().constraint
    x = np.array([gamma / lam * (logit(share) - logit(first))])  # where the slope is share * lam
    following = h.recentred(line, line.image(x))
    assert following.multiplier == pytest.approx(share * lam, rel=1e-12)
    assert following.lam == (lam if share < 0.9 else 2.0 * lam)
    assert following.gamma == gamma


def test_p7_multipliers_stay_inside() -> None:
    """P7: far inside the set the multiplier does not become 0, far outside it is lam, with lam doubled."""
    h, line = CentredSoftplus(4.0, 0.5, 1.0), t1().constraint
    inside, outside = (h.recentred(line, line.image(np.array([x]))) for x in (-1e3, 1e3))
    assert (inside.multiplier, inside.lam) == (4e-12, 4.0)
    assert (outside.multiplier, outside.lam) == (4.0, 8.0)


def test_p7_a_run_makes_room_for_its_multiplier() -> None:
    """P7: started where c is far steeper than at the solution, lam begins at a third of ``zeta*``.

    ``min x_1 + x_2`` s.t. ``x_1^2 + 64 x_2^2 <= 1`` from ``(0, 1/8)``, with slopes ``sqrt 2`` and 16: the
    first lam is ``sqrt(2) / 8 = 0.177``, and ``zeta* = sqrt(1 + 1/64) / 2 = 0.504`` needs it twice doubled.
    """
    ball = lopro.constraints.ResidualBall(np.diag([1.0, 8.0]), np.zeros(2), 1.0)
    problem = lopro.Problem(lopro.objectives.Linear(np.array([1.0, 1.0])), ball)
    result = lopro.solve(problem, np.array([0.0, 0.125]), LoPNAG(Recentring(steps=60)), tol=1e-9)
    assert result.success and result.fun == pytest.approx(-math.sqrt(65.0) / 8.0, abs=1e-8)
    weights = result.history["penalty_weight"]
    assert weights[0] == pytest.approx(math.sqrt(2.0) / 8.0)
    assert all(after in (before, 2.0 * before) for before, after in pairwise(weights))
    assert weights[-1] == 4.0 * weights[0]


def test_generic_lower_bound(rng: Any) -> None:
    """P7, last line: ``f_* >= l(x) - |grad l(x)| D`` for every zeta >= 0, sharp at the solution."""
    known = t4()
    for zeta in (0.0, 0.3 * known.zeta, known.zeta, 5.0 * known.zeta):
        for _ in range(100):
            x = known.solution + rng.uniform(0.0, 3.0) * rng.standard_normal(5)
            value = known.objective.value(x) + zeta * known.constraint.value(x)
            slope = known.objective.subgradient(x) + zeta * known.constraint.subgradient(x)
            distance = size(x - known.solution)
            assert value - size(slope) * distance <= known.optimum + 1e-12
    sharp = known.optimum + known.zeta * known.constraint.value(known.solution)
    assert sharp == pytest.approx(known.optimum)
    assert np.allclose(
        known.objective.subgradient(known.solution),
        -known.zeta * known.constraint.subgradient(known.solution),
    )
