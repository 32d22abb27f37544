"""Logistic regression: the mean logistic loss of labelled rows, with ridge penalty."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import (
    Array,
    Companion,
    from_numpy,
    is_complex,
    namespace,
    norm,
    take,
    to_numpy,
)
from lopro.core.validation import check_array, check_count, check_number, check_shape
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source, atoms
from lopro.functions.term import Term
from lopro.maps import linear_map
from lopro.objectives.base import Objective

__all__ = ["Logistic"]


class Logistic(MappedFunction, Objective):
    """``f(w) = mean_i log(1 + exp(-y_i x_i'w)) + l2/2 |w|^2``.

    Constants: ``L = |X|^2 / (4 n) + l2``, ``mu = l2``, and without the ridge a global Lipschitz
    constant, the mean norm of the rows.

    Parameters
    ----------
    X : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (n, d)
        One sample per row; real. Not copied.
    labels : array of shape (n,)
        -1 and 1, or 0 and 1.
    l2 : float
        Weight of the ridge, nonnegative.
    batch_size : int
        How many rows, drawn uniformly with replacement, make a stochastic gradient; explicit
        matrices only.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import Logistic
    >>> f = Logistic(np.array([[1.0], [-2.0]]), np.array([1, -1]))
    >>> round(f.value(np.zeros(1)), 6)
    0.693147
    >>> f.lipschitz().value
    1.5
    """

    smooth = True

    def __init__(self, X: Any, labels: Any, l2: float = 0.0, batch_size: int = 1) -> None:
        self.X = linear_map(X, "X")
        if is_complex(self.X.like):
            raise TypeError(f"X must be real, got dtype {self.X.like.dtype}")
        n, d = self.X.shape
        self._y = Companion(_signs(labels, n, self.X.like))
        self.l2 = check_number("l2", l2, minimum=0.0)
        self.batch_size = check_count("batch_size", batch_size)
        self.shape = (d,)
        self.like = self.X.like
        self.stochastic = self.X.has_rows
        # The ridge is a function of w itself.
        self.image_length = 2 if self.l2 > 0.0 else 1

    @property
    def labels(self) -> Array:
        """The labels as -1 and 1; do not write on them."""
        return self._y.array

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        loss = Term(atoms.Logistic(self.labels), self.X)
        return (loss, Term(atoms.HalfSquare(), scale=self.l2)) if self.l2 > 0.0 else (loss,)

    def image(self, x: Array) -> Image:
        z = self.X.forward(x)
        return (z, x) if self.l2 > 0.0 else (z,)

    def linearize_at(self, image: Image) -> Linearization:
        loss, *ridge = (term.linearize(z) for term, z in zip(self.terms, image, strict=True))
        value, slope = loss
        if not ridge:
            return value, lambda: self.X.adjoint(slope())
        return value + ridge[0][0], lambda: self.X.adjoint(slope()) + ridge[0][1]()

    def stochastic_subgradient(self, x: Array, rng: np.random.Generator) -> Array:
        rows = rng.integers(self.X.shape[0], size=self.batch_size)
        # The mean over a sample is an unbiased estimate of the mean over all.
        sample = atoms.Logistic(take(self.labels, rows))
        g = self.X.pull_through_rows(rows, x, sample.slope)
        return g + self.l2 * x if self.l2 > 0.0 else g

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        G = self._lipschitz_of_loss()
        if self.l2 == 0.0:
            return G
        if ball is None or not math.isfinite(ball.radius):
            return None
        value = G.value + self.l2 * (norm(ball.center) + ball.radius)
        return Constant(value, G.source, f"{G.note}, ridge on the ball")

    def _lipschitz_of_loss(self) -> Constant:
        n = self.X.shape[0]
        if self.X.has_rows:
            rows = self.X.row_norms
            value = float(namespace(rows).sum(rows)) / n
            return Constant(value, Source.DERIVED, "mean norm of the rows of X")
        s = self.X.largest_singular_value
        return Constant(s.value / math.sqrt(n), s.source, s.note)

    def typical_size(self) -> float | None:
        # Margins are numbers of size one, whatever the units of the features are.
        root = norm(self.X.row_norms) / math.sqrt(self.X.shape[0]) if self.X.explicit else 0.0
        return 1.0 / root if root > 0.0 else None

    def smoothness(self) -> Constant:
        s = self.X.largest_singular_value
        return Constant(s.value * s.value / (4.0 * self.X.shape[0]) + self.l2, s.source, s.note)

    def strong_convexity(self) -> Constant | None:
        return Constant(self.l2, Source.DERIVED, "l2") if self.l2 > 0.0 else None

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "the loss is positive")

    def sublevel_radius(self, level: float) -> Constant | None:
        if self.l2 == 0.0:
            return None
        radius = math.sqrt(2.0 * max(level, 0.0) / self.l2)
        return Constant(radius, Source.DERIVED, "the ridge alone stays below the level")


def _signs(labels: Any, n: int, like: Array) -> Array:
    """Return the labels as -1 and 1."""
    y = to_numpy(check_array("labels", labels, ndim=1, allow_complex=False))
    check_shape("labels", y, (n,))
    found = {float(label) for label in np.unique(y)}
    if not (found <= {-1.0, 1.0} or found <= {0.0, 1.0}):
        shown = ", ".join(f"{label:g}" for label in sorted(found)[:5])
        raise ValueError(f"labels must be -1 and 1, or 0 and 1; among them are {shown}")
    return from_numpy(np.where(y > 0.0, 1.0, -1.0), like)
