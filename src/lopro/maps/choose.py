"""`linear_map`: the linear map of a matrix, an operator, a file or a distributed array."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used
from array_api_compat import is_dask_array

from lopro.core.arrays import is_array
from lopro.maps.arrays import ArrayMap, NumPyMap
from lopro.maps.base import LinearMap
from lopro.maps.dask_map import DaskMap
from lopro.maps.operators import OperatorMap, is_operator
from lopro.maps.sparse_map import SparseMap
from lopro.maps.stored import MemmapMap, StoredMap, is_stored
from lopro.maps.torch_sparse import TorchSparseMap, is_torch_sparse

__all__ = ["linear_map"]


def linear_map(A: Any, name: str = "A") -> LinearMap:
    """Return ``A`` as a linear map; a map is returned unchanged, with all its cached results.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator, stored or distributed array, or LinearMap
        NumPy arrays (lists are converted), arrays of PyTorch, CuPy, JAX and other libraries, sparse matrices
        of SciPy and PyTorch, anything with ``shape``, ``matvec`` and ``rmatvec``, ``numpy.memmap``, zarr and
        HDF5 arrays (anything with ``shape``, ``dtype`` and slicing), dask arrays. Not copied, not modified.
    name : str
        Its name in error messages.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> A = linear_map(np.array([[1.0, 2.0]]))
    >>> A.forward(np.ones(2)), A.shape, linear_map(A) is A
    (array([3.]), (1, 2), True)
    """
    if isinstance(A, LinearMap):
        return A
    kind: type[Any] = NumPyMap
    if type(A) is np.ndarray:
        pass  # not a memmap, nor any other subclass
    elif scipy.sparse.issparse(A):
        kind = SparseMap
    elif is_torch_sparse(A):
        kind = TorchSparseMap
    elif MemmapMap.fits(A):
        kind = MemmapMap
    elif is_dask_array(A):
        kind = DaskMap
    elif is_array(A):
        kind = NumPyMap if isinstance(A, np.ndarray) else ArrayMap
    elif is_operator(A):
        kind = OperatorMap
    elif is_stored(A):
        kind = StoredMap
    found: LinearMap = kind(A, name)
    if 0 in found.shape:
        raise ValueError(f"{name} must not be empty, got shape {found.shape}")
    return found
