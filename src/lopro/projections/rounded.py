"""Projection on a residual ball in double precision for points that are rounded to single precision."""

from __future__ import annotations

import numpy as np

from lopro.core.arrays import Array, from_numpy, is_complex, is_single, norm, to_numpy
from lopro.errors import InfeasibleError
from lopro.maps import LinearMap
from lopro.maps.algebra import widened
from lopro.projections.residual_ball import project_residual_ball

__all__ = ["nearest_rounded"]

#: Number of attempts with decreasing radius, until the rounded point is inside the ball. `python -m
#: benchmarks.constants projections`: with none a ball in single precision is lost, ten times as many change
#: nothing.
_ATTEMPTS = 6


def nearest_rounded(x: Array, A: LinearMap, y: Array, sigma: float) -> Array | None:
    """Return a point near ``{z : |A z - y| <= sigma}`` in the precision of ``x``: inside, if rounding allows.

    After each attempt the radius is reduced by twice the distance at which the rounded point is outside. That
    distance is measured, because its bound is often a hundred times as large. None where no attempt succeeds
    because the ball is empty in double precision.

    Parameters
    ----------
    x : array
        A vector in single precision.
    A : LinearMap
        A matrix in double precision, on the host.
    y : array
        The centre of the ball, in double precision.
    sigma : float
        Its radius.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> from lopro.projections.rounded import nearest_rounded
    >>> x = np.array([3.0, 4.0], dtype=np.float32)
    >>> point = nearest_rounded(x, linear_map(np.eye(2)), np.zeros(2), 1.0)
    >>> point.astype(float).round(6), point.dtype, bool(np.linalg.norm(point.astype(float)) <= 1.0)
    (array([0.6, 0.8]), dtype('float32'), True)
    """
    radius, point = sigma, None
    for _ in range(_ATTEMPTS):
        try:
            exact = project_residual_ball(widened(to_numpy(x)), A, y, radius)
        except InfeasibleError:
            break  # the data may be rounded: whether the ball is empty is decided in single precision
        point = _rounded_like(x, exact)
        outside = norm(A.forward(widened(to_numpy(point))) - y) - sigma
        radius -= 2.0 * outside
        if outside <= 0.0 or radius <= 0.0:
            break
    return point


def _rounded_like(x: Array, exact: Array) -> Array:
    """Return ``exact`` in the library and precision of ``x``, complex where either is."""
    if is_single(x):
        exact = exact.astype(np.complex64 if is_complex(exact) else np.float32)
    return from_numpy(exact, x)
