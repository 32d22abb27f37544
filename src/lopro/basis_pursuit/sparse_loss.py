"""A smooth loss of linear predictions with an l1 norm, sparse logistic regression, and its dual bound.

This is ``min g(A x) + sum p_i |x_i| + sum q_i x_i^2 / 2``, possibly with ``x >= 0`` and one free coefficient,
whose ``p`` is 0: an intercept. For every ``r`` where the conjugate is finite it is at least
``-g*(-r) - sum ((|A'r|_i - p_i)_+)^2 / (2 q_i)``, if ``|A'r|_i <= p_i`` where ``q_i = 0``. The column ``f``
of a free coefficient ``c`` requires ``f'r = 0``. By rounding it is not exactly 0, and the bound subtracts
``|f'r|`` times a radius that the data prove for ``c`` (`Radius`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.basis_pursuit.penalised import ROUNDED, FitMultiplier, unscaled
from lopro.basis_pursuit.pieces import Vector
from lopro.constraints import Box, WholeSpace
from lopro.core.arrays import Array, asarray_like, eps, from_numpy, is_complex, is_single, to_numpy
from lopro.functions import Image, atoms
from lopro.functions.term import Term
from lopro.linalg.rounding import dot
from lopro.maps import LinearMap
from lopro.objectives import L1Norm, Objective, SquaredDistance, Sum
from lopro.problem import Problem
from lopro.protocol import ProvedBound

__all__ = ["Radius", "SparseLoss", "sparse_loss"]

_EPS = float(np.finfo(np.float64).eps)
_SOURCE = "Fenchel dual, slopes of the loss scaled to feasibility"
#: Smooth losses with positive second derivatives whose conjugates are known with their rounding.
_LOSSES = (atoms.Logistic,)


@dataclass(frozen=True)
class Radius:
    """A bound of a free coefficient ``c`` at every point that is as good as a known one.

    The value F of a point is at least ``-<A'u, x> - (f'u) c`` for ``g*(-u) <= 0``, and at least
    ``sum p_i |x_i|``. With ``h = max |A'u|_i / p_i``, ``-(f'u) c <= (1 + h) F``. Two such ``u``, one for each
    sign of ``f'u``, bound c from both sides. The conjugate of the logistic loss is an entropy, never
    positive: its slopes at any point, those of some samples only, are such ``u``.
    """

    factor: float = math.inf

    @staticmethod
    def of(along: tuple[float, float], gauges: tuple[float, float]) -> Radius:
        """Return the radius for two ``u``, by ``|f'u|`` and ``h`` of each."""
        if min(along) <= 0.0:
            return Radius()
        parts = [(1.0 + h) / length for length, h in zip(along, gauges, strict=True)]
        return Radius((1.0 + 1e-6) * max(parts))

    def at(self, fun: float) -> float:
        """Return the bound for points with values up to ``fun``."""
        return self.factor * fun


@dataclass(frozen=True, eq=False)
class SparseLoss:
    """The problem as a search for columns uses it; vectors are NumPy arrays in double precision."""

    parts: tuple[Objective, ...]
    #: The loss, with its map and its factor.
    term: Term
    #: The penalty of each coefficient; infinite for a free one, whose correlation is not compared with it.
    prices: Vector
    #: The weights of the squares.
    ridges: Vector
    nonneg: bool
    like: Array
    #: Which coefficient is free.
    free: int | None = None

    @property
    def A(self) -> LinearMap:
        return self.term.D

    def penalty(self, x: Vector, at: Vector) -> float:
        """Return the penalty of the coefficients of some columns; none of them is the free one."""
        return float(self.prices[at] @ np.abs(x) + 0.5 * (self.ridges[at] @ (x * x)))

    def sizes(self, g: Vector) -> Vector:
        """Return the correlations that count: those of the wrong sign do not."""
        return g if self.nonneg else np.abs(g)

    def excess(self, g: Vector) -> Vector:
        """Return correlations in units of the prices."""
        return np.asarray(self.sizes(g) / self.prices)

    def lower_bound(self, r: Vector, g: Vector, blur: Vector, off: float) -> tuple[float, float]:
        """Return the best bound that multiples of ``r`` prove, and the factor.

        Parameters
        ----------
        r, g : array
            Minus the slopes of the loss, in the domain of the conjugate, and ``A'r``.
        blur : array
            By how much the entries of g may be off.
        off : float
            What a free coefficient may gain by what is left of ``f'r``.
        """
        sizes = self.sizes(g) + blur
        if self.free is not None:
            sizes[self.free] = 0.0
        priced, above = self.ridges > 0.0, sizes > self.prices
        most = float((self.prices[above] / sizes[above]).min(initial=1.0))
        strict = above & ~priced
        least = float((self.prices[strict] / sizes[strict]).min(initial=1.0))
        found = -math.inf, 0.0
        for t in {most, least}:
            beyond = np.maximum((1.0 + 4.0 * _EPS) * t * sizes - self.prices, 0.0)[priced]
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
        """Return a point under the maps of the objective, where ``image = A x`` is known already."""
        z, found = asarray_like(image, self.like), list[Array]()
        for part in self.parts:
            of_loss = any(term.map is self.term.map for term in part.terms)
            # A ridge of the loss itself is a function of x.
            found.extend((z, *(x for _ in part.terms[1:])) if of_loss else part.image(x))
        return tuple(found)

    def evidence(self, bound: float, r: Vector, g: Vector) -> ProvedBound:
        """Return a bound with the dual point behind it, in the library and precision of the problem."""
        slope, dual = np.zeros(len(g)), None
        if self.nonneg:
            signed = np.isfinite(self.prices)
            slope[signed] = np.minimum(g - self.prices, 0.0)[signed]
            dual = (asarray_like(slope, self.like),)
        fit = from_numpy(r, self.like) if is_single(self.like) else asarray_like(r, self.like)
        proof = FitMultiplier(asarray_like(slope, self.like), 0.0, dual, fit=fit, value=bound)
        rounding = ROUNDED * eps(self.like) * abs(bound) if is_single(self.like) else 0.0
        return ProvedBound(bound, _SOURCE, inequality=proof, gained=rounding)


def sparse_loss(problem: Problem) -> SparseLoss | None:
    """Return a problem as a loss with an l1 norm; None where it is not of this form.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.sparse_loss import sparse_loss
    >>> loss = lopro.objectives.Logistic(np.eye(2), np.array([1, -1]))
    >>> sparse_loss(lopro.Problem(loss + 0.1 * lopro.objectives.L1Norm())).prices
    array([0.1, 0.1])
    """
    f = problem.objective
    if not isinstance(f, Sum) or problem.shape is None or len(problem.shape) != 1:
        return None
    losses, d = [p for p in f.parts if isinstance(p.terms[0].atom, _LOSSES)], problem.shape[0]
    norms = [p for p in f.parts if isinstance(unscaled(p)[1], L1Norm)]
    rest = [p for p in f.parts if p not in losses and p not in norms]
    if len(losses) != 1 or len(norms) != 1 or not all(_is_ridge(p) for p in rest):
        return None
    loss, *own = losses[0].terms
    ridges = sum((_ridge(p, d) for p in rest), np.full(d, sum(term.scale for term in own)))
    signs = _signs(problem)
    if signs is None or loss.map is None or is_complex(loss.D.like):
        return None
    scale, norm = unscaled(norms[0])
    assert isinstance(norm, L1Norm)
    prices = scale * to_numpy(norm.weights_like(np.zeros(d))).astype(np.float64)
    free = np.flatnonzero(prices == 0.0)
    lower, is_signed = signs
    if free.size > 1 or bool((ridges[free] > 0.0).any()) or bool((lower[free] == 0.0).any()):
        return None
    if is_signed and np.count_nonzero(lower == 0.0) + free.size < d:
        return None
    prices[free] = math.inf
    at = int(free[0]) if free.size else None
    return SparseLoss(f.parts, loss, prices, ridges, is_signed, loss.D.like, at)


def _is_ridge(f: Objective) -> bool:
    """Whether a function is a weighted sum of squares of the coefficients."""
    _, g = unscaled(f)
    return isinstance(g, SquaredDistance) and not to_numpy(g.z).any()


def _ridge(f: Objective, d: int) -> Vector:
    scale, g = unscaled(f)
    assert isinstance(g, SquaredDistance)
    weights = np.ones(d) if g.weights is None else to_numpy(g.weights).astype(np.float64)
    return scale * weights


def _signs(problem: Problem) -> tuple[Any, bool] | None:
    """Return lower bounds of 0 or minus infinity, and whether there are any; None for other constraints."""
    members, free = problem.constraint.members(), np.full(problem.shape or (0,), -math.inf)
    if all(isinstance(m, WholeSpace) for m in members):
        return free, False
    if len(members) != 1 or not isinstance(members[0], Box):
        return None
    box = members[0]
    lower, upper = (np.broadcast_to(np.asarray(v), free.shape) for v in (box.lower, box.upper))
    if not np.isposinf(upper).all() or not (np.isneginf(lower) | (lower == 0.0)).all():
        return None
    return lower, bool((lower == 0.0).any())
