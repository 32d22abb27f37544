"""Conjugate gradients for arrays of any library and shape, with the matrix given by its products."""

from __future__ import annotations

from collections.abc import Callable

from lopro.core.arrays import Array, inner, norm
from lopro.linalg.dense import SingularSystem

__all__ = ["conjugate_gradients"]


def conjugate_gradients(
    product: Callable[[Array], Array],
    rhs: Array,
    accuracy: float,
    preconditioner: Array | float = 1.0,
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
    preconditioner : array or float
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
    z = preconditioner * residual
    direction = z
    rho = inner(residual, z)
    target = accuracy * norm(rhs)
    for k in range(max_products):
        if norm(residual) <= target or (k > 0 and stopped is not None and stopped()):
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
        z = preconditioner * residual
        rho, last = inner(residual, z), rho
        if not last > 0.0:  # squares have underflowed
            return x, k + 1
        direction = z + (rho / last) * direction
    return x, max_products
