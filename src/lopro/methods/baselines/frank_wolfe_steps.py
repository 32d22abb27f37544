"""How far a Frank-Wolfe method goes along its direction: three rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import scipy  # parts of it load when first used

from lopro.errors import MissingCapabilityError
from lopro.functions import Image
from lopro.problem import Problem

__all__ = ["LineSearch", "OpenLoop", "Ray", "ShortStep", "StepSize"]


@dataclass(frozen=True, eq=False)
class Ray:
    """The points ``x + gamma d`` with ``0 <= gamma <= longest``, through their images."""

    f: Any
    image: Image
    image_direction: Image
    value: float  # f(x)
    slope: float  # <grad f(x), d>, negative
    square: float  # |d|^2
    longest: float
    t: int  # how many steps were made before

    def value_at(self, gamma: float) -> float:
        """Return ``f(x + gamma d)`` without a product with any matrix."""
        pairs = zip(self.image, self.image_direction, strict=True)
        return float(self.f.linearize_at(tuple(a + gamma * b for a, b in pairs))[0])


class StepSize(Protocol):
    """A rule for the step size."""

    def check(self, problem: Problem) -> None:
        """Raise `MissingCapabilityError` if the rule needs what the problem does not know."""
        ...

    def size(self, ray: Ray) -> float:
        """Return ``gamma``."""
        ...


@dataclass(frozen=True)
class OpenLoop:
    """``2 / (t + 2)``, whatever happens: no constant, no value of f.

    Examples
    --------
    >>> from lopro.methods.baselines.frank_wolfe_steps import OpenLoop
    >>> OpenLoop()
    OpenLoop()
    """

    def check(self, problem: Problem) -> None:
        """Nothing is needed."""

    def size(self, ray: Ray) -> float:
        return min(ray.longest, 2.0 / (ray.t + 2))


@dataclass(frozen=True)
class ShortStep:
    """``<-grad, d> / (L |d|^2)``: the minimiser of the quadratic bound, for the known smoothness ``L``.

    Examples
    --------
    >>> from lopro.methods.baselines.frank_wolfe_steps import ShortStep
    >>> ShortStep()
    ShortStep()
    """

    def check(self, problem: Problem) -> None:
        if problem.objective.smoothness() is None:
            raise MissingCapabilityError(
                f"ShortStep needs the smoothness constant L of the objective, and "
                f"{type(problem.objective).__name__} knows none; use LineSearch() or OpenLoop()"
            )

    def size(self, ray: Ray) -> float:
        curvature = ray.f.smoothness().value * ray.square
        return min(ray.longest, -ray.slope / curvature) if curvature > 0.0 else ray.longest


@dataclass(frozen=True)
class LineSearch:
    """The minimiser along the direction, from values at images that are combined, not computed.

    A parabola through two values and the slope is exact where f is quadratic, and this is checked at a
    third value. These are taken half and all the way along ``d``, even if the step must be shorter: on
    a tiny step they would be nothing but rounding. Elsewhere Brent's method searches.

    Examples
    --------
    >>> from lopro.methods.baselines.frank_wolfe_steps import LineSearch
    >>> LineSearch()
    LineSearch()
    """

    def check(self, problem: Problem) -> None:
        """Nothing is needed."""

    def size(self, ray: Ray) -> float:
        # The difference from the tangent, nonnegative for a convex f, twice.
        bend = ray.value_at(1.0) - ray.value - ray.slope
        half = ray.value_at(0.5) - ray.value - 0.5 * ray.slope
        rounding = 1e-14 * (abs(ray.value) + abs(ray.slope))
        if abs(4.0 * half - bend) <= 1e-9 * abs(bend) + 8.0 * rounding:
            return min(ray.longest, -ray.slope / (2.0 * bend)) if bend > rounding else ray.longest
        found = scipy.optimize.minimize_scalar(
            ray.value_at,
            bounds=(0.0, ray.longest),
            method="bounded",
            options={"xatol": 1e-12 * ray.longest},
        )
        return min((float(found.x), ray.longest), key=ray.value_at)
