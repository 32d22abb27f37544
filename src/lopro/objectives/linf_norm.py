"""The l-infinity norm: the largest modulus of an entry."""

from __future__ import annotations

import math
from typing import Any

from lopro.core.arrays import norm
from lopro.functions import Ball, Constant, Source, atoms
from lopro.objectives.of_atom import NormOfImage

__all__ = ["LInfNorm"]


class LInfNorm(NormOfImage):
    """``f(x) = max_i |x_i|``, or ``max_i |(D x - b)_i|`` with a map and an offset.

    Parameters
    ----------
    D : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (m, d), optional
        Real. Not copied. With a map points are vectors, and there is no prox.
    shape : tuple of int, optional
        Shape of the points without a map; by default any shape is accepted.
    b : array, optional
        Subtracted before the norm; zero if not given. Copied.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import LInfNorm
    >>> f = LInfNorm()
    >>> x = np.array([3.0, -4.0])
    >>> f.value(x), f.prox(x, 3.0)
    (4.0, array([ 2., -2.]))

    The largest deviation from measurements:

    >>> LInfNorm(np.ones((3, 1)), b=np.array([1.0, 2.0, 7.0])).value(np.array([4.0]))
    3.0
    """

    def __init__(self, D: Any = None, shape: Any = None, b: Any = None) -> None:
        super().__init__(atoms.LInf(), D, b, shape)

    def lipschitz(self, ball: Ball | None = None) -> Constant:
        return self._times_map(1.0, "below the Euclidean norm")

    def sublevel_radius(self, level: float) -> Constant | None:
        if self.D is not None or self.shape is None:
            return None
        centre = 0.0 if self.offset is None else norm(self.offset)
        radius = max(level, 0.0) * math.sqrt(math.prod(self.shape)) + centre
        return Constant(radius, Source.DERIVED, "root of the dimension times the largest entry")
