"""Where theorems with one or few projections take place: a ball, and the constants that hold on it.

A strongly convex objective is not Lipschitz on the whole space, and neither is a squared residual. What
their theorems need is a ball that holds a solution and that projections do not leave. A ball around a
feasible point is never left, because projections bring no point farther away from a feasible one; it
holds a solution if its radius is ``|g| / mu`` for a subgradient ``g`` at its centre, or the length of the
centre plus a bound on the norm of a solution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lopro.core.arrays import Array, norm
from lopro.core.validation import check_number
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball, Source
from lopro.methods.starts import feasible_start
from lopro.methods.theory import ProblemConstants, constants_of
from lopro.problem import Problem
from lopro.protocol import Workbench
from lopro.protocol.certificates import solution_radius

__all__ = ["Needs", "Setting", "check_constants"]


def check_constants(constants: ProblemConstants | None, radius: float | None) -> None:
    """Check what a user has given."""
    if constants is not None and not isinstance(constants, ProblemConstants):
        raise TypeError(f"constants must be ProblemConstants or None, got {constants!r}")
    if radius is not None:
        check_number("radius", radius, minimum=0.0, exclusive=True)


@dataclass(frozen=True)
class Setting:
    """A feasible start, the ball around it, and the constants on that ball.

    ``certain`` says that no constant is an estimate: only then may they support a claim.
    """

    start: Array
    ball: Ball
    constants: ProblemConstants
    certain: bool

    @property
    def weight(self) -> float:
        """``lam = G / rho``."""
        return self.constants.weight

    @property
    def slope(self) -> float:
        """``Gbar = G + lam G_c``."""
        return self.constants.subgradient_bound(self.weight)

    @property
    def solved(self) -> bool:
        """Whether the ball is a point: the start minimises f even without the constraint."""
        return self.ball.radius == 0.0


@dataclass(frozen=True)
class Needs:
    """What a method takes from its user, and how it finds the rest.

    ``reach`` multiplies the radius of the ball on which the constants have to hold.
    """

    method: str
    constants: ProblemConstants | None = None
    radius: float | None = None
    strongly_convex: bool = False
    reach: float = 1.0

    def check(self, problem: Problem) -> None:
        """Raise `MissingCapabilityError` naming what is missing, before any work."""
        mu = self._mu(problem)
        if self.strongly_convex and mu == 0.0:
            raise self._missing("a strongly convex objective (mu)", "constants=")
        self.check_distance(problem)
        if problem.shape is not None:
            self._constants(problem, Ball(problem.start(None), 1.0))

    def check_distance(self, problem: Problem) -> None:
        """Raise `MissingCapabilityError` if nothing bounds the distance to a solution."""
        bounded = self._mu(problem) > 0.0 or solution_radius(problem, 1.0) is not None
        if self.radius is None and not bounded:
            raise self._missing("a bound on the norm of a solution", "solution_norm= of Problem")

    def find(self, bench: Workbench, x0: Array) -> Setting:
        """Make the start feasible, and find ball and constants there."""
        problem = bench.counted
        start = feasible_start(bench, x0)
        radius = self.distance(problem, start)
        ball = Ball(start, self.reach * radius)
        constants = self._constants(problem, ball)
        certain = self.constants is not None or _certain(problem, ball)
        return Setting(start, Ball(start, radius), constants, certain)

    def _mu(self, problem: Problem) -> float:
        """Return the strong convexity that is known or given; 0 where there is none."""
        known = problem.objective.strong_convexity()
        given = 0.0 if self.constants is None else self.constants.mu
        return max(given, 0.0 if known is None else known.value)

    def distance(self, problem: Problem, start: Array) -> float:
        """Return a bound on the distance of a feasible point to a solution."""
        if self.radius is not None:
            return self.radius
        f, known, mu = problem.objective, [], self._mu(problem)
        if mu > 0.0:
            known.append(norm(f.subgradient(start)) / mu)
        radius = solution_radius(problem, float(f.value(start)))
        if radius is not None:
            known.append(norm(start) + radius.value)
        if not known:
            raise self._missing("a bound on the norm of a solution", "solution_norm= of Problem")
        return min(known)

    def _constants(self, problem: Problem, ball: Ball) -> ProblemConstants:
        found = self.constants
        if found is None:
            try:
                found = constants_of(problem, ball)
            except MissingCapabilityError as error:
                raise MissingCapabilityError(
                    f"{self.method} takes constants=, or finds them: {error}"
                ) from None
        if not math.isfinite(found.Gc):
            raise self._missing("a Lipschitz constant of the constraint (Gc)", "constants=")
        if self.strongly_convex and found.mu <= 0.0:
            raise self._missing("a strongly convex objective (mu > 0)", "constants=")
        return found

    def _missing(self, what: str, argument: str) -> MissingCapabilityError:
        return MissingCapabilityError(
            f"{self.method} needs {what}, and it is not known here; give {argument}, or use a method "
            "that needs no constants, such as lopro.Auto()"
        )


def _certain(problem: Problem, ball: Ball) -> bool:
    f, c = problem.objective, problem.constraint
    found = f.lipschitz(ball), c.lipschitz(ball), c.regularity(), f.strong_convexity()
    return not any(k is not None and k.source is Source.ESTIMATED for k in found)
