"""Low-rank factorisation for a fixed diagonal: ``min f(V V')`` over V with rows of unit norm.

Burer and Monteiro, A nonlinear programming algorithm for solving semidefinite programs via low-rank
factorization, Math. Program. 95, 2003. The rows are points of spheres; the method is a Riemannian trust
region with truncated conjugate gradients (Absil, Baker and Gallivan, Found. Comput. Math. 7, 2007). With ``S
= C - Diag(y)`` and ``y_i = <(C V)_i, v_i>``, half the Riemannian gradient is ``S V``, and half the Hessian is
``U -> S U`` with the components along the rows of V removed. Where V has at least ``sqrt(2 n)`` columns,
local minima are global for almost all C (Boumal, Voroninski and Bandeira, 2016); ``S >= 0`` proves that a
point is a global minimum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.linalg.dense import EPS, Array, Matrix, Pattern, norm
from lopro.linalg.rounding import Estimate, dot, total
from lopro.newton.multipliers import never

__all__ = ["FactorPoint", "LinearCost", "UnitRowsProblem", "WeightedDistance"]

#: The first radius, as a share of the diameter ``2 sqrt(n)`` of the product of spheres: that of Manopt
#: (Boumal et al., JMLR 15, 2014). A tenth and ten times as much change 6 and 12 % of the products of
#: "low rank" in ``python -m benchmarks.constants newton.sdp``.
_FIRST_RADIUS = 0.125
#: Steps are accepted above this ratio of actual to predicted decrease; the radius shrinks below the second
#: and grows above the third (Absil et al., algorithm 1, with their recommended values).
_ACCEPT, _SHRINK, _GROW = 0.05, 0.25, 0.75
#: The penalty of fixed entries as a multiple of the largest weight, also the factor by which it grows if an
#: update of the multipliers leaves more than the second number as a share of the last residual. Products of
#: 16 runs with 3 or 120 fixed entries, n = 60: 13,600, 10,100 and 9,000 for 3, 10 and 30; updates 130, 146
#: and 183.
_PENALTY, _CORRECTED = 10.0, 0.25
#: The largest penalty, as a multiple of the largest weight. Without a multiplier (a fixed entry of 1) the
#: penalty would grow without limit; times the allowed violation of 1e-9 it is a thousandth of the weights.
_LARGEST = 1e6


class LinearCost:
    """``<C, X>``.

    Parameters
    ----------
    C : array or scipy.sparse array of shape (n, n)
        Symmetric.
    """

    def __init__(self, C: Matrix) -> None:
        diagonal = np.asarray(C.diagonal(), dtype=np.float64)
        self.size = len(diagonal)
        #: The part of the value from the given diagonal.
        self.constant = total(diagonal, 4.0 * EPS * np.abs(diagonal))
        self.without_diagonal: Any
        if scipy.sparse.issparse(C):
            self.without_diagonal = scipy.sparse.csr_array(C - scipy.sparse.diags_array(diagonal))
        else:
            self.without_diagonal = C - np.diag(diagonal)

    def slope(self, V: Array) -> tuple[float | None, Matrix]:
        """Return the value without its constant (None: ``<slope, X>``), and the slope with respect to X."""
        return None, self.without_diagonal

    def curvature(self, V: Array, U: Array) -> Array | float:
        """Return the second derivative along ``U V' + V U'``, times V."""
        return 0.0

    def conjugate(self, Z: Matrix) -> Estimate:
        """Return the conjugate at a slope, without the diagonal: 0 at the only slope of its domain."""
        return Estimate(0.0)


class WeightedDistance:
    """``1/2 sum_ij W_ij (X_ij - G_ij)^2``.

    Parameters
    ----------
    W, G : arrays of shape (n, n)
        Symmetric; the weights are nonnegative.
    fixed : array of bool of shape (n, n), optional
        Symmetric: entries off the diagonal that are equal to those of G, by multipliers and a penalty (an
        augmented Lagrangian).
    """

    def __init__(self, W: Array, G: Array, fixed: Pattern | None = None) -> None:
        self.size = len(G)
        on_diagonal = W.diagonal() * (1.0 - G.diagonal()) ** 2
        self.constant = total(on_diagonal, 4.0 * EPS * on_diagonal) * 0.5
        self.W, self.G, self.fixed = W.copy(), G, fixed
        np.fill_diagonal(self.W, 0.0)
        self._weights, self._target = self.W, G
        if fixed is not None:
            self.W[fixed] = 0.0
            self._multipliers = np.zeros_like(G)
            self._least = float(self.W.max()) or 1.0
            self.penalty = _PENALTY * self._least
            self._weights = np.where(fixed, self.penalty, self.W)
            self._off = math.inf

    def stretch(self, factor: float) -> None:
        """Multiply the required values of fixed entries by a factor."""
        if self.fixed is not None:
            self._target = np.where(self.fixed, factor * self.G, self.G)

    def off(self, V: Array) -> float:
        """Return the norm of the residual of fixed entries."""
        return norm((V @ V.T - self._target)[self.fixed])

    def update(self, point: FactorPoint) -> None:
        """Update the multipliers at a minimiser; increase the penalty if the residual decreases slowly."""
        assert self.fixed is not None
        off = self.off(point.V)
        self._multipliers = np.where(self.fixed, point.Z, 0.0)
        if off > _CORRECTED * self._off and self.penalty < _LARGEST * self._least:
            self.penalty *= _PENALTY
            self._weights = np.where(self.fixed, self.penalty, self.W)
        self._off = off

    def slope(self, V: Array) -> tuple[float | None, Matrix]:
        """Return the value without its constant, and the slope ``W o (X - G)`` plus the multipliers."""
        away = V @ V.T - self._target
        Z = self._weights * away
        value = 0.5 * float(np.vdot(Z, away))
        if self.fixed is None:
            return value, Z
        return value + float(np.vdot(self._multipliers, away)), Z + self._multipliers

    def curvature(self, V: Array, U: Array) -> Array | float:
        """Return the second derivative along ``U V' + V U'``, times V."""
        M = U @ V.T
        return np.asarray((self._weights * (M + M.T)) @ V)

    def conjugate(self, Z: Matrix) -> Estimate:
        """Return ``sum Z_ij^2 / (2 W_ij) + Z_ij G_ij``, with infinite weights for fixed entries.

        Other slopes are 0 where their weights are.
        """
        W = np.where(self.W > 0.0, self.W, math.inf)
        squares = 0.5 * Z * Z / W
        return total(squares, 2.0 * EPS * squares) + dot(Z.ravel(), self.G.ravel())


@dataclass(frozen=True)
class FactorPoint:
    """A factor with unit rows.

    Attributes
    ----------
    V : array of shape (n, p)
        The factor.
    Z : matrix of shape (n, n)
        The slope of the cost at ``X = V V'``, without its diagonal.
    ZV : array of shape (n, p)
        Their product.
    y : array of shape (n,)
        ``<(Z V)_i, v_i>``: the multipliers of the diagonal.
    fun : float
        The value, without that of the diagonal.
    decrease : float
        The decrease of the value by the last step.
    """

    V: Array
    Z: Matrix
    ZV: Array
    y: Array
    fun: float
    decrease: float = math.inf

    def gradient(self) -> Array:
        """Return half the Riemannian gradient."""
        return np.asarray(self.ZV - self.y[:, None] * self.V)

    def slack(self) -> Matrix:
        """Return ``Z - Diag(y)``."""
        if scipy.sparse.issparse(self.Z):
            return scipy.sparse.csr_array(self.Z - scipy.sparse.diags_array(self.y))
        return np.asarray(self.Z - np.diag(self.y))


class UnitRowsProblem:
    """``min f(V V')`` over V with unit rows, for a convex f.

    Parameters
    ----------
    cost : LinearCost or WeightedDistance
        The function f.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp.factors import LinearCost, UnitRowsProblem
    >>> problem = UnitRowsProblem(LinearCost(np.array([[0.0, 1.0], [1.0, 0.0]])))
    >>> V = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> *_, last = problem.descend(problem.point(V))
    >>> round(last.fun, 9)
    -2.0
    """

    def __init__(self, cost: LinearCost | WeightedDistance) -> None:
        self.cost, self.size = cost, cost.size
        #: Number of products with the slope so far, each with all columns of a factor.
        self.products = 0

    def point(self, V: Array, before: float = math.inf) -> FactorPoint:
        """Return the point of V with its rows scaled to unit norm."""
        V = V / np.sqrt(np.einsum("ij,ij->i", V, V))[:, None]
        fun, Z = self.cost.slope(V)
        ZV = self._product(Z, V)
        y = np.einsum("ij,ij->i", ZV, V)
        value = float(y.sum()) if fun is None else fun
        return FactorPoint(V, Z, ZV, y, value, before - value)

    def descend(
        self, point: FactorPoint, stopped: Callable[[], bool] = never
    ) -> Iterator[FactorPoint]:
        """Yield a point after every accepted step, until the gradient or the decrease is rounding."""
        diameter = 2.0 * math.sqrt(self.size)
        radius = _FIRST_RADIUS * diameter
        while not stopped():
            gradient = point.gradient()
            length = norm(gradient)
            if length <= 8.0 * EPS * norm(point.ZV):
                return
            step, predicted = self._step(point, gradient, radius, stopped)
            trial = self.point(point.V + step, point.fun)
            ratio = trial.decrease / predicted if predicted > 0.0 else 0.0
            rounding = 4.0 * EPS * (float(np.abs(point.y).sum()) + abs(point.fun))
            if abs(trial.decrease) <= rounding:
                # Where the decrease is rounding, only the gradient shows progress.
                if norm(trial.gradient()) > 0.5 * length:
                    return
                point = trial
                yield point
                continue
            reached = norm(step)
            if ratio < _SHRINK:
                radius = 0.25 * reached
            elif ratio > _GROW and reached > 0.99 * radius:
                radius = min(2.0 * radius, diameter)
            if ratio > _ACCEPT:
                point = trial
                yield point

    def _product(self, Z: Matrix, V: Array) -> Array:
        self.products += 1
        return np.asarray(Z @ V)

    def _hessian(self, point: FactorPoint, U: Array) -> Array:
        H = self._product(point.Z, U) - point.y[:, None] * U
        H += self.cost.curvature(point.V, U)
        H -= np.einsum("ij,ij->i", H, point.V)[:, None] * point.V
        return np.asarray(H)

    def _step(
        self, point: FactorPoint, gradient: Array, radius: float, stopped: Callable[[], bool]
    ) -> tuple[Array, float]:
        """Return a step within the radius and the decrease that the quadratic model predicts for it.

        Conjugate gradients, for linear costs with the preconditioner ``1 / |y_i|``, the diagonal of S
        (weighted distances took 0.5 to 2.3 times the products with it). At a negative curvature, or at the
        radius, the step ends on the boundary (Steihaug).
        """
        sizes: Any = 1.0
        if isinstance(self.cost, LinearCost):
            sizes = np.maximum(np.abs(point.y), 1e-3 * float(np.abs(point.y).max()))[:, None]
        length = norm(gradient)
        relative = length / max(norm(point.ZV), np.finfo(float).tiny)
        tolerance = math.sqrt(relative) * length
        U, HU, R = np.zeros_like(gradient), np.zeros_like(gradient), -gradient
        Z = R / sizes
        P, slope = Z, float(np.vdot(R, Z))
        for _ in range(U.size):  # in exact arithmetic it ends earlier
            if stopped():
                break
            HP = self._hessian(point, P)
            curvature, room = float(np.vdot(P, HP)), _to_boundary(U, P, radius)
            t = slope / curvature if curvature > 0.0 else math.inf
            if t >= room:
                U, HU = U + room * P, HU + room * HP
                break
            U, HU, R = U + t * P, HU + t * HP, R - t * HP
            if norm(R) <= tolerance:
                break
            Z = R / sizes
            before, slope = slope, float(np.vdot(R, Z))
            P = Z + (slope / before) * P
        return U, -2.0 * float(np.vdot(gradient, U)) - float(np.vdot(U, HU))


def _to_boundary(U: Array, P: Array, radius: float) -> float:
    """Return t with ``|U + t P| = radius``."""
    pp, up, uu = (float(np.vdot(a, b)) for a, b in ((P, P), (U, P), (U, U)))
    return (math.sqrt(max(0.0, up**2 + pp * (radius**2 - uu))) - up) / pp
