"""The exact number of projections of the theorems, by an independent wrapper and by the counter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.theorem_checks import count_projections, penalised
from support.theory_problems import Known, t2, t3, t4, t6_box, t6_ellipsoid

import lopro
from lopro import LoPGD, LoPNAG, OneProjection
from lopro.constraints import ResidualNorm
from lopro.methods.inner import LBFGSB
from lopro.methods.paper.theorems import HalvingSmoothing, HalvingSteps, Theorem2, Theorem3
from lopro.penalties import Hinge, Softplus


def projections(known: Known, method: Any, x0: Any = None) -> int:
    """Run the whole method and return the projections, on which both counters must agree."""
    calls = count_projections(known.constraint)
    result = lopro.solve(known.problem, known.x0 if x0 is None else x0, method, tol=0)
    assert result.counts.projections == calls()
    assert known.constraint.value(result.x) <= 1e-12
    return calls()


def ball(known: Known) -> Any:
    """Return the ball of C1'."""
    return lopro.theorems.solution_ball(known.problem, known.x0)


ONE = {
    "Cor 1": (t6_box, lambda k: lopro.theorems.corollary_1(k.constants, 50, ball=ball(k))),
    "C1'": (t6_box, lambda k: lopro.theorems.weighted_average(k.constants, 50, ball(k))),
    "Cor 2a": (t4, lambda k: lopro.theorems.corollary_2a(k.constants, 50, k.distance)),
    "Cor 2a, P3": (
        t4,
        lambda k: lopro.theorems.corollary_2a(k.constants, 50, k.distance, quadratic=True),
    ),
    "Cor 2b": (t6_ellipsoid, lambda k: lopro.theorems.corollary_2b(k.constants, 50)),
    "P4": (t6_ellipsoid, lambda k: lopro.theorems.balanced(k.constants, 500)),
    "outside solver": (
        t4,
        lambda k: OneProjection(LBFGSB(), Softplus(k.constants.weight, 1e-3), 1),
    ),
}


@pytest.mark.parametrize("name", ONE)
def test_one_projection(name: str) -> None:
    """Thm 1 and its corollaries: one projection, at the very end, from a feasible start or not."""
    make, method = ONE[name]
    known = make()
    assert projections(known, method(known)) == 1
    known = make()
    assert projections(known, method(known), known.x0 + 5.0) == 1


@pytest.mark.parametrize("eps", [0.5, 0.1, 0.03])
def test_lopgd_projects_once_per_epoch(eps: float) -> None:
    """Thm 2: ``K = ceil(log2(eps0 / eps))`` projections, and one more from an infeasible start."""
    for make in (t2, t3, lambda: t4(form=ResidualNorm())):
        known = make()
        eps_here = eps * min(1.0, known.eps0)
        plan = Theorem2(known.constants, known.eps0, eps_here, min(known.sigma, 0.3), known.theta)
        assert projections(known, LoPGD(plan)) == plan.epochs
        known = make()
        assert projections(known, LoPGD(plan), -50.0 * np.ones_like(known.x0)) == plan.epochs + 1
        known = make()
        practical = HalvingSteps(2.0 * known.constants.weight, eta=1e-3, steps=20, epochs=4)
        assert projections(known, LoPGD(practical)) == 4


@pytest.mark.parametrize("eps", [0.5, 0.1, 0.01])
def test_lopnag_projects_once_per_epoch(eps: float) -> None:
    """Thm 3: ``K = ceil(log2(eps0 / eps))`` projections; the practical schedule: one per epoch."""
    for make in (t4, t6_ellipsoid, lambda: t3(smooth=True)):
        known = make()
        eps_here = eps * min(1.0, known.eps0)
        plan = Theorem3(known.constants, known.eps0, eps_here, known.sigma, known.theta)
        assert projections(known, LoPNAG(plan)) == plan.epochs
        known = make()
        assert (
            projections(known, LoPNAG(HalvingSmoothing(2.0 * known.zeta, steps=20, epochs=4))) == 4
        )


def test_projecting_a_point_of_the_set_counts() -> None:
    """A projection that changes nothing counts like any other."""
    known = t6_box()
    inside = known.x0
    method = OneProjection(
        lopro.theorems.corollary_1(known.constants, 2, ball=ball(known)).inner, Hinge(100.0), 2
    )
    seen = []
    project = known.constraint.project
    known.constraint.project = lambda x: seen.append(np.array(x)) or project(x)
    result = lopro.solve(known.problem, inside, method, tol=0)
    assert result.counts.projections == len(seen) == 1


def test_inner_algorithms_cannot_project() -> None:
    """Only schemes project: the function passed to an inner algorithm has no projection."""
    assert not hasattr(penalised(t4(), Hinge(1.0)), "project")
