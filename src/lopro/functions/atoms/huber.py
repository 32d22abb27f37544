"""Huber's function: squares of small entries, absolute values of large ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, inner, namespace
from lopro.core.moduli import clip_modulus
from lopro.functions.atoms.base import Atom, Step, largest_ratio
from lopro.functions.complements import DiagonalComplement
from lopro.functions.cone_program import ConeBuilder, RealImage
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import Estimate, dot

__all__ = ["Huber"]


class Huber(Atom):
    """``g(z) = sum_i h(z_i)``, ``h(r) = r^2/2`` up to ``delta`` and ``delta |r| - delta^2/2`` beyond.

    The second derivative jumps at ``delta``, so that Newton steps are semismooth ones.

    Parameters
    ----------
    delta : float
        Where squares end; positive.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Huber
    >>> g = Huber(1.0)
    >>> g.value(np.array([0.5, -3.0])), g.slope(np.array([0.5, -3.0]))
    (2.625, array([ 0.5, -1. ]))
    """

    smooth = True
    proximable = True
    separable = True

    def __init__(self, delta: float) -> None:
        self.delta = self.steepness = self.extent = delta

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        near = clip_modulus(z, self.delta)
        # near * z - near^2 / 2 is the square within delta, and the line beyond.
        return float(namespace(z).sum(near * (z - 0.5 * near))), lambda: 1.0 * near

    def curvature(self, z: Array) -> Array:
        xp = namespace(z)
        return xp.astype(xp.abs(z) <= self.delta, z.dtype)

    def prox(self, w: Array, step: Step) -> Array:
        # The slope at the answer is w / (1 + step), up to delta.
        return w - step * clip_modulus(w / (1.0 + step), self.delta)

    def complement(self, w: Array, step: Step) -> DiagonalComplement:
        inside = np.abs(w) <= (1.0 + step) * self.delta
        return DiagonalComplement(np.where(inside, step / (1.0 + step), 0.0))

    def conjugate(self, v: Array) -> float:
        xp = namespace(v)
        return 0.5 * inner(v, v) if bool(xp.all(xp.abs(v) <= self.delta)) else math.inf

    def into_domain(self, v: Array) -> Array:
        return clip_modulus(v, self.delta)

    def gauge(self, v: Array) -> float:
        xp = namespace(v)
        return largest_ratio(float(xp.max(xp.abs(v))), self.delta)

    def enclose_conjugate(self, v: Array) -> Estimate:
        inside = bool(np.all(np.abs(v) <= self.delta))
        return dot(v, v, EPS * np.abs(v)) * 0.5 if inside else Estimate(math.inf)

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add ``|r|^2 / 2 + delta sum t`` with ``|z - r| <= t``: a share for squares, one for values."""
        m = image.rows
        r, t = program.new_variables(m), program.new_variables(m)
        one = scipy.sparse.eye_array(m, format="csr")
        program.add_quadratic(scale * one, r)
        program.add_linear(np.full(m, scale * self.delta), t)
        program.add_inequalities(image.b, (image.D, 0), (-one, r), (-one, t))
        program.add_inequalities(-image.b, (-image.D, 0), (one, r), (-one, t))
