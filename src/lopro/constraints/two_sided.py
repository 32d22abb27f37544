"""Multipliers of rows with two sides, which are kept as two rows with one side each."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, asarray_like, to_numpy

__all__ = ["joined", "parted"]


def joined(dual: Array, lower: Any, upper: Any) -> Array:
    """Return one multiplier for each row: positive at its upper bound, negative at its lower one.

    Parameters
    ----------
    dual : array
        Multipliers of the rows with an upper bound, then of those with a lower one, none negative.
    lower, upper : array
        The bounds, infinite where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints.two_sided import joined
    >>> joined(np.array([2.0, 3.0]), np.array([-np.inf, 0.0]), np.array([1.0, np.inf]))
    array([ 2., -3.])
    """
    above, below = np.isfinite(upper), np.isfinite(lower)
    v = np.zeros(above.shape)
    found = to_numpy(dual)
    v[above] += found[: np.count_nonzero(above)]
    v[below] -= found[np.count_nonzero(above) :]
    return asarray_like(v, dual)


def parted(v: Array, lower: Any, upper: Any) -> Array:
    """Return the multipliers of the rows with one side: the inverse of `joined`, as short as can be.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints.two_sided import parted
    >>> parted(np.array([2.0, -3.0]), np.zeros(2), np.ones(2))
    array([2., 0., 0., 3.])
    """
    sides = to_numpy(v)
    above, below = np.isfinite(upper), np.isfinite(lower)
    both = [np.maximum(sides, 0.0)[above], np.maximum(-sides, 0.0)[below]]
    return asarray_like(np.concatenate(both), v)
