"""What the Newton method asks of a part ``g`` of the objective: a set or a norm.

A part enters through its centred Moreau envelope: with ``w = Dx + u / beta`` and ``z = prox(w)``, the
gradient of the envelope is ``D'v`` for ``v = beta (w - z)``, the next multiplier, and its generalised
Hessian is ``beta D' (I - J) D`` for ``J`` in the generalised Jacobian of the prox.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from lopro.newton.arrays import Array
from lopro.newton.curvature import Diagonal, Gram, Piece, Product
from lopro.newton.maps import Dense, Identity, LinearMap, Sparse

__all__ = ["Complement", "Mask", "Part", "Steps"]

#: ``1 / beta``: one for each entry of separable parts, else one number.
Steps: TypeAlias = "Array | float"


class Complement(Protocol):
    """``I - J``: symmetric, with eigenvalues between 0 and 1."""

    def apply(self, s: Array) -> Array:
        """Return ``(I - J) s``."""
        ...

    def piece(self, D: LinearMap, beta: Steps) -> Piece:
        """Return ``beta D' (I - J) D``."""
        ...

    def same(self, other: Complement) -> bool:
        """Whether this and ``other`` are the same matrix."""
        ...


class Part(Protocol):
    """A convex function with an easy prox; the indicator function of a set, in particular."""

    size: int
    #: Whether it is a sum of functions of one entry each, so that entries may have their own penalty.
    separable: bool

    def value(self, z: Array) -> float:
        """Return ``g(z)``: 0 in and infinity outside of a set."""
        ...

    def prox(self, w: Array, steps: Steps) -> Array:
        """Return the minimiser of ``g(z) + |z - w|^2 / (2 steps)``."""
        ...

    def complement(self, w: Array, steps: Steps) -> Complement:
        """Return ``I - J`` for a ``J`` in the generalised Jacobian of the prox at ``w``."""
        ...

    def conjugate(self, v: Array) -> float:
        """Return ``sup_z <v, z> - g(z)``: the support function of a set."""
        ...

    def into_domain(self, v: Array) -> Array:
        """Return a point near ``v`` at which the conjugate is finite, in exact arithmetic."""
        ...

    def violation(self, z: Array) -> Array:
        """Return how far ``z`` is from the domain of ``g``: by entry if separable, else in all."""
        ...


@dataclass(frozen=True)
class Mask:
    """``I - J = diag(values)`` with values between 0 and 1."""

    values: Array

    def apply(self, s: Array) -> Array:
        return self.values * s

    def piece(self, D: LinearMap, beta: Steps) -> Piece:
        weights = beta * self.values
        if isinstance(D, Identity):
            return Diagonal(weights)
        if isinstance(D, Dense | Sparse):
            return Gram(D.M, weights)
        norms = D.row_norms()
        mean = float(weights @ (norms * norms)) / D.shape[1]
        return Product(lambda s: D.adjoint(weights * D.forward(s)), mean, D.shape[1])

    def same(self, other: Complement) -> bool:
        return isinstance(other, Mask) and np.array_equal(self.values, other.values)
