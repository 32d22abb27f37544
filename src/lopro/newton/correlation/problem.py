"""The nearest correlation matrix as a projection: ``min 1/2 |Z - T|^2, <A_k, Z> = b_k, Z psd``.

With weights w (the W-norm) and a least eigenvalue e, ``Z = W^(1/2) (X - e I) W^(1/2)`` is any positive
semidefinite matrix with the diagonal ``w (1 - e)`` and the fixed entries scaled alike: the same problem in
other coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lopro.newton.arrays import Array
from lopro.newton.spectral import Spectrum, entries_of_sum, symmetric_pattern

__all__ = ["Rows", "Target"]


@dataclass(frozen=True)
class Rows:
    """The rows ``Z_ii`` for all i and ``Z_ij`` for fixed entries i > j."""

    size: int
    i: Any
    j: Any

    @cached_property
    def _pattern(self) -> tuple[Any, Any]:
        return symmetric_pattern(self.i, self.j, self.size)

    def forward(self, Z: Array) -> Array:
        """Return the entries of ``Z``."""
        return np.concatenate([Z.diagonal(), Z[self.i, self.j]])

    def add_adjoint(self, y: Array, target: Array) -> Array:
        """Return ``target + sum y_k A_k`` with ``A_k`` symmetric."""
        M = target.copy()
        M.flat[:: self.size + 1] += y[: self.size]
        half = 0.5 * y[self.size :]
        M[self.i, self.j] += half
        M[self.j, self.i] += half
        return M

    def product(self, spectrum: Spectrum, h: Array) -> Array:
        """Return ``A J[A* h]``: only the entries that rows use are formed."""
        scaled = h[: self.size, None] * spectrum.vectors
        if len(self.i):
            S, order = self._pattern
            S.data = 0.5 * h[self.size :][order]
            scaled += S @ spectrum.vectors
        U, K, complement = spectrum.half_product(scaled)
        diagonal = 2.0 * np.einsum("ik,ki->i", U, K)
        found = np.concatenate([diagonal, entries_of_sum(U, K, self.i, self.j)])
        own = np.concatenate([h[: self.size], 0.5 * h[self.size :]])
        return own - found if complement else found

    def diagonal(self, spectrum: Spectrum) -> Array:
        """Return the diagonal of ``h -> A J[A* h]`` for the rows of the diagonal, an estimate for others."""
        own = np.maximum(spectrum.own(), 1e-8)
        return np.concatenate([own, 0.5 * np.sqrt(own[self.i] * own[self.j])])


@dataclass(frozen=True)
class Target:
    """``T``, ``b`` and the rows, and the way back to correlation matrices."""

    T: Array
    b: Array
    rows: Rows
    roots: Array
    least: float

    @staticmethod
    def of(G: Array, weights: Array, fixed: Any, least: float) -> Target:
        """ProblemData the problem; ``fixed`` marks entries of ``G`` that are kept."""
        n = len(G)
        i, j = np.nonzero(np.tril(fixed, -1))
        roots = np.sqrt(weights)
        T = G * (roots[:, None] * roots)
        T.flat[:: n + 1] -= least * weights
        b = np.concatenate([weights * (1.0 - least), T[i, j]])
        return Target(T, b, Rows(n, i, j), roots, least)

    def correlation(self, Z: Array, G: Array) -> Array:
        """Return the matrix X of ``Z``, with the diagonal and the fixed entries set exactly."""
        X = Z / (self.roots[:, None] * self.roots)
        X = 0.5 * (X + X.T)
        X.flat[:: len(X) + 1] = 1.0
        i, j = self.rows.i, self.rows.j
        X[i, j] = X[j, i] = G[i, j]
        return X
