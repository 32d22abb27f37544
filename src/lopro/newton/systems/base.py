"""What the Newton method asks of a solver of linear systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from lopro.newton.arrays import Array
from lopro.newton.curvature import Piece

__all__ = ["System"]


class System(Protocol):
    """Solves with ``H = sum of pieces + shift I``; remembers what did not change since the last call."""

    #: How often a matrix was factorised, and how often products were made.
    factorisations: int
    products: int

    def solve(self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float) -> Array:
        """Return ``H^-1 rhs``; iterative solvers stop at this relative residual.

        Raises
        ------
        SingularSystem
            Where ``H`` is not positive definite.
        """
        ...
