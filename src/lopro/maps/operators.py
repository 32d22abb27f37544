"""Maps of operators: LinearOperators and objects with matvec and rmatvec."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, from_numpy, to_numpy
from lopro.core.deadline import current_deadline
from lopro.errors import MissingCapabilityError
from lopro.maps.base import LinearMap

__all__ = ["OperatorMap", "is_operator"]

#: Vectors per product when the entries of an operator are computed, if it multiplies several in one pass: 64
#: vectors in memory for 64 columns per pass.
_AT_A_TIME = 64


def is_operator(A: Any) -> bool:
    """Whether an object has matvec or is a Linop of SigPy.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse.linalg import aslinearoperator
    >>> from lopro.maps.operators import is_operator
    >>> is_operator(aslinearoperator(np.eye(2))), is_operator(np.eye(2))
    (True, False)
    """
    return hasattr(A, "matvec") or _is_linop(A)


def _is_linop(A: Any) -> bool:
    return all(hasattr(A, part) for part in ("ishape", "oshape", "apply", "H"))


class OperatorMap(LinearMap):
    """An operator with ``shape``, ``matvec`` and ``rmatvec``; points are converted to NumPy.

    An object that is not a SciPy LinearOperator may offer more: ``matmat`` and ``rmatmat`` for a block of
    vectors in one pass, ``columns(indices)`` and ``rows(indices)`` for entries, ``nbytes`` for the bytes of a
    pass. Without the first two, and for LinearOperators, a block of k vectors counts as k passes.

    Parameters
    ----------
    A : LinearOperator, or an object with the same methods
        Operators of PyLops and Linops of SigPy are accepted.
    name : str
        Its name in error messages.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> class Difference:
    ...     shape = (3, 4)
    ...
    ...     def matvec(self, x):
    ...         return np.diff(x)
    ...
    ...     def rmatvec(self, y):
    ...         return -np.diff(y, prepend=0.0, append=0.0)
    >>> A = linear_map(Difference())
    >>> A.forward(np.array([0.0, 1.0, 4.0, 9.0])), A.adjoint(np.array([1.0, 2.0, 4.0]))
    (array([1., 3., 5.]), array([-1., -1., -2.,  4.]))
    """

    def __init__(self, A: Any, name: str = "A") -> None:
        A = _FlatLinop(A) if _is_linop(A) and not hasattr(A, "matvec") else A
        if not hasattr(A, "rmatvec") or not hasattr(A, "shape"):
            raise MissingCapabilityError(
                f"{name} has matvec but not both rmatvec (the adjoint product) and shape"
            )
        if len(A.shape) != 2:
            raise ValueError(f"{name} must have 2 dimensions, got shape {tuple(A.shape)}")
        operator = self._operator = scipy.sparse.linalg.aslinearoperator(A)
        dtype = np.dtype(operator.dtype or np.float64)
        like = np.zeros(1, dtype=dtype if dtype.char in "fdFD" else np.float64)
        super().__init__(operator, operator.shape, like, name, int(getattr(A, "nbytes", 0)))
        own = operator is not A
        self._blockwise = own and hasattr(A, "matmat") and hasattr(A, "rmatmat")
        #: The object that multiplies a block of vectors.
        self._blocks = A if self._blockwise else operator
        #: All entries, after the first call of `toarray`.
        self.entries: np.ndarray[Any, Any] | None = None
        for method in ("columns", "rows"):
            if own and callable(getattr(A, method, None)):
                setattr(self, f"read_{method}", getattr(A, method))

    def passes_for(self, count: int) -> int:
        return 1 if self._blockwise else count

    def toarray(self) -> np.ndarray[Any, Any]:
        """Return the matrix, from a product for each row or each column, whichever are fewer; cached.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy.sparse.linalg import aslinearoperator
        >>> from lopro.maps import linear_map
        >>> linear_map(aslinearoperator(np.array([[1.0, 2.0, 3.0]]))).toarray()
        array([[1., 2., 3.]])
        """
        if self.entries is None:
            rows, columns = self.shape
            entries = np.empty(self.shape, dtype=self.like.dtype)
            # The rows of a matrix are the conjugate columns of its adjoint.
            by_rows = rows < columns
            side, product = (entries, self.adjoint) if by_rows else (entries.T, self.forward)
            count = _AT_A_TIME if self._blockwise else 1
            for start in range(0, len(side), count):
                current_deadline().check()
                units = np.eye(len(side), min(count, len(side) - start), -start, self.like.dtype)
                side[start : start + count] = product(units if count > 1 else units[:, 0]).T
            if by_rows:
                np.conj(entries, out=entries)
            entries.flags.writeable = False
            self.entries = entries
        return self.entries

    def multiply(self, X: Array) -> Array:
        product = self._operator.matvec if X.ndim == 1 else self._blocks.matmat
        return from_numpy(product(to_numpy(X)), X)

    def multiply_adjoint(self, Y: Array) -> Array:
        product = self._operator.rmatvec if Y.ndim == 1 else self._blocks.rmatmat
        try:
            return from_numpy(product(to_numpy(Y)), Y)
        except NotImplementedError:
            raise MissingCapabilityError(
                f"{self.name} is an operator without rmatvec: gradients need the adjoint product"
            ) from None


class _FlatLinop:
    """A Linop of SigPy on flat vectors."""

    def __init__(self, A: Any) -> None:
        self._forward, self._adjoint = A, A.H
        self._inside, self._outside = tuple(A.ishape), tuple(A.oshape)
        self.shape = (math.prod(self._outside), math.prod(self._inside))
        # Linops have no dtype, and SigPy's Fourier transform converts real numbers to single precision.
        real = np.asarray(A.apply(np.zeros(self._inside, dtype=np.float64))).dtype.kind != "c"
        self.dtype = np.dtype(np.float64 if real else np.complex128)

    def matvec(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        wide = np.asarray(x, dtype=np.result_type(x, self.dtype)).reshape(self._inside)
        return np.asarray(self._forward.apply(wide)).ravel()

    def rmatvec(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        wide = np.asarray(y, dtype=np.result_type(y, self.dtype)).reshape(self._outside)
        return np.asarray(self._adjoint.apply(wide)).ravel()
