"""Choice of a solver of linear systems by the structure of the Hessian."""

from __future__ import annotations

from collections.abc import Sequence

from lopro.core.deadline import current_deadline
from lopro.newton.curvature import LARGEST, Diagonal, Gram, LowRank, Piece, Product
from lopro.newton.systems.dense import DenseSystem, RowSpaceSystem, SystemOnDevice
from lopro.newton.systems.iterative import ConjugateGradients, CorrectedSystem, System
from lopro.newton.systems.sparse import SparseSystem, is_sparse, pair_count

__all__ = ["choose_system"]

#: Number of products of two entries of a row, as a share of all entries, above which sparse factors fill up
#: and dense ones are faster. Time of sparse over dense systems with random rows, measured on one core: for
#: n = 400: 1.1 at 0.025 and 2.0 at 0.09; n = 1000: 0.7 at 0.012 and 1.8 at 0.036; n = 2000: 0.4 at 0.006 and
#: 1.5 at 0.02.
_THIN = 0.02
#: Where the band would take as many operations as the largest dense matrix, no sparse factors are computed
#: for more entries than this per row of the lower triangle: patterns like random graphs fill up, and the
#: factorisation cannot be interrupted. Shares of nonzeros in factors of size 3000: 0.13, 0.27, 0.37 for
#: random graphs with 4, 6, 8 entries a row; 0.01 to 0.05 for grids in the plane and in space with 3 to 7.
_BRANCHES = 6
#: Operations of a matrix product that take as long as the pattern of one pair of entries: 1.3e-7 to 2.1e-7 s
#: for 2e7 pairs in 20 to 200 rows, at 5e10 operations per second.
_OF_A_PAIR = 1e4
#: Up to this size matrices known by their products are formed, and all factors are dense. Time of ten sparse
#: systems with their pattern over ten dense ones, measured on one core: for n = 50: 0.2 for differences, 0.8
#: for rows of 4 random entries; n = 100: 0.1 and 1.3; n = 200: 0.02 and 0.6. Of conjugate gradients to 1e-3:
#: 1.3, 0.5 and 0.03. A tenth and ten times as much change no step in ``python -m benchmarks.constants
#: newton.systems``.
_SMALL = 100


def _fills_up(system: SparseSystem) -> bool:
    """Return whether factors may be nearly dense: a wide band, and many entries in the average row."""
    wide = system.size * float(system.width) ** 2 > LARGEST**3 / 3
    return wide and len(system.pattern.rows) > _BRANCHES * system.size


def choose_system(size: int, pieces: Sequence[Piece]) -> System:
    """Return the solver of linear systems that fits the pieces of the Hessian.

    Sparse factors if all pieces but those of low rank are sparse; a system in the space of rows if these are
    few; dense factors up to some thousand variables; else, and for operators, conjugate gradients.

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
