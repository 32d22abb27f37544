"""The second-order cone."""

from __future__ import annotations

import math

import numpy as np

from lopro.core.arrays import Array, eps, namespace, norm
from lopro.functions.atoms.base import SetAtom, Step
from lopro.functions.complements import DiagonalPlusRows
from lopro.linalg.rounding import Estimate, length

__all__ = ["SecondOrderCone"]


class SecondOrderCone(SetAtom):
    """The set ``|(z_1, ..., z_k)| <= z_0`` of vectors with at least two entries.

    Outside of the cone and of its polar, ``I - J`` is a multiple of the identity on the vectors that are
    orthogonal to ``z`` and to the first axis, plus a projection of rank one on the direction of the step.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import SecondOrderCone
    >>> SecondOrderCone().prox(np.array([0.0, 3.0, 4.0]), 1.0)
    array([2.5, 1.5, 2. ])
    """

    def value(self, z: Array) -> float:
        return 0.0 if norm(z[1:]) <= float(z[0]) else math.inf

    def prox(self, w: Array, step: Step) -> Array:
        t, size = float(w[0]), norm(w[1:])
        if size <= t:
            return w
        if size <= -t:
            return 0.0 * w
        height = 0.5 * (t + size)
        return namespace(w).concat([0.0 * w[:1] + height, (height / size) * w[1:]])

    def complement(self, w: Array, step: Step) -> DiagonalPlusRows:
        t, y = float(w[0]), w[1:]
        size = norm(y)
        rows = np.zeros((2, len(w)))
        if size <= t or size <= -t:
            values = np.full(len(w), 0.0 if size <= t else 1.0)
            return DiagonalPlusRows(values, rows, np.zeros(2))
        share = 0.5 * (1.0 - t / size)
        rows[0, 0], rows[0, 1:] = math.sqrt(0.5), -math.sqrt(0.5) / size * y
        rows[1, 1:] = y / size
        values = np.full(len(w), share)
        values[0] = 0.0
        return DiagonalPlusRows(values, rows, np.array([1.0, -share]))

    def conjugate(self, v: Array) -> float:
        return 0.0 if norm(v[1:]) <= -float(v[0]) else math.inf

    def into_domain(self, v: Array) -> Array:
        # The polar cone, with a margin of more than the rounding of a norm.
        least = norm(v[1:]) * (1.0 + (v.shape[0] + 8) * eps(v))
        return namespace(v).concat([0.0 * v[:1] + min(float(v[0]), -least), v[1:]])

    def enclose_conjugate(self, v: Array) -> Estimate:
        return Estimate(0.0 if length(v[1:]) <= -float(v[0]) else math.inf)
