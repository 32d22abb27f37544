"""What the Newton method asks of a part ``g`` of the objective: a set or a norm.

A part enters through its centred Moreau envelope: with ``w = Dx + u / beta`` and ``z = prox(w)``, the
gradient of the envelope is ``D'v`` for ``v = beta (w - z)``, the next multiplier, and its generalised
Hessian is ``beta D' (I - J) D`` for ``J`` in the generalised Jacobian of the prox.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from lopro.newton.arrays import Array
from lopro.newton.curvature import Piece
from lopro.newton.maps import LinearMap

__all__ = ["Complement", "Part", "Steps"]

#: ``1 / beta``: one for each entry of separable parts, else one number.
Steps: TypeAlias = "Array | float"


class Complement(Protocol):
    """``I - J``: symmetric, with eigenvalues between 0 and 1."""

    def apply(self, s: Array) -> Array:
        """Return ``(I - J) s``."""
        ...

    def pieces(self, D: LinearMap, beta: Steps) -> tuple[Piece, ...]:
        """Return ``beta D' (I - J) D``, in pieces that are of the same kinds at every point."""
        ...


class Part(Protocol):
    """A convex function with an easy prox; the indicator function of a set, in particular."""

    size: int
    #: Whether it is a sum of functions of one entry each, so that entries may have their own penalty.
    separable: bool
    #: The largest norm of a subgradient, by entry if separable; 0 for a set, whose values are 0 and infinity.
    steepness: float

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
