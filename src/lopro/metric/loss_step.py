r"""The exact loss step: ``argmin_A loss(A) + beta |A - V|_F^2``, in whichever space is small.

The loss is quadratic, so its step is one linear system whose matrix depends on ``beta`` only: of ``|E|`` rows
(one for each pair) or of ``d (d + 1) / 2`` rows (one for each entry of ``A``), factored for each ``beta``.
If both are large, the system is solved by conjugate gradients.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, Companion, asarray_like, inner, norm, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.diagonals import diagonal_of, raise_diagonal
from lopro.linalg.dense import cholesky_solve
from lopro.metric.all_pairs import AllPairsLoss
from lopro.metric.loss import PairLoss
from lopro.projections.psd import full_spectrum, symmetric_part

__all__ = ["ByEntries", "ByPairs", "Iterative", "LossStep", "loss_step"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Rows of the largest system that is factored, once for each of about a dozen ``beta``. With 2,556 rows a
#: factorisation takes 0.2 s on one core, a solution 8 ms, and conjugate gradients 117 products, 0.7 s, for
#: each step (72 samples of 7,129 genes). With 4,950 rows (100 x 300, Gaussian) conjugate gradients are 2.5
#: times as fast as factors.
LARGEST_SYSTEM = 4000
#: Samples that are multiplied at a time, by memory, and operations between two checks of the time: 40 ms at
#: 50 Gflop/s.
_BLOCK, _BLOCK_WORK = 4096, 2e9
#: Entries of a Hessian that are formed at a time: 1 MB. With 2,628 rows a Hessian takes 89 ms; 94, 90 and
#: 159 ms with half, twice and eight times as many entries.
_ENTRIES = 1 << 17


class LossStep(Protocol):
    """A method for the loss step."""

    #: The unit of ``beta``: a norm of the Hessian of the loss, not below its largest eigenvalue.
    curvature: float

    def __call__(self, V: Array, beta: float) -> Array:
        """Return the minimiser of ``loss(A) + beta |A - V|^2``."""
        ...


def loss_step(loss: PairLoss) -> LossStep:
    """Return the cheapest method for these pairs."""
    n, d = loss.count, loss.X.shape[1]
    entries = d * (d + 1) // 2
    listed = not isinstance(loss, AllPairsLoss)
    if listed and n <= min(LARGEST_SYSTEM, entries):
        return ByPairs(loss)
    if entries <= LARGEST_SYSTEM and isinstance(loss.X, np.ndarray):
        return ByEntries(loss)
    return ByPairs(loss) if listed and n <= LARGEST_SYSTEM else Iterative(loss)


class ByPairs:
    """By the system over the pairs: ``(I + H / (2 n beta)) r = t - dist(V)``, ``H_ef = (z_e'z_f)^2``."""

    def __init__(self, loss: PairLoss) -> None:
        self.loss = loss
        H = _pair_kernel(loss)
        self.curvature = float(np.linalg.norm(H)) / loss.count
        self._system = _Shifted(H)

    def __call__(self, V: Array, beta: float) -> Array:
        loss, c = self.loss, 2.0 * self.loss.count * beta
        missing = to_numpy(loss.targets - loss.distances(V))
        return V + loss.adjoint(asarray_like(self._system.solve(missing, c), V))


class _Shifted:
    """Systems ``(H + c I) x = b`` with a fixed H and a ``c`` that changes rarely.

    Residual balancing changes it about a dozen times; a spectral decomposition would cost more than the
    factorisations.
    """

    def __init__(self, H: Matrix) -> None:
        self._H, self._c = H, math.nan
        self._factor: Matrix = H

    def solve(self, b: Matrix, c: float) -> Matrix:
        """Return ``x``."""
        if c != self._c:
            self._factorise(c)
        return cholesky_solve(self._factor, b)

    def _factorise(self, c: float) -> None:
        current_deadline().need(float(len(self._H)) ** 3 / 3.0)
        shifted = raise_diagonal(self._H.copy(), c)
        # LAPACK stores matrices by columns; this one is symmetric.
        self._factor, failed = scipy.linalg.lapack.dpotrf(
            shifted.T, lower=1, overwrite_a=1, clean=0
        )
        if failed:
            raise np.linalg.LinAlgError(f"the loss step is singular with a shift of {c:g}")
        self._c = c


def _pair_kernel(loss: PairLoss) -> Matrix:
    """Return ``H``, from the Gram matrix of the samples."""
    X = to_numpy(loss.X).astype(np.float64)
    first, second = loss.pairs
    G = X @ X.T
    ends = G[first] - G[second]
    return np.asarray(np.square(ends[:, first] - ends[:, second]))


class ByEntries:
    """By the system over the ``d (d + 1) / 2`` entries of ``A``, whose matrix is the Hessian of the loss."""

    def __init__(self, loss: PairLoss) -> None:
        self.loss = loss
        X = np.asarray(loss.X, dtype=np.float64)
        self._rows, self._columns = np.triu_indices(X.shape[1])
        # An entry off the diagonal represents two; this factor preserves inner products.
        self._unit = np.where(self._rows == self._columns, 1.0, math.sqrt(2.0))
        n = loss.count
        self._hessian = self._of_all_pairs(X) if _is_complete(loss) else self._of_pairs(X)
        self._hessian /= n
        self.curvature = float(np.linalg.norm(self._hessian))
        self._linear = self._packed(loss.adjoint(loss.targets / n))
        self._system = _Shifted(self._hessian)

    def __call__(self, V: Array, beta: float) -> Array:
        right = self._linear + 2.0 * beta * self._packed(V)
        return self.matrix_of(self._system.solve(right, 2.0 * beta))

    @property
    def quadratic(self) -> tuple[Matrix, Matrix]:
        """``H`` and ``l``: the loss of the packed entries ``a`` is ``a'H a / 2 - l'a`` plus a constant."""
        return self._hessian, self._linear

    @property
    def places(self) -> tuple[Any, Any]:
        """Rows and columns of the entries."""
        return self._rows, self._columns

    def _packed(self, A: Matrix) -> Matrix:
        return np.asarray(A[self._rows, self._columns] * self._unit)

    def matrix_of(self, a: Matrix) -> Matrix:
        """Return the symmetric matrix with these entries."""
        d = self.loss.X.shape[1]
        A = np.empty((d, d))
        A[self._rows, self._columns] = A[self._columns, self._rows] = a / self._unit
        return A

    def _outer(self, Z: Matrix) -> Matrix:
        """Return the packed ``z z'`` of every row."""
        return np.asarray(Z[:, self._rows] * Z[:, self._columns] * self._unit)

    @property
    def _rows_at_a_time(self) -> int:
        return max(1, min(_BLOCK, int(_BLOCK_WORK / len(self._rows) ** 2)))

    def _of_pairs(self, X: Matrix) -> Matrix:
        first, second = self.loss.pairs
        size = len(self._rows)
        total = np.zeros((size, size))
        rows = self._rows_at_a_time
        for start in range(0, len(first), rows):
            part = slice(start, start + rows)
            current_deadline().check()
            P = self._outer(X[first[part]] - X[second[part]])
            total += P.T @ P
        return total

    def _of_all_pairs(self, X: Matrix) -> Matrix:
        """Return the Hessian for all pairs from moments of the centred samples.

        With ``a_i = x_i'A x_i`` and ``K = X A X'``, whose rows sum to zero:
        ``sum over i < j of (a_i + a_j - 2 K_ij)^2 = N |a|^2 + (sum a)^2 + 2 |K|^2``.
        """
        X = X - X.mean(axis=0)
        C, size = X.T @ X, len(self._rows)
        total, products = np.zeros(size), np.zeros((size, size))
        rows = self._rows_at_a_time
        for start in range(0, len(X), rows):
            current_deadline().check()
            P = self._outer(X[start : start + rows])
            total += P.sum(axis=0)
            products += P.T @ P
        products *= len(X)
        for part, block in self._blocks_of(products):
            block += total[part, None] * total
            block += self._kronecker(C, part)
        return products

    def _blocks_of(self, H: Matrix) -> Iterator[tuple[slice, Matrix]]:
        """Yield blocks of rows of a matrix over the entries; the time is checked between blocks."""
        rows = max(1, _ENTRIES // len(H))
        for start in range(0, len(H), rows):
            current_deadline().check()
            part = slice(start, start + rows)
            yield part, H[part]

    def _kronecker(self, C: Matrix, part: slice) -> Matrix:
        """Return these rows of the matrix of ``A -> 2 C A C`` on the packed entries."""
        i, j = self._rows, self._columns
        left, right = C[i[part]], C[j[part]]
        block = left[:, i] * right[:, j]
        block += left[:, j] * right[:, i]
        half = np.where(i == j, math.sqrt(0.5), 1.0)
        block *= 2.0 * half[part, None] * half
        return block


def _is_complete(loss: PairLoss) -> bool:
    """Whether the pairs are all pairs of samples, each once."""
    if isinstance(loss, AllPairsLoss):
        return True
    N = loss.X.shape[0]
    first, second = loss.pairs
    if len(first) != N * (N - 1) // 2 or bool(np.any(first == second)):
        return False
    keys = np.minimum(first, second) * N + np.maximum(first, second)
    # Lists of all pairs are usually sorted, which one pass verifies.
    return bool(np.all(keys[1:] > keys[:-1])) or len(np.unique(keys)) == len(keys)


class Iterative:
    """By conjugate gradients, started at the previous solution.

    If the differences were Gaussian with the covariance ``C``, the Hessian would map ``A`` to ``tr(A C) C + 2
    C A C``. In the basis of the eigenvectors of ``C`` this is a diagonal plus a matrix of rank one; its
    inverse is the preconditioner.
    """

    def __init__(self, loss: PairLoss, accuracy: float = 1e-10, most: int = 200) -> None:
        self.loss = loss
        self.accuracy = accuracy
        self.most = most
        self._last: Array | None = None
        C = loss.adjoint(loss.ones()) / loss.count
        values, vectors = full_spectrum(C)
        self._values, self._vectors = Companion(abs(values)), Companion(vectors)
        self._linear = Companion(loss.adjoint(loss.targets) / loss.count)
        # The largest curvature in the Gaussian model.
        top = float(values[-1])
        self.curvature = 2.0 * top**2 + inner(values, values)

    def __call__(self, V: Array, beta: float) -> Array:
        A = V if self._last is None else self._last
        right = self._linear.beside(V) + 2.0 * beta * V
        residual = right - self._operator(A, beta)
        better = self._preconditioned(residual, beta)
        p, rho = better, inner(residual, better)
        stop = self.accuracy * norm(right)
        for _ in range(self.most):
            current_deadline().check()
            if norm(residual) <= stop:
                break
            Hp = self._operator(p, beta)
            step = rho / inner(p, Hp)
            A, residual = A + step * p, residual - step * Hp
            better = self._preconditioned(residual, beta)
            before, rho = rho, inner(residual, better)
            p = better + (rho / before) * p
        self._last = A
        return A

    def _preconditioned(self, R: Array, beta: float) -> Array:
        Q, h = self._vectors.beside(R), self._values.beside(R)
        scale = 1.0 / (2.0 * h[:, None] * h[None, :] + 2.0 * beta)
        R = (Q.T @ R @ Q) * scale
        # Sherman and Morrison for the part of rank one, which acts on the diagonal.
        along = h * diagonal_of(scale)
        excess = inner(h, diagonal_of(R)) / (1.0 + inner(h, along))
        return symmetric_part(Q @ raise_diagonal(R, -excess * along) @ Q.T)

    def _operator(self, A: Array, beta: float) -> Array:
        return self.loss.normal(A) / self.loss.count + 2.0 * beta * A
