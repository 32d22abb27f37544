"""The largest modulus of an entry."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, eps, namespace
from lopro.core.moduli import unit_phase
from lopro.functions.atoms.base import Atom, Step
from lopro.functions.complements import DiagonalPlusRows
from lopro.functions.cone_program import ConeBuilder, RealImage
from lopro.functions.simplex import l1_ball_jacobian, project_l1_ball
from lopro.linalg.rounding import EPS, Estimate

__all__ = ["LInf"]


class LInf(Atom):
    """``g(z) = max_i |z_i|``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import LInf
    >>> LInf().value(np.array([3.0, -4.0])), LInf().prox(np.array([3.0, -4.0]), 3.0)
    (4.0, array([ 2., -2.]))
    """

    proximable = True
    steepness = 1.0

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        xp = namespace(z)
        sizes = xp.abs(z)
        largest = float(xp.max(sizes))

        def slope() -> Array:
            reached = xp.astype(sizes == xp.max(sizes), sizes.dtype)
            # The mean of the slopes of all entries of largest modulus.
            share = reached / float(xp.sum(reached))
            return xp.astype(share, z.dtype) * unit_phase(z)

        return largest, slope

    def prox(self, w: Array, step: Step) -> Array:
        # Moreau: w minus its projection on the dual ball.
        return w - project_l1_ball(w, float(step))

    def complement(self, w: Array, step: Step) -> DiagonalPlusRows:
        # The complement is the Jacobian of the projection on the dual ball.
        values, row, weight = l1_ball_jacobian(w, float(step))
        return DiagonalPlusRows(values, row, -weight)

    def conjugate(self, v: Array) -> float:
        return 0.0 if self.gauge(v) <= 1.0 else math.inf

    def into_domain(self, v: Array) -> Array:
        # Moved inside by more than the rounding of the sum.
        unit = 1.0 + (v.shape[0] + 4) * eps(v)
        return v if self.gauge(v) * unit <= 1.0 else project_l1_ball(v, 1.0 / unit**2)

    def gauge(self, v: Array) -> float:
        xp = namespace(v)
        return float(xp.sum(xp.abs(v)))

    def enclose_conjugate(self, v: Array) -> Estimate:
        # A sum of n moduli is off by n roundings at most.
        total = self.gauge(v) * (1.0 + v.size * EPS)
        return Estimate(0.0 if total <= 1.0 else math.inf)

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add ``t`` with ``|z_i| <= t`` for all i."""
        if image.is_complex:
            raise self._missing("conic form for complex points")
        t = program.new_variables(1)
        program.add_linear(np.array([scale]), t)
        top = scipy.sparse.csr_array(-np.ones((image.rows, 1)))
        program.add_inequalities(image.b, (image.D, 0), (top, t))
        program.add_inequalities(-image.b, (-image.D, 0), (top, t))
