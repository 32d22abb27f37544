"""Multiples of objectives."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, copy, norm
from lopro.core.validation import check_number
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction
from lopro.functions.term import Term, scaled
from lopro.objectives.base import Objective

__all__ = ["Scaled", "check_objective"]


class Scaled(MappedFunction, Objective):
    """``factor * f`` for a nonnegative factor, with all abilities of ``f``.

    Parameters
    ----------
    factor : float
        Nonnegative.
    f : Objective
        The function to be multiplied.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import L1Norm, Scaled
    >>> f = Scaled(2.0, L1Norm())
    >>> f.value(np.array([1.0, -1.0]))
    4.0
    >>> f.prox(np.array([3.0, -1.0]), 1.0)
    array([1., 0.])
    """

    def __init__(self, factor: float, f: Objective) -> None:
        check_objective("f", f)
        self.factor = check_number("factor", factor, minimum=0.0)
        if isinstance(f, Scaled):
            self.factor, f = self.factor * f.factor, f.f
        self.f: Objective = f
        self.shape, self.like = f.shape, f.like
        self.image_length = f.image_length
        self.smooth, self.proximable, self.stochastic = f.smooth, f.proximable, f.stochastic
        self.cancels = f.cancels and self.factor > 0.0

    @property
    def terms(self) -> tuple[Term, ...]:
        return scaled(self.factor, self.f.terms)

    @property
    def summands(self) -> tuple[tuple[float, Objective], ...]:
        return tuple((self.factor * factor, f) for factor, f in self.f.summands)

    def shaped(self, shape: tuple[int, ...]) -> Scaled:
        return self if self.shape is not None else Scaled(self.factor, self.f.shaped(shape))

    def image(self, x: Array) -> Image:
        return self.f.image(x)

    def linearize_at(self, image: Image) -> Linearization:
        value, slope = self.f.linearize_at(image)
        return self.factor * value, lambda: self.factor * slope()

    def value(self, x: Array) -> float:
        return self.factor * self.f.value(x)

    def subgradient(self, x: Array) -> Array:
        return self.factor * self.f.subgradient(x)

    def prox(self, x: Array, step: float) -> Array:
        return self.f.prox(x, self.factor * step) if self.factor > 0.0 else copy(x)

    def stochastic_subgradient(self, x: Array, rng: np.random.Generator) -> Array:
        return self.factor * self.f.stochastic_subgradient(x, rng)

    def split(self) -> tuple[Objective | None, Objective | None]:
        smooth, proximable = self.f.split()
        return self._times(smooth), self._times(proximable)

    def _times(self, part: Objective | None) -> Objective | None:
        return None if part is None else Scaled(self.factor, part)

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        if self.factor == 0.0:
            return 0.0, 0.0 * target
        alpha, g = self.f.minorant(x, target / self.factor)
        return self.factor * alpha, self.factor * g

    def magnitude(self, x: Array, fun: float) -> float:
        return self.factor * self.f.magnitude(x, fun / self.factor) if self.cancels else abs(fun)

    def slope_error(self, x: Array) -> np.ndarray[Any, Any] | None:
        error = self.f.slope_error(x)
        return None if error is None else self.factor * error

    def typical_size(self) -> float | None:
        return self.f.typical_size()

    def scale_into_domain(self, v: Array) -> float | None:
        if self.factor == 0.0:
            return 1.0 if norm(v) == 0.0 else 0.0
        return self.f.scale_into_domain(v / self.factor)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return self._scaled(self.f.lipschitz(ball))

    def smoothness(self) -> Constant | None:
        return self._scaled(self.f.smoothness())

    def strong_convexity(self) -> Constant | None:
        return self._scaled(self.f.strong_convexity()) if self.factor > 0.0 else None

    def infimum(self) -> Constant | None:
        return self._scaled(self.f.infimum())

    def sublevel_radius(self, level: float) -> Constant | None:
        return self.f.sublevel_radius(level / self.factor) if self.factor > 0.0 else None

    def _scaled(self, constant: Constant | None) -> Constant | None:
        if constant is None:
            return None
        return Constant(self.factor * constant.value, constant.source, constant.note)


def check_objective(name: str, value: Any) -> None:
    """Raise `TypeError` unless a value is an objective."""
    if not isinstance(value, Objective):
        raise TypeError(
            f"{name} must be a lopro Objective, got {value!r}; "
            "wrap plain callables in lopro.objectives.FunctionObjective"
        )
