"""Singular values, left singular vectors and rank of a linear map, computed when they are first used.

Results are cached in the map, and shared by problems that share a map. Gram matrices and decompositions are
computed on the device of the matrix, or on the host for sparse matrices and for files and dask arrays, which
are loaded. Each is started only if the deadline allows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    inner,
    is_complex,
    namespace,
    norm,
    on_host,
)
from lopro.core.constants import Constant, Source
from lopro.core.counting import count
from lopro.core.deadline import EIGH, current_deadline
from lopro.errors import MissingCapabilityError

__all__ = ["Spectral", "estimate_norm"]


@dataclass(frozen=True)
class Settings:
    """Limits of exact decompositions, and of Lanczos estimates."""

    #: Largest ``rows columns min(rows, columns)`` of a decomposition: 2 s at 1e11 operations per second,
    #: with 20 operations each (see `EIGH`).
    exact_work: float = 1e10
    #: Largest number of entries of a decomposition: 400 MB of doubles.
    exact_entries: float = 5e7
    #: Most Lanczos steps. After 60 from a random start the expected relative error of the largest
    #: eigenvalue is below 0.103 (log(n 59^4) / 59)^2, 3 % for n = 1e6 (Kuczynski and Wozniakowski, SIAM J.
    #: Matrix Anal. Appl. 13 (1992)).
    lanczos_steps: int = 60
    #: Residual of the Ritz pair, relative to its value, at which the iteration stops. It is added to the
    #: value, which is thus at most 1e-6 too large.
    lanczos_tolerance: float = 1e-6


SETTINGS = Settings()


class Spectral:
    """Base of linear maps: their singular values."""

    shape: tuple[int, int]
    like: Array
    name: str

    # Defined by the map.

    @property
    def explicit(self) -> bool:
        """Whether there is a matrix."""
        raise NotImplementedError

    @property
    def matrix(self) -> Any:
        """The matrix itself."""
        raise NotImplementedError

    def toarray(self) -> Array:
        """Return the matrix as an array."""
        raise NotImplementedError

    def forward(self, x: Array) -> Array:
        """Return ``A x``."""
        raise NotImplementedError

    def adjoint(self, y: Array) -> Array:
        """Return ``A^H y``."""
        raise NotImplementedError

    def _missing(self, what: str) -> MissingCapabilityError:
        raise NotImplementedError

    def _require_entries(self, what: str) -> None:
        if not self.explicit:
            raise self._missing(what)

    # Derived.

    def _need(self, operations: float) -> None:
        """Raise `OutOfTime` unless there is time for this uninterruptible work; on a device, for any."""
        current_deadline().need(operations if on_host(self.like) else 0.0)

    @property
    def _entries_per_row(self) -> float:
        """Mean number of entries of a row."""
        return float(self.shape[1])

    @cached_property
    def left_gram(self) -> Array:
        """``A A^H`` as an array, formed once; only for explicit maps."""
        self._require_entries("the Gram matrix")
        self._need(2.0 * self.shape[0] ** 2 * self._entries_per_row)
        count("factorizations")
        matrix = self.matrix
        if scipy.sparse.issparse(matrix):
            return (matrix @ matrix.conj(copy=False).T).toarray()
        adjoint = namespace(matrix).conj(matrix).T if is_complex(matrix) else matrix.T
        return matrix @ adjoint

    @cached_property
    def left_spectrum(self) -> tuple[Array, Array]:
        """Nonzero eigenvalues of ``A A^H`` (ascending) and their eigenvectors; explicit maps only.

        Forming ``A A^H`` squares the condition number. If its smallest eigenvalue is below
        ``1e3 sqrt(eps)`` of the largest, the singular value decomposition of ``A`` is used.
        """
        self._require_entries("a singular value decomposition")
        xp = namespace(self.like)
        rows, columns = self.shape
        if rows <= columns:
            gram = self.left_gram
            self._need(EIGH * rows**3)
            values, vectors = xp.linalg.eigh(gram)
            if float(values[0]) > 1e3 * math.sqrt(eps(self.like)) * float(values[-1]):
                return values, vectors
        self._need(EIGH * rows * columns * min(rows, columns))
        count("factorizations")
        vectors, singular, _ = xp.linalg.svd(self.toarray(), full_matrices=False)
        cut = self._rounding * float(singular[0])
        rank = int(xp.sum(xp.astype(singular > cut, xp.int64)))
        return xp.flip(singular[:rank] ** 2), xp.flip(vectors[:, :rank], axis=1)

    @property
    def _rounding(self) -> float:
        """Bound on the error of a computed singular value, relative to the largest."""
        return max(self.shape) * eps(self.like)

    @cached_property
    def singular_range(self) -> tuple[float, float]:
        """The largest and the smallest nonzero singular value; explicit maps only."""
        values, _ = self.left_spectrum
        if values.shape[0] == 0:
            return 0.0, 0.0
        return math.sqrt(float(values[-1])), math.sqrt(float(values[0]))

    @property
    def full_row_rank(self) -> bool:
        """Whether the rows are linearly independent; explicit maps only."""
        return bool(self.left_spectrum[0].shape[0] == self.shape[0])

    @property
    def full_column_rank(self) -> bool:
        """Whether the columns are linearly independent; explicit maps only."""
        return bool(self.left_spectrum[0].shape[0] == self.shape[1])

    @property
    def _spectrum_is_affordable(self) -> bool:
        rows, columns = self.shape
        small = rows * columns * min(rows, columns) <= SETTINGS.exact_work
        return self.explicit and small and rows * columns <= SETTINGS.exact_entries

    @cached_property
    def largest_singular_value(self) -> Constant:
        """``|A|_2``, rounded up; for operators and very large matrices a Lanczos estimate."""
        if self._spectrum_is_affordable:
            value = self.singular_range[0] * (1.0 + self._rounding)
            return Constant(value, Source.DERIVED, f"largest singular value of {self.name}")
        start = asarray_like(np.random.default_rng(0).standard_normal(self.shape[1]), self.like)
        value = estimate_norm(self.forward, self.adjoint, start)
        return Constant(value, Source.ESTIMATED, f"Lanczos estimate of the norm of {self.name}")

    @cached_property
    def smallest_singular_value(self) -> Constant | None:
        """``s > 0`` with ``|A x| >= s |x|``, rounded down; None without full column rank."""
        # The shape is checked first, at no cost.
        tall = self.shape[0] >= self.shape[1]
        if not (tall and self._spectrum_is_affordable and self.full_column_rank):
            return None
        largest, smallest = self.singular_range
        value = smallest - self._rounding * largest
        if value <= 0.0:
            return None
        return Constant(value, Source.DERIVED, f"smallest singular value of {self.name}")


def estimate_norm(
    forward: Callable[[Array], Array], adjoint: Callable[[Array], Array], start: Array
) -> float:
    """Estimate ``|A|_2`` by Lanczos steps on ``A^H A`` from ``start``.

    The value is the square root of the Ritz value plus its residual: an upper bound of the nearest
    eigenvalue, which is the largest one unless ``start`` is (nearly) orthogonal to its eigenvector.
    Products cannot verify that, so it is an estimate and no bound.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.spectrum import estimate_norm
    >>> A = np.diag([3.0, 1.0])
    >>> round(estimate_norm(lambda x: A @ x, lambda y: A.T @ y, np.ones(2)), 9)
    3.0
    """
    basis: list[Array] = [start / norm(start)]
    diagonal: list[float] = []
    off_diagonal: list[float] = []
    largest = residual = 0.0
    while len(diagonal) < SETTINGS.lanczos_steps:
        current_deadline().check()
        w = adjoint(forward(basis[-1]))
        diagonal.append(inner(basis[-1], w))
        # Full orthogonalisation, twice: otherwise copies of the largest Ritz value would appear.
        for v in basis + basis:
            w = w - _coefficient(v, w) * v
        length = norm(w)
        largest, last = _top_ritz_pair(diagonal, off_diagonal)
        residual = length * abs(last)
        if residual <= SETTINGS.lanczos_tolerance * largest:
            break
        off_diagonal.append(length)
        basis.append(w / length)
    return math.sqrt(max(largest, 0.0) + residual)


def _coefficient(v: Array, w: Array) -> float | complex:
    """Return ``<v, w>``, complex where the vectors are."""
    real, imaginary = inner(v, w), inner(1j * v, w) if is_complex(v) else 0.0
    return complex(real, imaginary) if imaginary else real


def _top_ritz_pair(diagonal: list[float], off_diagonal: list[float]) -> tuple[float, float]:
    """Return the largest eigenvalue of the tridiagonal matrix and its vector's last entry."""
    values, vectors = np.linalg.eigh(
        np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    )
    return float(values[-1]), float(vectors[-1, -1])
