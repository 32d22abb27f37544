"""Hessians of terms as pieces, from weights of the rows or complements of prox Jacobians."""

from __future__ import annotations

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import asarray_like, to_numpy
from lopro.functions.atoms import Step
from lopro.functions.complements import (
    BlockDiagonal,
    Complement,
    DiagonalComplement,
    DiagonalPlusRows,
)
from lopro.linalg.dense import Array
from lopro.maps import LinearMap
from lopro.maps.host import entries_of
from lopro.newton.curvature import (
    Diagonal,
    Gram,
    GroupBlocks,
    LowRank,
    Piece,
    Product,
    is_host_matrix,
)

__all__ = ["complement_pieces", "weighted"]


def weighted(D: LinearMap, weights: Array) -> Piece:
    """Return ``D' diag(weights) D`` for nonnegative weights.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.complement_pieces import weighted
    >>> from lopro.maps import Identity
    >>> weighted(Identity(2), np.array([1.0, 3.0]))
    Diagonal(values=array([1., 3.]))
    """
    if D.is_identity:
        return Diagonal(weights)
    M = entries_of(D)
    if M is not None:
        return Gram(M, weights if is_host_matrix(M) else asarray_like(weights, M))
    norms = D.row_norms
    mean = float(weights @ (norms * norms)) / D.shape[1]
    return Product(lambda s: D.adjoint(weights * D.forward(s)), mean, D.shape[1])


def complement_pieces(complement: Complement, D: LinearMap, beta: Step) -> tuple[Piece, ...]:
    """Return ``D' beta (I - J) D`` as pieces, whose types are the same at every point."""
    if isinstance(complement, DiagonalComplement):
        return (weighted(D, beta * complement.values),)
    M = entries_of(D)
    explicit, on_device = D.is_identity or M is not None, M is not None and not is_host_matrix(M)
    if explicit and isinstance(complement, DiagonalPlusRows):
        images = rows = complement.rows
        if M is not None:
            images = to_numpy((asarray_like(rows, M) if on_device else rows) @ M)
        core = np.diag(beta * complement.weights)
        return weighted(D, beta * complement.values), LowRank(images, core)
    if explicit and not on_device and isinstance(complement, BlockDiagonal):
        B = scipy.sparse.eye_array(D.shape[0], format="csr") if M is None else M
        return (GroupBlocks(B, beta * complement.blocks),)
    # Products only; the mean eigenvalue is estimated by that of beta D'D, an upper bound.
    norms = D.row_norms
    mean = float(np.sum(beta * (norms * norms))) / D.shape[1]
    return (Product(lambda s: D.adjoint(beta * complement.apply(D.forward(s))), mean, D.shape[1]),)
