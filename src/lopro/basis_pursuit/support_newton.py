"""Basis pursuit denoising and the LASSO on a few columns, by Newton's method on signs.

On a set of columns with known signs ``s`` the solution of ``min alpha w'|x| + |A x - y|^2 / 2`` is explicit.
At a point ``x`` with residual ``r``, correlations ``g = A'r`` and multiplier ``a`` it is
``x + u - (alpha - a) q`` with ``G u = g - a w s``, ``G q = w s``, ``G = A'A``, and ``alpha`` is given, or
follows from the length of the residual (`Level`). A ridge ``rho |x|^2 / 2`` adds ``rho`` to the diagonal of
``G`` and takes ``rho x`` off ``g``. A step moves there, drops columns whose sign has flipped and adds those
that correlate too much with the residual: the semismooth Newton method. Where signs stay, ``u`` is what
rounding has left, and further steps are iterative refinement: residuals are computed with the columns in
double precision, so that a factor of ``G`` in single precision loses nothing. The method is fast and may
cycle; where it does, the solution says that it has not settled, and another method has to take over.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lopro.basis_pursuit.columns import ColumnSet, Solver, columns_to_add
from lopro.basis_pursuit.pieces import Vector, cholesky_routines, largest

__all__ = [
    "SETTINGS",
    "Level",
    "Penalty",
    "Radius",
    "Ratio",
    "Solution",
    "SupportNewton",
    "signs_at_radius",
]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Settings:
    """Accuracies of Newton's method on signs; all are relative."""

    #: Of alpha: the largest error of correlations on the support at the end, beside `rounding`.
    refined: float = 1e-13
    #: Of the largest correlation that a residual can have: the error that no refinement removes.
    rounding: float = 64.0 * _EPS
    #: Each reduces the error to 1e-3 or less, where columns are independent: 1e-13 is reached after four.
    refinements: int = 5
    #: Of the largest correlation with y: below it, correlations with the residual are rounding.
    least_alpha: float = 1e-9
    #: Of the largest coefficient: smaller ones count as zero at the end of the path, where alpha is 0.
    idle: float = 1e-9
    #: Of ``|y|``: equations with a smaller residual count as met.
    met: float = 1e-12
    #: Rows and columns up to which the path is followed: each breakpoint costs a product with all columns,
    #: and Newton's method changes many signs at once. 20 x 50 and 40 x 200 take 2 products, not 5 or 6.
    few_rows: int = 48
    few_columns: int = 256
    #: Breakpoints for each row after which the path is given up: in the worst case there are very many.
    breakpoints: int = 4
    #: Breakpoints that are closer to each other, relatively, are taken for the same, and so are correlations
    #: and the multiplier.
    close: float = 1e-10


SETTINGS = Settings()


@dataclass(frozen=True)
class Solution:
    """Coefficients on the column set, with the residual and the multiplier that go with them."""

    x: Vector
    signs: Vector
    alpha: float
    residual: Vector  # y - A x
    dual: Vector  # residual / alpha; its limit where alpha = 0
    reached: bool  # whether alpha is the required one
    settled: bool  # whether signs and correlations agree on the whole column set


@dataclass(frozen=True)
class _Point:
    """Coefficients on the column set, and what belongs to them."""

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


class Level(Protocol):
    """The condition that selects a solution on the path: the norm of the residual, a penalty, or their ratio.

    The solutions of ``min alpha w'|x| + |A x - y|^2 / 2`` for falling ``alpha`` are one path. Basis pursuit
    denoising is its point whose residual is ``sigma`` long, the LASSO for the one with ``alpha = lam``,
    the square-root LASSO for the one with ``alpha = lam |A x - y|``. With known signs the residual is
    ``rest + alpha tail``, and each of them is an equation for ``alpha`` alone.
    """

    @property
    def least(self) -> float:
        """No smaller ``alpha`` is the solution's, as far as that is known before."""
        ...

    @property
    def equations(self) -> bool:
        """Whether the end of the path is required, where the residual vanishes."""
        ...

    def alpha(
        self, curvature: float, slope: float, length: float, size: float, at: float = 0.0
    ) -> float | None:
        """Return the required ``alpha``, None where there is none.

        The square of the residual is ``length^2 + 2 slope t + curvature t^2`` for ``alpha = at + t``, and
        ``size`` is the length of ``y``.
        """
        ...


@dataclass(frozen=True)
class Radius:
    """``|A x - y| = sigma``.

    Examples
    --------
    >>> from lopro.basis_pursuit.support_newton import Radius
    >>> round(Radius(5.0).alpha(curvature=4.0, slope=0.0, length=3.0, size=5.0), 6)
    2.0
    """

    sigma: float
    least = 0.0

    @property
    def equations(self) -> bool:
        return self.sigma == 0.0

    def alpha(
        self, curvature: float, slope: float, length: float, size: float, at: float = 0.0
    ) -> float | None:
        if self.equations:
            return None
        # 1e-12 inside the ball, so that the point is feasible in floating point as well.
        inside = max(self.sigma * (1.0 - 1e-12) - 4.0 * _EPS * size, 0.0)
        a, b, c = curvature, slope, (length - inside) * (length + inside)
        if a <= 0.0 or b * b - a * c < 0.0 or (at == 0.0 and c > 0.0):
            return None
        return at + (math.sqrt(b * b - a * c) - b) / a


@dataclass(frozen=True)
class Penalty:
    """``alpha = lam``."""

    lam: float
    equations = False

    @property
    def least(self) -> float:
        return self.lam

    def alpha(
        self, curvature: float, slope: float, length: float, size: float, at: float = 0.0
    ) -> float | None:
        return self.lam


@dataclass(frozen=True)
class Ratio:
    """``alpha = lam |A x - y|``.

    Examples
    --------
    >>> from lopro.basis_pursuit.support_newton import Ratio
    >>> round(Ratio(0.6).alpha(curvature=1.0, slope=0.0, length=4.0, size=5.0), 6)
    3.0
    """

    lam: float
    least = 0.0
    equations = False

    def alpha(
        self, curvature: float, slope: float, length: float, size: float, at: float = 0.0
    ) -> float | None:
        # (at + t)^2 = lam^2 (length^2 + 2 slope t + curvature t^2)
        square, seen = self.lam * self.lam, self.lam * length
        a, b = 1.0 - square * curvature, at - square * slope
        c = (at - seen) * (at + seen)
        if a <= 0.0 or b * b - a * c < 0.0 or seen <= 4.0 * _EPS * self.lam * size:
            return None  # no residual is long enough: the solution meets the equations
        return at + (math.sqrt(b * b - a * c) - b) / a


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
    >>> from lopro.basis_pursuit.columns import ColumnSet
    >>> from lopro.basis_pursuit.support_newton import Penalty, Radius
    >>> from lopro.basis_pursuit.support_newton import SupportNewton
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
        """Solve with ``alpha >= floor`` from the signs of an earlier solution, with so many sets of signs.

        Where a Gram matrix in single precision is too rough, it is computed again in double precision.
        """
        found = self._solve(signs, floor, steps)
        if found is None:
            self.columns.to_double()
            found = self._solve(signs, floor, steps)
        assert found is not None
        return found

    def _solve(self, signs: Vector, floor: float, steps: int) -> Solution | None:
        """Solve; None where single precision is not enough."""
        face, point, settled, seen = None, None, False, set[bytes]()
        for _ in range(steps):
            if signs.tobytes() in seen:
                if self.columns.single:
                    return None
                break
            seen.add(signs.tobytes())
            face = None  # its factor makes room for the next one
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
        """Factor the Gram matrix of the columns with a sign; dependent ones lose theirs.

        None where columns are too close to each other for single precision.
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
        """Solve for the signs of a face, and refine the solution as long as it suggests no others.

        Return the point, the signs that it suggests, and whether they are those of the face. None where
        single precision is not enough.
        """
        c = self.columns
        point = _Point(np.zeros(len(c)), c.y, c.correlations)
        # A first solution in single precision is too rough to show which columns are missing.
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
        """Return the solution for the signs of a face, as computed from a point on its support."""
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

        Of equations nothing is left but rounding, whatever its sign: they are met at the end of the path.
        """
        curvature, slope = float(tail @ tail), float(rest @ tail)
        alpha = self.level.alpha(curvature, slope, _norm(rest), _norm(self.columns.y))
        if alpha is not None and alpha >= floor:
            return alpha, True
        return max(floor, SETTINGS.least_alpha * self.columns.most), False

    # Signs.

    def _next_signs(self, signs: Vector, point: _Point) -> Vector:
        """Return the signs that a point and its correlations suggest; ``signs`` itself if they agree."""
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
        """Return by how much each correlation exceeds what its weight allows, less what is rounding."""
        size = (g if self.nonneg else np.abs(g)) / self.columns.weights
        return np.asarray(size - (1.0 + SETTINGS.close) * alpha - 8.0 * _EPS * self.columns.most)

    def _error(self, point: _Point, face: _Face) -> Vector:
        """Return by how much correlations on the support differ from what they should be."""
        S, ridge = face.support, self.columns.ridge
        off = point.correlations[S] - point.alpha * face.slope
        return off - ridge * point.x[S] if ridge > 0.0 else off

    def _on_columns(self, support: Vector, values: Vector) -> Vector:
        """Return coefficients of all columns that have these values on a support."""
        x = np.zeros(len(self.columns))
        x[support] = values
        return x

    # The solution.

    def _solution(self, point: _Point, face: _Face, signs: Vector, settled: bool) -> Solution:
        """Return a point as a solution; ``signs`` is where a next solve should start.

        The residual of a settled one is computed anew, free of the rounding of the steps that led there. For
        the dual point the other one is better: its correlations on the support have been refined.
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
        """Return the coefficients at ``alpha = 0``, where the equations are met there.

        Equations are met by as many columns as there are rows, whichever they are: this is the end of the
        path only if the signs are those that lead to it. Columns whose coefficient vanishes there are idle:
        they support the dual point, and their rounding error has no sign.
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


def signs_at_radius(
    A: Vector, y: Vector, weights: Vector, sigma: float, nonneg: bool
) -> Vector | None:
    """Return the signs of the solution whose residual has the length ``sigma``, by the path from the start.

    For ``alpha`` from its largest value down, the solution is piecewise linear. On a piece with support ``S``
    and signs ``s`` it is ``x = p - alpha q`` with ``p = G^-1 A'y`` and ``q = G^-1 (w s)``, and correlations
    are ``u + alpha v`` with ``u = A'(y - A p)`` and ``v = A'A q``. The piece ends where an entry of ``x``
    vanishes, where a correlation outside comes up to ``alpha w``, or where the residual has the required
    length. There are about as many pieces as nonzeros in the end, and each costs a few short vectors.

    None where the path does not get there, columns are dependent, or two things happen at once.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.support_newton import signs_at_radius
    >>> A = np.array([[1.0, 0.0, 1.0], [0.0, -1.0, 1.0]])
    >>> signs_at_radius(A, np.array([2.0, 0.7]), np.array([1.0, 1.0, 3.0]), 0.3, nonneg=False)
    array([ 1., -1.,  0.])
    """
    gram, pulled = A.T @ A, A.T @ y
    missing = float(y @ y) - sigma * sigma
    sizes = (pulled if nonneg else np.abs(pulled)) / weights
    support = [int(sizes.argmax())]
    alpha = float(sizes[support[0]])
    signs = np.zeros(len(pulled))
    signs[support] = math.copysign(1.0, pulled[support[0]])
    _, _, _, posv = cholesky_routines("d")
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for _ in range(SETTINGS.breakpoints * len(y)):
            rows, pull = gram.take(support, axis=0), (weights * signs).take(support)
            own = pulled.take(support)
            _, solved, info = posv(rows.take(support, axis=1), np.array([own, pull]).T)
            if info != 0:
                return None
            p, q = solved.T
            limit = (1.0 - SETTINGS.close) * alpha
            leaves, when = _largest_below(limit, p / q)
            u, v = pulled - p @ rows, q @ rows
            u[support] = 0.0
            # Where |u + alpha v| = alpha w: on the side of u, as it is below that now.
            side = 1.0 if nonneg else np.sign(u)
            enters, then = _largest_below(limit, side * u / (weights - side * v))
            alpha = max(when, then)
            # |y - A x|^2 = |y|^2 - p'A'y + alpha^2 q'G q
            room = float(own @ p) - missing
            if room >= 0.0 and math.sqrt(room) >= alpha * math.sqrt(max(0.0, float(pull @ q))):
                return signs
            if not 0.0 < alpha < math.inf:
                return None
            if alpha == when:
                signs[support.pop(leaves)] = 0.0
                if not support:
                    return None
            else:
                support.append(enters)
                signs[enters] = math.copysign(1.0, u[enters])
    return None


def _largest_below(limit: float, candidates: Vector) -> tuple[int, float]:
    """Return which of some numbers is the largest below a limit, and that number; 0 where there is none."""
    below = np.where(candidates < limit, candidates, 0.0)
    i = int(below.argmax())
    return i, max(0.0, float(below[i]))
