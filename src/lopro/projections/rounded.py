"""Projection on a residual ball in double precision, for points that are then rounded to single precision."""

from __future__ import annotations

import numpy as np

from lopro.core.arrays import Array, from_numpy, is_complex, is_single, norm, to_numpy
from lopro.errors import InfeasibleError
from lopro.maps import LinearMap
from lopro.maps.algebra import widened
from lopro.projections.residual_ball import project_residual_ball

__all__ = ["nearest_rounded"]

#: Aims further and further inside the ball, until the rounded point is inside too. `python -m
#: benchmarks.constants projections`: with none a ball in single precision is lost, ten times as many change
#: nothing.
_ATTEMPTS = 6


def nearest_rounded(x: Array, A: LinearMap, y: Array, sigma: float) -> Array | None:
    """Return a point near ``{z : |A z - y| <= sigma}`` in the precision of ``x``: inside, if rounding allows.

    The aim is inside by what the rounding of the last attempt put outside: measured, because its bound is
    often a hundred times as much. None where rounding alone makes the ball seem empty.

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
    aim, point = sigma, None
    for _ in range(_ATTEMPTS):
        try:
            exact = project_residual_ball(widened(to_numpy(x)), A, y, aim)
        except InfeasibleError:
            break  # the data may be rounded numbers: whether the ball is empty, single precision says
        point = _as_precise_as(x, exact)
        outside = norm(A.forward(widened(to_numpy(point))) - y) - sigma
        aim -= 2.0 * outside
        if outside <= 0.0 or aim <= 0.0:
            break
    return point


def _as_precise_as(x: Array, exact: Array) -> Array:
    """Return ``exact`` in the library and precision of ``x``, complex where either is."""
    if is_single(x):
        exact = exact.astype(np.complex64 if is_complex(exact) else np.float32)
    return from_numpy(exact, x)
