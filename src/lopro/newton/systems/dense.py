"""Dense Cholesky factors: of the Hessian, of a system in the space of rows, and on a device."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from lopro.core.arrays import asarray_like, namespace, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.device_cholesky import can_factor_on_device, device_factor
from lopro.linalg.dense import EPS, Array, Matrix, SingularSystem, cholesky, cholesky_solve
from lopro.linalg.sparse import gram
from lopro.maps.algebra import dense
from lopro.newton.curvature import (
    ConstantMatrix,
    Diagonal,
    Gram,
    Piece,
)
from lopro.newton.systems.iterative import System, refined

__all__ = ["DenseSystem", "RowSpaceSystem", "SystemOnDevice"]

#: Number of updates after which a Gram matrix is recomputed, so that rounding does not accumulate: 5 and 500
#: change no step in ``python -m benchmarks.constants newton.systems``.
_UPDATES = 50


class _UpdatedGram:
    """``B' diag(h) B`` for a constant ``B``, updated from the last ``h``."""

    def __init__(self, B: Matrix) -> None:
        self.B = B
        self.weights: Array | None = None
        self.matrix: Array = np.zeros((B.shape[1], B.shape[1]))
        self.updates = 0

    def update(self, weights: Array) -> bool:
        """Update the matrix to these weights; return whether it changed."""
        old = self.weights
        self.weights = weights
        if old is not None:
            changed = np.flatnonzero(weights != old)
            if len(changed) == 0:
                return False
            # An update costs twice as much per row: with weights of both signs there is no square root.
            if 2 * len(changed) < np.count_nonzero(weights) and self.updates < _UPDATES:
                self.matrix += gram(self.B[changed], (weights - old)[changed])
                self.updates += 1
                return True
        used = np.flatnonzero(weights)
        full = len(used) == len(weights)
        self.matrix = gram(self.B, weights) if full else gram(self.B[used], weights[used])
        self.updates = 0
        return True


class DenseSystem(System):
    """Solves by dense Cholesky factors."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._grams: dict[int, _UpdatedGram] = {}
        self._factor: Array | None = None
        self._last: tuple[Any, ...] = ()

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``H^-1 rhs``; the factor of an unchanged ``H`` is reused."""
        if self._changed(pieces, shift) or self._factor is None:
            self._factor = None
            self._factor = cholesky(self._assembled(pieces, shift))
            self.factorisations += 1
        return cholesky_solve(self._factor, rhs)

    def assembled(self, pieces: Sequence[Piece], shift: float) -> Array:
        """Return the sum of the pieces as a matrix."""
        self._changed(pieces, shift)
        return self._assembled(pieces, shift)

    def _changed(self, pieces: Sequence[Piece], shift: float) -> bool:
        grams = [p for p in pieces if isinstance(p, Gram)]
        changed = any(p.renewed for p in pieces)
        for piece in grams:
            if id(piece.B) not in self._grams:
                self._grams[id(piece.B)] = _UpdatedGram(piece.B)
            changed |= self._grams[id(piece.B)].update(piece.weights)
        diagonals = tuple(p.values for p in pieces if isinstance(p, Diagonal))
        constants = tuple(id(p.matrix) for p in pieces if isinstance(p, ConstantMatrix))
        last, self._last = self._last, (shift, constants, diagonals)
        return changed or not (
            len(last) == 3
            and last[:2] == self._last[:2]
            and len(last[2]) == len(diagonals)
            and all(np.array_equal(a, b) for a, b in zip(last[2], diagonals, strict=True))
        )

    def _assembled(self, pieces: Sequence[Piece], shift: float) -> Array:
        total = np.zeros((self.size, self.size))
        on_diagonal = np.full(self.size, shift)
        for piece in pieces:
            if isinstance(piece, Diagonal):
                on_diagonal += piece.values
            else:
                kept = self._grams.get(id(piece.B)) if isinstance(piece, Gram) else None
                total += piece.dense() if kept is None else kept.matrix
        total.flat[:: self.size + 1] += on_diagonal
        return total


class RowSpaceSystem(System):
    """Solves with ``E + B' diag(h) B``, ``E`` diagonal, by a system of the size of the positive ``h``."""

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``H^-1 rhs`` by the Woodbury identity, with iterative refinement."""
        E = np.full(self.size, shift)
        for piece in pieces:
            if isinstance(piece, Diagonal):
                E += piece.values
        if E.min() <= EPS * E.max():
            raise SingularSystem("the diagonal has zeros")
        root = np.sqrt(E)
        rows = [_scaled_rows(p) for p in pieces if isinstance(p, Gram)]
        S = np.concatenate([np.zeros((0, self.size)), *rows]) / root
        M = S @ S.T
        M.flat[:: len(M) + 1] += 1.0
        factor = cholesky(M) if len(M) else M
        self.factorisations += 1

        def woodbury(r: Array) -> Array:
            scaled = r / root
            if len(M):
                scaled = scaled - cholesky_solve(factor, S @ scaled) @ S
            return np.asarray(scaled / root)

        # Large weights next to a small diagonal lose digits, which refinement restores.
        return refined(self, woodbury, pieces, shift, rhs)


def _scaled_rows(gram: Gram) -> Array:
    used = np.flatnonzero(gram.weights)
    return np.asarray(np.sqrt(gram.weights[used])[:, None] * dense(gram.B[used]))


class SystemOnDevice(System):
    """Dense Cholesky on the device of the matrices; right-hand sides and solutions are on the host."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        #: Assembles the pieces on the host, as a rule few rows.
        self._host = DenseSystem(size)

    def solve(
        self, pieces: Sequence[Piece], shift: float, rhs: Array, accuracy: float = 0.0
    ) -> Array:
        """Return ``H^-1 rhs``."""
        current_deadline().check()
        H = self._formed(pieces, shift)
        self.factorisations += 1
        if not can_factor_on_device(H):
            return cholesky_solve(cholesky(np.array(to_numpy(H))), rhs)
        factor = device_factor(H)
        # Written so that NaN counts as singular.
        if factor is None or not factor.spread > self.size * EPS:
            raise SingularSystem("a pivot is lost to rounding, or not positive")
        return np.asarray(factor.solve(rhs))

    def _formed(self, pieces: Sequence[Piece], shift: float) -> Any:
        """Return the sum of the pieces, on the device."""
        H = functools.reduce(operator.add, [p.assembled() for p in pieces if p.on_device])
        on_diagonal, others = np.full(self.size, shift), []
        for piece in pieces:
            if isinstance(piece, Diagonal):
                on_diagonal = on_diagonal + piece.values
            elif not piece.on_device:
                others.append(piece)
        if others:
            H = H + asarray_like(self._host.assembled(others, 0.0), H)
        eye = namespace(H).eye(self.size, dtype=H.dtype, device=H.device)
        return H + eye * asarray_like(on_diagonal, H)
