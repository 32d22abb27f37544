"""Operations on blocks of a matrix, dense of any library or sparse: products, norms, indices."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy  # parts of it load when first used
from array_api_compat import is_jax_array

from lopro.core.arrays import Array, is_complex, is_single, namespace
from lopro.core.validation import host_array

__all__ = [
    "adjoint_product",
    "bytes_of",
    "checked_indices",
    "dense",
    "gram_of",
    "norms_of",
    "times_for",
    "vectors",
    "widened",
    "within",
]


def times_for(array: Array) -> Callable[[Array, Array], Array]:
    """Return the matrix product of a library in the full precision of the entries.

    On a GPU, JAX by default rounds single precision numbers to fewer bits before it multiplies them.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.algebra import times_for
    >>> times_for(np.eye(2))(np.eye(2), np.ones(2))
    array([1., 1.])
    """
    if is_jax_array(array):
        return partial(namespace(array).matmul, precision="highest")
    return operator.matmul


def adjoint_product(
    matrix: Any, y: Array, times: Callable[[Array, Array], Array] = operator.matmul
) -> Array:
    """Return ``matrix^H y`` as ``conj(matrix^T conj(y))``: without a conjugate copy of the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.algebra import adjoint_product
    >>> adjoint_product(np.array([[1.0, 2j]]), np.ones(1))
    array([1.-0.j, 0.-2.j])
    """
    if not is_complex(matrix):
        return times(matrix.T, y)
    xp = namespace(y)
    return xp.conj(times(matrix.T, xp.conj(y) if is_complex(y) else y))


def bytes_of(block: Any) -> int:
    """Return the size of a block in bytes: that of its entries, and of the indices if it is sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.algebra import bytes_of
    >>> bytes_of(np.zeros((2, 3)))
    48
    """
    if isinstance(block, np.ndarray):
        return int(block.nbytes)
    if scipy.sparse.issparse(block):
        return int(block.data.nbytes + block.indices.nbytes + block.indptr.nbytes)
    # Not all libraries define nbytes or itemsize.
    size = (4 if is_single(block) else 8) * (2 if is_complex(block) else 1)
    return size * int(math.prod(block.shape))


def gram_of(left: Any, right: Any) -> Any:
    """Return ``left^H right`` in double precision; sparse for sparse blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.algebra import gram_of
    >>> gram_of(np.array([[2j]]), np.array([[1.0]]))
    array([[0.-2.j]])
    """
    left, right = widened(left), widened(right)
    if scipy.sparse.issparse(left):
        return left.conj(copy=False).T @ right
    if not is_complex(left):
        return left.T @ right
    return namespace(left).conj(left).T @ right


def dense(block: Any) -> np.ndarray[Any, Any]:
    """Return a block in memory, sparse or not, as an array.

    Examples
    --------
    >>> import scipy.sparse
    >>> from lopro.maps.algebra import dense
    >>> dense(scipy.sparse.eye_array(2))
    array([[1., 0.],
           [0., 1.]])
    """
    return np.asarray(block.toarray() if scipy.sparse.issparse(block) else block)


def widened(block: Any) -> Any:
    """Return a block in double precision; the same object if it is already.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.algebra import widened
    >>> widened(np.zeros((1, 1), dtype=np.complex64)).dtype
    dtype('complex128')
    """
    if scipy.sparse.issparse(block):
        return block.astype(np.result_type(block.dtype, np.float64), copy=False)
    if not is_single(block):
        return block
    xp = namespace(block)
    return xp.astype(block, xp.complex128 if is_complex(block) else xp.float64)


def norms_of(block: Array, axis: int) -> Array:
    """Return the Euclidean norms of the columns (axis 0) or rows (axis 1) of a block, in double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.algebra import norms_of
    >>> norms_of(np.array([[3.0], [4j]]), axis=0)
    array([5.])
    """
    xp = namespace(block)
    return xp.sqrt(xp.sum(xp.abs(widened(block)) ** 2, axis=axis))


def vectors(block: Array) -> int:
    """Return the number of vectors: the columns of a block, or one.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.algebra import vectors
    >>> vectors(np.zeros(5)), vectors(np.zeros((5, 3)))
    (1, 3)
    """
    return int(block.shape[1]) if block.ndim == 2 else 1


def checked_indices(name: str, indices: Any, size: int) -> np.ndarray[Any, Any]:
    """Return indices as a NumPy array of integers in ``0 .. size - 1``; repetitions are allowed.

    Examples
    --------
    >>> from lopro.maps.algebra import checked_indices
    >>> checked_indices("columns", [2, 0], 3)
    array([2, 0])
    """
    found = host_array(name, indices)
    if found.ndim != 1:
        raise ValueError(f"{name} must be a list of indices, got shape {found.shape}")
    if found.size == 0:
        return np.empty(0, dtype=np.intp)
    if found.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got dtype {found.dtype}")
    if found.min() < 0 or found.max() >= size:
        raise IndexError(f"{name} must be in 0..{size - 1}, got {found.min()} to {found.max()}")
    return found.astype(np.intp, copy=False)


def within(
    indices: np.ndarray[Any, Any], band: slice
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the positions of the indices that lie in a band, and their offsets in it.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps.algebra import within
    >>> within(np.array([7, 1, 5]), slice(4, 8))
    (array([0, 2]), array([3, 1]))
    """
    which = np.flatnonzero((indices >= band.start) & (indices < band.stop))
    return which, indices[which] - band.start
