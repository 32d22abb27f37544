"""Projection on a residual ball ``{x : |A x - y| <= sigma}``, for matrices and for operators."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.core.arrays import Array, copy, eps, from_numpy, is_complex, namespace, norm, to_numpy
from lopro.core.deadline import current_deadline
from lopro.errors import InfeasibleError, ProjectionError
from lopro.maps import LinearMap, SparseMap
from lopro.projections.empty_ball import residual_exceeds
from lopro.projections.krylov import GolubKahan
from lopro.projections.secular import damping

__all__ = ["adjoint_product", "project_residual_ball"]

#: Number of repeated steps, each of which removes the rounding error of the last. `python -m
#: benchmarks.constants projections`: without any, 8 of 20 projections fail; ten times as many change nothing.
_MAX_REFINEMENTS = 5
#: Rows and columns up to which the spectrum of a sparse matrix is computed from a dense copy. At 700 x 900
#: that takes 73 ms, and then 0.9 ms for each projection, against 12 ms by Krylov spaces; at 1500 x 2000 526
#: ms, and then 3 ms against 18 ms.
_DENSE_SPECTRUM = 500


def project_residual_ball(
    x: Array, A: LinearMap, y: Array, sigma: float, *, tight_frame: float | None = None
) -> Array:
    r"""Return the point of ``{z : |A z - y| <= sigma}`` nearest to ``x``.

    Parameters
    ----------
    x : array
        A vector.
    A : LinearMap
        A matrix is factorised once (its left spectrum is cached on the map); operators are used by
        products.
    y : array
        The centre of the ball.
    sigma : float
        Its radius; 0 means the nearest solution of ``A z = y``.
    tight_frame : float, optional
        ``c`` with ``A A^H = c I``, if known, which gives the projection in closed form. It is not checked,
        but the result is.

    Raises
    ------
    InfeasibleError
        If no point has a residual of at most ``sigma``.
    ProjectionError
        If the result is outside because of rounding.

    Notes
    -----
    The multiplier comes from the secular equation: exactly, in the eigenbasis of ``A A^H``, or for
    an operator from one Golub-Kahan run started at the residual, which gives the equation for every
    multiplier at once. The target is slightly inside the ball, so that the result is feasible in
    floating point, and the residual of the result is computed and checked.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> from lopro.projections.residual_ball import project_residual_ball
    >>> A = linear_map(np.array([[1.0, 0.0]]))
    >>> project_residual_ball(np.array([3.0, 5.0]), A, np.array([0.0]), 1.0).round(9)
    array([1., 5.])
    """
    if isinstance(A.like, np.ndarray) and not isinstance(x, np.ndarray):
        # Sparse matrices, operators and files are on the host, so that projections are computed there.
        host = project_residual_ball(to_numpy(x), A, to_numpy(y), sigma, tight_frame=tight_frame)
        return from_numpy(host, x)
    r = A.forward(x) - y
    # Where an equation (sigma = 0) holds to the rounding of y, x is returned: its zeros stay zeros.
    if norm(r) <= max(sigma, 4.0 * eps(r) * norm(y) if sigma == 0.0 else 0.0):
        return copy(x)
    step = _step_for(A, tight_frame)
    point = x
    goal = _Goal.at(sigma, norm(y), step.norm_of_map(A, r) * norm(x), eps(r))
    for _ in range(_MAX_REFINEMENTS):
        current_deadline().check()
        point = point - step.towards(goal, A, r)
        r = A.forward(point) - y
        # Iterative refinement: the next step removes the rounding error of this one.
        goal = _Goal.at(sigma, norm(y), step.norm_of_map(A, r) * norm(point), eps(r))
        if norm(r) <= goal.ceiling:
            return point
    if norm(r) <= goal.ceiling + goal.blur:
        return point
    raise ProjectionError(
        f"the projection on |A x - y| <= {sigma:g} left a residual of {norm(r):.17g}; "
        "A is ill-conditioned, or sigma is close to the rounding of the data"
    )


@dataclass(frozen=True)
class _Goal:
    """The target norm of the residual, and its rounding errors."""

    sigma: float
    target: float
    #: Residuals up to here are accepted.
    ceiling: float
    #: Differences up to here are rounding.
    blur: float
    #: Sum of the norms of the two terms whose difference is the residual.
    terms: float

    @staticmethod
    def at(sigma: float, centre: float, image: float, unit: float) -> _Goal:
        noise = 2.0 * unit * (centre + image)
        margin = max(max(1e-12, 8.0 * unit) * sigma, 4.0 * noise)
        # The result is strictly inside, unless the ball is as small as the rounding errors.
        if margin < 0.5 * sigma:
            return _Goal(sigma, sigma - margin, sigma, margin, centre + image)
        return _Goal(sigma, 0.5 * sigma, sigma + noise, margin, centre + image)

    def inside(self, fixed: float, A: LinearMap, r: Array, rest: Callable[[], Array]) -> float:
        """Return the target length for the part of the residual that steps can change.

        ``rest`` returns the other part, of length ``fixed``. If it is too long although no proof shows that
        the ball is empty, rounding with an ill-conditioned map may be the cause.
        """
        if fixed > self.ceiling + self.blur:
            words = f"the least-squares residual is {fixed:.9g}, sigma is {self.sigma:.9g}"
            # The component of A x - y outside the range of A is that of -y.
            if residual_exceeds(A, r, self.sigma, rest(), cancelled=self.terms):
                raise InfeasibleError(f"no x has |A x - y| <= sigma: {words}")
            raise ProjectionError(f"no point with |A x - y| <= sigma was found: {words}")
        if fixed >= self.target:
            return 0.0
        return math.sqrt((self.target - fixed) * (self.target + fixed))


class _Tight:
    """The closed form for ``A A^H = c I``."""

    def __init__(self, c: float) -> None:
        self.c = c

    def norm_of_map(self, A: LinearMap, r: Array) -> float:
        return math.sqrt(self.c)

    def towards(self, goal: _Goal, A: LinearMap, r: Array) -> Array:
        return A.adjoint(r * ((1.0 - goal.target / norm(r)) / self.c))


class _Spectral:
    """The secular equation in the eigenbasis of ``A A^H``."""

    def norm_of_map(self, A: LinearMap, r: Array) -> float:
        return A.singular_range[0]

    def towards(self, goal: _Goal, A: LinearMap, r: Array) -> Array:
        s, U = A.left_spectrum
        h = adjoint_product(U, r)
        rest = 0.0 * r if s.shape[0] == U.shape[0] else r - U @ h
        rest = rest - U @ adjoint_product(U, rest)
        allowed = goal.inside(norm(rest), A, r, lambda: rest)
        if s.shape[0] == 0:
            return A.adjoint(0.0 * r)
        h_squared = np.abs(to_numpy(h).astype(np.complex128)) ** 2
        kappa = damping(h_squared, to_numpy(s).astype(np.float64), allowed)
        return A.adjoint(U @ (h / (s + kappa)))


class _Krylov:
    """The secular equation in the Krylov space of the residual."""

    def __init__(self) -> None:
        self._norm = 0.0

    def norm_of_map(self, A: LinearMap, r: Array) -> float:
        # A lower bound from one product; the run replaces it by the largest Ritz value.
        if self._norm == 0.0:
            self._norm = norm(A.adjoint(r)) / norm(r)
        return self._norm

    def towards(self, goal: _Goal, A: LinearMap, r: Array) -> Array:
        run = GolubKahan(A, r)
        unit, deadline = eps(r), current_deadline()
        while True:
            deadline.check()
            run.extend()
            if not (run.exhausted or _due(run.steps)):
                continue
            if run.steps == 0:
                goal.inside(run.beta, A, r, lambda: r)
                return A.adjoint(0.0 * r)
            ritz = _Ritz.of(run, max(A.shape) * unit * self._norm)
            self._norm = max(self._norm, ritz.largest)
            settled = run.exhausted or ritz.gradient(0.0) <= 8.0 * unit * self._norm * run.beta
            if ritz.fixed > goal.target and not settled:
                continue
            allowed = goal.inside(ritz.fixed, A, r, functools.partial(_left_over, r, run, ritz))
            kappa = damping(ritz.h**2, ritz.S**2, allowed)
            w = ritz.S * ritz.h / (ritz.S**2 + kappa)
            enough = max(
                4.0 * unit * kappa * float(np.linalg.norm(w)), 8.0 * unit * self._norm * run.beta
            )
            if run.exhausted or ritz.gradient(kappa) <= enough:
                return run.combine((ritz.right @ w).astype(np.finfo(r.dtype).dtype))


def _left_over(r: Array, run: GolubKahan, ritz: _Ritz) -> Array:
    """Return the part of the residual that a finished run cannot change."""
    return run.combine_left(ritz.rest.astype(np.finfo(r.dtype).dtype))


@dataclass(frozen=True)
class _Ritz:
    """The small problem of a Golub-Kahan run in its singular basis."""

    #: Singular values above rounding, the residual's coordinates there, and the right vectors.
    S: np.ndarray[Any, Any]
    h: np.ndarray[Any, Any]
    right: np.ndarray[Any, Any]
    #: Length of the part of the residual that no step in this space can change.
    fixed: float
    #: That part, in the left vectors.
    rest: np.ndarray[Any, Any]
    #: Entries of the last row of the left vectors, and of that fixed part.
    last_row: np.ndarray[Any, Any]
    last_fixed: float
    next_alpha: float
    largest: float

    @staticmethod
    def of(run: GolubKahan, negligible: float) -> _Ritz:
        P, S, Qh = np.linalg.svd(run.bidiagonal())
        h = run.beta * P[0, :]
        rank = int(np.count_nonzero(negligible < S))
        rest = h[rank:]
        return _Ritz(
            S=S[:rank],
            h=h[:rank],
            right=Qh[:rank].T,
            fixed=float(np.linalg.norm(rest)),
            rest=P[:, rank:] @ rest,
            last_row=P[-1, :rank],
            last_fixed=float(P[-1, rank:] @ rest),
            next_alpha=run.next_alpha,
            largest=float(S[0]),
        )

    def gradient(self, kappa: float) -> float:
        """Return the norm of the optimality condition outside of the Krylov space."""
        kept = self.h * (kappa / (self.S**2 + kappa)) if kappa > 0.0 else 0.0 * self.h
        return self.next_alpha * abs(float(self.last_row @ kept) + self.last_fixed)


def _due(k: int) -> bool:
    """Whether to solve the small problem after step k: at every second step, and later every k/10 steps."""
    return k % max(2, k // 10) == 0


def _step_for(A: LinearMap, tight_frame: float | None) -> _Tight | _Spectral | _Krylov:
    if tight_frame is not None:
        return _Tight(tight_frame)
    if not A.explicit:
        return _Krylov()
    if isinstance(A, SparseMap):
        c = _equal_orthogonal_rows(A.matrix)
        if c is not None:
            return _Tight(c)
        if min(A.shape) > _DENSE_SPECTRUM:
            return _Krylov()
    s, _ = A.left_spectrum
    if A.full_row_rank and float(s[-1]) - float(s[0]) <= 8.0 * eps(A.like) * float(s[-1]):
        return _Tight(0.5 * (float(s[0]) + float(s[-1])))
    return _Spectral()


def _equal_orthogonal_rows(matrix: Any) -> float | None:
    """Return ``c`` where ``A A^H = c I`` holds exactly, as for selections; else None."""
    by_columns = matrix.tocsc()
    if matrix.nnz == 0 or np.diff(by_columns.indptr).max() > 1:
        return None  # two rows share a column and are rarely orthogonal
    squares = np.asarray(abs(matrix).power(2).sum(axis=1)).ravel()
    return float(squares[0]) if squares.min() == squares.max() else None


def adjoint_product(U: Array, r: Array) -> Array:
    """Return ``U^H r``."""
    if not is_complex(U):
        return U.T @ r
    return namespace(U).conj(U).T @ r
