"""Matrices of low rank with a fixed diagonal: ``min <C, V V'>`` over V with rows of unit norm.

Burer and Monteiro, A nonlinear programming algorithm for solving semidefinite programs via low-rank
factorization, Math. Program. 95, 2003. The rows are points of spheres; steps are those of a Riemannian trust
region with truncated conjugate gradients (Absil, Baker and Gallivan, Found. Comput. Math. 7, 2007). With ``S
= C - Diag(y)`` and ``y_i = <(C V)_i, v_i>``, half the Riemannian gradient is ``S V``, and half the Hessian is
``U -> S U`` with the components along the rows of V removed. Where V has at least ``sqrt(2 n)`` columns,
local minima are global for almost all C (Boumal, Voroninski and Bandeira, 2016); ``S >= 0`` proves that a
point is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.newton.arrays import EPS, Array, Matrix, norm
from lopro.newton.multipliers import never

__all__ = ["FactorPoint", "UnitRowsProblem"]

#: Products of one truncated conjugate gradient run at most.
_PRODUCTS = 200
#: The first radius, as a share of the diameter ``2 sqrt(n)`` of the product of spheres.
_FIRST_RADIUS = 0.125
#: Steps are accepted above this ratio of actual to predicted decrease; the radius shrinks below the second
#: and grows above the third (Absil et al., algorithm 1, with their recommended values).
_ACCEPT, _SHRINK, _GROW = 0.05, 0.25, 0.75
#: The residual of the Newton equation is at most this share of the gradient, and its square root near the
#: end.
_LOOSE = 0.3


@dataclass(frozen=True)
class FactorPoint:
    """A factor with unit rows.

    Attributes
    ----------
    V : array of shape (n, p)
        The factor.
    CV : array of shape (n, p)
        The product with the off-diagonal part of C.
    y : array of shape (n,)
        ``<(C V)_i, v_i>`` for the off-diagonal part: the multipliers of the diagonal, less that of C.
    decrease : float
        How far the last step has lowered the value.
    """

    V: Array
    CV: Array
    y: Array
    decrease: float = math.inf

    @property
    def fun(self) -> float:
        """``<C, V V'>`` without the diagonal of C, which adds a constant."""
        return float(self.y.sum())

    def gradient(self) -> Array:
        """Return half the Riemannian gradient."""
        return np.asarray(self.CV - self.y[:, None] * self.V)


class UnitRowsProblem:
    """``min <C, V V'>`` over V with unit rows.

    Parameters
    ----------
    C : array or scipy.sparse array of shape (n, n)
        Symmetric.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp.factors import UnitRowsProblem
    >>> problem = UnitRowsProblem(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> V = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> *_, last = problem.descend(problem.point(V))
    >>> round(last.fun, 9)
    -2.0
    """

    def __init__(self, C: Matrix) -> None:
        self.size = C.shape[0]
        self.diagonal = np.asarray(C.diagonal(), dtype=np.float64)
        if scipy.sparse.issparse(C):
            self.off: Any = scipy.sparse.csr_array(C - scipy.sparse.diags_array(self.diagonal))
        else:
            self.off = C - np.diag(self.diagonal)
        #: Products with C so far, each with all columns of a factor.
        self.products = 0

    def point(self, V: Array, before: float = math.inf) -> FactorPoint:
        """Return V with its rows scaled to unit norm, evaluated."""
        V = V / np.sqrt(np.einsum("ij,ij->i", V, V))[:, None]
        CV = self._product(V)
        y = np.einsum("ij,ij->i", CV, V)
        return FactorPoint(V, CV, y, before - float(y.sum()))

    def slack(self, point: FactorPoint) -> Matrix:
        """Return ``S = C - Diag(y)``, in which the diagonal of C cancels."""
        if scipy.sparse.issparse(self.off):
            return scipy.sparse.csr_array(self.off - scipy.sparse.diags_array(point.y))
        return self.off - np.diag(point.y)

    def descend(
        self, point: FactorPoint, stopped: Callable[[], bool] = never
    ) -> Iterator[FactorPoint]:
        """Yield a point after every accepted step, until the gradient or the decrease is rounding."""
        diameter = 2.0 * math.sqrt(self.size)
        radius = _FIRST_RADIUS * diameter
        while not stopped():
            gradient = point.gradient()
            length = norm(gradient)
            if length <= 8.0 * EPS * norm(point.CV):
                return
            step, predicted = self._step(point, gradient, radius, stopped)
            trial = self.point(point.V + step, point.fun)
            ratio = trial.decrease / predicted if predicted > 0.0 else 0.0
            if abs(trial.decrease) <= 4.0 * EPS * float(np.abs(point.y).sum()):
                return
            reached = norm(step)
            if ratio < _SHRINK:
                radius = 0.25 * reached
            elif ratio > _GROW and reached > 0.99 * radius:
                radius = min(2.0 * radius, diameter)
            if ratio > _ACCEPT:
                point = trial
                yield point

    def _product(self, V: Array) -> Array:
        self.products += 1
        return np.asarray(self.off @ V)

    def _hessian(self, point: FactorPoint, U: Array) -> Array:
        H = self._product(U) - point.y[:, None] * U
        H -= np.einsum("ij,ij->i", H, point.V)[:, None] * point.V
        return np.asarray(H)

    def _step(
        self, point: FactorPoint, gradient: Array, radius: float, stopped: Callable[[], bool]
    ) -> tuple[Array, float]:
        """Return a step within the radius and the decrease that the quadratic model predicts for it.

        Conjugate gradients with the preconditioner ``1 / |y_i|``, the diagonal of S; at a negative curvature,
        or at the radius, the step goes to the boundary (Steihaug).
        """
        sizes = np.maximum(np.abs(point.y), 1e-3 * float(np.abs(point.y).max()))[:, None]
        length = norm(gradient)
        relative = length / max(norm(point.CV), np.finfo(float).tiny)
        wanted = min(_LOOSE, math.sqrt(relative)) * length
        U, HU, R = np.zeros_like(gradient), np.zeros_like(gradient), -gradient
        Z = R / sizes
        P, slope = Z, float(np.vdot(R, Z))
        for _ in range(_PRODUCTS):
            if stopped():
                break
            HP = self._hessian(point, P)
            curvature, room = float(np.vdot(P, HP)), _to_boundary(U, P, radius)
            t = slope / curvature if curvature > 0.0 else math.inf
            if t >= room:
                U, HU = U + room * P, HU + room * HP
                break
            U, HU, R = U + t * P, HU + t * HP, R - t * HP
            if norm(R) <= wanted:
                break
            Z = R / sizes
            before, slope = slope, float(np.vdot(R, Z))
            P = Z + (slope / before) * P
        return U, -2.0 * float(np.vdot(gradient, U)) - float(np.vdot(U, HU))


def _to_boundary(U: Array, P: Array, radius: float) -> float:
    """Return t with ``|U + t P| = radius``."""
    pp, up, uu = (float(np.vdot(a, b)) for a, b in ((P, P), (U, P), (U, U)))
    return (math.sqrt(max(0.0, up**2 + pp * (radius**2 - uu))) - up) / pp
