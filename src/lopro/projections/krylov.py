"""Golub-Kahan bidiagonalisation: a small matrix that represents an operator, computed by products."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.maps import LinearMap

__all__ = ["GolubKahan"]


class GolubKahan:
    """The bidiagonalisation ``A V_k = U_(k+1) B_k`` from a starting vector, with full orthogonality.

    Parameters
    ----------
    A : LinearMap
        Any map, in particular an operator.
    start : ndarray
        ``U`` begins with ``start / |start|``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> from lopro.projections.krylov import GolubKahan
    >>> run = GolubKahan(linear_map(np.diag([3.0, 4.0])), np.array([1.0, 0.0]))
    >>> run.extend()
    >>> run.exhausted, run.bidiagonal().tolist()
    (True, [[3.0], [0.0]])
    """

    def __init__(self, A: LinearMap, start: np.ndarray[Any, Any]) -> None:
        self._A = A
        self.beta = float(np.linalg.norm(start))
        self._left = [start / self.beta]
        self._right: list[np.ndarray[Any, Any]] = []
        self._diagonal: list[float] = []
        self._subdiagonal: list[float] = []
        self._tiny = 8.0 * float(np.finfo(start.dtype).eps)
        #: Norm of the part of ``A^H u_(k+1)`` outside ``V_k``; zero once the Krylov space is full.
        self.next_alpha = 0.0
        self._next_right: np.ndarray[Any, Any] | None = None
        self._next_direction()

    @property
    def steps(self) -> int:
        """The number of columns of ``V_k``."""
        return len(self._right)

    @property
    def exhausted(self) -> bool:
        """Whether the Krylov space is invariant, so that further steps add nothing."""
        return self._next_right is None

    def _next_direction(self) -> None:
        w = self._A.adjoint(self._left[-1])
        before = float(np.linalg.norm(w))
        w = _orthogonal_to(self._right, w)
        alpha = float(np.linalg.norm(w))
        small = self._tiny * max([before, *self._diagonal, *self._subdiagonal])
        if alpha <= small or self.steps == min(self._A.shape):
            self.next_alpha, self._next_right = 0.0, None
        else:
            self.next_alpha, self._next_right = alpha, w / alpha

    def extend(self) -> None:
        """Take one step: one product with ``A`` and one with its adjoint."""
        if self._next_right is None:
            return
        self._right.append(self._next_right)
        self._diagonal.append(self.next_alpha)
        w = self._A.forward(self._right[-1])
        before = float(np.linalg.norm(w))
        w = _orthogonal_to(self._left, w)
        beta = float(np.linalg.norm(w))
        if beta <= self._tiny * max([before, *self._diagonal, *self._subdiagonal]):
            self._subdiagonal.append(0.0)
            self.next_alpha, self._next_right = 0.0, None
            return
        self._subdiagonal.append(beta)
        self._left.append(w / beta)
        self._next_direction()

    def bidiagonal(self) -> np.ndarray[Any, Any]:
        """Return ``B_k``, lower bidiagonal with one row more than columns."""
        k = self.steps
        B = np.zeros((k + 1, k))
        B[np.arange(k), np.arange(k)] = self._diagonal
        B[np.arange(1, k + 1), np.arange(k)] = self._subdiagonal
        return B

    def combine(self, coefficients: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return ``V_k q``."""
        return np.asarray(np.stack(self._right, axis=1) @ coefficients)

    def combine_left(self, coefficients: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return ``U_(k+1) q``; where the space ended with ``U_k``, the last coefficient has no vector."""
        left = np.stack(self._left, axis=1)
        return np.asarray(left @ coefficients[: left.shape[1]])


def _orthogonal_to(
    basis: list[np.ndarray[Any, Any]], w: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """Remove the components along ``basis``; twice, because one pass leaves rounding errors."""
    if basis:
        Q = np.stack(basis, axis=1)
        for _ in range(2):
            w = w - Q @ (Q.conj().T @ w)
    return w
