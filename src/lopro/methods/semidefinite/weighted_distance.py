"""Weighted squared distances on symmetric matrices, with entries that are fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.core.arrays import Array
from lopro.linalg.rounding import EPS, Estimate, total
from lopro.maps.host import transferred
from lopro.objectives import Objective, SquaredDistance

__all__ = ["SymmetricDistance", "weighted_distance"]


def weighted_distance(f: Objective) -> tuple[float, SquaredDistance] | None:
    """Return a squared distance with weights, and its factor; None for other objectives."""
    (factor, own), *others = f.summands
    if others or not isinstance(own, SquaredDistance) or own.weights is None:
        return None
    return factor, own


@dataclass(frozen=True, eq=False)
class SymmetricDistance:
    """``1/2 sum W_ij (X_ij - G_ij)^2 + constant`` with symmetric W and G.

    Parameters
    ----------
    W, G : arrays
        Weights and target.
    fixed : array of bool, optional
        Symmetric: the entries off the diagonal that are fixed to those of G.
    constant : Estimate
        The least value of the distance over symmetric matrices with the fixed entries.
    """

    W: Array
    G: Array
    fixed: Array | None
    constant: Estimate

    @staticmethod
    def of(
        f: Objective, roots: Array, entries: tuple[Array, Array, Array]
    ) -> SymmetricDistance | None:
        """Return the distance on matrices with a given diagonal; None for other objectives.

        For symmetric matrices the entries (i, j) and (j, i) share the mean of their weights and the weighted
        mean of their targets.

        Parameters
        ----------
        f : Objective
            The objective.
        roots : array
            The square roots of the diagonal: entries are at most their products.
        entries : (array, array, array)
            Rows, columns and values of the fixed entries off the diagonal.
        """
        found = weighted_distance(f)
        if found is None or found[0] <= 0.0:
            return None
        factor, own = found
        W, z = (transferred(a) for a in (own.weights, own.z))
        both = 0.5 * (W + W.T)
        terms = 0.5 * (W * z + (W * z).T)
        G = np.where(both > 0.0, terms / np.where(both > 0.0, both, 1.0), 0.5 * (z + z.T))
        averaged = z != z.T
        i, j, values = entries
        G[i, j] = G[j, i] = values
        averaged[i, j] = averaged[j, i] = False
        fixed = np.zeros(G.shape, dtype=bool)
        fixed[i, j] = fixed[j, i] = True
        squares = 0.5 * factor * np.where(fixed | averaged, W * (G - z) ** 2, 0.0)
        # The means of targets are rounded.
        sizes = np.where(averaged, factor * both * (np.outer(roots, roots) + abs(G)) ** 2, 0.0)
        constant = total(squares, EPS * (8.0 * squares + 16.0 * sizes))
        return SymmetricDistance(factor * both, G, fixed if len(i) else None, constant)
