"""Newton directions for the dual of a semidefinite program: by conjugate gradients or Cholesky factors.

The generalised Hessian is ``sigma A J A*``. A product with it costs four multiplications with the smaller
part of the spectrum. For few rows the matrix ``G G'`` with ``G_k = sqrt(Omega) o V'A_kV`` is formed once
conjugate gradients have cost as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array as AnyArray
from lopro.core.arrays import from_numpy, to_numpy
from lopro.core.deadline import current_deadline
from lopro.linalg.conjugate_gradients import conjugate_gradients
from lopro.linalg.dense import Array, SingularSystem, cholesky_solve
from lopro.newton.sdp.dual_point import DualPoint, Signs
from lopro.newton.sdp.program import SemidefiniteBlock, SemidefiniteProgram
from lopro.newton.spectral import Spectrum, entries_of_sum, symmetric_pattern

__all__ = ["Directions"]

#: Number of operations between two checks of the deadline: hundredths of a second. A tenth and ten times as
#: many change nothing in ``python -m benchmarks.constants newton.sdp``.
_AT_ONCE = 1e9
#: Shift of the Hessian relative to its mean eigenvalue. In ``python -m benchmarks.constants newton.sdp`` a
#: tenth takes as many steps (11 % more for one problem), ten times as much 7 % less (30 % for one).
_SHIFT = 1e-9


class _BlockRows:
    """The rows of a block of matrices, restricted to the entries that they use."""

    def __init__(self, block: SemidefiniteBlock) -> None:
        self.block = block
        n = block.size
        self._places = np.divmod(block.used.places, n)
        i, j = self._places
        self.i, self.j = i[i >= j], j[i >= j]
        self.A: Any = block.A.toarray() if block.full else block.A
        #: Squared entries of the rows, at the used places.
        self.squares = block.used.A.multiply(block.used.A).tocsr()
        #: Whether few entries are used, and only these are computed.
        self.few = 8 * len(self.i) < n * n
        if self.few:
            lower = block.used.A.tocsc()[:, np.flatnonzero(i >= j)]
            double = np.where(self.i == self.j, 1.0, 2.0)
            self.A_lower = (lower @ scipy.sparse.diags_array(double)).tocsr()
            self.to_entries = lower.T.tocsr()
            self.pattern, self.order = symmetric_pattern(self.i, self.j, n)

    def product(self, spectrum: Spectrum, h: Array) -> Array:
        """Return ``A J[A* h]``."""
        block, n = self.block, self.block.size
        if not self.few and not block.on_host:
            return block.image(spectrum.jacobian(block.adjoint(h)))
        if not self.few:
            S = np.asarray(h @ self.A).reshape(n, n)
            return np.asarray(self.A @ spectrum.jacobian(S).ravel())
        entries = self.to_entries @ h
        U, K, complement = spectrum.half_product(self._times(entries, h, spectrum.vectors))
        found = entries_of_sum(U, K, self.i, self.j)
        return np.asarray(self.A_lower @ (entries - found if complement else found))

    def _times(self, entries: Array, h: Array, V: AnyArray) -> AnyArray:
        """Return ``(A* h) V``, given the entries of the lower triangle of ``A* h``."""
        if self.block.on_host:
            S = self.pattern
            S.data = entries[self.order]
            return S @ V
        if self.block.used.diagonal:
            return from_numpy(entries, V)[:, None] * V
        return self.block.adjoint(h) @ V

    def diagonal(self, spectrum: Spectrum) -> Array:
        """Return the diagonal of ``A J A*``, for a preconditioner.

        It is exact for rows of one diagonal entry, else estimated as ``sum_ij A_ij^2 sqrt(d_i d_j)`` with the
        derivatives d of the diagonal.
        """
        roots = np.sqrt(np.maximum(to_numpy(spectrum.diagonal_derivatives()), 0.0))
        i, j = self._places
        return np.asarray(self.squares @ (roots[i] * roots[j]))


class Directions:
    """Computes Newton directions, from products until factors of the matrix are cheaper."""

    def __init__(self, program: SemidefiniteProgram) -> None:
        self.program = program
        self.rows = [None if p.diagonal else _BlockRows(p) for p in program.blocks]
        self.explicit = False
        self.products = 0
        self.matrices = 0

    def find(self, point: DualPoint, sigma: float, accuracy: float, damping: float) -> Array:
        """Return an approximation of ``-H^-1 gradient`` with the generalised Hessian ``H``.

        ``damping`` multiplies the small shift that makes H regular: 1, and more after failed line searches.

        Raises
        ------
        SingularSystem
            If the shift is too small for a factorisation.
        OutOfTime
            If the deadline passes.
        """
        if self.explicit:
            return self._by_matrix(point, damping) / sigma
        limit = self._affordable(point)
        shift = min(
            1.0, _SHIFT * damping
        )  # rows have about norm 1, and the Hessian at most about that

        def product(h: Array) -> Array:
            current_deadline().check()
            return self._product(point.spectra, h) + shift * h

        scale = 1.0 / (self._diagonal(point.spectra) + shift)
        d, made = conjugate_gradients(product, -point.gradient, accuracy, scale, limit)
        self.products += made
        if made >= limit and self.program.has_few_images:
            self.explicit = True
            return self._by_matrix(point, damping) / sigma
        return np.asarray(d / sigma)

    def _product(self, spectra: Sequence[Spectrum | Signs], h: Array) -> Array:
        total = np.zeros(len(h))
        for block, rows, spectrum in zip(self.program.blocks, self.rows, spectra, strict=True):
            if rows is None:
                total += block.A @ spectrum.jacobian(np.asarray(h @ block.A))
            else:
                assert isinstance(spectrum, Spectrum)
                total += rows.product(spectrum, h)
        return total

    def _diagonal(self, spectra: Sequence[Spectrum | Signs]) -> Array:
        total = np.zeros(len(self.program.b))
        for block, rows, spectrum in zip(self.program.blocks, self.rows, spectra, strict=True):
            if isinstance(spectrum, Signs):
                total += block.A.multiply(block.A) @ spectrum.active.astype(np.float64)
            else:
                assert rows is not None
                total += rows.diagonal(spectrum)
        return total

    def _affordable(self, point: DualPoint) -> int:
        """Return the number of products that cost as much as the matrix; at most one for each row."""
        m = len(self.program.b)
        product, matrix = 1.0, m**3 / 3.0
        for block, spectrum in zip(self.program.blocks, point.spectra, strict=True):
            n, r = block.size, spectrum.rank
            if block.diagonal:
                continue
            small = max(1, min(r, n - r))
            product += 4.0 * n * n * small
            matrix += 2.0 * m * n * n * r + m * m * n * max(1, r)
        if not self.program.has_few_images:
            return m
        return max(1, int(min(m, matrix / product)))

    def _by_matrix(self, point: DualPoint, damping: float) -> Array:
        H = self._matrix(point)
        self.matrices += 1
        mean = float(H.trace()) / len(H)
        H.flat[:: len(H) + 1] += min(1.0, _SHIFT * damping) * mean if mean > 0.0 else 1.0
        factor, info = scipy.linalg.lapack.dpotrf(H.T, lower=1, overwrite_a=1)
        if info != 0:
            raise SingularSystem("a larger shift is required")
        return cholesky_solve(factor, -point.gradient)

    def _matrix(self, point: DualPoint) -> Array:
        """Return the Hessian by Gram matrices; for blocks on a device by products with unit vectors."""
        blocks, m = self.program.blocks, len(self.program.b)
        if not all(block.on_host for block in blocks):
            return np.stack([self._product(point.spectra, e) for e in np.eye(m)])
        H = np.zeros((m, m))
        for block, spectrum in zip(blocks, point.spectra, strict=True):
            _add_gram(H, _factor(block, spectrum))
        return H


def _factor(block: SemidefiniteBlock, spectrum: Spectrum | Signs) -> Array:
    """Return ``G`` with ``A J A* = G G'``."""
    m, n = block.A.shape[0], block.size
    if isinstance(spectrum, Signs):
        return np.asarray(block.A[:, spectrum.active].toarray())
    r = spectrum.rank
    if r == 0:
        return np.zeros((m, 0))
    V1 = spectrum.vectors[:, n - r :]
    # A_k V1 for all k at once, the rows being one tall matrix.
    tall: Any = block.A.reshape(m * n, n) @ V1
    images = np.asarray(tall).reshape(m, n, r)
    weights = np.sqrt(2.0 * spectrum.quotients)
    G = np.empty((m, n * r))
    for rows in _in_parts(m, 2.0 * n * n * r):
        rotated = np.matmul(spectrum.vectors.T, images[rows])
        rotated[:, : n - r] *= weights
        G[rows] = rotated.reshape(-1, n * r)
    return G


def _add_gram(H: Array, G: Array) -> None:
    """Add ``G G'`` to H."""
    m, columns = G.shape
    for rows in _in_parts(m, 2.0 * m * columns):
        H[rows] += G[rows] @ G.T


def _in_parts(m: int, work: float) -> Iterator[slice]:
    """Yield slices of m rows, each row with ``work`` operations; the deadline is checked in between."""
    size = max(1, int(_AT_ONCE / max(work, 1.0)))
    for first in range(0, m, size):
        current_deadline().check()
        yield slice(first, first + size)
