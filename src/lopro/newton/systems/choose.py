"""Which solver of linear systems fits a problem."""

from __future__ import annotations

from collections.abc import Sequence

from lopro.newton.curvature import Diagonal, Gram, LowRank, Piece, Product
from lopro.newton.systems.dense import DenseSystem, RowSpaceSystem, SystemOnDevice
from lopro.newton.systems.iterative import ConjugateGradients, CorrectedSystem, System
from lopro.newton.systems.sparse import SparseSystem, is_sparse, pair_count

__all__ = ["choose_system"]

#: Entries that the map from weights to the entries of a sparse matrix may have.
_PAIRS = 50_000_000
#: Up to this size a matrix with more than this share of nonzeros fills up: dense factors are faster then.
_FILLING, _THIN = 3000, 0.02
#: Sparse factors of a band that takes so many operations are not tried where rows have so many entries:
#: graphs like random ones fill up, and what has begun cannot be interrupted.
_OPERATIONS, _BRANCHES = 2e11, 6
#: Up to this size products alone are made into a matrix, and dense matrices are factorised.
_SMALL, _LARGE = 100, 6000
#: The same on a device, where a matrix of this size takes half a gigabyte and milliseconds.
_LARGE_THERE = 8192


def _fills_up(system: SparseSystem) -> bool:
    """Whether factors may be as good as dense: a wide band in the best order, and no mere arrow."""
    wide = system.size * float(system.width) ** 2 > _OPERATIONS
    return wide and len(system.pattern.rows) > _BRANCHES * system.size


def choose_system(size: int, pieces: Sequence[Piece]) -> System:
    """Return the solver of linear systems that fits the pieces of the Hessian.

    Sparse where every piece is, but for some rows; in the space of rows where these are few; dense up to some
    thousand variables; conjugate gradients for the rest, and for maps that are known by their products.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.curvature import Diagonal, Gram
    >>> from lopro.newton.systems import choose_system
    >>> wide = Gram(np.ones((2, 500)), np.ones(2))
    >>> type(choose_system(500, [Diagonal(np.ones(500)), wide])).__name__
    'RowSpaceSystem'
    """
    if any(isinstance(p, Product) for p in pieces):
        small = size <= _SMALL and not any(p.on_device for p in pieces)
        return DenseSystem(size) if small else ConjugateGradients(size)
    if any(p.on_device for p in pieces):
        return SystemOnDevice(size) if size <= _LARGE_THERE else ConjugateGradients(size)
    rest = [p for p in pieces if not isinstance(p, LowRank)]
    share = _THIN if size <= _FILLING else 1.0
    if size > _SMALL and is_sparse(rest) and pair_count(rest) <= min(_PAIRS, share * size**2):
        sparse = SparseSystem(size, rest)
        if not _fills_up(sparse):
            return sparse if len(rest) == len(pieces) else CorrectedSystem(sparse)
    grams = [p for p in pieces if isinstance(p, Gram)]
    diagonal = all(isinstance(p, Gram | Diagonal) for p in pieces)
    if diagonal and 2 * sum(p.B.shape[0] for p in grams) <= size:
        return RowSpaceSystem(size)
    return DenseSystem(size) if size <= _LARGE else ConjugateGradients(size)
