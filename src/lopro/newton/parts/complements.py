"""The forms that ``I - J`` takes: diagonal, diagonal and a few rows, block diagonal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import to_numpy
from lopro.newton.arrays import Array
from lopro.newton.curvature import Blocks, LowRank, Piece, Product, weighted
from lopro.newton.maps import Dense, Identity, LinearMap, OnDevice, Sparse
from lopro.newton.parts.base import Complement, Steps

__all__ = ["BlockMask", "Mask", "MaskAndRows"]


@dataclass(frozen=True)
class Mask:
    """``I - J = diag(values)`` with values between 0 and 1."""

    values: Array

    def apply(self, s: Array) -> Array:
        return self.values * s

    def pieces(self, D: LinearMap, beta: Steps) -> tuple[Piece, ...]:
        return (weighted(D, beta * self.values),)


@dataclass(frozen=True)
class MaskAndRows:
    """``I - J = diag(values) + sum of weights_k rows_k rows_k'``, weights of any sign."""

    values: Array
    rows: Array
    weights: Array

    def apply(self, s: Array) -> Array:
        return self.values * s + (self.weights * (self.rows @ s)) @ self.rows

    def pieces(self, D: LinearMap, beta: Steps) -> tuple[Piece, ...]:
        if not isinstance(D, Identity | Dense | Sparse | OnDevice):
            return (_products(self, D, beta),)
        if isinstance(D, OnDevice):
            images = to_numpy(D.there(self.rows) @ D.M)
        else:
            images = self.rows if isinstance(D, Identity) else np.asarray(self.rows @ D.M)
        return weighted(D, beta * self.values), LowRank(images, np.diag(beta * self.weights))


@dataclass(frozen=True)
class BlockMask:
    """``I - J`` block diagonal: one block for each group of consecutive entries."""

    blocks: Array

    def apply(self, s: Array) -> Array:
        groups, size, _ = self.blocks.shape
        return np.asarray((self.blocks @ s.reshape(groups, size, 1)).ravel())

    def pieces(self, D: LinearMap, beta: Steps) -> tuple[Piece, ...]:
        if isinstance(D, Dense | Sparse):
            return (Blocks(D.M, beta * self.blocks),)
        if isinstance(D, Identity):
            return (Blocks(scipy.sparse.eye_array(D.size, format="csr"), beta * self.blocks),)
        return (_products(self, D, beta),)


def _products(complement: Complement, D: LinearMap, beta: Steps) -> Product:
    """Return the piece of an operator; its mean is about that of ``beta D'D``, an upper bound."""
    norms = D.row_norms()
    mean = float(np.sum(beta * (norms * norms))) / D.shape[1]
    return Product(lambda s: D.adjoint(beta * complement.apply(D.forward(s))), mean, D.shape[1])
