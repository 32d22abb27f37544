"""Lower bounds of the optimal value from multipliers and the constants of a problem.

They follow from a `Minorant`: an affine function below ``f`` on the feasible set, the sum of an affine
minorant of ``f`` and a valid inequality of the set (a multiplier). It is bounded from below where its slope
vanishes, where a solution is known to lie in a ball, or where ``f`` is strongly convex. Without one of these
there is no bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lopro.certificates import Bound
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, inner, isfinite, norm
from lopro.driver.candidate import PenalisedMinimum
from lopro.functions import Constant
from lopro.problem import Problem

__all__ = [
    "Known",
    "Minorant",
    "lower_bound",
    "penalty_bound",
    "radius_and_ceiling",
    "scaled_violation",
    "solution_radius",
]

FENCHEL = "Fenchel dual, multiplier scaled to feasibility"
NO_BOUND = (
    "no lower bound: neither the set, the sublevel sets nor strong convexity bound a solution; "
    "give lopro.Problem a solution_norm if you know one"
)


@dataclass(frozen=True, eq=False)
class Known:
    """A lower bound and its justification."""

    bound: Bound
    source: str
    multiplier: ValidInequality | None = None
    #: The charge for the violation of the candidate, if the method has computed it.
    gained: float | None = None
    #: Whether the rounding of its own arithmetic was subtracted from the bound.
    proved: bool = False


@dataclass(frozen=True)
class Minorant:
    """``f(z) >= offset + <slope, z> + mu/2 |z - center|^2 - error |z - center|`` for every feasible ``z``."""

    offset: float
    slope: Array
    center: Array
    mu: float
    #: The norm of the error of the slope, beyond rounding.
    error: float = 0.0
    #: The norm of the rounding error of the slope; 0 where the slope is 0 by construction.
    blur: float = 0.0

    @staticmethod
    def of(problem: Problem, x: Array, normal: ValidInequality) -> Minorant:
        """Add a minorant of the objective taken at ``x`` to a valid inequality of the set."""
        offset, g = problem.objective.minorant(x, -normal.direction)
        mu = problem.objective.strong_convexity()
        # Terms that cancel in the offset carry rounding errors, which are subtracted from the bound.
        terms = abs(offset) + abs(inner(g, x)) + abs(normal.support)
        error = problem.objective.slope_error(x)
        return Minorant(
            offset - normal.support - 8.0 * eps(x) * terms,
            g + normal.direction,
            x,
            0.0 if mu is None else mu.value,
            0.0 if error is None else float(np.linalg.norm(error)),
            normal.blur,
        )

    def least(self, radius: float | None) -> float:
        """Return a lower bound of the minorant over the ball of this radius around 0 (None: everywhere)."""
        slope = norm(self.slope)
        bounds = [-math.inf]
        if slope == self.error == 0.0:
            bounds.append(self.offset)
        if radius is not None:
            lost = self.error * (radius + norm(self.center)) if self.error > 0.0 else 0.0
            lost += self.blur * (radius + norm(self.center))
            bounds.append(self.offset - slope * radius - lost)
        if self.mu > 0.0:
            shifted = self.offset + inner(self.slope, self.center)
            off = self.error + self.blur
            bounds.append(shifted - (slope + off) ** 2 / (2.0 * self.mu))
        return max(bounds)


def solution_radius(problem: Problem, fun: float) -> Constant | None:
    """Return ``R`` with ``|x*| <= R`` for every solution, given a feasible value ``fun``.

    It comes from the set where that is bounded, or from the sublevel set of the objective.
    """
    radius, _ = radius_and_ceiling(problem, fun)
    return radius


def radius_and_ceiling(problem: Problem, level: float) -> tuple[Constant | None, float]:
    """Return a radius and a value: feasible points are in the ball of the radius, or have at least the value.

    The value is infinite where the whole set is known to be in the ball, and ``level`` where the points with
    a value of at most that are. The level may be any number, such as the value of a point which is not quite
    feasible. A bound that holds in the ball, or this value if that is less, holds everywhere.
    """
    found = [
        (problem.radius, math.inf),
        (problem.objective.sublevel_radius(level), level),
        (problem.constraint.radius(), math.inf),
    ]
    known = [(r, ceiling) for r, ceiling in found if r is not None and math.isfinite(r.value)]
    return min(known, key=lambda each: each[0].value) if known else (None, math.inf)


def lower_bound(
    problem: Problem, x: Array, normal: ValidInequality, fun: float
) -> tuple[float, str]:
    """Return the best lower bound that a multiplier gives, and its source.

    ``fun`` is the value of a point near the solution, which need not be feasible.

    The multiplier is used in two ways, and the larger bound is returned: as it is, less the cost of the
    remaining slope over the ball of the radius or against strong convexity; and, for norms, scaled into the
    domain of the conjugate of ``f``, where no slope remains. An objective with a dual of its own over this
    set gives the bound instead.
    """
    own = problem.objective.dual_bound(problem.constraint, x, normal, fun)
    if own is not None:
        return own
    if not isfinite(normal.direction):  # it has left the numbers, and proves nothing
        return -math.inf, NO_BOUND
    scale = problem.objective.scale_into_domain(normal.direction)
    scaled = -math.inf
    if scale is not None:
        within = _with_blur(problem, normal, scale)
        scaled = float(problem.objective.value(0.0 * x)) - within * normal.support
        if scale == 1.0:  # in the domain as it is: a radius adds nothing, and some are expensive
            return scaled, FENCHEL
    radius, ceiling = radius_and_ceiling(problem, fun)
    minorant = Minorant.of(problem, x, normal)
    best = minorant.least(None)
    if radius is not None:
        best = max(best, min(ceiling, minorant.least(radius.value)))
    source = _source(minorant, radius)
    if scaled > best:
        best, source = scaled, FENCHEL
    return (best, source) if math.isfinite(best) else (-math.inf, NO_BOUND)


def penalty_bound(
    problem: Problem, evidence: PenalisedMinimum, value: float, fun: float
) -> tuple[float, str] | None:
    """Return the bound of R2 from the value of a penalised minimum, and its source; None if there is none.

    ``fun`` is the value of a point near the solution, which need not be feasible.
    """
    penalty = evidence.F.penalty
    if penalty.above is None or evidence.bound is None:
        return None
    radius, ceiling = radius_and_ceiling(problem, fun)
    error = None if radius is None else evidence.bound(radius.value)
    if radius is None or error is None:
        return None
    source = f"R2: F(x_hat) - C gamma - B_T, |x*| <= {radius.value:.4g}"
    return min(value - penalty.above - error, ceiling), source


def scaled_violation(problem: Problem, x: Array, normal: ValidInequality) -> float:
    """Return by how much a point violates an inequality that is scaled into the domain of the conjugate of f.

    It is 0 within the rounding of the violation, and where f has no such scale.
    """
    scale = problem.objective.scale_into_domain(normal.direction)
    if scale is None:
        return 0.0
    reached = inner(normal.direction, x)
    excess = reached - normal.support
    rounding = 8.0 * eps(x) * (abs(reached) + abs(normal.support))
    return scale * excess if excess > rounding else 0.0


def _with_blur(problem: Problem, normal: ValidInequality, scale: float) -> float:
    """Return a scale that moves all directions within the blur into the domain of the conjugate."""
    if normal.blur == 0.0:
        return scale
    # The gauge is a norm: what the blur adds to it is at most that of a constant direction.
    ones = 0.0 * normal.direction + 1.0
    size = 1.0
    while (part := problem.objective.scale_into_domain(size * ones)) == 1.0:
        size *= 2.0**64
    added = math.inf if not part else normal.blur / (size * part)
    return 1.0 / (1.0 / scale + added) if scale and math.isfinite(added) else scale


def _source(minorant: Minorant, radius: Constant | None) -> str:
    if radius is None and minorant.mu == 0.0:
        return "Lagrangian bound, its slope vanishes"
    parts = ["Lagrangian bound"]
    if radius is not None:
        parts.append(f"|x*| <= {radius.value:.4g} ({radius.source.value}: {radius.note})")
    if minorant.mu > 0.0:
        parts.append(f"mu = {minorant.mu:.4g}")
    return ", ".join(parts)
