"""Real vectors on the host from arrays of any library, real or complex; scaling by powers of two."""

from __future__ import annotations

import math

import numpy as np

from lopro.core.arrays import Array, Vector, asarray_like, is_complex, to_numpy

__all__ = ["Vector", "from_real_vector", "power_of_two", "powers_of_two", "to_real_vector"]


def to_real_vector(x: Array) -> Vector:
    """Return the entries as float64; real parts first, then imaginary ones, if ``x`` is complex.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.real_vectors import to_real_vector
    >>> to_real_vector(np.array([1.0 + 2.0j]))
    array([1., 2.])
    """
    flat = to_numpy(x).reshape(-1)
    if is_complex(x):
        flat = np.concatenate([flat.real, flat.imag])
    return np.array(flat, dtype=np.float64)


def from_real_vector(v: Vector, like: Array) -> Array:
    """Return the array with the shape, library and dtype of ``like`` that `to_real_vector` maps to ``v``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.real_vectors import from_real_vector
    >>> from_real_vector(np.array([1.0, 2.0]), np.array([0.0j]))
    array([1.+2.j])
    """
    if is_complex(like):
        half = v.shape[0] // 2
        v = v[:half] + 1j * v[half:]
    return asarray_like(v.reshape(tuple(like.shape)), like)


def power_of_two(size: float) -> float:
    """Return the power of two nearest to a size on a logarithmic scale; 1 for 0, inf and NaN.

    Examples
    --------
    >>> from lopro.core.real_vectors import power_of_two
    >>> power_of_two(5.0), power_of_two(0.3), power_of_two(0.0)
    (4.0, 0.25, 1.0)
    """
    if not (size > 0.0 and math.isfinite(size)):
        return 1.0
    return 2.0 ** round(math.log2(size))


def powers_of_two(sizes: Vector) -> Vector:
    """Return the powers of two nearest to sizes: `power_of_two` of each.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.real_vectors import powers_of_two
    >>> powers_of_two(np.array([5.0, 0.3, 0.0, np.inf]))
    array([4.  , 0.25, 1.  , 1.  ])
    """
    usable = (sizes > 0.0) & np.isfinite(sizes)
    return np.asarray(np.exp2(np.rint(np.log2(np.where(usable, sizes, 1.0)))))
