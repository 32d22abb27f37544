"""Sparse factors that are begun only if there is time for them: SuperLU cannot be interrupted."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import current_deadline

__all__ = ["affords_gram", "sparse_factors"]

#: Operations of a dense product that take as long as one multiplication of a sparse product or of SuperLU.
#: For ``A A'`` of random A with 500 to 2000 rows and four entries a column, on one thread, 1000 to 1270 for
#: the product and 195 to 8100 for SuperLU, fill-in included: this is below, as factors are refused by it.
_SPARSE = 100.0


def sparse_factors(M: Any, **options: Any) -> Any:
    """Return SuperLU's factors of a matrix by columns; None where it is singular or there is no time.

    The entries of the columns squared are the work without any fill-in: a lower bound.

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
    if not current_deadline().affords(_SPARSE * float(counts @ counts)):
        return None
    try:
        return scipy.sparse.linalg.splu(M, **options)
    except RuntimeError:  # singular
        return None


def affords_gram(A: Any) -> bool:
    """Whether there is time to form ``A A'`` and its factors, of which the products are a lower bound.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.linalg.sparse import affords_gram
    >>> affords_gram(scipy.sparse.csr_array(np.eye(3)))
    True
    """
    counts = np.bincount(A.indices, minlength=A.shape[1]).astype(np.float64)
    # The product, and the squares of the entries of its rows if no two products meet in one entry.
    return current_deadline().affords(_SPARSE * 2.0 * float(counts @ counts))
