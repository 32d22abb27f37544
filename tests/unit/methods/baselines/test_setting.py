"""The ball of the theorems with few projections: it contains the solution, and its constants are valid."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.theorem_checks import noise
from support.theory_problems import Known, t2, t4, t6_box, t6_ellipsoid, t9
from support.tilted import tilted

from lopro.driver.run import Run
from lopro.driver.workbench import Options
from lopro.errors import MissingCapabilityError
from lopro.functions import Source
from lopro.methods import Auto
from lopro.methods.baselines import (
    ConEx,
    FullTouch,
    OneProjectionSaddle,
    OneProjectionSmoothed,
)
from lopro.methods.setting import Needs, Setting
from lopro.objectives import FunctionObjective

PROBLEMS = {
    "T2": t2,
    "T4": t4,
    "T6": t6_box,
    "T6 ellipsoid": t6_ellipsoid,
    "T9": t9,
    "tilted": tilted,
}


def find_setting(known: Known, **needs: Any) -> Setting:
    bench = Run(known.problem, Auto(), known.x0, Options(seed=0)).bench
    return Needs("a method", **needs).find(bench, known.x0)


def slope_ratio(known: Known, setting: Setting, reach: float) -> float:
    """Return the steepest slope of f and of c on the ball, over the constants."""
    rng, worst = np.random.default_rng(1), 0.0
    for i in range(400):
        toward = noise(known, rng)
        if i % 4 == 0 and np.any(known.objective.subgradient(setting.start)):
            toward = known.objective.subgradient(setting.start)
            toward = toward / np.linalg.norm(toward)
        z = setting.start + reach * setting.ball.radius * rng.choice([0.5, 1.0]) * toward
        f, c = known.objective.subgradient(z), known.constraint.subgradient(z)
        worst = max(worst, np.linalg.norm(f) / setting.constants.G)
        worst = max(worst, np.linalg.norm(c) / setting.constants.Gc)
    return float(worst)


@pytest.mark.parametrize("reach", [1.0, 2.0])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_ball_holds_the_solution_and_the_constants_hold_on_it(problem: str, reach: float) -> None:
    known = PROBLEMS[problem]()
    setting = find_setting(known, reach=reach)
    assert setting.certain and not setting.solved
    assert np.linalg.norm(known.solution - setting.start) <= setting.ball.radius * (1.0 + 1e-12)
    assert slope_ratio(known, setting, reach) <= 1.0 + 1e-9
    assert setting.weight >= known.zeta


def test_constants_reject_a_ball_that_is_larger() -> None:
    known = t6_box()
    assert slope_ratio(known, find_setting(known), 3.0) > 1.0


def test_estimates_support_no_claim(monkeypatch: Any) -> None:
    known = tilted()
    estimate = SimpleNamespace(value=9.0, source=Source.ESTIMATED, note="")
    monkeypatch.setattr(known.constraint, "lipschitz", lambda ball=None: estimate)
    assert not find_setting(known).certain
    # Constants given by the user are not checked.
    assert find_setting(known, constants=known.constants).certain


@pytest.mark.parametrize("kind", [FullTouch, OneProjectionSaddle, OneProjectionSmoothed, ConEx])
def test_methods_claim_their_bound_from_certain_constants_only(kind: Any) -> None:
    known, method = tilted(), kind(iterations=100)
    bench = Run(known.problem, method, known.x0, Options(seed=0)).bench
    setting = method.needs.find(bench, known.x0)
    assert setting.certain and method.plan(bench, setting).claim is not None
    assert method.plan(bench, replace(setting, certain=False)).claim is None


def test_given_constants_are_used_and_missing_ones_are_named() -> None:
    known = tilted()
    setting = find_setting(known, constants=known.constants, radius=0.5)
    assert setting.ball.radius == 0.5 and setting.constants == known.constants
    plain = replace(
        known, objective=FunctionObjective(known.objective.value, known.objective.subgradient)
    )
    slope = np.linalg.norm(known.objective.subgradient(known.x0))
    assert find_setting(plain, constants=known.constants).ball.radius == pytest.approx(
        slope / known.mu
    )
    with pytest.raises(MissingCapabilityError, match="Gc"):
        Needs("a method", t4().constants, 1.0).check(t4().problem)
    with pytest.raises(MissingCapabilityError, match="mu"):
        Needs("a method", t2().constants, 1.0, strongly_convex=True).check(t2().problem)
