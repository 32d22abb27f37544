"""The mean logistic loss of labelled scores."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, Companion, namespace, to_numpy
from lopro.functions.atoms.base import Atom, Enclosed
from lopro.functions.cone_program import ConeBuilder, RealImage, place_rows
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import total

__all__ = ["Logistic"]

#: Units in the last place by which exp and log1p may be off; libraries promise less than 4.
_LIBRARY = 4.0 * EPS


class Logistic(Atom):
    """``g(z) = mean_i log(1 + exp(-y_i z_i))`` with labels ``y_i`` of -1 and 1.

    Parameters
    ----------
    labels : array of shape (n,)
        -1 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Logistic
    >>> g = Logistic(np.array([1.0, -1.0]))
    >>> round(g.value(np.zeros(2)), 6), g.slope(np.zeros(2)), g.curvature(np.zeros(2))
    (0.693147, array([-0.25,  0.25]), array([0.125, 0.125]))
    """

    smooth = True
    separable = True
    extent = 1.0

    def __init__(self, labels: Array) -> None:
        self.labels = Companion(labels)
        self.count = labels.shape[0]
        self.steepness = 1.0 / self.count

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        y = self.labels.beside(z)
        return _mean_loss(y * z), lambda: _slopes(y, z) / self.count

    def curvature(self, z: Array) -> Array:
        xp = namespace(z)
        e = xp.exp(-xp.abs(z))
        return e / (1.0 + e) ** 2 / self.count

    def conjugate(self, v: Array) -> float:
        """Return ``mean of a log a + (1 - a) log(1 - a)`` for ``a = -n y v`` between 0 and 1."""
        xp = namespace(v)
        a = -self.count * self.labels.beside(v) * v
        if not bool(xp.all((a >= 0.0) & (a <= 1.0))):
            return math.inf
        return float(xp.mean(_entropy(a) + _entropy(1.0 - a)))

    def into_domain(self, v: Array) -> Array:
        xp, y = namespace(v), self.labels.beside(v)
        return -y * xp.clip(-y * v, 0.0, 1.0 / self.count)

    def enclose(self, z: Array, error: Array) -> Enclosed:
        y = self.labels.beside(z)
        losses = np.logaddexp(0.0, -y * z)
        # The loss has slope at most 1, and its slope at most 1/4.
        value = total(losses, (2.0 * _LIBRARY) * losses + error) / self.count
        slopes = _slopes(y, z) / self.count
        bound = (_LIBRARY * np.abs(slopes) + 0.25 * error / self.count) * (1.0 + 8.0 * EPS)
        return value, slopes, bound + EPS * np.abs(slopes)

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add the mean of ``t_i >= log(1 + exp(u_i))``, ``u_i = -y_i z_i``, by two exponential cones.

        ``exp(u - t) <= p``, ``exp(-t) <= q`` and ``p + q <= 1``.
        """
        n = self.count
        y = np.asarray(to_numpy(self.labels.array), dtype=np.float64)
        t, p, q = (program.new_variables(n) for _ in range(3))
        program.add_linear(np.full(n, scale / n), t)
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


def _mean_loss(s: Array) -> float:
    """Return the mean of ``log(1 + exp(-s))``; only negative numbers are exponentiated."""
    xp = namespace(s)
    size = xp.abs(s)
    return float(xp.mean(xp.log1p(xp.exp(-size)) + 0.5 * (size - s)))


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
