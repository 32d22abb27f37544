"""The augmented Lagrangian: the smooth part and the centred envelopes of all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lopro.core.counting import count
from lopro.functions.atoms import Step
from lopro.functions.complements import Complement
from lopro.newton.arrays import Array, Image, shifted
from lopro.newton.curvature import Piece, complement_pieces
from lopro.newton.problem import Composite
from lopro.newton.smooth import Slope

__all__ = ["AugmentedLagrangian", "Point"]


@dataclass(frozen=True)
class Point:
    """A point (or a direction) with its images under the maps of the smooth part and of the terms."""

    x: Array
    image: Image
    rows: Image

    @staticmethod
    def of(problem: Composite, x: Array) -> Point:
        """Return the point with its images: one product for each map."""
        return Point(x, problem.smooth.image(x), tuple(t.image(x) for t in problem.terms))

    def moved(self, t: float, direction: Point) -> Point:
        """Return ``x + t d`` with its images, without products."""
        return Point(
            self.x + t * direction.x,
            shifted(self.image, t, direction.image),
            shifted(self.rows, t, direction.rows),
        )


class AugmentedLagrangian:
    """``f(x) + sum_i min_z g_i(z) + beta_i/2 |D_i x + u_i/beta_i - z|^2 - |u_i|^2 / (2 beta_i)``.

    Parameters
    ----------
    problem : Composite
        ``f``, the parts and the maps.
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
        #: Slope of the norms among the terms: what a gradient is compared with where ``f`` has none.
        self.steepness = problem.steepness()
        self._steps = tuple(1.0 / beta for beta in self.penalties)
        self._centres = tuple(
            u / beta for u, beta in zip(self.multipliers, self.penalties, strict=True)
        )

    def targets(self, point: Point) -> Image:
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

    def stationarity(self, point: Point, duals: Image) -> tuple[Array, float]:
        """Return the gradient of the Lagrangian ``f(x) + sum <v_i, D_i x>``, and the size of that of f."""
        count("gradients")
        gradient, size = self.problem.smooth.sized_gradient(point.x, point.image)
        total = np.array(gradient)
        for term, v in zip(self.problem.terms, duals, strict=True):
            total += term.pullback(v)
        # Where f is least by itself its gradient vanishes, and its terms or the norms tell the size.
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

    def pieces(self, point: Point, complements: Sequence[Complement]) -> tuple[Piece, ...]:
        """Return the generalised Hessian without the proximal term, in pieces."""
        own = self.problem.smooth.curvature(point.x, point.image)
        terms = zip(self.problem.terms, complements, self.penalties, strict=True)
        return (*own, *(p for term, c, beta in terms for p in complement_pieces(c, term.D, beta)))

    def along(self, point: Point, targets: Image, direction: Point) -> Slope:
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
