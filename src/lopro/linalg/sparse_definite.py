"""Proofs that a sparse symmetric matrix is positive semidefinite, by banded or dense Cholesky factors.

A Cholesky factorisation that succeeds in floating point proves positive definiteness up to
``gamma_{k+2} trace``, where k is the largest number of entries in a row of the factor (Rump, Verification of
positive definiteness, BIT 46, 2006). After a reordering that reduces the bandwidth, k is at most the
bandwidth plus one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.linalg.dense import EPS, Array, Matrix
from lopro.linalg.eigenvalues import is_above
from lopro.linalg.rounding import gamma

__all__ = ["SparseCholesky"]

#: A banded factorisation takes ``n k^2`` operations, a dense one ``n^3 / 3`` (Golub and Van Loan, Matrix
#: Computations, section 4.3) at up to twice the speed: up to ``1 / sqrt(6)`` of n the band is faster.
_BAND = 0.4


@dataclass(frozen=True)
class SparseCholesky:
    """Factorisations of symmetric matrices with one sparsity pattern.

    Attributes
    ----------
    order : array of int
        The order of the rows, by reverse Cuthill-McKee.
    bandwidth : int
        The largest distance of an entry from the diagonal in that order.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.linalg.sparse_definite import SparseCholesky
    >>> S = scipy.sparse.csr_array(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> proofs = SparseCholesky.of(S)
    >>> proofs.is_above(S, 0.999), proofs.is_above(S, 1.001)
    (True, False)
    """

    order: Any
    bandwidth: int

    @staticmethod
    def of(S: Matrix) -> SparseCholesky:
        """Return an order that reduces the bandwidth of the pattern; dense matrices have a full band."""
        n = S.shape[0]
        if not scipy.sparse.issparse(S):
            return SparseCholesky(np.arange(n), n - 1)
        pattern = scipy.sparse.csr_matrix(S)
        order = scipy.sparse.csgraph.reverse_cuthill_mckee(pattern, symmetric_mode=True)
        i, j = pattern.nonzero()
        place = np.empty(n, dtype=np.intp)
        place[order] = np.arange(n)
        bandwidth = int(np.abs(place[i] - place[j]).max(initial=0))
        return SparseCholesky(order, bandwidth)

    @property
    def banded(self) -> bool:
        """Whether the band is narrow enough for a banded factorisation."""
        return self.bandwidth < _BAND * len(self.order)

    @property
    def work(self) -> float:
        """Approximate number of operations of a factorisation."""
        n, k = float(len(self.order)), float(self.bandwidth)
        return n * (k + 1.0) ** 2 if self.banded else n**3 / 3.0

    def is_above(self, S: Matrix, least: float) -> bool:
        """Return whether it is proved that no eigenvalue of ``S`` is below ``least``."""
        if not self.banded:
            return is_above(S.toarray() if scipy.sparse.issparse(S) else np.asarray(S), least)
        n, k = S.shape[0], self.bandwidth
        B = scipy.sparse.coo_array(scipy.sparse.csr_array(S)[self.order][:, self.order])
        i, j = B.coords
        below = i >= j
        band = np.zeros((k + 1, n))
        band[(i - j)[below], j[below]] = B.data[below]
        trace = float(np.abs(band[0]).sum()) * (1.0 + n * EPS) + n * abs(least)
        # The factor 1.01 covers the rounding of the shift itself.
        band[0] -= least + 1.01 * gamma(k + 3) * trace
        return bool(scipy.linalg.lapack.dpbtrf(band, lower=1, overwrite_ab=1)[1] == 0)

    def semidefinite_shift(self, S: Matrix, estimate: float, tries: int = 3) -> float:
        """Return d such that ``S + d I`` is proved to be positive semidefinite; infinite if all tries fail.

        Parameters
        ----------
        S : matrix
            A matrix with the pattern of this object.
        estimate : float
            The first d that is tried; each failure multiplies it by 4.
        tries : int
            Maximum number of factorisations.
        """
        shift = estimate
        for _ in range(tries):
            if self.is_above(S, -shift):
                return shift
            shift *= 4.0
        return math.inf


def row_sum_norm(S: Matrix) -> float:
    """Return the largest absolute row sum of a symmetric matrix, an upper bound of its spectral norm."""
    sums: Array = np.asarray(abs(S).sum(axis=1)).ravel()
    return float(sums.max(initial=0.0)) * (1.0 + len(sums) * EPS)
