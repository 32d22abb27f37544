"""The logistic loss of labelled scores, its mean or a weighted sum."""

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

__all__ = ["Logistic"]

_TINY = float(np.finfo(np.float64).tiny)


class Logistic(Atom):
    """``g(z) = sum_i w_i log(1 + exp(-y_i z_i))`` with labels ``y_i`` of -1 and 1.

    Parameters
    ----------
    labels : array of shape (n,)
        -1 and 1.
    weights : array of shape (n,), optional
        ``w``, not negative; ``1 / n`` by default, the mean.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Logistic
    >>> g = Logistic(np.array([1.0, -1.0]))
    >>> round(g.value(np.zeros(2)), 6), g.slope(np.zeros(2)), g.curvature(np.zeros(2))
    (0.693147, array([-0.25,  0.25]), array([0.125, 0.125]))
    >>> Logistic(np.array([1.0, -1.0]), np.array([4.0, 0.0])).slope(np.zeros(2))
    array([-2.,  0.])
    """

    smooth = True
    separable = True
    extent = 1.0

    def __init__(self, labels: Array, weights: Array | None = None) -> None:
        self.labels = Companion(labels)
        self.count = labels.shape[0]
        self._weights = None if weights is None else Companion(weights)
        most = 1.0 / self.count if weights is None else float(namespace(weights).max(weights))
        self.steepness = most

    def _weighted(self, values: Array) -> Array:
        """Return ``values`` times the weights."""
        return (
            values / self.count if self._weights is None else values * self._weights.beside(values)
        )

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        xp, y = namespace(z), self.labels.beside(z)
        losses = _losses(y * z)
        value = xp.mean(losses) if self._weights is None else xp.sum(self._weighted(losses))
        return float(value), lambda: self._weighted(_slopes(y, z))

    def curvature(self, z: Array) -> Array:
        xp = namespace(z)
        e = xp.exp(-xp.abs(z))
        return self._weighted(e / (1.0 + e) ** 2)

    def conjugate(self, v: Array) -> float:
        """Return ``sum w (a log a + (1 - a) log(1 - a))`` for ``a = -y v / w`` between 0 and 1."""
        xp, a = namespace(v), self._shares(v)
        if not bool(xp.all((a >= 0.0) & (a <= 1.0))):
            return math.inf
        return float(xp.sum(self._weighted(_entropy(a) + _entropy(1.0 - a))))

    def _shares(self, v: Array) -> Array:
        """Return ``-y v / w``; where w = 0, 0 for v = 0 and infinity otherwise."""
        xp, pulled = namespace(v), -self.labels.beside(v) * v
        if self._weights is None:
            return self.count * pulled
        w, zero = self._weights.beside(v), xp.zeros_like(v)
        of_none = xp.where(v == 0.0, zero, zero + math.inf)
        return xp.where(w > 0.0, pulled / xp.where(w > 0.0, w, zero + 1.0), of_none)

    def into_domain(self, v: Array) -> Array:
        xp, y = namespace(v), self.labels.beside(v)
        # Slightly inside the domain, because the weights are rounded.
        most = self._weighted(xp.ones_like(v)) * (1.0 - 4.0 * eps(v))
        return -y * xp.minimum(xp.clip(-y * v, 0.0, None), most)

    def enclose_conjugate(self, v: Array) -> Estimate:
        a = self._shares(v)
        if not bool(np.all((a >= 0.0) & (a <= 1.0))):
            return Estimate(math.inf, 0.0)
        above, below = _entropy(a), _entropy(1.0 - a)
        # A share has an error of two roundings; the slope of the entropy there is log a - log(1 - a).
        slope = np.abs(np.log(np.maximum(a, _TINY))) + np.abs(np.log(np.maximum(1.0 - a, EPS)))
        off = 2.0 * LIBRARY_ERROR * (np.abs(above) + np.abs(below)) + 4.0 * EPS * a * (1.0 + slope)
        return total(self._weighted(above + below), self._weighted(off))

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add the sum of ``w_i t_i``, ``t_i >= log(1 + exp(u_i))``, ``u_i = -y_i z_i``, by two cones each.

        ``exp(u - t) <= p``, ``exp(-t) <= q`` and ``p + q <= 1``.
        """
        n = self.count
        y = np.asarray(to_numpy(self.labels.array), dtype=np.float64)
        t, p, q = (program.new_variables(n) for _ in range(3))
        given = None if self._weights is None else np.asarray(to_numpy(self._weights.array))
        weights = np.full(n, 1.0 / n) if given is None else given.astype(np.float64)
        program.add_linear(scale * weights, t)
        one = scipy.sparse.eye_array(n, format="csr")
        program.add_inequalities(np.ones(n), (one, p), (one, q))
        u = scipy.sparse.diags_array(-y) @ scipy.sparse.csr_array(image.D)
        first, count = 3 * np.arange(n), 3 * n
        bounds = np.tile([0.0, 1.0, 0.0], n)
        t_rows, moved = place_rows(one, first, count), bounds.copy()
        moved[first] = y * image.b  # u - t = (-y D x) + y b - t
        upper, lower = (
            (-place_rows(one, first + 2, count), p),
            (-place_rows(one, first + 2, count), q),
        )
        program.add_exponential(moved, (t_rows, t), upper, (-place_rows(u, first, count), 0))
        program.add_exponential(bounds, (t_rows, t), lower)


def _losses(s: Array) -> Array:
    """Return ``log(1 + exp(-s))``; exp is applied to negative numbers only, so that it cannot overflow."""
    xp = namespace(s)
    size = xp.abs(s)
    return xp.log1p(xp.exp(-size)) + 0.5 * (size - s)


def _slopes(y: Array, z: Array) -> Array:
    """Return the derivative ``-y / (1 + exp(y z))`` of the loss of each score."""
    xp = namespace(z)
    s = y * z
    e = xp.exp(-xp.abs(s))
    return -y * xp.where(s >= 0.0, e, xp.ones_like(e)) / (1.0 + e)


def _entropy(a: Array) -> Array:
    """Return ``a log a``, 0 at 0."""
    xp = namespace(a)
    return a * xp.log(xp.where(a > 0.0, a, xp.ones_like(a)))
