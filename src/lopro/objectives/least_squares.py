"""Least squares: half the squared norm of a residual."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import Array, Companion, as_complex, copy, is_complex, norm, take
from lopro.core.validation import check_array, check_count, check_shape
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source
from lopro.functions.atoms import HalfSquare
from lopro.functions.term import Term
from lopro.maps import linear_map
from lopro.objectives.base import Objective, lipschitz_of_smooth

__all__ = ["LeastSquares"]


class LeastSquares(MappedFunction, Objective):
    """``f(x) = 1/2 |A x - b|^2``.

    Its gradient has the Lipschitz constant ``|A|^2``; with independent columns it is strongly
    convex. It has no global Lipschitz constant, only one on each ball. For operators the norm is
    estimated by a few products; the constants are then marked as estimates.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator or LinearMap
        Not copied. Points are complex where ``A`` or ``b`` is.
    b : array of shape (m,)
        Copied.
    batch_size : int
        Number of rows, drawn uniformly with replacement, for a stochastic gradient; explicit
        matrices only.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import LeastSquares
    >>> f = LeastSquares(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, 2.0]))
    >>> f.value(np.zeros(2))
    2.5
    >>> f.subgradient(np.zeros(2))
    array([-1., -4.])
    >>> round(f.smoothness().value, 9), round(f.strong_convexity().value, 9)
    (4.0, 1.0)
    """

    smooth = True

    def __init__(self, A: Any, b: Any, batch_size: int = 1) -> None:
        self.A = linear_map(A)
        rows, columns = self.A.shape
        self._b = Companion(copy(check_array("b", b, ndim=1)))
        check_shape("b", self._b.array, (rows,))
        self.batch_size = check_count("batch_size", batch_size)
        self.shape = (columns,)
        self.like = as_complex(self.A.like) if is_complex(self._b.array) else self.A.like
        self.stochastic = self.A.has_rows

    @property
    def b(self) -> Array:
        """The right-hand side; do not write on it."""
        return self._b.array

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(HalfSquare(), self.A, self.b),)

    def image(self, x: Array) -> Image:
        return (self.A.forward(x),)

    def linearize_at(self, image: Image) -> Linearization:
        value, slope = self.terms[0].linearize(image[0])
        return value, lambda: self.A.adjoint(slope())

    def stochastic_subgradient(self, x: Array, rng: np.random.Generator) -> Array:
        m = self.A.shape[0]
        rows = rng.integers(m, size=self.batch_size)
        scale = m / self.batch_size
        return self.A.pull_through_rows(
            rows, x, lambda z: scale * (z - take(self._b.beside(z), rows))
        )

    def typical_size(self) -> float | None:
        # The length of the optimal step from zero along the gradient.
        g = self.A.adjoint(self._b.array)
        curvature = norm(self.A.forward(g)) ** 2
        return norm(g) ** 3 / curvature if curvature > 0.0 else None

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return lipschitz_of_smooth(self, ball)

    def smoothness(self) -> Constant:
        s = self.A.largest_singular_value
        return Constant(s.value * s.value, s.source, f"square of the {s.note}")

    def strong_convexity(self) -> Constant | None:
        s = self.A.smallest_singular_value
        if s is None:
            return None
        return Constant(s.value * s.value, s.source, f"square of the {s.note}")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a square")

    def sublevel_radius(self, level: float) -> Constant | None:
        s = self.A.smallest_singular_value
        if s is None:
            return None
        # smin |z| <= |A z| <= |b| + |A z - b|
        radius = (norm(self._b.array) + math.sqrt(2.0 * max(level, 0.0))) / s.value
        return Constant(radius, s.source, s.note)
