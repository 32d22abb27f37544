"""A smooth loss of linear predictions with an l1 norm, sparse logistic regression, and its dual bound.

This is ``min g(A x) + sum p_i |x_i| + sum q_i x_i^2 / 2``, possibly with ``x >= 0`` and one free coefficient,
whose ``p`` is 0: an intercept. For every ``r`` where the conjugate is finite it is at least
``-g*(-r) - sum ((|A'r|_i - p_i)_+)^2 / (2 q_i)``, if ``|A'r|_i <= p_i`` where ``q_i = 0``. The column ``f``
of a free coefficient ``c`` requires ``f'r = 0``. By rounding it is not exactly 0, and the bound subtracts
``|f'r|`` times a bound of ``|c|`` that follows from the data (`FreeRadius`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lopro.basis_pursuit.columns.pieces import Vector
from lopro.basis_pursuit.penalised import FitMultiplier, PenalisedForm
from lopro.core.arrays import Array, asarray_like, from_numpy
from lopro.functions import Image
from lopro.functions.term import Term
from lopro.linalg.rounding import dot
from lopro.maps import LinearMap
from lopro.objectives import L1Norm, Objective

__all__ = ["FreeRadius", "SparseLoss"]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class FreeRadius:
    """A bound of a free coefficient ``c`` at all points whose value is at most that of a known one.

    The value F of a point is at least ``-<A'u, x> - (f'u) c`` for ``g*(-u) <= 0``, and at least
    ``sum p_i |x_i|``. With ``h = max |A'u|_i / p_i``, ``-(f'u) c <= (1 + h) F``. Two such ``u``, one for each
    sign of ``f'u``, bound c from both sides. The conjugate of the logistic loss is an entropy, never
    positive: its slopes at any point, those of some samples only, are such ``u``.
    """

    factor: float = math.inf

    @staticmethod
    def of(along: tuple[float, float], gauges: tuple[float, float]) -> FreeRadius:
        """Return the radius for two ``u``, by ``|f'u|`` and ``h`` of each."""
        if min(along) <= 0.0:
            return FreeRadius()
        parts = [(1.0 + h) / length for length, h in zip(along, gauges, strict=True)]
        return FreeRadius((1.0 + 1e-6) * max(parts))

    def at(self, fun: float) -> float:
        """Return the bound for points with values up to ``fun``."""
        return self.factor * fun


@dataclass(frozen=True, eq=False)
class SparseLoss(PenalisedForm):
    """The problem in the form that searches use; vectors are NumPy arrays in double precision."""

    source: ClassVar[str] = "Fenchel dual, slopes of the loss scaled to feasibility"

    parts: tuple[Objective, ...]
    #: The loss as a term, with its map and its factor.
    term: Term
    #: The penalty of each coefficient; infinite for a free one, whose correlation is not compared with it.
    weights: Vector
    #: The weights of the squares of the coefficients.
    ridges: Vector
    objective: L1Norm
    nonneg: bool
    #: The index of the free coefficient.
    free: int | None = None

    @property
    def A(self) -> LinearMap:
        return self.term.D

    @property
    def like(self) -> Array:
        return self.term.D.like

    @property
    def of_duals(self) -> Array:
        # In double precision: rounded to single precision, a dual point may leave the domain.
        return from_numpy(np.empty(0), self.like)

    def at_zero(self, like: Array) -> FitMultiplier:
        zero = np.zeros(self.A.shape[1])
        return FitMultiplier(zero, 0.0, None, fit=np.zeros(self.A.shape[0]), value=-math.inf)

    def penalty(self, x: Vector, at: Vector) -> float:
        """Return the penalty of the coefficients of some columns, without the free one."""
        return float(self.weights[at] @ np.abs(x) + 0.5 * (self.ridges[at] @ (x * x)))

    def lower_bound(self, r: Vector, g: Vector, blur: Vector, off: float) -> tuple[float, float]:
        """Return the best bound that multiples of ``r`` prove, and the factor.

        Parameters
        ----------
        r, g : array
            Minus the slopes of the loss, in the domain of the conjugate, and ``A'r``.
        blur : array
            Bounds of the errors of the entries of g.
        off : float
            The product of ``|f'r|`` and the bound of the free coefficient.
        """
        sizes = self.sizes(g) + blur
        if self.free is not None:
            sizes[self.free] = 0.0
        priced, above = self.ridges > 0.0, sizes > self.weights
        most = float((self.weights[above] / sizes[above]).min(initial=1.0))
        strict = above & ~priced
        least = float((self.weights[strict] / sizes[strict]).min(initial=1.0))
        found = -math.inf, 0.0
        for t in {most, least}:
            beyond = np.maximum((1.0 + 4.0 * _EPS) * t * sizes - self.weights, 0.0)[priced]
            paid = float((beyond * beyond / (2.0 * self.ridges[priced])).sum())
            cost = self.term.enclose_conjugate(-t * r)
            rounding = cost.error + 8.0 * _EPS * abs(cost.value) + len(sizes) * _EPS * paid
            found = max(found, (-cost.value - paid - rounding - t * off, t))
        return found

    def left_free(self, f: Vector, r: Vector) -> float:
        """Return an upper bound of ``|f'r|``, for multiples of ``r`` as well, which are rounded."""
        product = dot(f, r)
        return abs(product.value) + product.error + 4.0 * _EPS * float(np.abs(f) @ np.abs(r))

    def image_at(self, x: Array, image: Vector) -> Image:
        z, found = asarray_like(image, self.like), list[Array]()
        for part in self.parts:
            of_loss = any(term.map is self.term.map for term in part.terms)
            # Further terms of the loss are ridges, functions of x.
            found.extend((z, *(x for _ in part.terms[1:])) if of_loss else part.image(x))
        return tuple(found)

    def multiplier(self, bound: float, r: Vector, g: Vector) -> FitMultiplier:
        """Return the multiplier for a bound that ``r`` with ``g = A'r`` proves."""
        if not self.nonneg:
            return FitMultiplier(np.zeros(len(g)), 0.0, None, fit=r, value=bound)
        of_signs = np.where(np.isfinite(self.weights), np.minimum(g - self.weights, 0.0), 0.0)
        return FitMultiplier(of_signs, 0.0, (of_signs,), fit=r, value=bound)
