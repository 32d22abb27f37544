"""Anderson acceleration of a piecewise affine fixed-point map that depends on a parameter.

Earlier iterates are mixed so that the residual is least. On one affine piece, mixing points with weights
``theta`` (which sum to 1) mixes everything that depends on them in an affine way: residuals of the data,
gradients, fixed-point residuals ``rho`` and the parameter ``alpha``. So the small problem

    min |sum theta_j rho_j|   s.t.  sum theta_j = 1,  sum theta_j alpha_j = alpha

gives the best point for a parameter that no iterate has had yet, and its residual needs no product with a
matrix. On one piece this is the minimal residual method in the Krylov space of the points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.columns.pieces import Vector
from lopro.basis_pursuit.operators.history import History, Point
from lopro.basis_pursuit.operators.step_lengths import Steps
from lopro.core.arrays import Array, eps, norm
from lopro.core.vectors import inners

__all__ = ["Blend", "Mixture", "ShrinkageState"]


def _solved(system: Vector, right: Vector) -> Vector:
    """Return a solution; of least squares where the system is singular, zero where it is not finite."""
    if not math.isfinite(float(system.sum())):
        return 0.0 * right  # squares have overflowed
    # LAPACK directly: the checks of np.linalg.solve take longer than twenty equations.
    _, _, solution, singular = scipy.linalg.lapack.dgesv(system, right)
    if singular:
        # Residuals differ so much in size that the two conditions are dependent.
        solution = np.linalg.lstsq(system, right, rcond=None)[0]
    return np.asarray(solution)


def _summing_to_one(weights: Vector) -> Vector:
    """Correct the rounding error of the sum; return the last point alone where the sum is 0 or not finite."""
    total = float(weights.sum())
    if total != 0.0 and math.isfinite(total):
        return weights / total
    alone = np.zeros_like(weights)
    alone[-1] = 1.0
    return alone


@dataclass(frozen=True, slots=True, eq=False)
class Mixture:
    """An affine combination of points, with its residual and gradient."""

    x: Array
    r: Array
    g: Array
    alpha: float
    length: float  # of r
    #: The sum of the lengths of the mixed residuals, times the moduli of their weights, over the length of
    #: ``r``: the factor by which rounding errors of the gradient have grown.
    growth: float

    @staticmethod
    def of(point: Point) -> Mixture:
        """Return a point as a mixture."""
        return Mixture(point.x, point.r, point.g, point.alpha, point.length, 1.0)


class Blend:
    """The weights of the best mixture of some points, as a function of the parameter.

    Parameters
    ----------
    history : History
        Residuals are compared on the support of its last point.
    root : array, optional
        Factors of the entries of fixed-point residuals.

    Examples
    --------
    A map of one variable with fixed point 3 for ``alpha = 1``; two points find it.

    >>> import numpy as np
    >>> from lopro.basis_pursuit.operators.history import History, Point
    >>> from lopro.basis_pursuit.operators.mixing import Blend
    >>> history = History(2)
    >>> for x in np.array([[1.0], [2.5]]):
    ...     history.add(Point(x, 5 - x, 5 - x, 1.0, 0.0), left=3 - x, beside=history.points)
    >>> Blend(history).at(1.0).x.round(6)
    array([3.])
    """

    def __init__(self, history: History, root: Array | None = None) -> None:
        self.history, points = history, history.points
        self._found: Mixture | None = None
        gram = history.gram(root)
        # Residuals differ by orders of magnitude: scaled to length 1, the regularisation is relative.
        sizes = np.diag(gram)
        self._scale = 1.0 / np.sqrt(np.maximum(sizes, 1e-20 * float(sizes.max()) or 1.0))
        self._gram = gram * self._scale[:, None] * self._scale
        self._regularisation = max(1e-12, 10.0 * eps(points[-1].x))
        self._alpha = points[-1].alpha
        alphas = [p.alpha / self._alpha for p in points]
        self._alphas = np.array(alphas)
        #: Whether the points differ in the parameter, so that its effect can be estimated.
        self._spread = max(alphas) - min(alphas) > 1e-9

    def _solve(self, *ratios: float) -> list[Vector]:
        """Return the weights for parameters that are these multiples of the last one."""
        conditions = [(self._scale, [1.0] * len(ratios))]
        if self._spread:
            changes = [ratio - 1.0 for ratio in ratios]
            conditions.append(((self._alphas - 1.0) * self._scale, changes))
        # The least squares problem with linear conditions as one KKT system.
        n, size = len(self._scale), len(self._scale) + len(conditions)
        system, right = np.zeros((size, size)), np.zeros((size, len(ratios)))
        system[:n, :n] = self._gram
        system.flat[: n * size : size + 1] += self._regularisation
        for i, (row, values) in enumerate(conditions, n):
            unit = 1.0 / norm(row)
            system[i, :n] = system[:n, i] = unit * row
            right[i] = [unit * value for value in values]
        theta = _solved(system, right)[:n] * self._scale[:, None]
        return [_summing_to_one(column) for column in theta.T]

    @cached_property
    def _line(self) -> tuple[Vector, Vector]:
        """Weights at the last parameter, and their derivative in its relative change."""
        theta, *further = self._solve(1.0, 1.1) if self._spread else self._solve(1.0)
        return theta, 10.0 * (further[0] - theta) if further else 0.0 * theta

    @property
    def left(self) -> float:
        """The length of the mixed fixed-point residual for the last parameter."""
        theta = self._line[0] / self._scale
        return math.sqrt(max(0.0, float(theta @ self._gram @ theta)))

    @cached_property
    def _residuals(self) -> tuple[Array, Array]:
        """The residual of the best mixture for the last parameter, and its derivative by the relative one."""
        theta, slope = self._line
        at = self.history.mixed("r", theta)
        return at, self.history.mixed("r", slope) if self._spread else 0.0 * at

    def root(self, length: float) -> float | None:
        """Return the parameter for which the mixed residual has this length; None where there is none."""
        if not self._spread:
            return None
        at, change = self._residuals
        a, b, square = inners((change, change), (change, at), (at, at))
        c = square - length * length  # length**2 may round differently in other units
        if a <= 0.0 or b * b < a * c:
            return None
        # The larger root, where the residual grows with the parameter.
        return self._alpha * (1.0 + (math.sqrt(b * b - a * c) - b) / a)

    def at(self, alpha: float) -> Mixture:
        """Return the best mixture for this parameter; the last one is cached."""
        if self._found is None or self._found.alpha != alpha:
            self._found = self._mixture(alpha)
        return self._found

    def _mixture(self, alpha: float) -> Mixture:
        theta, further = self._weights(alpha), alpha / self._alpha - 1.0
        at, change = self._residuals
        r = at + further * change
        x, g = self.history.mixed("x", theta), self.history.mixed("g", theta)
        # The residual is a sum of two mixtures, and parts that cancel have rounding errors as well.
        moduli = abs(self._line[0]) + abs(further) * abs(self._line[1])
        mixed = float(moduli @ [p.length for p in self.history.points])
        length = norm(r)
        growth = mixed / length if length > 0.0 else math.inf
        return Mixture(x, r, g, alpha, length, growth)

    def gradient(self, alpha: float) -> Array:
        """Return only the gradient of the best mixture for this parameter."""
        return self.history.mixed("g", self._weights(alpha))

    def _weights(self, alpha: float) -> Vector:
        at, slope = self._line
        return at + (alpha / self._alpha - 1.0) * slope


@dataclass(slots=True)
class ShrinkageState:
    """The state of the iteration."""

    history: History
    mix: Mixture  # the point from which the next step starts
    length: float  # of the next step
    lengths: list[float] = field(default_factory=list)  # estimates from recent pairs of points
    plain: bool = True  # whether the next step is one from the last point alone, with a line search
    left: list[float] = field(default_factory=list)  # fixed-point residuals of recent mixtures
    steps: Steps | None = None  # None: the same length for all entries

    @property
    def points(self) -> list[Point]:
        """Iterates that may be mixed."""
        return self.history.points

    @property
    def last(self) -> Point:
        """The latest iterate."""
        return self.points[-1]

    @property
    def proofs(self) -> tuple[Point | Mixture, ...]:
        """Points whose correlations are known."""
        return self.last, self.mix

    @property
    def proposals(self) -> tuple[Point | Mixture, ...]:
        """Points that may be proposed, if they are inside the ball."""
        return self.last, self.mix

    def note_length(self, base: Point, x: Array, r: Array) -> None:
        """Set the step length to the least of the last three of Barzilai and Borwein.

        A long one may come from a direction that A maps to almost zero; the others bound it.
        """
        move, q = x - base.x, r - base.r
        if self.steps is not None:
            move, x = move / self.steps.root, x / self.steps.root
        square, moved, size = inners((q, q), (move, move), (x, x))
        if square > 0.0 and moved > (64.0 * eps(x)) ** 2 * size:  # more than rounding
            self.lengths = [*self.lengths, moved / square][-20:]
            self.length = min(4.0 * min(self.lengths), *self.lengths[-3:])
