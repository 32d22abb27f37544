"""Systems with matrices on a device: the Hessian is put together and factorised there."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lopro.core.arrays import asarray_like, namespace, to_numpy
from lopro.core.cholesky_there import factor_there, factors_there
from lopro.core.deadline import current_deadline
from lopro.linalg.cholesky import SingularSystem, cholesky, cholesky_solve
from lopro.newton.arrays import EPS, Array
from lopro.newton.curvature import Constant, Diagonal, Gram, Piece, on_device
from lopro.newton.systems.dense import DenseSystem

__all__ = ["SystemOnDevice"]


class SystemOnDevice:
    """Dense Cholesky on the device of the matrices; right-hand sides and solutions are on the host."""

    def __init__(self, size: int) -> None:
        self.size = size
        #: Puts together what is on the host: a few rows, as a rule.
        self._host = DenseSystem(size)
        self.factorisations = 0
        self.products = 0

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``H^-1 rhs``."""
        current_deadline().check()
        H = self._formed(pieces, shift)
        self.factorisations += 1
        if not factors_there(H):
            return cholesky_solve(cholesky(np.array(to_numpy(H))), rhs)
        factor = factor_there(H)
        if factor is None:
            raise SingularSystem("the matrix is not positive definite")
        pivots = factor.pivots
        # Written so that NaN is not taken for a pivot.
        if not pivots.min() > self.size * EPS * pivots.max():
            raise SingularSystem("a pivot is lost to rounding")
        return np.asarray(factor.solve(rhs))

    def _formed(self, pieces: Sequence[Piece], shift: float) -> Any:
        """Return the sum of the pieces, on the device."""
        there = [p.assembled() for p in pieces if isinstance(p, Constant | Gram) and p.on_device]
        H = functools.reduce(operator.add, there)
        on_diagonal, others = np.full(self.size, shift), []
        for piece in pieces:
            if isinstance(piece, Diagonal):
                on_diagonal = on_diagonal + piece.values
            elif not on_device(piece):
                others.append(piece)
        if others:
            H = H + asarray_like(self._host.assembled(others, 0.0), H)
        eye = namespace(H).eye(self.size, dtype=H.dtype, device=H.device)
        return H + eye * asarray_like(on_diagonal, H)
