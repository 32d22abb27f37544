"""Conjugate gradients from products alone, with a diagonal preconditioner."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lopro.core.deadline import current_deadline
from lopro.linalg.cholesky import SingularSystem
from lopro.newton.arrays import Array, norm
from lopro.newton.curvature import Piece, apply, diagonal

__all__ = ["ConjugateGradients", "conjugate_gradients"]


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
        The inverse of a diagonal near that of ``H``.
    max_products : int
        Where to stop in any case.
    stopped : callable, optional
        Whether time is up; the iterate that was reached is returned then.

    Raises
    ------
    SingularSystem
        If the first direction has no curvature.
    """
    x = np.zeros_like(rhs)
    residual = rhs.copy()
    z = preconditioner * residual
    direction = z
    rho = float(residual @ z)
    wanted = accuracy * norm(rhs)
    for k in range(max_products):
        if norm(residual) <= wanted or (k > 0 and stopped is not None and stopped()):
            return x, k
        image = product(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:
            if k == 0:
                raise SingularSystem("a direction without curvature")
            return x, k + 1
        step = rho / curvature
        x = x + step * direction
        residual = residual - step * image
        z = preconditioner * residual
        rho, last = float(residual @ z), rho
        direction = z + (rho / last) * direction
    return x, max_products


class ConjugateGradients:
    """Solves approximately, to the accuracy that the Newton step asks for."""

    def __init__(self, size: int, max_products: int = 1000) -> None:
        self.size = size
        self.max_products = max_products
        self.factorisations = 0
        self.products = 0

    def solve(self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float) -> Array:
        """Return an approximation of ``H^-1 rhs``."""
        on_diagonal = diagonal(pieces, self.size) + shift
        largest = float(on_diagonal.max(initial=0.0))
        if not largest > 0.0:
            raise SingularSystem("no curvature at all")
        weights = 1.0 / np.maximum(on_diagonal, 1e-12 * largest)
        x, products = conjugate_gradients(
            lambda s: apply(pieces, s) + shift * s,
            rhs,
            accuracy,
            weights,
            self.max_products,
            lambda: current_deadline().passed,
        )
        self.products += products
        return x
