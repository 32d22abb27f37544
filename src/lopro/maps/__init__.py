"""Linear maps: matrices and operators of every kind behind one protocol.

`linear_map` makes a `LinearMap` of NumPy arrays, scipy.sparse matrices, arrays on a GPU, operators, files and
distributed arrays. Every map multiplies vectors or blocks of vectors and counts its products; a map states
whether it also offers columns and rows. Files and distributed arrays answer several requests in one pass
(`LinearMap.read`).
"""

from lopro.maps.arrays import ArrayMap, NumPyMap
from lopro.maps.base import LinearMap
from lopro.maps.choose import linear_map
from lopro.maps.dask_map import DaskMap
from lopro.maps.identity import Identity
from lopro.maps.operators import OperatorMap
from lopro.maps.requests import (
    Adjoint,
    Columns,
    Forward,
    Request,
    Rows,
)
from lopro.maps.sparse_map import SparseMap
from lopro.maps.stored import MemmapMap, StoredMap
from lopro.maps.streamed import StreamedMap, called_between_blocks

__all__ = [
    "Adjoint",
    "ArrayMap",
    "Columns",
    "DaskMap",
    "Forward",
    "Identity",
    "LinearMap",
    "MemmapMap",
    "NumPyMap",
    "OperatorMap",
    "Request",
    "Rows",
    "SparseMap",
    "StoredMap",
    "StreamedMap",
    "called_between_blocks",
    "linear_map",
]
