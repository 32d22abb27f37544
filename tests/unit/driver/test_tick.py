"""Methods that make their own steps report them to the driver, which counts and ends the run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import lopro
from lopro import Problem, Status
from lopro.constraints import Polyhedron, ValidInequality
from lopro.objectives import Linear
from lopro.protocol import Candidate, Multiplier


@dataclass
class Stepper:
    """Projected gradient steps up to the limit, then one epoch."""

    steps: int = 50
    ticks: int = 0

    def check(self, problem):
        pass

    def run(self, bench, x0):
        x = x0
        for _ in range(self.steps):
            x = bench.project(x - 0.1 * bench.objective.subgradient(x))
            self.ticks += 1
            if not bench.tick():
                break
        yield Candidate(x, Multiplier(ValidInequality.trivial(x)))


def solve(method: Stepper, **budget) -> lopro.Result:
    box = Polyhedron.box(-np.ones(3), np.ones(3))
    return lopro.solve(Problem(Linear(np.ones(3)), box), method=method, tol=0.0, **budget)


@pytest.mark.parametrize(
    ("budget", "steps", "status"),
    [
        ({}, 50, Status.SCHEDULE_DONE),
        ({"max_iter": 7}, 7, Status.MAX_ITER),
        ({"max_projections": 4}, 4, Status.MAX_PROJECTIONS),
        ({"time_limit": 1e-9}, 1, Status.TIME_LIMIT),
        ({"max_iter": 1000}, 50, Status.SCHEDULE_DONE),
    ],
)
def test_each_tick_is_an_iteration_and_limits_are_kept(budget, steps, status):
    method = Stepper()
    result = solve(method, **budget)
    # At its optimum the box is certified even though tol = 0 requires the whole schedule.
    done = {Status.SCHEDULE_DONE, Status.CONVERGED} if status is Status.SCHEDULE_DONE else {status}
    assert result.status in done
    assert method.ticks == result.iterations == result.counts.projections == steps
    # The epoch after the last tick is not lost.
    assert len(result.history) == 1
