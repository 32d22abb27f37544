"""Conjugate gradients for arrays of any library and shape, with the matrix given by its products."""

from __future__ import annotations

import math
from collections.abc import Callable

from lopro.core.arrays import Array, inner, norm
from lopro.linalg.dense import SingularSystem

__all__ = ["conjugate_gradients"]

#: Sums of squares above this, and below its inverse, have neither underflowed nor overflowed, in single
#: precision either, whose numbers have sizes from 1e-38 to 3e38.
_LEAST = 1e-20


def conjugate_gradients(
    product: Callable[[Array], Array],
    rhs: Array,
    accuracy: float,
    preconditioner: Array | None = None,
    max_products: int = 1000,
    stopped: Callable[[], bool] | None = None,
) -> tuple[Array, int]:
    """Return an approximate solution of ``H x = rhs`` and the number of products.

    Every iterate is a descent direction for the quadratic it minimises, so stopping early is safe.

    Parameters
    ----------
    product : callable
        Product with the positive definite ``H``.
    rhs : array
        Right-hand side.
    accuracy : float
        The residual to reach, relative to ``rhs``.
    preconditioner : array, optional
        Inverse of an approximation of the diagonal of ``H``.
    max_products : int
        Maximum number of products.
    stopped : callable, optional
        Returns whether time is up; if so, the current iterate is returned.

    Raises
    ------
    SingularSystem
        If the first direction has no curvature.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.linalg.conjugate_gradients import conjugate_gradients
    >>> H = np.diag([1.0, 2.0])
    >>> x, products = conjugate_gradients(lambda p: H @ p, np.array([1.0, 1.0]), 1e-12)
    >>> x.round(9), products
    (array([1. , 0.5]), 2)
    """
    x = 0.0 * rhs
    residual = 1.0 * rhs
    direction = residual if preconditioner is None else preconditioner * residual
    rho = inner(residual, direction)
    target = accuracy * norm(rhs)
    for k in range(max_products):
        # Without a preconditioner rho is |residual|^2; a norm of its own would be one more transfer.
        exact = preconditioner is None and _LEAST < rho < 1.0 / _LEAST
        length = math.sqrt(rho) if exact else norm(residual)
        if length <= target or (k > 0 and stopped is not None and stopped()):
            return x, k
        image = product(direction)
        curvature = inner(direction, image)
        if not curvature > 0.0:
            if k == 0:
                raise SingularSystem("the first direction has no curvature")
            return x, k + 1
        step = rho / curvature
        x = x + step * direction
        residual = residual - step * image
        z = residual if preconditioner is None else preconditioner * residual
        rho, last = inner(residual, z), rho
        if not last > 0.0:  # squares have underflowed
            return x, k + 1
        direction = z + (rho / last) * direction
    return x, max_products
