"""The mean squared hinge loss of labelled scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, Companion, inner, namespace, to_numpy
from lopro.functions.atoms.base import Atom
from lopro.functions.cone_program import ConeBuilder, RealImage
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import Estimate, dot

__all__ = ["SquaredHinge"]


class SquaredHinge(Atom):
    """``g(z) = mean_i [1 - y_i z_i]_+^2`` with labels ``y_i`` of -1 and 1.

    Parameters
    ----------
    labels : array of shape (n,)
        -1 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import SquaredHinge
    >>> g = SquaredHinge(np.array([1.0, -1.0]))
    >>> g.value(np.array([3.0, 1.0])), g.slope(np.array([3.0, 1.0]))
    (2.0, array([-0.,  2.]))
    """

    smooth = True
    separable = True
    extent = 1.0

    def __init__(self, labels: Array) -> None:
        self.labels = Companion(labels)
        self.count = labels.shape[0]

    def _missing_margin(self, z: Array) -> tuple[Array, Array]:
        """Return the labels and ``[1 - y z]_+``."""
        y = self.labels.beside(z)
        short = 1.0 - y * z
        return y, namespace(z).where(short > 0.0, short, 0.0 * z)

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        y, short = self._missing_margin(z)
        return inner(short, short) / self.count, lambda: -y * short * (2.0 / self.count)

    def curvature(self, z: Array) -> Array:
        y, xp = self.labels.beside(z), namespace(z)
        return xp.astype(y * z < 1.0, z.dtype) * (2.0 / self.count)

    def conjugate(self, v: Array) -> float:
        """Return ``<v, y> + n |v|^2 / 4``, where ``y v <= 0``."""
        y, xp = self.labels.beside(v), namespace(v)
        if bool(xp.any(y * v > 0.0)):
            return math.inf
        return inner(y, v) + 0.25 * float(self.count) * inner(v, v)

    def into_domain(self, v: Array) -> Array:
        return namespace(v).where(self.labels.beside(v) * v > 0.0, 0.0 * v, v)

    def enclose_conjugate(self, v: Array) -> Estimate:
        y, error = self.labels.beside(v), EPS * np.abs(v)
        if bool(np.any(y * v > 0.0)):
            return Estimate(math.inf)
        return dot(v, y, error) + dot(v, v, error) * (0.25 * float(self.count))

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add the mean of ``s_i^2`` with ``s_i >= 1 - y_i z_i`` and ``s_i >= 0``."""
        n = self.count
        y = np.asarray(to_numpy(self.labels.array), dtype=np.float64)
        s = program.new_variables(n)
        one = scipy.sparse.eye_array(n, format="csr")
        program.add_quadratic((2.0 * scale / n) * one, s)
        margins = scipy.sparse.diags_array(-y) @ scipy.sparse.csr_array(image.D)
        program.add_inequalities(-1.0 - y * image.b, (margins, 0), (-one, s))
        program.add_inequalities(np.zeros(n), (-one, s))
