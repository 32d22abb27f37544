"""Sums of objectives, with the abilities and constants that follow from their parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from lopro.core.arrays import Array, widest
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source
from lopro.functions.term import Term
from lopro.objectives.base import Objective
from lopro.objectives.scaled import Scaled, check_objective

__all__ = ["Sum"]


class Sum(MappedFunction, Objective):
    """``f = f_1 + f_2 + ...``.

    Its image consists of the images of its parts in their order. It splits into a smooth and a
    proximable part if at most one part is not smooth and that one has a prox; otherwise it
    has subgradients only. Sums in sums, and multiples of sums, are expanded.

    Parameters
    ----------
    *parts : Objective
        At least one.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import L1Norm, LeastSquares, Sum
    >>> f = Sum(LeastSquares(np.eye(2), np.array([1.0, 0.0])), L1Norm())
    >>> f.value(np.array([1.0, 2.0]))
    5.0
    >>> [type(part).__name__ for part in f.split()]
    ['LeastSquares', 'L1Norm']
    """

    def __init__(self, *parts: Objective) -> None:
        if not parts:
            raise ValueError("parts must not be empty: a sum needs at least one objective")
        flat = list(_flat(parts))
        self.shape = _common_shape(flat)
        if self.shape is not None:
            flat = [part.shaped(self.shape) for part in flat]
        self.parts: tuple[Objective, ...] = tuple(flat)
        self.like = widest(part.like for part in flat if part.like is not None)
        self.image_length = sum(part.image_length for part in flat)
        self.smooth = all(part.smooth for part in flat)
        self.stochastic = any(part.stochastic for part in flat)
        self.cancels = any(part.cancels for part in flat)
        self.fresh_slopes = len(flat) > 1 or flat[0].fresh_slopes

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for part in self.parts for term in part.terms)

    @property
    def summands(self) -> tuple[tuple[float, Objective], ...]:
        return tuple(summand for part in self.parts for summand in part.summands)

    def shaped(self, shape: tuple[int, ...]) -> Sum:
        if self.shape is not None:
            return self
        return Sum(*(part.shaped(shape) for part in self.parts))

    def image(self, x: Array) -> Image:
        return tuple(array for part in self.parts for array in part.image(x))

    def linearize_at(self, image: Image) -> Linearization:
        if len(image) != self.image_length:
            raise ValueError(f"image must hold {self.image_length} arrays, got {len(image)}")
        value, slopes, start = 0.0, [], 0
        for part in self.parts:
            stop = start + part.image_length
            v, slope = part.linearize_at(image[start:stop])
            value += v
            slopes.append(slope)
            start = stop
        return value, lambda: _total([slope() for slope in slopes])

    def subgradient(self, x: Array) -> Array:
        # `linearize_at` would compute the values as well.
        first, *others = self.parts
        total = first.subgradient(x)
        if others and not first.fresh_slopes:
            second, *others = others
            total = total + second.subgradient(x)
        for part in others:
            total = part.add_subgradient(x, total)
        return total

    def stochastic_subgradient(self, x: Array, rng: np.random.Generator) -> Array:
        return _total(
            [
                part.stochastic_subgradient(x, rng) if part.stochastic else part.subgradient(x)
                for part in self.parts
            ]
        )

    def split(self) -> tuple[Objective | None, Objective | None]:
        if self.smooth:
            return self, None
        rough = [part for part in self.parts if not part.smooth]
        if len(rough) > 1 or not rough[0].proximable:
            return None, None
        return self._smooth_part(), rough[0]

    def _smooth_part(self) -> Objective | None:
        smooth = [part for part in self.parts if part.smooth]
        if len(smooth) <= 1:
            return smooth[0] if smooth else None
        return Sum(*smooth)

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        """Linearise the smooth parts at ``x``; the other parts share the remainder of ``target``."""
        alpha, slopes = 0.0, []
        for part in sorted(self.parts, key=lambda part: not part.smooth):
            a, g = Objective.minorant(part, x, target) if part.smooth else part.minorant(x, target)
            alpha += a
            slopes.append(g)
            target = target - g
        return alpha, _total(slopes)

    def magnitude(self, x: Array, fun: float) -> float:
        if not self.cancels:
            return abs(fun)
        return sum(part.magnitude(x, float(part.value(x))) for part in self.parts)

    def slope_error(self, x: Array) -> np.ndarray[Any, Any] | None:
        known = [e for part in self.parts if (e := part.slope_error(x)) is not None]
        return np.sum(known, axis=0) if known else None

    def typical_size(self) -> float | None:
        known = [size for part in self.parts if (size := part.typical_size()) is not None]
        return min(known, default=None)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return _added([part.lipschitz(ball) for part in self.parts])

    def smoothness(self) -> Constant | None:
        return _added([part.smoothness() for part in self.parts]) if self.smooth else None

    def strong_convexity(self) -> Constant | None:
        known = [mu for part in self.parts if (mu := part.strong_convexity()) is not None]
        return _added(known) if known else None

    def infimum(self) -> Constant | None:
        found = [_added([part.infimum() for part in self.parts]), super().infimum()]
        return max((c for c in found if c is not None), key=lambda c: c.value, default=None)

    def sublevel_radius(self, level: float) -> Constant | None:
        """Return the smallest radius that follows from one part and the infima of the others."""
        found = [super().sublevel_radius(level)]
        for i, part in enumerate(self.parts):
            others = _added([p.infimum() for p in self.parts[:i] + self.parts[i + 1 :]])
            if others is None:
                continue
            radius = part.sublevel_radius(level - others.value)
            if radius is not None:
                found.append(
                    Constant(radius.value, _weakest([radius, others]), f"one part: {radius.note}")
                )
        return min((c for c in found if c is not None), key=lambda c: c.value, default=None)


Objective.sum_of, Objective.multiple_of = Sum, Scaled


def _flat(parts: Iterable[Objective]) -> Iterable[Objective]:
    """Yield the parts, with sums and multiples of sums expanded."""
    for part in parts:
        check_objective("parts", part)
        yield from (f if factor == 1.0 else Scaled(factor, f) for factor, f in part.summands)


def _common_shape(parts: Sequence[Objective]) -> tuple[int, ...] | None:
    shapes = {part.shape for part in parts if part.shape is not None}
    if len(shapes) > 1:
        raise ValueError(f"parts must have points of one shape, got {sorted(shapes)}")
    return shapes.pop() if shapes else None


def _total(arrays: Sequence[Array]) -> Array:
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return total


def _weakest(constants: Sequence[Constant]) -> Source:
    """Return the weakest source among constants, which is that of a number computed from all of them."""
    sources = {constant.source for constant in constants}
    return next(
        source
        for source in (Source.ESTIMATED, Source.GIVEN, Source.DERIVED)
        if source in sources or source is Source.DERIVED
    )


def _added(constants: Sequence[Constant | None]) -> Constant | None:
    """Return the sum of constants, or None where one is not known."""
    known = [constant for constant in constants if constant is not None]
    if len(known) < len(constants):
        return None
    value = math.fsum(constant.value for constant in known)
    notes = " + ".join(dict.fromkeys(constant.note for constant in known if constant.note))
    return Constant(value, _weakest(known), notes)
