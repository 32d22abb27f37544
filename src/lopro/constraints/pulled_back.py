"""Valid inequalities from multipliers of images, with bounds of the rounding of their directions."""

from __future__ import annotations

import math

from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, eps, norm
from lopro.core.vectors import norms
from lopro.functions import Image

__all__ = ["pulled_back", "stretch_at"]

#: Roundings charged to a product, relative to the norm of the map times that of the multiplier. A statistical
#: estimate, not a bound: errors of a sum of n terms grow like sqrt(n), as does the norm of such a sum.
_ROUNDINGS = 8.0


def pulled_back(constraint: Constraint, dual: Image, x: Array, image: Image) -> ValidInequality:
    """Return the inequality of multipliers of the images of a set, where ``x`` has this image.

    Where its terms cancel, the direction has the rounding error of the terms, which is its ``blur``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints import ResidualBall
    >>> from lopro.constraints.pulled_back import pulled_back
    >>> ball, x = ResidualBall(np.array([[3.0], [4.0]]), np.zeros(2), 1.0), np.ones(1)
    >>> found = pulled_back(ball, (1e10 * np.array([4.0, -3.0]),), x, ball.image(x))
    >>> found.direction, found.blur == 8.0 * 2.0**-52 * 5.0 * 5e10
    (array([0.]), True)
    """
    direction = constraint.pullback(dual)
    sizes = [norm(v) for v in dual]
    blur = sum(stretch_at(x, z) * size for z, size in zip(image, sizes, strict=True))
    blur = _ROUNDINGS * eps(x) * max(blur, norm(direction))
    return ValidInequality(direction, constraint.support_image(dual), dual, blur)


def stretch_at(x: Array, image: Array) -> float:
    """Return ``|A x| / |x|``, an estimate of ``|A|``; a residual orthogonal to all columns gives none."""
    moved, length = norms(image, x)
    return moved / length if 0.0 < length < math.inf else 0.0
