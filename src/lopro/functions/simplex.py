"""Projections on the simplex and on the l1 ball: one threshold, found by sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, copy, is_complex, namespace, to_numpy

__all__ = ["l1_ball_jacobian", "project_l1_ball", "project_simplex", "simplex_threshold"]


def simplex_threshold(values: np.ndarray[Any, Any], total: float) -> tuple[float, float]:
    """Return the largest value ``v`` and ``t <= 0`` with ``sum [values - v - t]_+ = total > 0``.

    Next to large values a small total is lost in their rounding. Distances from the largest one are exact
    for all that matter: none that stays positive is further below it than ``total``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.simplex import simplex_threshold
    >>> simplex_threshold(np.array([3.0, 1.0, 0.0]), 2.0)
    (3.0, -2.0)
    """
    falling = np.sort(np.asarray(values, dtype=np.float64).ravel())[::-1]
    largest = float(falling[0])
    falling = falling - largest
    thresholds = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    # The entries that stay positive are the largest ones that exceed their own threshold.
    kept = int(np.flatnonzero(falling > thresholds).max(initial=0)) + 1
    # Summing what is left of the entries again takes out the rounding of the running sum.
    t = float(thresholds[kept - 1])
    return largest, t + float((falling[:kept] - t).sum() - total) / kept


def project_simplex(x: Array, total: float, *, equality: bool = True) -> Array:
    """Return the nearest ``z >= 0`` with ``sum z = total`` (at most ``total`` without ``equality``).

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.simplex import project_simplex
    >>> project_simplex(np.array([2.0, 0.0]), 1.0)
    array([1., 0.])
    """
    xp = namespace(x)
    if not equality:
        positive = xp.where(x > 0.0, x, 0.0 * x)
        if float(xp.sum(positive)) <= total:
            return positive
    largest, t = simplex_threshold(to_numpy(x), total)
    left = (x - largest) - t
    return xp.where(left > 0.0, left, xp.zeros_like(x))


def l1_ball_jacobian(w: Array, radius: float) -> tuple[Array, Array, Array]:
    """Return ``diag(values) - weight row row'``, a generalised Jacobian of the projection at a host vector.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.simplex import l1_ball_jacobian
    >>> l1_ball_jacobian(np.array([3.0, -2.0, 0.5]), 2.0)
    (array([1., 1., 0.]), array([[ 1., -1.,  0.]]), array([0.5]))
    """
    sizes = np.abs(w)
    if sizes.sum() <= radius:
        return np.ones(len(w)), np.zeros((1, len(w))), np.zeros(1)
    largest, t = simplex_threshold(sizes, radius)
    kept = np.asarray((sizes - largest) - t > 0.0, dtype=np.float64)
    return kept, (kept * np.sign(w))[None, :], np.array([1.0 / max(1.0, float(kept.sum()))])


def project_l1_ball(x: Array, radius: float) -> Array:
    """Return the nearest ``z`` with ``sum |z_i| <= radius``; complex entries keep their phase.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.simplex import project_l1_ball
    >>> project_l1_ball(np.array([2.0, -2.0]), 2.0)
    array([ 1., -1.])
    """
    xp = namespace(x)
    sizes = xp.abs(x)
    if float(xp.sum(sizes)) <= radius:
        return copy(x)
    largest, t = simplex_threshold(to_numpy(sizes), radius)
    left = (sizes - largest) - t
    left = xp.where(left > 0.0, left, xp.zeros_like(sizes))
    factor = left / xp.where(sizes > 0.0, sizes, sizes + 1.0)
    return (xp.astype(factor, x.dtype) if is_complex(x) else factor) * x
