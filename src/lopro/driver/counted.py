"""A problem whose oracle calls are counted: explicit wrappers, made once for each run.

The wrappers are objectives and constraints that forward every call to the wrapped one. A counted constraint
cannot project, only the workbench can: an inner algorithm, which has only the wrapper, cannot project.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array
from lopro.core.counting import count
from lopro.functions import Ball, Constant, Image, Linearization
from lopro.objectives.base import Objective
from lopro.problem import Problem

__all__ = ["CountedConstraint", "CountedObjective", "counted_problem"]


def counted_problem(problem: Problem) -> Problem:
    """Return the same problem with its oracle calls counted.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.core.counting import Counts, counting
    >>> from lopro.driver.counted import counted_problem
    >>> f = lopro.objectives.Linear(np.ones(2))
    >>> problem = counted_problem(lopro.Problem(f, lopro.constraints.Simplex(2)))
    >>> with counting(Counts()) as counts:
    ...     problem.objective.value(np.zeros(2))
    0.0
    >>> counts.values
    1
    """
    return Problem(
        CountedObjective(problem.objective),
        CountedConstraint(problem.constraint),
        problem.solution_norm,
        problem.gap_scale,
        problem.x_scale,
    )


def _counted_linearization(at: Linearization, gradients: str) -> Linearization:
    """Return a linearization whose gradient is counted when it is computed."""
    value, gradient = at

    def counted() -> Array:
        count(gradients)
        return gradient()

    return value, counted


class CountedObjective(Objective):
    """An objective that counts its values, gradients and proximal maps."""

    def __init__(self, target: Objective) -> None:
        self.target = target
        self.shape, self.like = target.shape, target.like
        self.image_length, self.fresh_slopes = target.image_length, target.fresh_slopes
        self.smooth, self.proximable = target.smooth, target.proximable
        self.stochastic, self.cancels = target.stochastic, target.cancels

    def __repr__(self) -> str:
        return repr(self.target)

    def value(self, x: Array) -> float:
        count("values")
        return self.target.value(x)

    def subgradient(self, x: Array) -> Array:
        count("gradients")
        return self.target.subgradient(x)

    def stochastic_subgradient(self, x: Array, rng: np.random.Generator) -> Array:
        count("gradients")
        return self.target.stochastic_subgradient(x, rng)

    def linearize_at(self, image: Image) -> Linearization:
        count("values")
        return _counted_linearization(self.target.linearize_at(image), "gradients")

    def prox(self, x: Array, step: float) -> Array:
        count("proxes")
        return self.target.prox(x, step)

    @cached_property
    def _parts(self) -> tuple[Objective | None, Objective | None]:
        smooth, proximable = self.target.split()
        return (
            None if smooth is None else CountedObjective(smooth),
            None if proximable is None else CountedObjective(proximable),
        )

    def split(self) -> tuple[Objective | None, Objective | None]:
        return self._parts

    def shaped(self, shape: tuple[int, ...]) -> Objective:
        return CountedObjective(self.target.shaped(shape))

    # The rest are not oracle calls: they are forwarded and not counted.

    def add_subgradient(self, x: Array, total: Array) -> Array:
        return self.target.add_subgradient(x, total)

    def image(self, x: Array) -> Image:
        return self.target.image(x)

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        return self.target.minorant(x, target)

    def scale_into_domain(self, v: Array) -> float | None:
        return self.target.scale_into_domain(v)

    def dual_bound(
        self, constraint: Constraint, x: Array, normal: ValidInequality, fun: float
    ) -> tuple[float, str] | None:
        plain = constraint.target if isinstance(constraint, CountedConstraint) else constraint
        return self.target.dual_bound(plain, x, normal, fun)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return self.target.lipschitz(ball)

    def smoothness(self) -> Constant | None:
        return self.target.smoothness()

    def strong_convexity(self) -> Constant | None:
        return self.target.strong_convexity()

    def infimum(self) -> Constant | None:
        return self.target.infimum()

    def sublevel_radius(self, level: float) -> Constant | None:
        return self.target.sublevel_radius(level)

    def typical_size(self) -> float | None:
        return self.target.typical_size()

    def slope_error(self, x: Array) -> np.ndarray[Any, Any] | None:
        return self.target.slope_error(x)

    def magnitude(self, x: Array, fun: float) -> float:
        return self.target.magnitude(x, fun)


class CountedConstraint(Constraint):
    """A constraint that counts its values and gradients and cannot project."""

    def __init__(self, target: Constraint) -> None:
        self.target = target
        self.shape, self.like = target.shape, target.like
        self.image_length, self.fresh_slopes = target.image_length, target.fresh_slopes
        self.smooth, self.has_image_set = target.smooth, target.has_image_set
        self.has_vertices, self.real_only = target.has_vertices, target.real_only
        self.approximate = target.approximate

    def __repr__(self) -> str:
        return repr(self.target)

    def project(self, x: Array) -> Array:
        raise TypeError("only a method projects, through its workbench: bench.project(x)")

    def value(self, x: Array) -> float:
        count("constraint_values")
        return self.target.value(x)

    def subgradient(self, x: Array) -> Array:
        count("constraint_gradients")
        return self.target.subgradient(x)

    def linearize_at(self, image: Image) -> Linearization:
        count("constraint_values")
        return _counted_linearization(self.target.linearize_at(image), "constraint_gradients")

    def project_image(self, image: Image) -> Image:
        count("constraint_values")
        return self.target.project_image(image)

    def pullback(self, dual: Image) -> Array:
        count("constraint_gradients")
        return self.target.pullback(dual)

    def linear_minimizer(self, direction: Array) -> Array:
        count("linear_minimizations")
        return self.target.linear_minimizer(direction)

    def support_inequality(self, direction: Array) -> ValidInequality:
        count("linear_minimizations")
        return self.target.support_inequality(direction)

    @cached_property
    def _members(self) -> tuple[Constraint, ...]:
        return tuple(CountedConstraint(member) for member in self.target.members())

    def members(self) -> tuple[Constraint, ...]:
        return self._members

    # The rest are not oracle calls: they are forwarded and not counted.

    @property
    def has_linear_minimizer(self) -> bool:
        return self.target.has_linear_minimizer

    @property
    def sizes_for_free(self) -> bool:
        return self.target.sizes_for_free

    def image(self, x: Array) -> Image:
        return self.target.image(x)

    def into_domain(self, dual: Image) -> Image:
        return self.target.into_domain(dual)

    def support_image(self, dual: Image) -> float:
        return self.target.support_image(dual)

    def valid_inequality(self, x: Array, weight: float) -> ValidInequality:
        return self.target.valid_inequality(x, weight)

    def violation(self, x: Array) -> float:
        return self.target.violation(x)

    def absolute_violation(self, x: Array) -> float:
        own = type(self.target).absolute_violation is not Constraint.absolute_violation
        # The default is a value of c, which is counted.
        return self.target.absolute_violation(x) if own else super().absolute_violation(x)

    def column_units(self) -> Array | float | None:
        return self.target.column_units()

    def relative_units(self) -> Array | None:
        return self.target.relative_units()

    def violation_at(self, x: Array, image: Image) -> float:
        return self.target.violation_at(x, image)

    def typical_size(self) -> float | None:
        return self.target.typical_size()

    def infeasibility(self) -> str | None:
        return self.target.infeasibility()

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return self.target.lipschitz(ball)

    def smoothness(self) -> Constant | None:
        return self.target.smoothness()

    def regularity(self) -> Constant | None:
        return self.target.regularity()

    def infimum(self) -> Constant | None:
        return self.target.infimum()

    def radius(self) -> Constant | None:
        return self.target.radius()
