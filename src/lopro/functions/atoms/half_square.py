"""Half the squared Euclidean norm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lopro.core.arrays import Array, inner, namespace
from lopro.functions.atoms.base import Atom, Enclosed, Step
from lopro.functions.complements import DiagonalComplement
from lopro.functions.cone_program import ConeBuilder, RealImage, add_half_square
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import Estimate, dot, total

__all__ = ["HalfSquare"]


class HalfSquare(Atom):
    """``g(z) = 1/2 |z|^2``; it is its own conjugate.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import HalfSquare
    >>> HalfSquare().value(np.array([3.0, 4.0])), HalfSquare().prox(np.array([3.0, 4.0]), 1.0)
    (12.5, array([1.5, 2. ]))
    """

    smooth = True
    proximable = True
    separable = True

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        return 0.5 * inner(z, z), lambda: z

    def curvature(self, z: Array) -> Array:
        xp = namespace(z)
        return xp.ones_like(xp.abs(z))

    def prox(self, w: Array, step: Step) -> Array:
        return w - (step / (1.0 + step)) * w

    def complement(self, w: Array, step: Step) -> DiagonalComplement:
        return DiagonalComplement(np.broadcast_to(np.asarray(step / (1.0 + step)), w.shape))

    def conjugate(self, v: Array) -> float:
        return 0.5 * inner(v, v)

    def into_domain(self, v: Array) -> Array:
        return v

    def enclose(self, z: Array, error: Array) -> Enclosed:
        # |z|^2 with z known up to e: each square is off by at most 2 |z| e + e^2.
        squares = z * z
        value = total(squares, EPS * squares + (2.0 * np.abs(z) + error) * error) * 0.5
        return value, z, error

    def enclose_conjugate(self, v: Array) -> Estimate:
        return dot(v, v, EPS * np.abs(v)) * 0.5

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        add_half_square(program, image, scale)
