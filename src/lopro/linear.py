"""One type for linear maps: arrays of any library, scipy.sparse matrices and LinearOperators."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro._spectral import estimate_norm
from lopro._util.arrays import (
    Array,
    asarray_like,
    eps,
    from_numpy,
    is_array,
    is_complex,
    namespace,
    to_numpy,
)
from lopro._util.counting import count
from lopro._util.validation import check_array
from lopro.errors import MissingCapabilityError
from lopro.functions import Constant, Source

__all__ = ["LinearMap"]

#: Up to this many multiplications, and entries, a spectrum is computed rather than estimated.
EXACT_WORK = 1e10
EXACT_ENTRIES = 5e7


class LinearMap:
    """A matrix or matrix-free operator ``A`` with counted products.

    Parameters
    ----------
    A : array, scipy.sparse array or matrix, LinearOperator or LinearMap
        Never copied. Anything else with ``matvec``, ``rmatvec`` and ``shape`` is an operator too.
        Sparse matrices and operators take points of any library, by way of NumPy.
    name : str
        What error messages call it.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.linear import LinearMap
    >>> A = LinearMap(np.array([[1.0, 2.0]]))
    >>> A.forward(np.array([1.0, 1.0]))
    array([3.])
    >>> A.adjoint(np.array([2.0]))
    array([2., 4.])
    """

    def __init__(self, A: Any, name: str = "A") -> None:
        if isinstance(A, LinearMap):
            # What has been computed about the matrix comes along.
            self.__dict__.update(A.__dict__)
            self.name = name
            return
        self.name = name
        #: The matrix or operator as it was given, up to format and dtype.
        self.source: Any
        #: The matrix itself (an array) where there is one, else None.
        self.dense: Array | None = None
        self._sparse: Any = None
        self._operator: Any = None
        if scipy.sparse.issparse(A):
            self.source = self._sparse = self._checked_sparse(A)
        elif not is_array(A) and hasattr(A, "matvec"):
            self.source = self._operator = self._checked_operator(A)
        else:
            self.source = self.dense = check_array(name, A, ndim=2)
        rows, columns = self.source.shape
        if rows == 0 or columns == 0:
            raise ValueError(f"{name} must not be empty, got shape {(rows, columns)}")
        self.shape: tuple[int, int] = (int(rows), int(columns))

    def _checked_sparse(self, A: Any) -> Any:
        if A.ndim != 2:
            raise ValueError(f"{self.name} must have 2 dimensions, got shape {A.shape}")
        if A.dtype.kind not in "biufc":
            raise TypeError(f"{self.name} must hold numbers, got dtype {A.dtype}")
        A = A if A.format in ("csr", "csc") else A.tocsr()
        if A.dtype.char not in "fdFD":
            A = A.astype(np.complex128 if A.dtype.kind == "c" else np.float64)
        if not np.isfinite(A.data).all():
            raise ValueError(f"{self.name} must be finite, but it contains NaN or inf")
        if not A.has_canonical_format:
            # Entries given in pieces add up in products but not in norms.
            A = A.copy()
            A.sum_duplicates()
        return A

    def _checked_operator(self, A: Any) -> Any:
        if not hasattr(A, "rmatvec") or not hasattr(A, "shape"):
            raise MissingCapabilityError(
                f"{self.name} has matvec but not both rmatvec (the adjoint product) and shape"
            )
        if len(A.shape) != 2:
            raise ValueError(f"{self.name} must have 2 dimensions, got shape {tuple(A.shape)}")
        return scipy.sparse.linalg.aslinearoperator(A)

    def __repr__(self) -> str:
        return f"LinearMap({type(self.source).__name__} of shape {self.shape})"

    @property
    def explicit(self) -> bool:
        """Whether entries can be read, not only products taken."""
        return self._operator is None

    @cached_property
    def like(self) -> Array:
        """An array of the library, dtype and device that points and images have."""
        if self.dense is not None:
            return self.dense[0, :1]
        dtype = np.dtype(self.source.dtype or np.float64)
        return np.zeros(1, dtype=dtype if dtype.char in "fdFD" else np.float64)

    @cached_property
    def _adjoint_sparse(self) -> Any:
        return self._sparse.conj(copy=False).T

    @cached_property
    def _sparse_by_rows(self) -> Any:
        return self._sparse.tocsr()

    @cached_property
    def _conjugates(self) -> bool:
        return is_complex(self.like)

    def forward(self, x: Array) -> Array:
        """Return ``A x``; one matvec on the ledger.

        A NumPy vector that is almost all zeros touches only the columns it needs; those are counted as
        columns and not as a product with all of ``A``.
        """
        if self._column_advantage and isinstance(x, np.ndarray):
            support = np.flatnonzero(x)
            if self._column_advantage * support.size < x.size:
                parts = np.array_split(support, 1 + support.size // 256)  # never a large copy
                return sum(self.columns(part) @ x[part] for part in parts)
        count("matvecs")
        if self.dense is not None:
            return self.dense @ x
        if self._sparse is not None:
            return from_numpy(self._sparse @ to_numpy(x), x)
        return from_numpy(self._operator.matvec(to_numpy(x)), x)

    def adjoint(self, y: Array) -> Array:
        """Return ``A^H y``; one rmatvec on the ledger."""
        count("rmatvecs")
        if self.dense is not None:
            return _adjoint_product(self.dense, y) if self._conjugates else self.dense.T @ y
        if self._sparse is not None:
            return from_numpy(self._adjoint_sparse @ to_numpy(y), y)
        try:
            return from_numpy(self._operator.rmatvec(to_numpy(y)), y)
        except NotImplementedError:
            raise MissingCapabilityError(
                f"{self.name} is an operator without rmatvec: gradients need the adjoint product"
            ) from None

    def toarray(self) -> Array:
        """Return the matrix as an array; an operator is applied to the identity."""
        if self.dense is not None:
            return self.dense
        if self._sparse is not None:
            return self._sparse.toarray()
        identity = np.eye(self.shape[1], dtype=self.like.dtype)
        return np.column_stack([self.forward(column) for column in identity])

    # Reading entries: columns, for working sets.

    @cached_property
    def _column_advantage(self) -> int:
        """How much dearer an entry is when columns are picked out than in a product; 0 for never."""
        if (
            self._sparse is not None
            or self.shape[1] <= 256
            or not isinstance(self.dense, np.ndarray)
        ):
            return 0
        return 2 if self.dense.flags.f_contiguous else 40

    def columns(self, indices: np.ndarray[Any, Any]) -> Any:
        """Return a copy of some columns as a NumPy array; explicit NumPy and sparse maps only."""
        self._require_entries("single columns")
        count("columns", len(indices))
        if self._sparse is not None:
            return self._sparse_by_columns[:, indices].toarray()
        matrix = to_numpy(self.dense)
        if matrix.flags.f_contiguous:
            return np.take(matrix.T, indices, axis=0).T
        return np.take(matrix, indices, axis=1)

    @cached_property
    def _sparse_by_columns(self) -> Any:
        return self._sparse.tocsc()

    # Reading entries: rows, for norms and for stochastic gradients.

    @cached_property
    def row_norms(self) -> Array:
        """Euclidean norms of the rows; explicit maps only."""
        self._require_entries("row norms")
        if self._sparse is not None:
            return np.sqrt(np.asarray(abs(self._sparse).power(2).sum(axis=1))).ravel()
        xp = namespace(self.dense)
        return xp.sqrt(xp.sum(xp.abs(self.dense) ** 2, axis=1))

    def pull_through_rows(
        self, rows: np.ndarray[Any, Any], x: Array, weigh: Callable[[Array], Array]
    ) -> Array:
        """Return ``R^H weigh(R x)`` for the given rows ``R`` of the matrix; explicit maps only.

        This is work on a part of the matrix and not a product on the ledger.
        """
        self._require_entries("single rows")
        if self._sparse is not None:
            R = self._sparse_by_rows[rows]
            weighed = weigh(from_numpy(R @ to_numpy(x), x))
            return from_numpy(R.conj(copy=False).T @ to_numpy(weighed), x)
        R = take(self.dense, rows)
        return _adjoint_product(R, weigh(R @ x))

    # The spectrum.

    @cached_property
    def gram(self) -> Array:
        """``A A^H``, formed once; only for explicit maps."""
        self._require_entries("the Gram matrix")
        count("factorizations")
        if self._sparse is not None:
            return (self._sparse @ self._adjoint_sparse).toarray()
        matrix: Array = self.dense
        adjoint = namespace(matrix).conj(matrix).T if self._conjugates else matrix.T
        return matrix @ adjoint

    @cached_property
    def left_spectrum(self) -> tuple[Array, Array]:
        """Nonzero eigenvalues of ``A A^H`` (ascending) and their eigenvectors; explicit maps only.

        Forming ``A A^H`` squares the condition number, so where the spectrum reaches far down
        (or the rank falls short) the singular value decomposition of ``A`` itself is taken.
        """
        self._require_entries("a singular value decomposition")
        xp = namespace(self.like)
        rows, columns = self.shape
        if rows <= columns:
            values, vectors = xp.linalg.eigh(self.gram)
            if float(values[0]) > 1e3 * math.sqrt(eps(self.like)) * float(values[-1]):
                return values, vectors
        count("factorizations")
        vectors, singular, _ = xp.linalg.svd(self.toarray(), full_matrices=False)
        cut = self._rounding * float(singular[0])
        rank = int(xp.sum(xp.astype(singular > cut, xp.int64)))
        return xp.flip(singular[:rank] ** 2), xp.flip(vectors[:, :rank], axis=1)

    @property
    def _rounding(self) -> float:
        """How far, relative to the largest, a computed singular value may be off."""
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
        small = rows * columns * min(rows, columns) <= EXACT_WORK
        return self.explicit and small and rows * columns <= EXACT_ENTRIES

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
        # The shape decides first: it costs nothing.
        tall = self.shape[0] >= self.shape[1]
        if not (tall and self._spectrum_is_affordable and self.full_column_rank):
            return None
        largest, smallest = self.singular_range
        value = smallest - self._rounding * largest
        if value <= 0.0:
            return None
        return Constant(value, Source.DERIVED, f"smallest singular value of {self.name}")

    def _require_entries(self, what: str) -> None:
        if not self.explicit:
            raise MissingCapabilityError(
                f"{self.name} is an operator: {what} can be had from a matrix only"
            )


def take(array: Array, indices: np.ndarray[Any, Any]) -> Array:
    """Return the entries (rows) of ``array`` with these indices."""
    if isinstance(array, np.ndarray):
        return array[indices]
    return namespace(array).take(array, from_numpy(indices, array), axis=0)


def _adjoint_product(matrix: Array, y: Array) -> Array:
    """Return ``matrix^H y`` as ``conj(matrix^T conj(y))``: conjugating the matrix would copy it."""
    if not is_complex(matrix):
        return matrix.T @ y
    xp = namespace(y)
    return xp.conj(matrix.T @ (xp.conj(y) if is_complex(y) else y))
