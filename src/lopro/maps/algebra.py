"""Products of blocks of a matrix, whatever library or sparse format they are in."""

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

__all__ = ["adjoint_product", "bytes_of", "dense", "gram_of", "norms_of", "times_for", "widened"]


def times_for(array: Array) -> Callable[[Array, Array], Array]:
    """Return what multiplies arrays of a library without rounding their entries first.

    On a GPU JAX would use fewer bits of single precision numbers than they have.

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
    """Return ``matrix^H y`` as ``conj(matrix^T conj(y))``: conjugating the matrix would copy it.

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
    """Return the bytes of a block's entries, and of the indices of a sparse one.

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
    # Libraries agree neither on nbytes nor on itemsize.
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
    """Return an array of a block in memory that may be sparse.

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
    """Return a block in double precision; itself where it is.

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
