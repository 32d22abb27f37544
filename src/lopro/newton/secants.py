"""Second derivatives from differences of gradients: the matrix of L-BFGS, as pieces of curvature."""

from __future__ import annotations

import numpy as np

from lopro.newton.arrays import Array
from lopro.newton.curvature import Diagonal, LowRank, Piece

__all__ = ["Secants"]

#: How many differences are kept.
_MEMORY = 10
#: Differences whose curvature is a smaller share than this of what it could be are rounding.
_FLAT = 1e-10


class Secants:
    """The last steps ``s`` and the changes ``y`` of the gradient along them, ``B s = y`` for the last.

    ``B = sigma I - [sigma S, Y] M^-1 [sigma S, Y]'`` with ``M = [[sigma S'S, L], [L', -diag(S'Y)]]``, ``L``
    the part of ``S'Y`` below the diagonal and ``sigma = y'y / s'y``: positive definite where all ``s'y`` are.

    References
    ----------
    R. H. Byrd, J. Nocedal, R. B. Schnabel, "Representations of quasi-Newton matrices and their use in
    limited memory methods", Math. Program. 63 (1994).

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton import curvature
    >>> from lopro.newton.secants import Secants
    >>> secants = Secants(2)
    >>> secants.add(np.array([1.0, 0.0]), np.array([3.0, 1.0]))
    >>> curvature.apply(secants.pieces(), np.array([1.0, 0.0])).round(12)
    array([3., 1.])
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._steps: list[Array] = []
        self._changes: list[Array] = []
        self._pieces: tuple[Piece, ...] | None = None

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, s: Array, y: Array) -> None:
        """Take note of a step and of the change of the gradient; what is flat or rounding is left out."""
        curvature = float(s @ y)
        if not curvature > _FLAT * float(np.sqrt((s @ s) * (y @ y))):
            return
        self._steps = [*self._steps, s][-_MEMORY:]
        self._changes = [*self._changes, y][-_MEMORY:]
        self._pieces = None

    def pieces(self) -> tuple[Piece, ...]:
        """Return ``B``: a diagonal and some rows; zero before there is a step."""
        if self._pieces is None:
            self._pieces = self._formed()
        return self._pieces

    def _formed(self) -> tuple[Piece, ...]:
        if not self._steps:
            nothing = LowRank(np.zeros((0, self.size)), np.zeros((0, 0)))
            return Diagonal(np.zeros(self.size)), nothing
        S, Y = np.stack(self._steps), np.stack(self._changes)
        products = S @ Y.T
        sigma = float(Y[-1] @ Y[-1]) / float(products[-1, -1])
        below = np.tril(products, -1)
        M = np.block([[sigma * (S @ S.T), below], [below.T, -np.diag(products.diagonal())]])
        rows = np.concatenate([sigma * S, Y])
        # Rows of norm one, so that the inverse is not troubled by their units.
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        core = -np.linalg.inv(M / norms[:, None] / norms)
        return Diagonal(np.full(self.size, sigma)), LowRank(rows / norms[:, None], core)
