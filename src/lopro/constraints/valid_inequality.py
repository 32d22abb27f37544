"""Valid inequalities of a convex set, from which lower bounds are computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.core.arrays import Array, from_numpy
from lopro.functions import Image

__all__ = ["ValidInequality"]


@dataclass(frozen=True, eq=False)
class ValidInequality:
    """A valid inequality of the feasible set: ``<direction, z> <= support`` for every feasible z.

    Lower bounds are computed from such inequalities, which can be added and multiplied by nonnegative
    numbers.

    Parameters
    ----------
    direction : array
        Of the shape of a point.
    support : float
        At least the largest ``<direction, z>`` over the set.
    dual : tuple of arrays, optional
        The multipliers it comes from, one array for each image of the constraint: ``direction`` is
        their pullback. None where they are not known.
    blur : float
        A bound of the norm of the rounding error of ``direction``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints import ValidInequality
    >>> double = ValidInequality(np.array([1.0, 0.0]), 3.0).scaled(2.0)
    >>> double.support
    6.0
    """

    direction: Array
    support: float
    dual: Image | None = None
    blur: float = 0.0

    @staticmethod
    def trivial(like: Array) -> ValidInequality:
        """Return ``<0, z> <= 0``: the multiplier of a minimum of f without constraint."""
        return ValidInequality(0.0 * like, 0.0)

    def __add__(self, other: ValidInequality) -> ValidInequality:
        dual = None
        if self.dual is not None and other.dual is not None:
            dual = tuple(u + v for u, v in zip(self.dual, other.dual, strict=True))
        support, blur = self.support + other.support, self.blur + other.blur
        return ValidInequality(self.direction + other.direction, support, dual, blur)

    def scaled(self, factor: float) -> ValidInequality:
        """Return the inequality multiplied by ``factor >= 0``."""
        dual = None if self.dual is None else tuple(factor * v for v in self.dual)
        return ValidInequality(
            factor * self.direction, factor * self.support, dual, factor * self.blur
        )

    def beside(self, x: Array) -> ValidInequality:
        """Return the inequality with its arrays in the library and on the device of ``x``."""
        if isinstance(x, np.ndarray) or not isinstance(self.direction, np.ndarray):
            return self
        dual = None if self.dual is None else tuple(from_numpy(v, x) for v in self.dual)
        return ValidInequality(from_numpy(self.direction, x), self.support, dual, self.blur)
