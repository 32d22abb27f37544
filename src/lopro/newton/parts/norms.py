"""The l1 norm and norms of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.newton.arrays import EPS, Array
from lopro.newton.parts.base import Steps
from lopro.newton.parts.complements import BlockMask, Mask

__all__ = ["L1", "GroupNorms"]


class L1:
    """``sum of weights_i |z_i|``.

    Parameters
    ----------
    weights : array or float
        Not negative.
    size : int
        Needed if the weights are a number.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.parts import L1
    >>> L1(1.0, size=2).prox(np.array([3.0, -0.5]), 1.0)
    array([ 2., -0.])
    """

    separable = True

    def __init__(self, weights: Any, size: int | None = None) -> None:
        given = np.asarray(weights, dtype=np.float64)
        shape = given.shape if size is None else (size,)
        self.weights: Array = np.broadcast_to(given, shape)
        if len(shape) != 1 or not bool(np.all((self.weights >= 0.0) & np.isfinite(self.weights))):
            raise ValueError("weights must be a vector of numbers that are not negative")
        self.size = shape[0]
        self.steepness = float(self.weights.max(initial=0.0))

    def value(self, z: Array) -> float:
        return float(self.weights @ np.abs(z))

    def prox(self, w: Array, steps: Steps) -> Array:
        return np.sign(w) * np.maximum(np.abs(w) - steps * self.weights, 0.0)

    def complement(self, w: Array, steps: Steps) -> Mask:
        return Mask((np.abs(w) <= steps * self.weights).astype(np.float64))

    def conjugate(self, v: Array) -> float:
        return 0.0 if bool(np.all(np.abs(v) <= self.weights)) else np.inf

    def into_domain(self, v: Array) -> Array:
        return np.minimum(np.maximum(v, -self.weights), self.weights)

    def violation(self, z: Array) -> Array:
        return np.zeros(self.size)


class GroupNorms:
    """``weight * sum of |z_g|_2`` over groups of consecutive entries.

    Where ``|w_g|`` exceeds ``s = weight * steps``, ``I - J`` is ``s/|w_g| (I - nn')`` with ``n = w_g/|w_g|``;
    elsewhere it is ``I``.

    Parameters
    ----------
    weight : float
        Not negative.
    groups, group_size : int
        How many groups there are, and their size.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.parts import GroupNorms
    >>> GroupNorms(1.0, 1, 2).prox(np.array([3.0, 4.0]), 2.5)
    array([1.5, 2. ])
    """

    separable = False

    def __init__(self, weight: float, groups: int, group_size: int) -> None:
        self.weight = self.steepness = float(weight)
        if not 0.0 <= self.weight < np.inf:
            raise ValueError(f"weight must be a number that is not negative, got {weight}")
        self.groups, self.group_size = groups, group_size
        self.size = groups * group_size

    def _lengths(self, z: Array) -> tuple[Array, Array]:
        blocks = z.reshape(self.groups, self.group_size)
        return blocks, np.sqrt(np.einsum("ij,ij->i", blocks, blocks))

    def value(self, z: Array) -> float:
        return self.weight * float(self._lengths(z)[1].sum())

    def prox(self, w: Array, steps: Steps) -> Array:
        blocks, lengths = self._lengths(w)
        left = np.maximum(lengths - self.weight * steps, 0.0)
        shares = left / np.where(lengths > 0.0, lengths, 1.0)
        return np.asarray((shares[:, None] * blocks).ravel())

    def complement(self, w: Array, steps: Steps) -> BlockMask:
        blocks, lengths = self._lengths(w)
        threshold = self.weight * steps
        moving = lengths > threshold
        sizes = np.where(moving, lengths, 1.0)
        normals = np.where(moving, 1.0 / sizes, 0.0)[:, None] * blocks
        shares = np.where(moving, threshold / sizes, 1.0)
        inside = np.eye(self.group_size) - normals[:, :, None] * normals[:, None, :]
        return BlockMask(shares[:, None, None] * inside)

    def conjugate(self, v: Array) -> float:
        return 0.0 if bool(np.all(self._lengths(v)[1] <= self.weight)) else np.inf

    def into_domain(self, v: Array) -> Array:
        blocks, lengths = self._lengths(v)
        # A little farther in than the rounding of a norm.
        allowed = self.weight * (1.0 - (self.group_size + 8) * EPS)
        shares = np.where(lengths > allowed, allowed / np.where(lengths > 0.0, lengths, 1.0), 1.0)
        return np.asarray((shares[:, None] * blocks).ravel())

    def violation(self, z: Array) -> Array:
        return np.zeros(())
