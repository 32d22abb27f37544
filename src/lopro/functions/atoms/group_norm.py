"""Sums of the Euclidean norms of groups of consecutive entries."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, eps, namespace
from lopro.functions.atoms.base import Atom, Step, largest_ratio
from lopro.functions.complements import BlockDiagonal
from lopro.functions.cone_program import ConeBuilder, RealImage, place_rows
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import Estimate

__all__ = ["GroupNorm", "row_prox"]

#: Limit of the Newton steps for the length of a row, which converge quadratically in about ten, and the
#: relative step at which they end: 45 units in the last place.
_STEPS, _ACCURACY = 60, 1e-14


class GroupNorm(Atom):
    """``g(z) = weight * sum of |z_g|_2`` over groups of ``group_size`` consecutive entries.

    With ``s = weight * step``: where ``|w_g| > s``, ``I - J`` is ``s/|w_g| (I - nn')`` for ``n = w_g/|w_g|``;
    elsewhere it is ``I``.

    Parameters
    ----------
    group_size : int
        Entries in each group.
    weight : float
        Nonnegative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import GroupNorm
    >>> GroupNorm(2).prox(np.array([3.0, 4.0]), 2.5)
    array([1.5, 2. ])
    """

    proximable = True

    def __init__(self, group_size: int, weight: float = 1.0) -> None:
        self.group_size = group_size
        self.weight = self.steepness = weight

    def times(self, factor: float) -> GroupNorm:
        return GroupNorm(self.group_size, factor * self.weight)

    def _lengths(self, z: Array) -> tuple[Array, Array]:
        """Return the entries with a row for each group, and the norms of the rows."""
        xp = namespace(z)
        blocks = xp.reshape(z, (-1, self.group_size))
        return blocks, xp.sqrt(xp.sum(blocks * blocks, axis=1))

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        xp = namespace(z)
        blocks, lengths = self._lengths(z)

        def slope() -> Array:
            proper = xp.where(lengths > 0.0, lengths, xp.ones_like(lengths))
            return xp.reshape(self.weight * (blocks / proper[:, None]), tuple(z.shape))

        return self.weight * float(xp.sum(lengths)), slope

    def prox(self, w: Array, step: Step) -> Array:
        xp = namespace(w)
        blocks, lengths = self._lengths(w)
        threshold = self.weight * step
        shrunk = xp.where(lengths > threshold, lengths - threshold, 0.0 * lengths)
        shares = shrunk / xp.where(lengths > 0.0, lengths, xp.ones_like(lengths))
        return xp.reshape(shares[:, None] * blocks, tuple(w.shape))

    def complement(self, w: Array, step: Step) -> BlockDiagonal:
        blocks, lengths = self._lengths(w)
        threshold = self.weight * step
        moving = lengths > threshold
        sizes = np.where(moving, lengths, 1.0)
        normals = np.where(moving, 1.0 / sizes, 0.0)[:, None] * blocks
        shares = np.where(moving, threshold / sizes, 1.0)
        inside = np.eye(self.group_size) - normals[:, :, None] * normals[:, None, :]
        return BlockDiagonal(shares[:, None, None] * inside)

    def conjugate(self, v: Array) -> float:
        return 0.0 if bool(namespace(v).all(self._lengths(v)[1] <= self.weight)) else math.inf

    def into_domain(self, v: Array) -> Array:
        xp = namespace(v)
        blocks, lengths = self._lengths(v)
        # The bound is reduced by more than the rounding of a norm.
        allowed = self.weight * (1.0 - (self.group_size + 8) * eps(v))
        sizes = xp.where(lengths > 0.0, lengths, xp.ones_like(lengths))
        shares = xp.where(lengths > allowed, allowed / sizes, xp.ones_like(lengths))
        return xp.reshape(shares[:, None] * blocks, tuple(v.shape))

    def gauge(self, v: Array) -> float:
        longest = float(namespace(v).max(self._lengths(v)[1]))
        return largest_ratio(longest, self.weight)

    def enclose_conjugate(self, v: Array) -> Estimate:
        # The norms of groups, each rounded up.
        lengths = self._lengths(v)[1] * (1.0 + (self.group_size + 4) * EPS)
        return Estimate(0.0 if bool(np.all(lengths <= self.weight)) else math.inf)

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add the sum of ``t_g`` with ``|z_g| <= t_g``: each cone holds ``t_g`` and the rows of its group."""
        if image.is_complex:
            raise self._missing("conic form for complex points")
        groups, size = image.rows // self.group_size, self.group_size + 1
        t = program.new_variables(groups)
        program.add_linear(np.full(groups, scale * self.weight), t)
        rows = np.arange(groups * size).reshape(groups, size)
        inside, count = rows[:, 1:].ravel(), groups * size
        bounds = np.zeros(count)
        bounds[inside] = -image.b
        tops = place_rows(-scipy.sparse.eye_array(groups, format="csr"), rows[:, 0], count)
        spread = place_rows(image.D, inside, count)
        program.add_second_order(size, bounds, (tops, t), (-spread, 0))


def row_prox(V: Array, weights: Array, units: Array) -> Array:
    """Return, row by row, ``argmin_g |g - v|^2 / 2 + weight |units * g|``.

    For equal units it is a shrinkage of the row. Otherwise ``g_j = v_j / (1 + weight u_j^2 / nu)`` with the
    length ``nu`` of ``units * g``, at which ``sum_j (u_j v_j)^2 / (nu + weight u_j^2)^2`` is 1: Newton's
    method finds it from below.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms.group_norm import row_prox
    >>> row_prox(np.array([[3.0, 4.0]]), np.array([1.0]), np.ones(2))
    array([[2.4, 3.2]])
    """
    squares, shifts = np.square(V * units), weights[:, None] * np.square(units)
    vanish = np.square(V / units).sum(axis=1) <= np.square(weights)
    nu = np.zeros((len(V), 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_STEPS):
            inverse = 1.0 / (nu + shifts)
            h = (squares * inverse**2).sum(axis=1, keepdims=True)
            slope = (squares * inverse**3).sum(axis=1, keepdims=True)
            step = np.where(vanish[:, None], 0.0, (np.sqrt(h) - 1.0) * h / slope)
            nu = nu + step
            if np.all(np.abs(step) <= _ACCURACY * nu):
                break
        shrunk = V * nu / (nu + shifts)
    return np.where(vanish[:, None], 0.0, shrunk)
