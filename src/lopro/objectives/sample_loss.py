"""Losses of linear predictions: the mean over samples, with a ridge."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import Array, from_numpy, is_complex, namespace, norm, take, to_numpy
from lopro.core.validation import check_array, check_count, check_number, check_shape
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source
from lopro.functions.atoms import Atom, HalfSquare
from lopro.functions.term import Term
from lopro.maps import linear_map
from lopro.objectives.base import Objective

__all__ = ["SampleLoss", "checked_targets"]


class SampleLoss(MappedFunction, Objective):
    """``f(w) = mean_i loss(x_i'w) + l2/2 |w|^2``; subclasses define `targets`, `loss` and its constants.

    Parameters
    ----------
    X : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (n, d)
        One sample per row; real. Not copied.
    l2 : float
        Weight of the ridge, nonnegative.
    batch_size : int
        Number of rows, drawn uniformly with replacement, for a stochastic gradient; explicit
        matrices only.
    """

    #: Bounds of the first and of the second derivative of the loss of one sample; None where there is none.
    steepest: float | None = None
    sharpest: float | None = None
    #: One number for each sample: a label, a count or a value to predict.
    targets: Array

    def __init__(self, X: Any, l2: float = 0.0, batch_size: int = 1) -> None:
        self.X = linear_map(X, "X")
        if is_complex(self.X.like):
            raise TypeError(f"X must be real, got dtype {self.X.like.dtype}")
        self.l2 = check_number("l2", l2, minimum=0.0)
        self.batch_size = check_count("batch_size", batch_size)
        self.shape = (self.X.shape[1],)
        self.like = self.X.like
        self.stochastic = self.X.has_rows
        # The ridge is a function of w itself.
        self.image_length = 2 if self.l2 > 0.0 else 1

    def loss(self, targets: Array) -> tuple[Atom, Array | None]:
        """Return the mean loss of samples with these targets: an atom of the predictions, and its offset."""
        raise NotImplementedError

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        atom, offset = self.loss(self.targets)
        loss = Term(atom, self.X, offset)
        return (loss, Term(HalfSquare(), scale=self.l2)) if self.l2 > 0.0 else (loss,)

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
        atom, offset = self.loss(take(self.targets, rows))
        some = Term(atom, offset=offset)
        g = self.X.pull_through_rows(rows, x, some.slope)
        return g + self.l2 * x if self.l2 > 0.0 else g

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        G = self._lipschitz_of_loss()
        if G is None or self.l2 == 0.0:
            return G
        if ball is None or not math.isfinite(ball.radius):
            return None
        value = G.value + self.l2 * (norm(ball.center) + ball.radius)
        return Constant(value, G.source, f"{G.note}, ridge on the ball")

    def _lipschitz_of_loss(self) -> Constant | None:
        n, most = self.X.shape[0], self.steepest
        if most is None:
            return None
        if self.X.has_rows:
            rows = self.X.row_norms
            value = most * float(namespace(rows).sum(rows)) / n
            return Constant(value, Source.DERIVED, "mean norm of the rows of X")
        s = self.X.largest_singular_value
        return Constant(most * s.value / math.sqrt(n), s.source, s.note)

    def typical_size(self) -> float | None:
        # Predictions are of size 1 in any units of the features.
        root = norm(self.X.row_norms) / math.sqrt(self.X.shape[0]) if self.X.explicit else 0.0
        return 1.0 / root if root > 0.0 else None

    def smoothness(self) -> Constant | None:
        if self.sharpest is None:
            return None
        s = self.X.largest_singular_value
        value = self.sharpest * s.value * s.value / self.X.shape[0] + self.l2
        return Constant(value, s.source, s.note)

    def strong_convexity(self) -> Constant | None:
        return Constant(self.l2, Source.DERIVED, "l2") if self.l2 > 0.0 else None

    def infimum(self) -> Constant | None:
        return Constant(0.0, Source.DERIVED, "the loss is not negative")

    def sublevel_radius(self, level: float) -> Constant | None:
        least = self.infimum()
        if self.l2 == 0.0 or least is None:
            return None
        radius = math.sqrt(2.0 * max(level - least.value, 0.0) / self.l2)
        return Constant(radius, Source.DERIVED, "the ridge alone stays below the level")


def checked_targets(name: str, values: Any, n: int, like: Array) -> Array:
    """Return a copy of one real number for each sample, in the library of the samples."""
    y = to_numpy(check_array(name, values, ndim=1, allow_complex=False))
    check_shape(name, y, (n,))
    return from_numpy(np.array(y, dtype=np.float64), like)
