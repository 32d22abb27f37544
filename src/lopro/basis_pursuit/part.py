"""Some entries of a long vector: an iteration works on those that may leave zero, and not on the others.

At a solution most correlations are far below the multiplier, and their entries stay zero. What is done to all
entries of a dozen vectors in every step then takes longer than the products with the operator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.basis_pursuit.problem import SparseProblem
from lopro.objectives import L1Norm

__all__ = ["Part"]

Vector: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True, eq=False)
class Part:
    """Some entries, and the problem there.

    Parameters
    ----------
    indices : array of int
        Which entries, in ascending order.
    size : int
        How many there are in all.
    norm : L1Norm
        f on these entries.
    excess : callable
        Their correlations in units of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.part import Part
    >>> part = Part(np.array([0, 2]), 4, None, abs)
    >>> part.of(np.arange(4.0)), part.within(np.array([5.0, 6.0]))
    (array([0., 2.]), array([5., 0., 6., 0.]))
    """

    indices: Vector
    size: int
    norm: L1Norm
    excess: Callable[[Vector], Vector]

    @staticmethod
    def chosen(sparse: SparseProblem, wanted: Vector) -> Part:
        """Return the part where a mask is true."""
        weights, nonneg = sparse.weights[wanted], sparse.nonneg

        def excess(g: Vector) -> Vector:
            return np.asarray((g if nonneg else np.abs(g)) / weights)

        return Part(np.flatnonzero(wanted), wanted.size, L1Norm(weights), excess)

    def of(self, v: Vector) -> Vector:
        """Return these entries of a vector."""
        return v.take(self.indices)

    def within(self, v: Vector) -> Vector:
        """Return a vector that has these entries, and zeros elsewhere."""
        whole = np.zeros(self.size, dtype=v.dtype)
        whole[self.indices] = v
        return whole
