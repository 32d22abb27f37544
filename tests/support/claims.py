"""Checks of the claims in a run's history: without known constants only theorems make claims.

A problem usually has constants that prove a lower bound by themselves, and a claim that is too
small, or too large by less than that bound, is then not detected. `silent` hides them: the lower bound of
a run is then unknown, and ``f(x)`` less what its theorem has claimed can be compared with a formula to
all digits.
"""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import pytest
from support.known_problem import Known

import lopro
from lopro.constraints import FunctionConstraint
from lopro.objectives import FunctionObjective


def silent(known: Known, **constants: float) -> lopro.Problem:
    """Return the problem as plain callables, with no constant but those of the objective given here."""
    f, c = known.objective, known.constraint
    slope = {"gradient" if f.smooth else "subgradient": f.subgradient}
    objective = FunctionObjective(
        f.value,
        **slope,
        prox=f.prox if f.proximable else None,
        stochastic_subgradient=f.stochastic_subgradient if f.stochastic else None,
        shape=known.x0.shape,
        **constants,
    )
    constraint = FunctionConstraint(
        c.value, c.subgradient, c.project, smooth=c.smooth, shape=known.x0.shape
    )
    return lopro.Problem(objective, constraint)


def check_claims(known: Known, method: Any, expected: list[float | None]) -> lopro.Result:
    """Run to the end; epoch k must claim a gap of ``expected[k]`` exactly, or nothing if that is None."""
    result = lopro.solve(silent(known), known.x0, method, tol=0)
    assert not result.warnings
    assert len(result.history) == len(expected)
    proved = [
        -math.inf if claim is None else fun - claim
        for fun, claim in zip(result.history["fun"], expected, strict=True)
    ]
    # Claims of earlier epochs are kept, and none of them is a certificate.
    best = list(accumulate(proved, max))
    assert result.history["claimed_bound"] == pytest.approx(best, rel=1e-11, abs=1e-12)
    assert best[-1] <= known.optimum + 1e-12 * max(1.0, abs(known.optimum))
    assert all(bound > -math.inf for bound in best[-1:]) == (result.claim is not None)
    return result
