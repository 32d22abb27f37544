"""Which solver of linear systems fits a problem."""

from __future__ import annotations

from collections.abc import Sequence

from lopro.core.deadline import current_deadline
from lopro.newton.curvature import LARGEST, Diagonal, Gram, LowRank, Piece, Product
from lopro.newton.systems.dense import DenseSystem, RowSpaceSystem, SystemOnDevice
from lopro.newton.systems.iterative import ConjugateGradients, CorrectedSystem, System
from lopro.newton.systems.sparse import SparseSystem, is_sparse, pair_count

__all__ = ["choose_system"]

#: Sparse factors fill up where the products of pairs of entries in rows are more than this share of all
#: entries: dense ones are faster then. Time of sparse over dense systems with random rows, measured on one
#: core: for n = 400: 1.1 at 0.025 and 2.0 at 0.09; n = 1000: 0.7 at 0.012 and 1.8 at 0.036; n = 2000: 0.4 at
#: 0.006 and 1.5 at 0.02.
_THIN = 0.02
#: Where a band would take as many operations as the largest dense matrix, sparse factors are not tried if
#: rows have so many entries on average: graphs like random ones fill up, and factorisations cannot be
#: interrupted.
_BRANCHES = 6
#: Operations of a matrix product that take as long as the pattern of one pair of entries: 1.3e-7 to 2.1e-7 s
#: for 2e7 pairs in 20 to 200 rows, at 5e10 operations a second.
_OF_A_PAIR = 1e4
#: Up to this size products alone are made into a matrix, and all matrices are dense.
_SMALL = 100


def _fills_up(system: SparseSystem) -> bool:
    """Whether factors may be as good as dense: a wide band in the best order, and no mere arrow."""
    wide = system.size * float(system.width) ** 2 > LARGEST**3 / 3
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
        return SystemOnDevice(size) if size <= LARGEST else ConjugateGradients(size)
    rest = [p for p in pieces if not isinstance(p, LowRank)]
    pairs = _THIN * size**2 if size <= LARGEST else LARGEST**2
    if size > _SMALL and is_sparse(rest) and (count := pair_count(rest)) <= pairs:
        current_deadline().need(_OF_A_PAIR * count)
        sparse = SparseSystem(size, rest)
        if not _fills_up(sparse):
            return sparse if len(rest) == len(pieces) else CorrectedSystem(sparse)
    grams = [p for p in pieces if isinstance(p, Gram)]
    diagonal = all(isinstance(p, Gram | Diagonal) for p in pieces)
    if diagonal and 2 * sum(p.B.shape[0] for p in grams) <= size:
        return RowSpaceSystem(size)
    return DenseSystem(size) if size <= LARGEST else ConjugateGradients(size)
