"""Conjugate gradients from products alone, with a diagonal preconditioner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lopro.core.deadline import current_deadline
from lopro.linalg.cholesky import SingularSystem
from lopro.linalg.conjugate_gradients import conjugate_gradients
from lopro.newton.arrays import Array
from lopro.newton.curvature import Piece, apply, diagonal

__all__ = ["ConjugateGradients"]


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
        return np.asarray(x)
