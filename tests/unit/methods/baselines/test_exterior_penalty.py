"""The classical penalty method: its bounds at every stage, which require accurate minimisation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from support.sequential_runs import KNOWN, agreement, image_multiplier, staged
from support.theorem_checks import count_projections
from support.theory_problems import t4

import lopro
from lopro import Problem, Status
from lopro.constraints import FunctionConstraint
from lopro.methods.baselines import ExteriorPenalty
from lopro.objectives import Linear


def worst_ratio(make: Any, method: ExteriorPenalty) -> float:
    """Return the worst ratio of left to right side of the three bounds, over all stages."""
    known, u = make(), image_multiplier(make())
    worst, size = 0.0, float(np.linalg.norm(u))
    for k, epoch in enumerate(staged(known, method)):
        assert method.stiffness is not None
        beta = method.stiffness * method.growth**k
        (z,) = known.constraint.image(epoch.x_hat)
        (nearest,) = known.constraint.project_image((z,))
        violation = float(np.linalg.norm(z - nearest))
        below = known.optimum - float(known.objective.value(epoch.x_hat))
        # The remaining gradient and rounding change the value a little in either direction.
        unit = 1.0 + 1e-6 + 1e-9 * beta
        worst = max(
            worst,
            violation * beta / (size * unit),
            below * beta / (size**2 * unit),
            known.gap(epoch.x) * beta * image_rho(known) / (known.G * size * unit),
        )
    return worst


def image_rho(known: Any) -> float:
    """Return rho for the distance of the image from Q: the smallest singular value of M."""
    matrix = getattr(known.constraint, "A", None) or known.constraint.C
    return float(np.linalg.svd(np.asarray(matrix.toarray()), compute_uv=False)[-1])


@pytest.mark.parametrize("make", KNOWN)
def test_bounds_at_every_stage(make):
    assert worst_ratio(make, ExteriorPenalty(6, stiffness=1.0)) <= 1.0


@pytest.mark.parametrize("make", KNOWN)
def test_the_bounds_are_not_loose(make):
    """Not a hundred times loose: the violation is near its bound once the penalty is stiff."""
    assert worst_ratio(make, ExteriorPenalty(6, stiffness=1.0)) >= 0.1


def test_inaccurate_minimisation_breaks_the_bounds():
    """Negative control: stages that end at once do not have the violations of minimisers."""
    loose = ExteriorPenalty(6, stiffness=1.0, growth=100.0, accuracy=1e9)
    assert worst_ratio(t4, loose) > 10.0


def test_a_constant_penalty_breaks_the_bounds():
    """Negative control: the same check, with a constant stiffness."""

    class Fixed(ExteriorPenalty):
        def following(self, stage):
            return stage.penalty

    assert worst_ratio(t4, Fixed(6, stiffness=1.0)) > 10.0


@pytest.mark.parametrize("make", KNOWN)
def test_values_increase_and_violations_decrease(make):
    known = make()
    epochs = staged(known, ExteriorPenalty(6, stiffness=1.0))
    values = [float(known.objective.value(e.x_hat)) for e in epochs]
    violations = [max(0.0, float(known.constraint.value(e.x_hat))) for e in epochs]
    assert all(b >= a - 1e-7 for a, b in pairwise(values))
    assert all(b <= a + 1e-7 for a, b in pairwise(violations))


@pytest.mark.parametrize("stages", [1, 4])
def test_one_projection_per_stage_by_both_counts(stages):
    known = t4()
    calls = count_projections(known.constraint)
    result = lopro.solve(known.problem, known.x0, ExteriorPenalty(stages), tol=0.0)
    assert (calls(), result.counts.projections, len(result.history)) == (stages,) * 3
    assert result.status is Status.SCHEDULE_DONE


def test_it_agrees_with_cvxpy():
    worst, count = agreement(ExteriorPenalty(9), tol=1e-5)
    assert count >= 8 and worst <= 1e-5


def test_missing_properties_are_named():
    rough = FunctionConstraint(lambda x: float(abs(x).max()) - 1.0, np.sign, shape=(2,))
    with pytest.raises(
        lopro.MissingCapabilityError, match="ExteriorPenalty needs constraints that are smooth or"
    ):
        lopro.solve(Problem(Linear(np.ones(2)), rough), method=ExteriorPenalty())


@pytest.mark.parametrize(
    "arguments",
    [{"stages": 0}, {"growth": 1.0}, {"stiffness": 0.0}, {"accuracy": -1.0}, {"rounds": 0}],
)
def test_bad_parameters(arguments):
    with pytest.raises((TypeError, ValueError), match=next(iter(arguments))):
        ExteriorPenalty(**arguments)


def test_budgets_end_the_run():
    known = t4()
    result = lopro.solve(known.problem, known.x0, ExteriorPenalty(), tol=0.0, max_iter=40)
    assert (result.status, result.iterations) == (Status.MAX_ITER, 40)
    assert result.certificate.violation <= 1e-9 and math.isfinite(result.fun)
