"""Runs of steps with a projection each, and the multipliers that these projections provide.

Where ``x+ = P(v)``, the vector ``v - x+`` is normal to the set at ``x+``: ``<v - x+, z> <= <v - x+, x+>`` for
every feasible ``z``. Divided by the step size, ``v - x+`` estimates the multiplier of the constraint; so does
its average over many steps.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, inner, norm
from lopro.driver.minorants import lower_bound, solution_radius
from lopro.methods.setting import feasible_candidate, linearised
from lopro.protocol import Candidate, Verdict, Workbench

__all__ = ["Multipliers", "ProjectedSteps"]

#: Bound on the error of a projection, in units of eps times the lengths involved; it is added to the
#: right-hand sides of the inequalities. The difference of the projections of v and of P(v) + 2 (v - P(v)),
#: which agree in exact arithmetic, measured on the 17 sets of tests/traces (40 random points each), is at
#: most 40 units; 2^16 covers badly conditioned sets.
PROJECTION_ERROR = 2.0**16


@dataclass(frozen=True)
class _Sum:
    """A sum of ``v - x+`` with its support, the sum of step sizes, and bounds on its errors."""

    direction: Array
    support: float
    size: float
    error: float  # of the direction
    error_of_support: float

    @staticmethod
    def of(before: Array, after: Array, size: float) -> _Sum:
        direction = before - after
        length, norm_after = norm(direction), norm(after)
        # A point that the projection left unchanged has the exact normal 0.
        error = PROJECTION_ERROR * eps(after) * (length + norm_after) if length > 0.0 else 0.0
        return _Sum(direction, inner(direction, after), size, error, error * (norm_after + length))

    def __add__(self, other: _Sum) -> _Sum:
        return _Sum(
            self.direction + other.direction,
            self.support + other.support,
            self.size + other.size,
            self.error + other.error,
            self.error_of_support + other.error_of_support,
        )

    def valid_inequality(self, reach: float) -> ValidInequality:
        """Return the mean as an inequality that holds for every feasible point within ``reach``."""
        support = self.support + self.error_of_support + self.error * reach
        return ValidInequality(self.direction / self.size, support / self.size)


class Multipliers:
    """Collects the multipliers of projected steps, and selects the one with the highest lower bound.

    Four are compared: that of the last step, the mean since the last call of `best`, the mean of all steps,
    and the constraint linearised at the last point with the weight of a least-squares fit, which does not
    depend on the accuracy of the projection.
    """

    def __init__(self) -> None:
        self._last: _Sum | None = None
        self._recent: _Sum | None = None
        self._all: _Sum | None = None
        self._at: Array = None

    def add(self, before: Array, after: Array, size: float) -> None:
        """Add a step of this size that was projected from ``before`` to ``after``."""
        step = self._last = _Sum.of(before, after, size)
        self._recent = step if self._recent is None else self._recent + step
        self._all = step if self._all is None else self._all + step
        self._at = after

    def best(self, bench: Workbench, x: Array) -> ValidInequality | None:
        """Return the multiplier whose lower bound at ``x`` is highest; None before the first step."""
        if self._last is None or self._recent is None or self._all is None:
            return None
        with bench.observe():
            problem = bench.counted
            fun = float(problem.objective.value(x))
            radius = solution_radius(problem, fun)
            reach = norm(x) if radius is None else radius.value
            sums = (self._last, self._recent, self._all)
            found = [s.valid_inequality(reach) for s in sums]
            found.append(linearised(bench.constraint, self._at, found[0].direction))
            self._recent = None
            return max(found, key=lambda each: lower_bound(problem, x, each, fun)[0])


class ProjectedSteps:
    """A run of projected steps: the iterate, and the multipliers of its projections."""

    def __init__(self, bench: Workbench, x: Array) -> None:
        self.bench, self.x = bench, x
        self.multipliers = Multipliers()

    def step(self) -> None:
        """Make one step."""
        raise NotImplementedError

    @property
    def output(self) -> Array:
        """The point that the run would return if it stopped now."""
        return self.x

    def projected(self, before: Array, size: float) -> Array:
        """Return the projection of a step of this size, and keep its multiplier."""
        after = self.bench.project(before)
        self.multipliers.add(before, after, size)
        return after

    def run(self, steps: int, report: int) -> Generator[Candidate, Verdict, bool]:
        """Make steps, with a candidate every ``report`` steps; return False if a budget is exhausted."""
        for t in range(1, steps + 1):
            self.step()
            go_on = self.bench.tick()
            if not go_on or t == steps or t % report == 0:
                x = self.output
                yield feasible_candidate(x, self.multipliers.best(self.bench, x))
            if not go_on:
                return False
        return True
