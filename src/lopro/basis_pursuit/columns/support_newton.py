"""Basis pursuit denoising and the LASSO on a few columns: the semismooth Newton method on signs.

On a set of columns with known signs ``s`` the solution of ``min alpha w'|x| + |A x - y|^2 / 2`` is explicit.
At a point ``x`` with residual ``r``, correlations ``g = A'r`` and multiplier ``a`` it is
``x + u - (alpha - a) q`` with ``G u = g - a w s``, ``G q = w s``, ``G = A'A``, and ``alpha`` is given, or
follows from the length of the residual (`levels`). A ridge ``rho |x|^2 / 2`` adds ``rho`` to the diagonal of
``G`` and subtracts ``rho x`` from ``g``. A step moves there, drops columns whose sign has flipped and adds
those whose correlation exceeds ``a w``. Where the signs do not change, ``u`` is the rounding error, and
further steps are iterative refinement: residuals are computed with the columns in double precision, so that a
factor of ``G`` in single precision loses no accuracy. The method is fast but may cycle; then the solution is
not marked as settled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit.columns.column_set import ColumnSet, Solver, columns_to_add
from lopro.basis_pursuit.columns.pieces import Vector, largest
from lopro.basis_pursuit.levels import Level

__all__ = ["SETTINGS", "Solution", "SupportNewton"]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Settings:
    """Accuracies of Newton's method on signs; all are relative.

    A tenth and ten times of each change the products of `benchmarks.constants` by at most 2 %.
    """

    #: The largest error of correlations on the support, as a share of alpha, besides `rounding`.
    refined: float = 1e-13
    #: The error that refinement leaves, as a share of the largest correlation of such a residual.
    rounding: float = 64.0 * _EPS
    #: The maximal number of refinements. In single precision each reduces the error by 1e-3 or more for
    #: independent columns: 1e-13 is reached after four.
    refinements: int = 5
    #: The least alpha before the end of the path, as a share of the largest.
    least_alpha: float = 1e-9
    #: Coefficients below this share of the largest count as zero at the end of the path, where alpha is 0.
    idle: float = 1e-9
    #: The largest residual of satisfied equations, as a share of ``|y|``.
    met: float = 1e-12
    #: The relative difference within which breakpoints, or a correlation and its weight, count as equal.
    close: float = 1e-10


SETTINGS = Settings()


@dataclass(frozen=True)
class Solution:
    """Coefficients on the column set, with the residual and the multiplier that go with them."""

    x: Vector
    signs: Vector
    alpha: float
    residual: Vector  # y - A x
    dual: Vector  # residual / alpha, or its limit where alpha = 0
    reached: bool  # whether alpha is the required one
    settled: bool  # whether the optimality conditions hold on the whole column set


@dataclass(frozen=True)
class _Point:
    """Coefficients on the column set with their residual and correlations."""

    x: Vector
    residual: Vector
    correlations: Vector  # of the columns with the residual
    alpha: float = 0.0
    reached: bool = False


@dataclass(frozen=True)
class _Face:
    """A set of signs, and a solver for the Gram matrix of its support."""

    signs: Vector
    support: Vector
    slope: Vector  # weights times signs on the support
    solve: Solver


@dataclass(frozen=True)
class SupportNewton:
    """The problem on a column set.

    Parameters
    ----------
    columns : ColumnSet
        The columns, with their storage, the precision of their Gram matrix and the ridge.
    level : Level
        The condition that determines alpha.
    nonneg : bool
        Require ``x >= 0``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.columns.column_set import ColumnSet
    >>> from lopro.basis_pursuit.levels import Penalty
    >>> from lopro.basis_pursuit.levels import Radius
    >>> from lopro.basis_pursuit.columns.support_newton import SupportNewton
    >>> A, y = np.eye(3)[:, :2], np.array([3.0, 0.2, 0.0])
    >>> newton = SupportNewton(ColumnSet(y, np.ones(2)), Radius(1.0))
    >>> newton.columns.extend(np.arange(2), lambda at: A[:, at], A.T @ y)
    >>> found = newton.solve(np.ones(2), floor=0.0, steps=5)
    >>> found.settled, found.signs, found.x.round(4)
    (True, array([1., 0.]), array([2.0202, 0.    ]))
    >>> SupportNewton(newton.columns, Penalty(0.5)).solve(np.ones(2), floor=0.0, steps=5).x
    array([2.5, 0. ])
    """

    columns: ColumnSet
    level: Level
    nonneg: bool = False

    def solve(self, signs: Vector, floor: float, steps: int) -> Solution:
        """Solve with ``alpha >= floor``, starting with ``signs``, for at most ``steps`` sets of signs.

        Where a Gram matrix in single precision is not accurate enough, it is computed in double precision.
        """
        found = self._solve(signs, floor, steps)
        if found is None:
            self.columns.to_double()
            found = self._solve(signs, floor, steps)
        assert found is not None
        return found

    def _solve(self, signs: Vector, floor: float, steps: int) -> Solution | None:
        """Solve; return None where single precision is not accurate enough."""
        face, point, settled, seen = None, None, False, set[bytes]()
        for _ in range(steps):
            if signs.tobytes() in seen:
                if self.columns.single:
                    return None
                break
            seen.add(signs.tobytes())
            face = None  # frees the factor before the next one
            face = self._face(signs)
            found = None if face is None else self._settle(face, floor)
            if found is None:
                return None
            point, signs, settled = found
            if settled:
                break
        assert face is not None and point is not None
        return self._solution(point, face, signs, settled)

    def _face(self, signs: Vector) -> _Face | None:
        """Factor the Gram matrix of the columns with a sign, after dropping dependent ones.

        None where columns are too nearly dependent for single precision.
        """
        c, S = self.columns, np.flatnonzero(signs)
        solve = c.factor(S)
        if solve is None:
            if c.single:
                return None
            S, solve = c.independent(S)
            signs = self._on_columns(S, signs[S])
        return _Face(signs, S, c.weights[S] * signs[S], solve)

    def _settle(self, face: _Face, floor: float) -> tuple[_Point, Vector, bool] | None:
        """Solve for the signs of a face, and refine the solution as long as it implies the same signs.

        Return the point, the signs that it implies, and whether they are those of the face. None where
        single precision is not accurate enough.
        """
        c = self.columns
        point = _Point(np.zeros(len(c)), c.y, c.correlations)
        # The first solution in single precision is not accurate enough to show missing columns.
        point = self._moved(point, face, floor) if c.single else point
        for _ in range(SETTINGS.refinements):
            point = self._moved(point, face, floor)
            signs = self._next_signs(face.signs, point)
            if signs is not face.signs:
                return point, signs, False
            error = float(
                np.abs(self._error(point, face) / c.weights[face.support]).max(initial=0.0)
            )
            share = _norm(point.residual) / (_norm(c.y) or 1.0)
            if error <= SETTINGS.refined * point.alpha + SETTINGS.rounding * c.most * share:
                return point, signs, True
        return None if c.single else (point, face.signs, True)

    def _moved(self, point: _Point, face: _Face, floor: float) -> _Point:
        """Return the solution for the signs of a face by a step from a point on its support."""
        c, S = self.columns, face.support
        solved = face.solve(np.stack([self._error(point, face), face.slope], axis=1))
        step, q = self._on_columns(S, solved[:, 0]), self._on_columns(S, solved[:, 1])
        image, tail = c.forward(np.stack([step, q], axis=1)).T
        rest = point.residual - image - point.alpha * tail
        alpha, reached = self._alpha(rest, tail, floor)
        residual = rest + alpha * tail
        x = point.x + step - (alpha - point.alpha) * q
        return _Point(x, residual, c.adjoint(residual), alpha, reached)

    def _alpha(self, rest: Vector, tail: Vector, floor: float) -> tuple[float, bool]:
        """Return alpha at or above the floor, and whether it is the required one.

        Equations hold at the end of the path, where alpha is 0; before, it is bounded away from 0.
        """
        curvature, slope = float(tail @ tail), float(rest @ tail)
        alpha = self.level.alpha(curvature, slope, _norm(rest), _norm(self.columns.y))
        if alpha is not None and alpha >= floor:
            return alpha, True
        return max(floor, SETTINGS.least_alpha * self.columns.most), False

    # Signs.

    def _next_signs(self, signs: Vector, point: _Point) -> Vector:
        """Return the signs that a point and its correlations imply; ``signs`` itself if they agree."""
        slack = self._slack(point.correlations, point.alpha)
        flipped = (signs != 0.0) & (point.x * signs <= 0.0)
        entering = np.flatnonzero((signs == 0.0) & (slack > 0.0))
        if not flipped.any() and not entering.size:
            return signs
        signs = np.where(flipped, 0.0, signs)
        c = self.columns
        room = columns_to_add(signs, len(c.y), 4, c.ridge > 0.0)
        added = entering[largest(slack[entering], room)]
        signs[added] = np.sign(point.correlations[added])
        return signs

    def _slack(self, g: Vector, alpha: float) -> Vector:
        """Return the excess of each correlation over its weight times alpha, less the rounding error."""
        size = (g if self.nonneg else np.abs(g)) / self.columns.weights
        return np.asarray(size - (1.0 + SETTINGS.close) * alpha - 8.0 * _EPS * self.columns.most)

    def _error(self, point: _Point, face: _Face) -> Vector:
        """Return the residual of the optimality conditions on the support."""
        S, ridge = face.support, self.columns.ridge
        off = point.correlations[S] - point.alpha * face.slope
        return off - ridge * point.x[S] if ridge > 0.0 else off

    def _on_columns(self, support: Vector, values: Vector) -> Vector:
        """Return coefficients of all columns: these values on a support, 0 elsewhere."""
        x = np.zeros(len(self.columns))
        x[support] = values
        return x

    # The solution.

    def _solution(self, point: _Point, face: _Face, signs: Vector, settled: bool) -> Solution:
        """Return a point as a solution; ``signs`` are those to start the next solve with.

        The residual of a settled point is computed from its coefficients, without the accumulated rounding of
        the steps. The dual point is the accumulated one, whose correlations on the support are refined.
        """
        c = self.columns
        if point.alpha > 0.0:
            dual = point.residual / point.alpha
        else:
            dual = c.forward(self._on_columns(face.support, face.solve(face.slope)))
        if self.level.equations:
            end = self._end_of_path(point, face)
            if end is not None:
                return Solution(end, signs, 0.0, c.y - c.forward(end), dual, True, settled)
        residual = c.y - c.forward(point.x) if settled else point.residual
        return Solution(point.x, signs, point.alpha, residual, dual, point.reached, settled)

    def _end_of_path(self, point: _Point, face: _Face) -> Vector | None:
        """Return the coefficients at ``alpha = 0`` if they satisfy the equations.

        Any independent columns, as many as rows, satisfy the equations: they are the end of the path only if
        the coefficients have the signs of the face. Columns whose coefficients vanish there are idle: they
        support the dual point, and the signs of their rounding errors do not count.
        """
        c, S = self.columns, face.support
        p = self._least_squares(point.x, face)
        idle = np.abs(p[S]) <= SETTINGS.idle * float(np.abs(p[S]).max(initial=0.0))
        if not bool((idle | (p[S] * face.signs[S] > 0.0)).all()):
            return None
        if idle.any():
            used = self._face(self._on_columns(S[~idle], face.signs[S[~idle]]))
            assert used is not None  # the Gram matrix of equations is in double precision
            p = self._least_squares(np.where(used.signs != 0.0, p, 0.0), used)
        met = _norm(c.y - c.forward(p)) <= SETTINGS.met * _norm(c.y)
        return p if met else None

    def _least_squares(self, x: Vector, face: _Face) -> Vector:
        """Return the least-squares coefficients on the support of a face, refined twice."""
        c = self.columns
        x = np.where(face.signs != 0.0, x, 0.0)
        for _ in range(3):
            rest = c.y - c.forward(x)
            x = x + self._on_columns(face.support, face.solve(c.adjoint(rest)[face.support]))
        return x


def _norm(v: Vector) -> float:
    return float(np.linalg.norm(v))
