r"""The exact loss step: ``argmin_A loss(A) + beta |A - V|_F^2``, in whichever space is small.

The loss is quadratic, so its step is one linear system whose matrix changes with ``beta`` only. It lives on
the pairs (a matrix of ``|E|`` rows, whose spectrum is computed once) or on the entries of ``A``
(``d (d + 1) / 2`` rows, factored for each ``beta``). Where both are large, conjugate gradients take over.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro._util.arrays import Array, Companion, from_numpy, inner, norm, to_numpy
from lopro._util.diagonals import raise_diagonal
from lopro.metric.loss import PairLoss

__all__ = ["ByEntries", "ByPairs", "Iterative", "LossStep", "loss_step"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: A spectrum of this many rows takes seconds, once.
LARGEST_SYSTEM = 2500
#: Rows of pairs that are multiplied at a time.
_BLOCK = 4096


class LossStep(Protocol):
    """A way to make the step."""

    #: About the largest eigenvalue of the Hessian of the loss: the unit of ``beta``.
    curvature: float

    def __call__(self, V: Array, beta: float) -> Array:
        """Return the minimiser of ``loss(A) + beta |A - V|^2``."""
        ...


def loss_step(loss: PairLoss) -> LossStep:
    """Return the way that is cheapest for these pairs."""
    n, d = loss.targets.shape[0], loss.X.shape[1]
    entries = d * (d + 1) // 2
    if n <= min(LARGEST_SYSTEM, entries):
        return ByPairs(loss)
    if entries <= LARGEST_SYSTEM and isinstance(loss.X, np.ndarray):
        return ByEntries(loss)
    return ByPairs(loss) if n <= LARGEST_SYSTEM else Iterative(loss)


class ByPairs:
    """Through the pairs: ``(I + H / (2 n beta)) r = t - dist(V)`` with ``H_ef = (z_e'z_f)^2``."""

    def __init__(self, loss: PairLoss) -> None:
        self.loss = loss
        values, vectors = np.linalg.eigh(_pair_kernel(loss))
        self._values, self._vectors = Companion(np.maximum(values, 0.0)), Companion(vectors)
        self.curvature = float(values[-1]) / len(values)

    def __call__(self, V: Array, beta: float) -> Array:
        loss, c = self.loss, 2.0 * self.loss.targets.shape[0] * beta
        Q, h = self._vectors.beside(V), self._values.beside(V)
        missing = loss.targets - loss.distances(V)
        r = Q @ ((Q.T @ missing) / (1.0 + h / c))
        return V + loss.adjoint(r / c)


def _pair_kernel(loss: PairLoss) -> Matrix:
    """Return ``H``, from the Gram matrix of the samples."""
    X = to_numpy(loss.X).astype(np.float64)
    first, second = loss.pairs
    G = X @ X.T
    ends = G[first] - G[second]
    return np.asarray(np.square(ends[:, first] - ends[:, second]))


class ByEntries:
    """Through the entries of ``A``: the Hessian of the loss is a matrix on ``d (d + 1) / 2`` of them."""

    def __init__(self, loss: PairLoss) -> None:
        self.loss = loss
        X = np.asarray(loss.X, dtype=np.float64)
        self._rows, self._columns = np.triu_indices(X.shape[1])
        # Off the diagonal an entry stands for two; with this factor inner products agree.
        self._unit = np.where(self._rows == self._columns, 1.0, math.sqrt(2.0))
        n = loss.targets.shape[0]
        hessian = self._of_all_pairs(X) if _is_complete(loss) else self._of_pairs(X)
        self._hessian = hessian / n
        self.curvature = float(np.linalg.norm(self._hessian))
        self._linear = self._packed(loss.adjoint(loss.targets / n))
        self._factored_for, self._factor = math.nan, (np.empty(0), True)

    def __call__(self, V: Array, beta: float) -> Array:
        # Balancing changes beta a dozen times, which a spectrum would cost more than.
        if beta != self._factored_for:
            shifted = raise_diagonal(self._hessian.copy(), 2.0 * beta)
            self._factor = scipy.linalg.cho_factor(shifted, overwrite_a=True, check_finite=False)
            self._factored_for = beta
        right = self._linear + 2.0 * beta * self._packed(V)
        return self._unpacked(scipy.linalg.cho_solve(self._factor, right, check_finite=False))

    def _packed(self, A: Matrix) -> Matrix:
        return np.asarray(A[self._rows, self._columns] * self._unit)

    def _unpacked(self, a: Matrix) -> Matrix:
        d = self.loss.X.shape[1]
        A = np.empty((d, d))
        A[self._rows, self._columns] = A[self._columns, self._rows] = a / self._unit
        return A

    def _outer(self, Z: Matrix) -> Matrix:
        """Return the packed ``z z'`` of every row."""
        return np.asarray(Z[:, self._rows] * Z[:, self._columns] * self._unit)

    def _of_pairs(self, X: Matrix) -> Matrix:
        first, second = self.loss.pairs
        size = len(self._rows)
        total = np.zeros((size, size))
        for start in range(0, len(first), _BLOCK):
            part = slice(start, start + _BLOCK)
            P = self._outer(X[first[part]] - X[second[part]])
            total += P.T @ P
        return total

    def _of_all_pairs(self, X: Matrix) -> Matrix:
        """Use that all pairs of centred samples have moments of the samples alone.

        With ``a_i = x_i'A x_i`` and ``K = X A X'``, whose rows sum to zero:
        ``sum over i < j of (a_i + a_j - 2 K_ij)^2 = N |a|^2 + (sum a)^2 + 2 |K|^2``.
        """
        X = X - X.mean(axis=0)
        C, P = X.T @ X, self._outer(X)
        total = P.sum(axis=0)
        i, j = self._rows, self._columns
        straight = C[np.ix_(i, i)] * C[np.ix_(j, j)]
        crossed = C[np.ix_(i, j)] * C[np.ix_(j, i)]
        half = np.where(i == j, math.sqrt(0.5), 1.0)
        kronecker = half[:, None] * (straight + crossed) * half[None, :]
        return np.asarray(len(X) * (P.T @ P) + np.outer(total, total) + 2.0 * kronecker)


def _is_complete(loss: PairLoss) -> bool:
    """Whether the pairs are all pairs of samples, each once."""
    N = loss.X.shape[0]
    first, second = loss.pairs
    if len(first) != N * (N - 1) // 2 or bool(np.any(first == second)):
        return False
    keys = np.minimum(first, second) * N + np.maximum(first, second)
    # Lists of all pairs usually come in order, where one look is enough.
    return bool(np.all(keys[1:] > keys[:-1])) or len(np.unique(keys)) == len(keys)


class Iterative:
    """By conjugate gradients, started where the last step ended."""

    def __init__(self, loss: PairLoss, accuracy: float = 1e-10, most: int = 200) -> None:
        self.loss = loss
        self.accuracy = accuracy
        self.most = most
        self._last: Array | None = None
        self.curvature = self._power()

    def _power(self, steps: int = 3) -> float:
        """Return a norm of the Hessian by a few power steps from the identity, which are close."""
        A = from_numpy(np.eye(self.loss.X.shape[1]), self.loss.X)
        size = 0.0
        for _ in range(steps):
            A = self._operator(A / norm(A), 0.0)
            size = norm(A)
            if size == 0.0:
                break
        return size

    def __call__(self, V: Array, beta: float) -> Array:
        loss, n = self.loss, self.loss.targets.shape[0]
        A = V if self._last is None else self._last
        right = loss.adjoint(loss.targets / n) + 2.0 * beta * V
        residual = right - self._operator(A, beta)
        p, rho = residual, inner(residual, residual)
        stop = self.accuracy * norm(right)
        for _ in range(self.most):
            if math.sqrt(rho) <= stop:
                break
            Hp = self._operator(p, beta)
            step = rho / inner(p, Hp)
            A, residual = A + step * p, residual - step * Hp
            before, rho = rho, inner(residual, residual)
            p = residual + (rho / before) * p
        self._last = A
        return A

    def _operator(self, A: Array, beta: float) -> Array:
        n = self.loss.targets.shape[0]
        return self.loss.adjoint(self.loss.distances(A) / n) + 2.0 * beta * A
