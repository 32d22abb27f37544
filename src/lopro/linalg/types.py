"""Types and small helpers of double-precision linear algebra on the host."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["EPS", "Array", "Matrix", "norm"]

#: A NumPy array of doubles.
Array: TypeAlias = NDArray[np.float64]
#: A dense array or a scipy.sparse array; SciPy ships no types.
Matrix: TypeAlias = Any

#: Twice the unit roundoff of double precision.
EPS = float(np.finfo(np.float64).eps)


def norm(x: Array) -> float:
    """Return the Euclidean norm without the overhead of `numpy.linalg.norm`."""
    flat = x.ravel()
    return float(np.sqrt(flat @ flat))
