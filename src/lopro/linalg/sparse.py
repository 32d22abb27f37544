"""Sparse factorisations, started only if time suffices as SuperLU cannot be interrupted; Gram matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import current_deadline
from lopro.linalg.dense import Array

__all__ = ["SPARSE", "affords_gram", "gram", "sparse_factors"]

#: Number of entries of a matrix that are scaled at a time: 1 MB of doubles stays in the cache between scaling
#: and product. Milliseconds for a Gram matrix of 10,000 rows, measured on one core: for n = 400: 63 with 2^13
#: entries, 39 with 2^15, 33 with 2^17, 2^19 and 2^22.
_CHUNK = 1 << 17

#: Operations of a dense product that take as long as one multiplication of a sparse product or of SuperLU:
#: for ``A A'`` of random A with 500 to 2000 rows and four entries a column, one thread, 1000 to 1270 for the
#: product and 195 to 8100 for SuperLU, fill-in included. A value below these refuses no affordable factors.
SPARSE = 100.0


def sparse_factors(M: Any, **options: Any) -> Any:
    """Return SuperLU's factors of a CSC matrix; None where it is singular or there is no time.

    The sum of the squared numbers of entries of the columns is the work without fill-in, a lower bound.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.core.deadline import Deadline
    >>> from lopro.linalg.sparse import sparse_factors
    >>> eye = scipy.sparse.eye_array(2, format="csc")
    >>> sparse_factors(2.0 * eye).solve(np.ones(2))
    array([0.5, 0.5])
    >>> with Deadline(0.0).active():
    ...     sparse_factors(eye) is None
    True
    """
    counts = np.diff(M.indptr).astype(np.float64)
    if not current_deadline().affords(SPARSE * float(counts @ counts)):
        return None
    try:
        return scipy.sparse.linalg.splu(M, **options)
    except RuntimeError:  # singular
        return None


def gram(B: Any, h: Array) -> Array:
    """Return ``B' diag(h) B`` as a dense matrix, for a dense or sparse ``B``.

    Sparse rows with few entries are multiplied as such, others in slabs that are made dense.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.linalg.sparse import gram
    >>> B = np.array([[1.0, 2.0], [0.0, 1.0]])
    >>> gram(scipy.sparse.csr_array(B), np.array([1.0, -1.0])), gram(B, np.array([1.0, -1.0]))
    (array([[1., 2.],
           [2., 3.]]), array([[1., 2.],
           [2., 3.]]))
    """
    rows, columns = B.shape
    sparse = scipy.sparse.issparse(B)
    if sparse:
        B = B.tocsr()
        counts = np.diff(B.indptr).astype(np.float64)
        if SPARSE * float(counts @ counts) < 0.5 * rows * columns**2:
            return np.asarray((B.T @ B.multiply(h[:, None]).tocsr()).toarray())
    total = np.zeros((columns, columns))
    step = max(1, _CHUNK // max(1, columns))
    # Scaling by the square root keeps the product symmetric, which halves the work.
    root = np.sqrt(h)[:, None] if h.min(initial=0.0) >= 0.0 else None
    for start in range(0, rows, step):
        at = slice(start, start + step)
        part = B[at].toarray() if sparse else B[at]
        if root is None:
            total += part.T @ (h[at, None] * part)
        else:
            part = root[at] * part
            total += part.T @ part
    return total


def affords_gram(A: Any) -> bool:
    """Return whether there is time to form and factorise ``A A'``, by a lower bound of the operations.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.linalg.sparse import affords_gram
    >>> affords_gram(scipy.sparse.csr_array(np.eye(3)))
    True
    """
    counts = np.bincount(A.indices, minlength=A.shape[1]).astype(np.float64)
    # The product, and the same number for the factors if no two products fall on one entry.
    return current_deadline().affords(SPARSE * 2.0 * float(counts @ counts))
