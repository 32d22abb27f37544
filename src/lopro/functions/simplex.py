"""Projections on the simplex and on the l1 ball: one threshold, found by sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, copy, is_complex, namespace, to_numpy

__all__ = ["l1_ball_jacobian", "project_l1_ball", "project_simplex", "simplex_threshold"]


def simplex_threshold(values: np.ndarray[Any, Any], total: float) -> tuple[float, float]:
    """Return the largest value ``v`` and ``t <= 0`` with ``sum [values - v - t]_+ = total > 0``.

    Beside large values a small total would be lost in rounding. So the sums are formed from differences to
    the largest value: an entry that stays positive is at most ``total`` below it.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.simplex import simplex_threshold
    >>> simplex_threshold(np.array([3.0, 1.0, 0.0]), 2.0)
    (3.0, -2.0)
    """
    descending = np.sort(np.asarray(values, dtype=np.float64).ravel())[::-1]
    largest = float(descending[0])
    descending = descending - largest
    thresholds = (np.cumsum(descending) - total) / np.arange(1, len(descending) + 1)
    # The entries that stay positive are the largest ones that exceed their own threshold.
    kept = int(np.flatnonzero(descending > thresholds).max(initial=0)) + 1
    # One correction with the sum of the reduced entries removes the rounding of the cumulative sum.
    t = float(thresholds[kept - 1])
    return largest, t + float((descending[:kept] - t).sum() - total) / kept


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
    reduced = (x - largest) - t
    return xp.where(reduced > 0.0, reduced, xp.zeros_like(x))


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
    reduced = (sizes - largest) - t
    reduced = xp.where(reduced > 0.0, reduced, xp.zeros_like(sizes))
    factor = reduced / xp.where(sizes > 0.0, sizes, sizes + 1.0)
    return (xp.astype(factor, x.dtype) if is_complex(x) else factor) * x
