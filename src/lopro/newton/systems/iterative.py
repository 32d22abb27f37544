"""Conjugate gradients, iterative refinement, and corrections of low rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import current_deadline
from lopro.linalg.conjugate_gradients import conjugate_gradients
from lopro.linalg.dense import Array, SingularSystem, norm
from lopro.newton.curvature import LowRank, Piece, apply, diagonal

__all__ = ["ConjugateGradients", "CorrectedSystem", "System", "refined"]


class System:
    """Solves with ``H = sum of pieces + shift I``; reuses what has not changed since the last call.

    Parameters
    ----------
    size : int
        Number of variables.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        #: The numbers of factorisations and of products.
        self.factorisations = 0
        self.products = 0

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``H^-1 rhs``; iterative solvers stop at this relative residual.

        Raises
        ------
        SingularSystem
            Where ``H`` is not positive definite.
        """
        raise NotImplementedError


#: Refinement ends at this relative residual, or where a correction does not halve the residual.
#: A tenth and ten times of both constants change nothing in ``python -m benchmarks.constants
#: newton.systems``.
_TOLERANCE = 1e-10
#: The matrix counts as singular if the relative residual exceeds this after refinement.
_HOPELESS = 0.1


def refined(
    system: System,
    solve: Callable[[Array], Array],
    pieces: Sequence[Piece],
    shift: float,
    rhs: Array,
) -> Array:
    """Return the solution by ``solve``, with iterative refinement while the residual decreases.

    The products are counted on the system.

    Raises
    ------
    SingularSystem
        If the residual does not decrease.
    """

    def residual_of(x: Array) -> Array:
        system.products += 1
        return rhs - apply(pieces, x) - shift * x

    size = norm(rhs)
    x = solve(rhs)
    residual = residual_of(x)
    while norm(residual) > _TOLERANCE * size:
        corrected = x + solve(residual)
        left = residual_of(corrected)
        if not norm(left) < 0.5 * norm(residual):
            break
        x, residual = corrected, left
    # Written so that NaN counts as large.
    if not norm(residual) <= _HOPELESS * size:
        raise SingularSystem("iterative refinement does not reduce the residual")
    return x


class ConjugateGradients(System):
    """Preconditioned conjugate gradients, to the accuracy that the Newton step requires."""

    def __init__(self, size: int, max_products: int = 1000) -> None:
        super().__init__(size)
        self.max_products = max_products

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return an approximation of ``H^-1 rhs``."""
        on_diagonal = diagonal(pieces, self.size) + shift
        largest = float(on_diagonal.max(initial=0.0))
        if not largest > 0.0:
            raise SingularSystem("the matrix is zero")
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


class CorrectedSystem(System):
    """Solves with ``H + V' C V`` for few rows ``V`` by solving with ``H`` (Woodbury identity)."""

    def __init__(self, base: System) -> None:
        super().__init__(base.size)
        self.base = base

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``(H + V' C V)^-1 rhs``, with iterative refinement."""
        rest = [p for p in pieces if not isinstance(p, LowRank)]
        low = [p for p in pieces if isinstance(p, LowRank)]
        V = np.concatenate([p.rows for p in low])
        if len(V) == 0:
            return self.base.solve(rest, shift, rhs, accuracy)
        images = np.stack([self.base.solve(rest, shift, row, accuracy) for row in V])
        # (I + C V H^-1 V')^-1 C exists for singular cores, too.
        core = scipy.linalg.block_diag(*(p.core for p in low))
        middle = np.eye(len(V)) + core @ (V @ images.T)

        def woodbury(r: Array) -> Array:
            x = self.base.solve(rest, shift, r, accuracy)
            self.factorisations = self.base.factorisations
            return np.asarray(x - np.linalg.solve(middle, core @ (V @ x)) @ images)

        try:
            return refined(self, woodbury, pieces, shift, rhs)
        except np.linalg.LinAlgError as error:
            raise SingularSystem(str(error)) from None
