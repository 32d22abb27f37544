"""The augmented Lagrangian of a composite problem, its derivatives, and their scales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lopro.core.counting import count
from lopro.functions.atoms import Ball, Interval, L1Ball, SecondOrderCone, Step
from lopro.functions.complements import Complement
from lopro.functions.term import Term
from lopro.linalg.dense import Array, norm
from lopro.maps.host import host_vector
from lopro.newton import curvature
from lopro.newton.complement_pieces import complement_pieces
from lopro.newton.curvature import Piece
from lopro.newton.problem import Composite
from lopro.newton.smooth import Image, Slope

__all__ = ["CompositeLagrangian", "PointWithImages", "mean_curvature", "shifted", "squared_norms"]


@dataclass(frozen=True)
class PointWithImages:
    """A point (or a direction) with its images under the maps of the smooth part and of the terms."""

    x: Array
    image: Image
    rows: Image

    @staticmethod
    def of(problem: Composite, x: Array) -> PointWithImages:
        """Return the point with its images: one product for each map."""
        return PointWithImages(x, problem.smooth.image(x), tuple(t.image(x) for t in problem.terms))

    def moved(self, t: float, direction: PointWithImages) -> PointWithImages:
        """Return ``x + t d`` with its images, without products."""
        return PointWithImages(
            self.x + t * direction.x,
            shifted(self.image, t, direction.image),
            shifted(self.rows, t, direction.rows),
        )


def shifted(image: Image, t: float, direction: Image) -> Image:
    """Return the images of ``x + t d`` from those of ``x`` and ``d``."""
    return tuple(y + t * e for y, e in zip(image, direction, strict=True))


class CompositeLagrangian:
    """``f(x) + sum_i min_z g_i(z) + beta_i/2 |D_i x + u_i/beta_i - z|^2 - |u_i|^2 / (2 beta_i)``.

    Parameters
    ----------
    problem : Composite
        ``f`` and the terms.
    multipliers : sequence of arrays
        ``u_i``.
    penalties : sequence
        ``beta_i``: an array with a number for each entry where the term is separable, else a number.
    anchor : array, optional
        The centre of a proximal term ``shift/2 |x - anchor|^2``, which makes singular problems regular.
    shift : float
        Its weight.
    """

    def __init__(
        self,
        problem: Composite,
        multipliers: Sequence[Array],
        penalties: Sequence[Step],
        anchor: Array | None = None,
        shift: float = 0.0,
    ) -> None:
        self.problem = problem
        self.multipliers = tuple(multipliers)
        self.penalties = tuple(penalties)
        self.shift = 0.0 if anchor is None else shift
        self.anchor = np.zeros(problem.size) if anchor is None else anchor
        #: Largest slope of the norms among the terms, the scale of gradients where that of ``f`` vanishes.
        self.steepness = problem.steepness()
        self._steps = tuple(1.0 / beta for beta in self.penalties)
        self._centres = tuple(
            u / beta for u, beta in zip(self.multipliers, self.penalties, strict=True)
        )

    def targets(self, point: PointWithImages) -> Image:
        """Return ``w_i = D_i x + u_i / beta_i``."""
        return tuple(y + c for y, c in zip(point.rows, self._centres, strict=True))

    def duals(self, targets: Image) -> Image:
        """Return ``v_i = beta_i (w_i - prox(w_i))``, the next multipliers."""
        return tuple(
            beta * (w - term.prox(w, step))
            for term, w, beta, step in zip(
                self.problem.terms, targets, self.penalties, self._steps, strict=True
            )
        )

    def stationarity(self, point: PointWithImages, duals: Image) -> tuple[Array, float]:
        """Return the gradient of the Lagrangian ``f(x) + sum <v_i, D_i x>``, and the scale of that of f."""
        count("gradients")
        gradient, size = self.problem.smooth.sized_gradient(point.x, point.image)
        total = np.array(gradient)
        for term, v in zip(self.problem.terms, duals, strict=True):
            total += term.pullback(v)
        # At a minimiser of f its gradient vanishes: the scale is that of its terms, or of the norms.
        return total, max(size, self.steepness)

    def proximal_slope(self, x: Array) -> Array | float:
        """Return the gradient of the proximal term."""
        return self.shift * (x - self.anchor) if self.shift else 0.0

    def complements(self, targets: Image) -> tuple[Complement, ...]:
        """Return ``I - J_i`` at these targets."""
        return tuple(
            term.complement(w, step)
            for term, w, step in zip(self.problem.terms, targets, self._steps, strict=True)
        )

    def pieces(
        self, point: PointWithImages, complements: Sequence[Complement]
    ) -> tuple[Piece, ...]:
        """Return the pieces of the generalised Hessian, without the proximal term."""
        own = self.problem.smooth.curvature(point.x, point.image)
        terms = zip(self.problem.terms, complements, self.penalties, strict=True)
        return (*own, *(p for term, c, beta in terms for p in complement_pieces(c, term.D, beta)))

    def along(self, point: PointWithImages, targets: Image, direction: PointWithImages) -> Slope:
        """Return the derivatives along a direction."""
        smooth = self.problem.smooth.along(point.x, point.image, direction.x, direction.image)
        d = direction.x
        pull = self.shift * float(d @ (point.x - self.anchor)) if self.shift else 0.0
        stiffness = self.shift * float(d @ d) if self.shift else 0.0
        terms = self.problem.terms
        lines = tuple(zip(terms, targets, direction.rows, self.penalties, self._steps, strict=True))

        def derivatives(t: float) -> tuple[float, float]:
            first, second = smooth(t)
            first, second = first + pull + t * stiffness, second + stiffness
            for term, w, e, beta, step in lines:
                there = w + t * e
                weighted = beta * e
                first += float(weighted @ (there - term.prox(there, step)))
                second += float(weighted @ term.complement(there, step).apply(e))
            return first, second

        return derivatives


def squared_norms(term: Term) -> Step:
    """Return the squared norms of the rows, or their mean for terms with a single penalty."""
    norms = term.row_norms
    squares = norms * norms
    if term.separable:
        return np.where(squares > 0.0, squares, 1.0)
    mean = float(squares.mean()) if squares.size else 1.0
    return mean if mean > 0.0 else 1.0


def mean_curvature(problem: Composite, point: PointWithImages) -> float:
    """Return a typical second derivative: the mean eigenvalue of f's Hessian, else from its gradient."""
    pieces = problem.smooth.curvature(point.x, point.image)
    mean = curvature.trace(pieces, problem.size) / problem.size
    if mean > 0.0:
        return mean
    own = norm(problem.smooth.gradient(point.x, point.image))
    slope = max(own, problem.steepness())
    length = max([norm(point.x), *(_length(term) for term in problem.terms)])
    if length == 0.0:  # zero is feasible: bounds still give the units of x
        length = max((_farthest_bound(term) for term in problem.terms), default=0.0)
    return slope / length if slope > 0.0 and length > 0.0 else 1.0


def _length(term: Term) -> float:
    """Return a typical size of x: the distance from zero of a set, or of the kinks of a norm."""
    if term.is_set:
        zero = np.zeros(term.size)
        away = np.abs(term.prox(zero, 1.0 / np.ones(term.size) if term.separable else 1.0))
        return float((away / np.sqrt(squared_norms(term))).max(initial=0.0))
    if term.offset is None:
        return 0.0
    away = np.abs(host_vector(term.offset)) / np.sqrt(squared_norms(term))
    if not term.separable:
        return norm(away)
    # The median, which a few outliers do not change.
    return float(np.median(away[away > 0.0])) if away.any() else 0.0


def _farthest_bound(term: Term) -> float:
    """Return the largest distance from zero of a bound, a point of a ball or an apex; else 0."""
    if isinstance(term.atom, Ball | L1Ball | SecondOrderCone):
        centre = 0.0 if term.offset is None else norm(term.offset)
        return (centre + term.atom.extent) / float(np.sqrt(squared_norms(term)))
    if not isinstance(term.atom, Interval):
        return 0.0
    bounds = np.abs(np.stack([term.atom.lower, term.atom.upper]))
    bounds = np.where(np.isfinite(bounds), bounds, 0.0)
    return float((bounds / np.sqrt(squared_norms(term))).max(initial=0.0))
