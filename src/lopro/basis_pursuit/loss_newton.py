"""A smooth loss with an l1 norm on a few columns, by Newton's method.

Each step minimises the quadratic model of the loss with the norm as it is, and goes there as far as the value
falls. A free coefficient is eliminated from the model. The model is minimised on signs: on a set of columns
with known signs the solution is explicit; where a sign flips the path to it ends, columns whose correlation
is too large join. The value falls with every set of signs, so none comes again (H. Lee, A. Battle, R. Raina
and A. Ng, Efficient sparse coding algorithms, 2006, who add one column at a time).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit import support_newton
from lopro.basis_pursuit.pieces import Vector
from lopro.basis_pursuit.sparse_loss import SparseLoss
from lopro.core.deadline import current_deadline

__all__ = ["LossNewton", "minimise_on_signs"]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Settings:
    """Accuracies of Newton's method on columns; all are relative."""

    #: The share of the predicted decrease that a step must reach (Armijo), and the most halvings.
    gain: float = 1e-4
    halvings: int = 30
    #: Of the diagonal, in roundings: added where columns are dependent.
    shift: float = 1e3 * _EPS
    #: Sets of signs for one model.
    faces: int = 200


SETTINGS = Settings()


@dataclass(eq=False)
class LossNewton:
    """The problem on some columns: coefficients, scores, and the slopes of the loss there.

    Parameters
    ----------
    form : SparseLoss
        The problem.
    free : array, optional
        The column of the free coefficient.
    """

    form: SparseLoss
    free: Vector | None
    x: Vector = field(default_factory=lambda: np.empty(0))
    constant: float = 0.0
    indices: Vector = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    def __post_init__(self) -> None:
        self.columns: Any = np.empty((self.form.A.shape[0], 0))
        self.move(np.empty(0), 0.0)

    def move(self, x: Vector, constant: float) -> None:
        """Go to other coefficients."""
        self.x, self.constant = x, constant
        self._arrive(self._image(x, constant))

    def _image(self, x: Vector, constant: float) -> Vector:
        image = self.columns @ x
        return np.asarray(image if self.free is None else image + constant * self.free)

    def _arrive(self, scores: Vector) -> None:
        self.scores = scores
        value, slope = self.form.term.linearize(scores)
        self.slope, self.fun = slope(), value + self.form.penalty(self.x, self.indices)

    def extend(self, indices: Vector, columns: Any) -> None:
        """Add columns with coefficients of 0."""
        if len(self.indices) == 0:
            self.columns = columns
        elif scipy.sparse.issparse(columns) and scipy.sparse.issparse(self.columns):
            self.columns = scipy.sparse.hstack([self.columns, columns], format="csc")
        else:
            sides = [
                c.toarray() if scipy.sparse.issparse(c) else c for c in (self.columns, columns)
            ]
            self.columns = np.concatenate(sides, axis=1)
        self.indices = np.concatenate([self.indices, indices])
        self.x = np.concatenate([self.x, np.zeros(len(indices))])

    def keep(self, stays: Vector) -> None:
        """Drop columns, whose coefficients are 0."""
        self.columns, self.indices = self.columns[:, stays], self.indices[stays]
        self.x = self.x[stays]

    # Optimality.

    @property
    def correlations(self) -> Vector:
        """Minus the slope of the smooth part in each coefficient."""
        return np.asarray(-(self.columns.T @ self.slope) - self._ridges * self.x)

    @property
    def _ridges(self) -> Vector:
        return self.form.ridges[self.indices]

    @property
    def _prices(self) -> Vector:
        return self.form.prices[self.indices]

    def error(self) -> float:
        """Return by how much optimality is missed, in units of the prices."""
        g, prices = self.correlations, self._prices
        off = np.abs(g - np.sign(self.x) * prices) / prices
        outside = np.maximum(self.form.sizes(g) / prices - 1.0, 0.0)
        worst = float(np.where(self.x != 0.0, off, outside).max(initial=0.0))
        if self.free is None:
            return worst
        # The slopes of the two signs of the free column's products cancel in the end.
        parts = self.free * self.slope
        return max(worst, abs(float(parts.sum())) / (float(np.abs(parts).sum()) or 1.0))

    # A step.

    def step(self) -> bool:
        """Make one Newton step; return whether the value fell."""
        current_deadline().check()
        form, x = self.form, self.x
        h, g = form.term.curvature(self.scores), self.correlations
        G = _gram(self.columns, h)
        G[np.diag_indices_from(G)] += self._ridges
        if self.free is None:
            new, constant = minimise_on_signs(G, G @ x + g, self._prices, x, form.nonneg), 0.0
            promised = 0.0
        else:
            weighted = h * self.free
            curvature = max(float(weighted @ self.free), _EPS * float(np.abs(self.slope).sum()))
            mixed, pull = np.asarray(self.columns.T @ weighted), -float(self.free @ self.slope)
            G -= np.outer(mixed, mixed) / curvature
            right = G @ x + g - mixed * (pull / curvature)
            new = minimise_on_signs(G, right, self._prices, x, form.nonneg)
            constant = (pull - float(mixed @ (new - x))) / curvature
            promised = pull * constant
        promised += float(g @ (new - x)) - float(self._prices @ (np.abs(new) - np.abs(x)))
        return self._search(new, constant, promised)

    def _search(self, new: Vector, constant: float, promised: float) -> bool:
        """Go to new coefficients, or as far as the value falls by a share of what the model promises."""
        x, c, scores, fun, share = self.x, self.constant, self.scores, self.fun, 1.0
        slope, image = self.slope, self._image(new - x, constant)
        if not promised > 0.0:
            return False
        rounding = 8.0 * _EPS * fun
        for _ in range(SETTINGS.halvings):
            # Coefficients that are to vanish become 0 exactly.
            self.x = new if share == 1.0 else x + share * (new - x)
            self.constant = c + share * constant
            self._arrive(scores + share * image)
            if self.fun <= fun - SETTINGS.gain * share * promised + rounding:
                return True
            share *= 0.5
        self.x, self.constant, self.scores, self.slope, self.fun = x, c, scores, slope, fun
        return False

    def solve(self, error: float, steps: int) -> bool:
        """Step until optimality is missed by no more than this; return whether it is."""
        for _ in range(steps):
            if self.error() <= error:
                return True
            if not self.step():
                return False
        return self.error() <= error


def _gram(columns: Any, h: Vector) -> Vector:
    """Return ``A' diag(h) A``."""
    if scipy.sparse.issparse(columns):
        return np.asarray((columns.T @ (scipy.sparse.diags_array(h) @ columns)).toarray())
    scaled = np.sqrt(h)[:, None] * columns
    return np.asarray(scaled.T @ scaled)


def minimise_on_signs(G: Vector, q: Vector, prices: Vector, x: Vector, nonneg: bool) -> Vector:
    """Return the minimiser of ``x'G x / 2 - q'x + sum p_i |x_i|``, possibly over ``x >= 0``, from a start.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.loss_newton import minimise_on_signs
    >>> minimise_on_signs(np.eye(2), np.array([3.0, 0.5]), np.ones(2), np.zeros(2), False)
    array([2., 0.])
    """
    signs, several = np.sign(x), True
    for _ in range(SETTINGS.faces):
        current_deadline().check()
        S = np.flatnonzero(signs)
        aim = np.zeros_like(x)
        aim[S] = _solved(G[np.ix_(S, S)], q[S] - prices[S] * signs[S])
        flipped = aim * signs < 0.0
        if not flipped.any():
            x = aim
            g = q - G @ x
            slack = (g if nonneg else np.abs(g)) - (1.0 + support_newton.SETTINGS.close) * prices
            entering = np.flatnonzero((signs == 0.0) & (slack > 0.0))
            if not entering.size:
                return x
            if not several:
                entering = entering[[int(slack[entering].argmax())]]
            signs = signs.copy()
            signs[entering] = np.sign(g[entering])
            continue
        x, moved = _towards(G, q, prices, x, aim, flipped)
        # Several columns that enter at once may take a wrong sign; a single one does not.
        several = several and moved
        signs = np.sign(x) if moved else np.where(flipped & (x == 0.0), 0.0, signs)
    return x


def _towards(
    G: Vector, q: Vector, prices: Vector, x: Vector, aim: Vector, flipped: Vector
) -> tuple[Vector, bool]:
    """Return a better point on the way to another one, where signs flip, and whether it is another one."""
    cut = np.where(flipped, 0.0, aim)
    if _value(G, q, prices, cut) < _value(G, q, prices, x):
        return cut, True
    reach = x[flipped] / (x[flipped] - aim[flipped])
    first = float(reach.min())
    if first == 0.0:
        return x, False
    at = x + first * (aim - x)
    at[np.flatnonzero(flipped)[reach == first]] = 0.0
    return at, True


def _value(G: Vector, q: Vector, prices: Vector, x: Vector) -> float:
    return float(0.5 * (x @ (G @ x)) - q @ x + prices @ np.abs(x))


def _solved(G: Vector, right: Vector) -> Vector:
    """Solve with a positive semidefinite matrix; where it is singular, with a little more on its diagonal."""
    if right.size == 0:
        return right
    diagonal, shift = G.diagonal().copy(), 0.0
    for _ in range(8):
        shifted = G.copy()
        shifted[np.diag_indices_from(G)] = diagonal + shift * (diagonal + diagonal.max())
        factor, info = scipy.linalg.lapack.dpotrf(shifted, lower=True, overwrite_a=True)
        if info == 0 and bool((np.diagonal(factor) ** 2 > 8.0 * _EPS * diagonal).all()):
            return np.asarray(scipy.linalg.lapack.dpotrs(factor, right, lower=True)[0])
        shift = max(SETTINGS.shift, 100.0 * shift)
    return np.zeros_like(right)
