"""The sum of the singular values of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, copy, eps, is_complex, namespace, norm
from lopro.core.counting import count
from lopro.core.deadline import EIGH, current_deadline
from lopro.functions.atoms.base import Atom, Step
from lopro.functions.cone_program import ConeBuilder, RealImage
from lopro.linalg.rounding import Estimate

__all__ = ["Nuclear", "singular_values"]


class Nuclear(Atom):
    """``g(z)`` = the sum of the singular values of ``z``, as a matrix of this shape.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns; ``z`` may also be the matrix row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Nuclear
    >>> round(Nuclear((2, 2)).value(np.array([[0.0, 3.0], [4.0, 0.0]])), 12)
    7.0
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape
        self.steepness = math.sqrt(min(shape))

    @property
    def _work(self) -> float:
        """Approximate number of operations of a singular value decomposition."""
        return EIGH * float(math.prod(self.shape)) * min(self.shape)

    def value(self, z: Array) -> float:
        xp = namespace(z)
        if norm(z) == 0.0:
            return 0.0
        return float(xp.sum(xp.linalg.svdvals(xp.reshape(z, self.shape))))

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        xp = namespace(z)
        if norm(z) == 0.0:
            return 0.0, lambda: 0.0 * z
        U, s, Vh = singular_values(xp.reshape(z, self.shape))

        def slope() -> Array:
            # The vectors of singular values within rounding of 0 are not determined.
            kept = s > max(self.shape) * eps(z) * float(s[0])
            return xp.reshape((U * _beside(xp.astype(kept, s.dtype), U)) @ Vh, tuple(z.shape))

        return float(xp.sum(s)), slope

    def prox(self, w: Array, step: Step) -> Array:
        if step == 0.0:
            return copy(w)
        current_deadline().need(self._work)
        xp = namespace(w)
        U, s, Vh = singular_values(xp.reshape(w, self.shape))
        shrunk = xp.where(s > step, s - step, 0.0 * s)
        return xp.reshape((U * _beside(shrunk, U)) @ Vh, tuple(w.shape))

    def conjugate(self, v: Array) -> float:
        return 0.0 if self.gauge(v) <= 1.0 else math.inf

    def into_domain(self, v: Array) -> Array:
        xp = namespace(v)
        U, s, Vh = singular_values(xp.reshape(v, self.shape))
        # Moved inside by twice the rounding that `gauge` charges.
        most = 1.0 - 16.0 * max(self.shape) * eps(v)
        if float(s[0]) <= most:
            return 1.0 * v
        inside = xp.where(s > most, most + 0.0 * s, s)
        return xp.reshape((U * _beside(inside, U)) @ Vh, tuple(v.shape))

    def gauge(self, v: Array) -> float:
        """Return the largest singular value, rounded up: ``v / gauge`` is in the domain of the conjugate."""
        xp = namespace(v)
        largest = float(xp.max(xp.linalg.svdvals(xp.reshape(v, self.shape))))
        return largest * (1.0 + 8.0 * max(self.shape) * eps(v))

    def enclose_conjugate(self, v: Array) -> Estimate:
        return Estimate(0.0 if self.gauge(v) <= 1.0 else math.inf)

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add ``(tr V + tr W) / 2`` with ``[[V, Z], [Z', W]]`` positive semidefinite."""
        if image.is_complex:
            raise self._missing("conic form for complex points")
        rows, columns = self.shape
        order = rows + columns
        D = scipy.sparse.csr_array(image.D)
        empty = D.shape[0] - int(np.count_nonzero(np.diff(D.indptr)))
        program.require_semidefinite(order, order * (order + 1) // 2 - empty)
        j, i = np.tril_indices(order)  # the upper triangle, column by column
        weight = np.where(i == j, -1.0, -np.sqrt(2.0))
        across = (i < rows) & (j >= rows)
        own = np.flatnonzero(~across)
        first = program.new_variables(len(own))
        program.add_linear(scale * np.where(i[own] == j[own], 0.5, 0.0), first)
        shape = (len(i), len(own))
        pick = scipy.sparse.csr_array((weight[own], (own, np.arange(len(own)))), shape)
        at = np.flatnonzero(across)
        places = i[at] * columns + (j[at] - rows)
        spread = scipy.sparse.csr_array((weight[at], (at, places)), (len(i), rows * columns))
        Z = scipy.sparse.csr_array(spread @ D)
        program.add_semidefinite(order, spread @ image.b, (pick, first), (Z, 0))


def singular_values(X: Array) -> tuple[Array, Array, Array]:
    """Return ``U, s, V^H`` with ``X = U diag(s) V^H``; counted as an eigendecomposition."""
    count("eigendecompositions")
    U, s, Vh = namespace(X).linalg.svd(X, full_matrices=False)
    return U, s, Vh


def _beside(s: Array, U: Array) -> Array:
    return namespace(U).astype(s, U.dtype) if is_complex(U) else s
