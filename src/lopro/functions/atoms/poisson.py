"""The Poisson loss of scores: counts whose rate is the exponential of the score."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, Companion, eps, namespace, to_numpy
from lopro.functions.atoms.base import LIBRARY_ERROR, Atom
from lopro.functions.cone_program import ConeBuilder, RealImage, place_rows
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import Estimate, total

__all__ = ["Poisson"]

_TINY = float(np.finfo(np.float64).tiny)


class Poisson(Atom):
    """``g(z) = mean_i exp(z_i) - k_i z_i`` with counts ``k_i >= 0``.

    Parameters
    ----------
    counts : array of shape (n,)
        Nonnegative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Poisson
    >>> g = Poisson(np.array([1.0, 3.0]))
    >>> g.value(np.zeros(2)), g.slope(np.zeros(2)), g.curvature(np.zeros(2))
    (1.0, array([ 0., -1.]), array([0.5, 0.5]))
    """

    smooth = True
    separable = True
    extent = 1.0

    def __init__(self, counts: Array) -> None:
        self.counts = Companion(counts)
        self.count = counts.shape[0]

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        xp, k = namespace(z), self.counts.beside(z)
        rates = _rates(z)
        return float(xp.mean(rates - k * z)), lambda: (rates - k) / self.count

    def curvature(self, z: Array) -> Array:
        return _rates(z) / self.count

    def conjugate(self, v: Array) -> float:
        """Return ``mean of u log u - u`` for ``u = n v + k >= 0``."""
        xp = namespace(v)
        u = self.count * v + self.counts.beside(v)
        if bool(xp.any(u < 0.0)):
            return math.inf
        return float(xp.mean(u * xp.log(xp.where(u > 0.0, u, xp.ones_like(u))) - u))

    def into_domain(self, v: Array) -> Array:
        # Slightly inside the domain, because the quotient is rounded, and v too where it is one.
        least = -(self.counts.beside(v) / self.count) * (1.0 - 4.0 * eps(v))
        return namespace(v).where(v < least, least, v)

    def enclose_conjugate(self, v: Array) -> Estimate:
        k = self.counts.beside(v)
        product = self.count * v
        u = product + k
        if bool(np.any(v < -k / self.count)):
            return Estimate(math.inf)
        u = np.maximum(u, 0.0)
        # u has the rounding errors of v, of the product and of the sum. They change u log u by at most
        # error (3 + |log u|), and at u = 0 by no more than where u is as large as its error.
        error = EPS * (1.5 * np.abs(product) + np.abs(u))
        logs = np.log(np.maximum(np.maximum(u, error), _TINY))
        terms = u * logs
        off = LIBRARY_ERROR * np.abs(terms) + EPS * u + error * (4.0 + np.abs(logs))
        return total(terms - u, off + EPS * np.abs(terms - u)) / float(self.count)

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add the mean of ``t_i - k_i z_i`` with ``exp(z_i) <= t_i``."""
        n = self.count
        k = np.asarray(to_numpy(self.counts.array), dtype=np.float64)
        t = program.new_variables(n)
        program.add_linear(np.full(n, scale / n), t)
        program.add_linear(-(scale / n) * (image.D.T @ k))
        program.constant += (scale / n) * float(k @ image.b)
        first, count = 3 * np.arange(n), 3 * n
        bounds = np.tile([0.0, 1.0, 0.0], n)
        bounds[first] = -image.b
        rates = -place_rows(scipy.sparse.eye_array(n, format="csr"), first + 2, count)
        program.add_exponential(bounds, (-place_rows(image.D, first, count), 0), (rates, t))


def _rates(z: Array) -> Array:
    """Return ``exp(z)``; infinite where it overflows, upon which line searches shorten the step."""
    with np.errstate(over="ignore"):
        return namespace(z).exp(z)
