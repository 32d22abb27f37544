"""Lower bounds of the optimal value from multipliers and the constants of a problem.

All lower bounds rest on one object, a `Minorant`: an affine function below ``f`` on the feasible
set. It is the sum of an affine minorant of ``f`` and a valid inequality of the set (a multiplier).
Its least value is known where the slope vanishes, where a solution is known to lie in a ball, or
where ``f`` is strongly convex: no constant, no claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, inner, isfinite, norm
from lopro.functions import Constant
from lopro.problem import Problem

__all__ = ["Minorant", "lower_bound", "radius_and_ceiling", "solution_radius"]

FENCHEL = "Fenchel dual, multiplier scaled to feasibility"
NO_BOUND = (
    "no lower bound: neither the set, the sublevel sets nor strong convexity bound a solution; "
    "give lopro.Problem a solution_norm if you know one"
)


@dataclass(frozen=True)
class Minorant:
    """``f(z) >= offset + <slope, z> + mu/2 |z - center|^2 - error |z - center|`` for every feasible ``z``."""

    offset: float
    slope: Array
    center: Array
    mu: float
    #: The length of what the slope may be off, beyond rounding.
    error: float = 0.0
    #: The length of what rounding may have moved the slope: nothing where it is 0 on purpose.
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
        """Return a lower bound of the minorant over the ball of this radius (None: everywhere)."""
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
    """Return the best lower bound that a multiplier gives, and how it was obtained.

    ``fun`` is the value of a point near the solution, which need not be feasible.

    The better of two uses of the multiplier is taken: as it is, paying for the slope that is left with the
    radius or with strong convexity; and scaled into the domain of the conjugate of ``f`` (norms),
    where nothing is left. An objective with a dual of its own over this set gives the bound instead.
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
        if scale == 1.0:  # feasible as it is: a radius adds nothing, and some are expensive
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
