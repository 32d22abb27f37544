"""Newton's method for a smooth loss with an l1 norm on a few columns.

Each step minimises the quadratic model of the loss plus the norm, followed by a backtracking line search. A
free coefficient is eliminated from the model. The model is minimised by an active-set method on signs: for
known signs the minimiser is explicit; a move towards it stops where a sign flips, and columns whose
correlation exceeds their weight are added. The value decreases with every set of signs, so none recurs
(H. Lee, A. Battle, R. Raina and A. Ng, Efficient sparse coding algorithms, 2006, who add one column at a
time).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.columns import column_set as columns
from lopro.basis_pursuit.columns import support_newton
from lopro.basis_pursuit.columns.pieces import Vector
from lopro.basis_pursuit.losses.sparse_loss import SparseLoss
from lopro.core.deadline import current_deadline

__all__ = ["LossNewton", "minimise_on_signs"]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Settings:
    """The line search and the systems of Newton's method on columns."""

    #: The share of the predicted decrease that a step must attain: the usual constant of Armijo's rule (J.
    #: Nocedal and S. Wright, Numerical Optimization, 2006, section 3.1); and the maximal number of halvings,
    #: after which steps are 1e-9 of a Newton step.
    gain: float = 1e-4
    halvings: int = 30
    #: The first shift where columns are dependent, relative to the diagonal: the limit of `ColumnSet`.
    shift: float = columns.SETTINGS.dependent * _EPS
    #: The maximal number of sets of signs for one model. A tenth, 20, changes no count of the logistic
    #: instances of `python -m benchmarks.constants basis_pursuit --only faces`.
    faces: int = 200


SETTINGS = Settings()


@dataclass(eq=False)
class LossNewton:
    """The problem on some columns: coefficients, linear predictions (scores) and slopes of the loss.

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
        """Set the coefficients."""
        self.x, self.constant = x, constant
        self._evaluate(self._image(x, constant))

    def _image(self, x: Vector, constant: float) -> Vector:
        image = self.columns @ x
        return np.asarray(image if self.free is None else image + constant * self.free)

    def _evaluate(self, scores: Vector) -> None:
        """Evaluate the loss and its slopes at new scores."""
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
        """Drop the columns for which ``stays`` is false; their coefficients are 0."""
        self.columns, self.indices = self.columns[:, stays], self.indices[stays]
        self.x = self.x[stays]

    # Optimality.

    @property
    def correlations(self) -> Vector:
        """Minus the derivative of the smooth part by each coefficient."""
        return np.asarray(-(self.columns.T @ self.slope) - self._ridges * self.x)

    @property
    def _ridges(self) -> Vector:
        return self.form.ridges[self.indices]

    @property
    def _weights(self) -> Vector:
        return self.form.weights[self.indices]

    def error(self) -> float:
        """Return the error of the optimality conditions in units of the weights."""
        g, weights = self.correlations, self._weights
        off = np.abs(g - np.sign(self.x) * weights) / weights
        outside = np.maximum(self.form.sizes(g) / weights - 1.0, 0.0)
        worst = float(np.where(self.x != 0.0, off, outside).max(initial=0.0))
        if self.free is None:
            return worst
        # At the optimum the positive and negative products of the free column with the slopes cancel.
        parts = self.free * self.slope
        return max(worst, abs(float(parts.sum())) / (float(np.abs(parts).sum()) or 1.0))

    # A step.

    def step(self) -> bool:
        """Make one Newton step; return whether the value decreased."""
        current_deadline().check()
        form, x = self.form, self.x
        h, g = form.term.curvature(self.scores), self.correlations
        G = _gram(self.columns, h)
        G[np.diag_indices_from(G)] += self._ridges
        if self.free is None:
            new, constant = minimise_on_signs(G, G @ x + g, self._weights, x, form.nonneg), 0.0
            predicted = 0.0
        else:
            weighted = h * self.free
            curvature = max(float(weighted @ self.free), _EPS * float(np.abs(self.slope).sum()))
            mixed, pull = np.asarray(self.columns.T @ weighted), -float(self.free @ self.slope)
            G -= np.outer(mixed, mixed) / curvature
            right = G @ x + g - mixed * (pull / curvature)
            new = minimise_on_signs(G, right, self._weights, x, form.nonneg)
            constant = (pull - float(mixed @ (new - x))) / curvature
            predicted = pull * constant
        predicted += float(g @ (new - x)) - float(self._weights @ (np.abs(new) - np.abs(x)))
        return self._search(new, constant, predicted)

    def _search(self, new: Vector, constant: float, predicted: float) -> bool:
        """Backtrack from new coefficients until the value decreases by a share of the predicted decrease."""
        x, c, scores, fun, share = self.x, self.constant, self.scores, self.fun, 1.0
        slope, image = self.slope, self._image(new - x, constant)
        if not predicted > 0.0:
            return False
        rounding = 8.0 * _EPS * fun
        for _ in range(SETTINGS.halvings):
            # A full step sets vanishing coefficients to 0 exactly.
            self.x = new if share == 1.0 else x + share * (new - x)
            self.constant = c + share * constant
            self._evaluate(scores + share * image)
            if self.fun <= fun - SETTINGS.gain * share * predicted + rounding:
                return True
            share *= 0.5
        self.x, self.constant, self.scores, self.slope, self.fun = x, c, scores, slope, fun
        return False

    def solve(self, error: float, steps: int) -> bool:
        """Step until the optimality error is at most ``error``; return whether it is."""
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


def minimise_on_signs(G: Vector, q: Vector, weights: Vector, x: Vector, nonneg: bool) -> Vector:
    """Return the minimiser of ``x'G x / 2 - q'x + sum w_i |x_i|``, possibly over ``x >= 0``, from a start.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.losses.newton import minimise_on_signs
    >>> minimise_on_signs(np.eye(2), np.array([3.0, 0.5]), np.ones(2), np.zeros(2), False)
    array([2., 0.])
    """
    signs, several = np.sign(x), True
    for _ in range(SETTINGS.faces):
        current_deadline().check()
        S = np.flatnonzero(signs)
        aim = np.zeros_like(x)
        aim[S] = _solved(G[np.ix_(S, S)], q[S] - weights[S] * signs[S])
        flipped = aim * signs < 0.0
        if not flipped.any():
            x = aim
            g = q - G @ x
            slack = (g if nonneg else np.abs(g)) - (1.0 + support_newton.SETTINGS.close) * weights
            entering = np.flatnonzero((signs == 0.0) & (slack > 0.0))
            if not entering.size:
                return x
            if not several:
                entering = entering[[int(slack[entering].argmax())]]
            signs = signs.copy()
            signs[entering] = np.sign(g[entering])
            continue
        x, moved = _towards(G, q, weights, x, aim, flipped)
        # If several columns are added at once, some may take the wrong sign; a single one does not.
        several = several and moved
        signs = np.sign(x) if moved else np.where(flipped & (x == 0.0), 0.0, signs)
    return x


def _towards(
    G: Vector, q: Vector, weights: Vector, x: Vector, aim: Vector, flipped: Vector
) -> tuple[Vector, bool]:
    """Return a point towards ``aim`` before signs flip, and whether it differs from ``x``.

    The flipped entries are set to 0 if that decreases the value; otherwise the move ends at the first flip.
    """
    cut = np.where(flipped, 0.0, aim)
    if _value(G, q, weights, cut) < _value(G, q, weights, x):
        return cut, True
    reach = x[flipped] / (x[flipped] - aim[flipped])
    first = float(reach.min())
    if first == 0.0:
        return x, False
    at = x + first * (aim - x)
    at[np.flatnonzero(flipped)[reach == first]] = 0.0
    return at, True


def _value(G: Vector, q: Vector, weights: Vector, x: Vector) -> float:
    return float(0.5 * (x @ (G @ x)) - q @ x + weights @ np.abs(x))


def _solved(G: Vector, right: Vector) -> Vector:
    """Solve with a positive semidefinite matrix; where it is singular, after adding to its diagonal."""
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
