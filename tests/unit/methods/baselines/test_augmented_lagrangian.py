"""The classical augmented Lagrangian: a proximal point method on the dual, stage by stage."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support.sequential_runs import KNOWN, agreement, image_multiplier, staged
from support.theorem_checks import count_projections
from support.theory_problems import t4, t6_ellipsoid, t8

import lopro
from lopro import Problem, Status
from lopro.constraints import FunctionConstraint, Polyhedron
from lopro.methods.baselines import AugmentedLagrangian, ExteriorPenalty
from lopro.objectives import Linear, SquaredDistance
from lopro.penalties import MemberPenalties

#: A small fixed stiffness, so that there are many stages.
SLOW = AugmentedLagrangian(12, stiffness=0.2, enough=1.0, accuracy=1e-11)


def multipliers(known: Any, method: AugmentedLagrangian) -> tuple[list[Any], list[Any]]:
    """Return the multiplier before the first stage and after each, with the epochs."""
    epochs = staged(known, method)
    found = [np.zeros(known.constraint.image(known.x0)[0].shape)]
    for epoch in epochs:
        (part,) = epoch.F.penalty.parts
        found.append(part.dual(known.constraint, known.constraint.image(epoch.x_hat))[0])
    return found, epochs


def gaps_on_a_line(a: float, b: float, z: float, method: AugmentedLagrangian) -> list[float]:
    """``min (x - z)^2 / 2`` for ``a x <= a b`` by hand: the gaps of the multipliers of the stages.

    The distance e of ``a u`` from its limit ``z - b`` shrinks by ``1 + beta a^2``, and the residual is
    ``|u_new - u| / beta``; beta grows where the residual has not decreased by a factor.
    """
    beta, e, last, found = method.stiffness, z - b, np.inf, []
    for _ in range(method.stages):
        before, e = e, e / (1.0 + beta * a**2)
        residual = (before - e) / a / beta
        beta *= method.growth if residual > method.enough * last else 1.0
        last = residual
        found.append(0.5 * e**2)
    return found


@pytest.mark.parametrize("stiffness", [1e-3, 0.05, 1.0])
@pytest.mark.parametrize("a", [1.0, 0.4])
def test_stages_on_a_line_are_those_by_hand(a: float, stiffness: float) -> None:
    method = AugmentedLagrangian(9, growth=4.0, stiffness=stiffness, accuracy=1e-12)
    half = Polyhedron(np.array([[a]]), np.array([a]))
    problem = Problem(SquaredDistance(np.array([4.0])), half)
    history = lopro.solve(problem, np.zeros(1), method, tol=0).history
    expected = gaps_on_a_line(a, 1.0, 4.0, method)
    assert history["gap"] == pytest.approx(expected, rel=1e-6, abs=1e-12)


def fejer_ratio(make: Any, method: AugmentedLagrangian) -> float:
    """Return the worst ``|u_(k+1) - u*| / |u_k - u*|``, while the distance is above 1e-7."""
    known, u = make(), image_multiplier(make())
    found, _ = multipliers(known, method)
    left = [float(np.linalg.norm(v - u)) for v in found]
    return max(b / a for a, b in pairwise(left) if a > 1e-7)


def dual_ratio(make: Any, method: AugmentedLagrangian) -> float:
    """Return the worst ``(f_* - D(u_K)) / (|u_0 - u*|^2 / (2 sum beta))`` over the stages."""
    known, u = make(), image_multiplier(make())
    found, epochs = multipliers(known, method)
    worst, spent = 0.0, 0.0
    for dual, epoch in zip(found[1:], epochs, strict=True):
        spent += epoch.F.penalty.parts[0].beta
        c, x = known.constraint, epoch.x_hat
        # The minimiser of the augmented Lagrangian minimises the Lagrangian of the new multiplier.
        value = float(known.objective.value(x) + dual @ c.image(x)[0]) - c.support_image((dual,))
        worst = max(worst, (known.optimum - value - 1e-9) / (float(u @ u) / (2.0 * spent)))
    return worst


@pytest.mark.parametrize("make", KNOWN)
def test_the_distance_of_multipliers_decreases_and_the_dual_value_satisfies_its_bound(make):
    assert fejer_ratio(make, SLOW) <= 1.0 + 1e-6
    ratio = dual_ratio(make, SLOW)
    assert ratio <= 1.0
    # The bound is not arbitrarily loose; on T4 the dual has one point and is solved at once.
    assert ratio >= 1e-2 or make is t4


def test_multipliers_moved_too_far_break_both():
    """Negative control: three times the step of the proximal point method."""

    class TooFar(AugmentedLagrangian):
        def following(self, stage):
            (old,), (new,) = stage.penalty.parts, super().following(stage).parts
            start = 0.0 if old.multiplier is None else old.multiplier[0]
            return MemberPenalties(
                (replace(new, multiplier=(start + 3.0 * (new.multiplier[0] - start),)),)
            )

    broken = TooFar(12, stiffness=5.0, enough=1.0)
    found = [epoch.F.penalty.parts[0].multiplier for epoch in staged(t4(), broken)][1:]
    u = image_multiplier(t4())
    left = [float(np.linalg.norm(v[0] - u)) for v in found]
    assert max(b / a for a, b in pairwise(left)) > 1.0


def test_multipliers_that_stay_break_the_dual_bound():
    """Negative control: without the update it is a penalty method, whose dual value stops increasing."""

    class Still(AugmentedLagrangian):
        def following(self, stage):
            return stage.penalty

    slow = {"stiffness": 0.02, "enough": 1.0, "accuracy": 1e-11}
    assert dual_ratio(t6_ellipsoid, Still(200, **slow)) > 2.0
    assert dual_ratio(t6_ellipsoid, AugmentedLagrangian(60, **slow)) <= 1.0


def test_a_fixed_stiffness_is_enough_where_the_penalty_method_needs_it_to_grow():
    known = t8()
    result = lopro.solve(known.problem, known.x0, AugmentedLagrangian(growth=1.5), tol=1e-7)
    assert result.success
    penalty = lopro.solve(known.problem, known.x0, ExteriorPenalty(growth=1.5), tol=1e-7)
    assert not penalty.success
    assert known.gap(penalty.x) > 1e3 * abs(known.gap(result.x))


def test_the_stiffness_grows_only_where_the_residual_does_not_fall():
    betas = [
        e.F.penalty.parts[0].beta for e in staged(t4(), AugmentedLagrangian(8, stiffness=1e-3))
    ]
    assert betas == sorted(betas) and betas[-1] > betas[0]
    stiff = [
        e.F.penalty.parts[0].beta for e in staged(t4(), AugmentedLagrangian(3, stiffness=50.0))
    ]
    assert stiff[:2] == [50.0, 50.0]


@pytest.mark.parametrize("stages", [1, 5])
def test_one_projection_per_stage_by_both_counts(stages):
    known = t4()
    calls = count_projections(known.constraint)
    result = lopro.solve(known.problem, known.x0, AugmentedLagrangian(stages), tol=0.0)
    assert (calls(), result.counts.projections, len(result.history)) == (stages,) * 3


def test_it_agrees_with_cvxpy():
    worst, count = agreement(AugmentedLagrangian(), tol=1e-6)
    assert count >= 8 and worst <= 1e-6


def test_members_have_multipliers_of_their_own(rng):
    """An intersection of a smooth function and a polyhedron: a number and a vector side by side."""
    ball = FunctionConstraint(
        lambda x: float(x @ x) - 1.0, lambda x: 2.0 * x, smooth=True, shape=(3,)
    )
    set_ = lopro.constraints.Intersection(
        ball, lopro.constraints.Polyhedron(np.array([[1.0, 1.0, 1.0]]), np.array([-0.5]))
    )
    a = np.array([-1.0, 0.3, 0.2])
    problem = Problem(Linear(a), set_, solution_norm=1.0)
    result = lopro.solve(problem, method=AugmentedLagrangian())
    assert result.success
    assert result.fun == pytest.approx(lopro.solve(problem, tol=1e-8).fun, abs=2e-6)


def test_missing_properties_are_named_and_parameters_checked():
    rough = FunctionConstraint(lambda x: float(abs(x).max()) - 1.0, np.sign, shape=(2,))
    with pytest.raises(lopro.MissingCapabilityError, match="AugmentedLagrangian needs constraints"):
        lopro.solve(Problem(Linear(np.ones(2)), rough), method=AugmentedLagrangian())
    for bad in ({"stages": 0}, {"growth": 1.0}, {"enough": 2.0}, {"stiffness": -1.0}):
        with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
            AugmentedLagrangian(**bad)


def test_budgets_end_the_run():
    known = t4()
    result = lopro.solve(known.problem, known.x0, AugmentedLagrangian(), tol=0.0, max_projections=2)
    assert (result.status, result.counts.projections) == (Status.MAX_PROJECTIONS, 2)
