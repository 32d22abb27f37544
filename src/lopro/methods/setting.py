"""Feasible starts, balls that contain a solution, and the constants of the problem on such a ball.

Neither a strongly convex objective nor a squared residual is Lipschitz on the whole space. Theorems for
such functions need a ball that contains a solution and that projections do not leave. Projections do not
increase the distance to a feasible point, so they stay in any ball around one. Such a ball contains a
solution if its radius is ``|g| / mu`` for a subgradient ``g`` at its centre, or the norm of the centre plus a
bound on the norm of a solution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.certificates import feasibility_tolerance
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, inner, norm
from lopro.core.validation import check_number
from lopro.driver.minorants import solution_radius
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball, Constant, Source
from lopro.methods.inner.subgradient import check_stochastic
from lopro.methods.theory import ProblemConstants, constants_of
from lopro.problem import Problem
from lopro.protocol import Candidate, Multiplier, Workbench

__all__ = [
    "GivenConstants",
    "Needs",
    "NeedsConstants",
    "Setting",
    "feasible_candidate",
    "feasible_start",
    "is_feasible",
    "linearised",
    "no_estimates",
]


def feasible_start(bench: Workbench, x: Array) -> Array:
    """Return ``x`` if it is feasible, else its projection, which is counted."""
    return x if is_feasible(bench, x) else bench.project(x)


def is_feasible(bench: Workbench, x: Array) -> bool:
    """Whether the violation at ``x`` is at most rounding error; the evaluation is not counted."""
    with bench.observe():
        return bool(bench.constraint.violation(x) <= feasibility_tolerance(x))


def feasible_candidate(x: Array, inequality: ValidInequality | None = None) -> Candidate:
    """Return a feasible point with its multiplier; by default 0, for which the bound is ``inf f``."""
    return Candidate(
        x, Multiplier(ValidInequality.trivial(x) if inequality is None else inequality)
    )


def linearised(c: Constraint, x: Array, direction: Array) -> ValidInequality:
    """Return the constraint linearised at ``x``, scaled so that its normal is nearest to ``direction``."""
    g = c.subgradient(x)
    square = inner(g, g)
    weight = max(inner(direction, g), 0.0) / square if square > 0.0 else 0.0
    return c.valid_inequality(x, weight)


def check_constants(constants: ProblemConstants | None, radius: float | None) -> None:
    """Raise unless the arguments ``constants`` and ``radius`` are valid."""
    if constants is not None and not isinstance(constants, ProblemConstants):
        raise TypeError(f"constants must be ProblemConstants or None, got {constants!r}")
    if radius is not None:
        check_number("radius", radius, minimum=0.0, exclusive=True)


@dataclass(frozen=True)
class Setting:
    """A feasible start, the ball around it, and the constants on that ball.

    ``certain`` is True if no constant is an estimate; only then may a claim be derived from the constants.
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
        """Whether the ball is a point, so that the start is a solution."""
        return self.ball.radius == 0.0


@dataclass(frozen=True)
class Needs:
    """The constants that a theorem needs, given by the user or derived from the problem.

    ``reach`` is the ratio of the radius of the ball on which the constants have to hold to that of the ball
    around the start.
    """

    method: str
    constants: ProblemConstants | None = None
    radius: float | None = None
    strongly_convex: bool = False
    reach: float = 1.0

    def check(self, problem: Problem) -> None:
        """Raise `MissingCapabilityError` before the run if a required constant is not known."""
        mu = self._mu(problem)
        if self.strongly_convex and mu == 0.0:
            raise self._missing("a strongly convex objective (mu)", "constants=")
        self.check_distance(problem)
        if problem.shape is not None:
            self._constants(problem, Ball(problem.start(None), 1.0))

    def check_distance(self, problem: Problem) -> None:
        """Raise `MissingCapabilityError` if no bound on the distance to a solution is known."""
        bounded = self._mu(problem) > 0.0 or solution_radius(problem, 1.0) is not None
        if self.radius is None and not bounded:
            raise self._missing("a bound on the norm of a solution", "solution_norm= of Problem")

    def find(self, bench: Workbench, x0: Array) -> Setting:
        """Make the start feasible; return the ball around it and the constants on the ball."""
        problem = bench.counted
        start = feasible_start(bench, x0)
        radius = self.distance(problem, start)
        ball = Ball(start, self.reach * radius)
        constants = self._constants(problem, ball)
        certain = self.constants is not None or _all_certain(problem, ball)
        return Setting(start, Ball(start, radius), constants, certain)

    def _mu(self, problem: Problem) -> float:
        """Return the larger of the known and the given strong convexity; 0 if neither is positive."""
        known = problem.objective.strong_convexity()
        given = 0.0 if self.constants is None else self.constants.mu
        return max(given, 0.0 if known is None else known.value)

    def distance(self, problem: Problem, start: Array) -> float:
        """Return a bound on the distance from a feasible point to a solution."""
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
                    f"{self.method} takes constants=, or derives them from the problem: {error}"
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


class GivenConstants:
    """Base of dataclasses with the fields ``constants`` and ``radius``, for theorems on a ball."""

    constants: ProblemConstants | None
    radius: float | None

    #: Whether the theorem needs a strongly convex objective.
    strongly_convex: ClassVar[bool] = False
    #: Radius of the ball on which the constants have to hold, over that of the ball around the start.
    ball_ratio: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_constants(self.constants, self.radius)

    @property
    def needs(self) -> Needs:
        """The constants that the theorem needs."""
        name = type(self).__name__
        return Needs(name, self.constants, self.radius, self.strongly_convex, self.ball_ratio)


class NeedsConstants(GivenConstants):
    """Base of methods whose theorem needs constants on a ball; some have the field ``stochastic``."""

    stochastic: bool = False

    def check(self, problem: Problem) -> None:
        if self.stochastic:
            check_stochastic(problem.objective, f"{type(self).__name__}(stochastic=True)")
        self.needs.check(problem)


def no_estimates(*constants: Constant | None) -> bool:
    """Whether none of the known constants is an estimate, so that a claim may be derived from them."""
    return not any(k is not None and k.source is Source.ESTIMATED for k in constants)


def _all_certain(problem: Problem, ball: Ball) -> bool:
    f, c = problem.objective, problem.constraint
    return no_estimates(f.lipschitz(ball), c.lipschitz(ball), c.regularity(), f.strong_convexity())
