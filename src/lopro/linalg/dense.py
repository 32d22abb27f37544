"""Dense linear algebra in double precision on the host: types, norms, Cholesky factors by LAPACK."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used
from numpy.typing import NDArray

__all__ = [
    "EPS",
    "Array",
    "Matrix",
    "Pattern",
    "SingularSystem",
    "cholesky",
    "cholesky_solve",
    "norm",
]

#: A NumPy array of doubles.
Array: TypeAlias = NDArray[np.float64]
#: An array of 0/1 entries.
Pattern: TypeAlias = NDArray[np.bool_]
#: A dense array or a scipy.sparse array; SciPy ships no types.
Matrix: TypeAlias = Any

#: Twice the unit roundoff of double precision.
EPS = float(np.finfo(np.float64).eps)


def norm(x: Array) -> float:
    """Return the Euclidean norm without the overhead of `numpy.linalg.norm`."""
    flat = x.ravel()
    return float(np.sqrt(flat @ flat))


class SingularSystem(ArithmeticError):
    """The matrix is not positive definite in double precision: a larger shift is needed."""


def cholesky(H: Array) -> Array:
    """Return the Cholesky factor of a symmetric matrix, which is overwritten.

    Raises
    ------
    SingularSystem
        Where it is not positive definite.
    """
    # The transpose of a row-major symmetric matrix is column-major: LAPACK needs no copy of it.
    factor, info = scipy.linalg.lapack.dpotrf(H.T, lower=1, overwrite_a=1, clean=0)
    if info != 0:
        raise SingularSystem(f"minor {info} is not positive")
    pivots = factor.diagonal()
    # The squares of these are the pivots; one below n EPS times the largest consists of rounding.
    least, most = np.minimum.reduce(pivots), np.maximum.reduce(pivots)
    if least**2 <= len(pivots) * EPS * most**2:
        raise SingularSystem("a pivot is lost to rounding")
    return np.asarray(factor)


def cholesky_solve(factor: Array, rhs: Array) -> Array:
    """Return ``H^-1 rhs`` from the factor of ``H``."""
    solution, info = scipy.linalg.lapack.dpotrs(factor, rhs, lower=1)
    if info != 0:
        raise SingularSystem(f"solve failed with {info}")
    return np.asarray(solution)
