"""Lower bounds of the optimal value, violations, and the certificate made of them.

All lower bounds rest on one object, a `Minorant`: an affine function below ``f`` on the feasible
set. It is the sum of an affine minorant of ``f`` and a valid inequality of the set (a multiplier).
Its least value is known where the slope vanishes, where a solution is known to lie in a ball, or
where ``f`` is strongly convex: no constant, no claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, inner, norm
from lopro.functions import Constant
from lopro.problem import Problem
from lopro.protocol.target import Target

__all__ = ["Certificate", "Minorant", "feasibility_tolerance", "lower_bound", "solution_radius"]

FENCHEL = "Fenchel dual, multiplier scaled to feasibility"
NO_BOUND = (
    "no lower bound: neither the set, the sublevel sets nor strong convexity bound a solution"
)


@dataclass(frozen=True)
class Certificate:
    """How good a point is, and how that is known.

    Examples
    --------
    >>> from lopro.protocol.certificates import Certificate
    >>> Certificate.of(fun=2.0, lower_bound=1.5, violation=0.0, source="duality").gap
    0.5
    """

    gap: float
    relative_gap: float
    lower_bound: float
    violation: float
    source: str
    #: The bound holds for points within this distance of ``x``; infinite where it holds everywhere.
    radius: float = math.inf

    @staticmethod
    def of(
        fun: float,
        lower_bound: float,
        violation: float,
        source: str,
        target: Target | None = None,
        gained: float = 0.0,
        radius: float = math.inf,
    ) -> Certificate:
        """Build the certificate of a point with value ``fun``; the target says what gaps are relative to.

        ``gained`` is what the value may owe to the violation: it counts as a part of the gap. A lower bound
        may pass the value by rounding, or by what was gained; more than that would show as a gap as well.
        """
        gap = max(fun - lower_bound, 0.0) + gained if math.isfinite(lower_bound) else math.inf
        relative = (target or Target(0.0)).relative(gap, fun)
        return Certificate(gap, relative, lower_bound, violation, source, radius)

    @staticmethod
    def unknown() -> Certificate:
        """Return the certificate that certifies nothing."""
        return Certificate(math.inf, math.inf, -math.inf, math.inf, "nothing is known")


@dataclass(frozen=True)
class Minorant:
    """``f(z) >= offset + <slope, z> + mu/2 |z - center|^2`` for every feasible ``z``."""

    offset: float
    slope: Array
    center: Array
    mu: float

    @staticmethod
    def of(problem: Problem, x: Array, normal: ValidInequality) -> Minorant:
        """Add a minorant of the objective taken at ``x`` to a valid inequality of the set."""
        offset, g = problem.objective.minorant(x, -normal.direction)
        mu = problem.objective.strong_convexity()
        # What cancels in the offset was rounded before it did; a bound errs to the safe side.
        terms = abs(offset) + abs(inner(g, x)) + abs(normal.support)
        return Minorant(
            offset - normal.support - 8.0 * eps(x) * terms,
            g + normal.direction,
            x,
            0.0 if mu is None else mu.value,
        )

    def least(self, radius: float | None) -> float:
        """Return a lower bound of the minorant over the ball of this radius (None: everywhere)."""
        slope = norm(self.slope)
        bounds = [-math.inf]
        if slope == 0.0:
            bounds.append(self.offset)
        if radius is not None:
            bounds.append(self.offset - slope * radius)
        if self.mu > 0.0:
            shifted = self.offset + inner(self.slope, self.center)
            bounds.append(shifted - slope**2 / (2.0 * self.mu))
        return max(bounds)


def solution_radius(problem: Problem, fun: float) -> Constant | None:
    """Return ``R`` with ``|x*| <= R`` for every solution, given a feasible value ``fun``.

    It comes from the set where that is bounded, or from the sublevel set of the objective.
    """
    found = [problem.radius, problem.objective.sublevel_radius(fun), problem.constraint.radius()]
    known = [r for r in found if r is not None and math.isfinite(r.value)]
    return min(known, key=lambda r: r.value) if known else None


def lower_bound(
    problem: Problem, x: Array, normal: ValidInequality, fun: float
) -> tuple[float, str]:
    """Return the best lower bound that a multiplier gives, and how it was obtained.

    Two uses of the multiplier are tried: as it is, paying for the slope that is left with the
    radius or with strong convexity; and scaled into the domain of the conjugate of ``f`` (norms),
    where nothing is left. An objective that knows its own dual over this set is asked instead.
    """
    own = problem.objective.dual_bound(problem.constraint, x, normal, fun)
    if own is not None:
        return own
    scale = problem.objective.scale_into_domain(normal.direction)
    scaled = -math.inf
    if scale is not None:
        scaled = float(problem.objective.value(0.0 * x)) - scale * normal.support
        if scale == 1.0:  # feasible as it is: no radius can add to it, and some are dear
            return scaled, FENCHEL
    radius = solution_radius(problem, fun)
    minorant = Minorant.of(problem, x, normal)
    best = minorant.least(None if radius is None else radius.value)
    source = _source(minorant, radius)
    if scaled > best:
        best, source = scaled, FENCHEL
    return (best, source) if math.isfinite(best) else (-math.inf, NO_BOUND)


def _source(minorant: Minorant, radius: Constant | None) -> str:
    if radius is None and minorant.mu == 0.0:
        return "Lagrangian bound, its slope vanishes"
    parts = ["Lagrangian bound"]
    if radius is not None:
        parts.append(f"|x*| <= {radius.value:.4g} ({radius.source.value}: {radius.note})")
    if minorant.mu > 0.0:
        parts.append(f"mu = {minorant.mu:.4g}")
    return ", ".join(parts)


def feasibility_tolerance(x: Array) -> float:
    """Return the relative violation up to which a point counts as feasible: 1e-9 in double."""
    return max(1e-9, 64.0 * eps(x))
