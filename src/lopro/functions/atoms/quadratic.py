"""A convex quadratic function given by its matrix."""

from __future__ import annotations

from collections.abc import Callable

from lopro.core.arrays import Array, Companion, inner
from lopro.functions.atoms.base import Atom
from lopro.functions.cone_program import ConeBuilder, RealImage
from lopro.maps.base import LinearMap
from lopro.maps.host import host_map, host_matrix, host_vector

__all__ = ["Quadratic"]


class Quadratic(Atom):
    """``g(z) = 1/2 z'P z + q'z + constant`` with a symmetric positive semidefinite ``P``.

    Parameters
    ----------
    P : LinearMap
        The matrix.
    q : array
        The slope at zero.
    constant : float
        The value at zero.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Quadratic
    >>> from lopro.maps import linear_map
    >>> g = Quadratic(linear_map(np.diag([2.0, 4.0])), np.array([1.0, 0.0]))
    >>> g.value(np.ones(2)), g.slope(np.ones(2))
    (4.0, array([3., 4.]))
    """

    smooth = True

    def __init__(self, P: LinearMap, q: Array, constant: float = 0.0) -> None:
        self.P = P
        self._q = Companion(q)
        self.constant = constant

    @property
    def q(self) -> Array:
        """The slope at zero; do not write on it."""
        return self._q.array

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        return self.linearize_with(z, self.P.forward(z))

    def linearize_with(self, z: Array, Pz: Array) -> tuple[float, Callable[[], Array]]:
        """Return value and slope as `linearize` does, for a known ``P z``."""
        q = self._q.beside(Pz)
        return 0.5 * inner(z, Pz) + inner(q, z) + self.constant, lambda: Pz + q

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        if not image.is_identity or image.b.any():
            raise self._missing("conic form of an image")
        program.add_quadratic(scale * host_matrix(host_map(self.P)))
        program.add_linear(scale * host_vector(self.q))
        program.constant += scale * self.constant
