"""Newton's method on signs with a rough Gram matrix and exact residuals.

At a point with residual ``r``, correlations ``g = A'r`` and multiplier ``a``, the solution for signs ``s`` on
a support is ``x + u - (alpha - a) v`` with ``G u = g - a w s``, ``G v = w s``. Near the solution ``u`` is
small, so that a factor of ``G`` in single precision loses nothing: the next residual shows what is left, as
in iterative refinement.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

__all__ = ["RoughNewton"]

Vector: TypeAlias = "np.ndarray[Any, Any]"

_STEPS = 40
_GROWTH = 1.0 / 3.0  # newcomers in one step, relative to the support
_START = 0.1  # of the largest alpha
_DESCENT = 0.1  # alpha shrinks by this factor while sigma is out of reach
_ROUGH, _FINE = 1e-3, 1e-8  # by how much a correlation has to exceed its limit to be believed


class RoughNewton:
    """One search for the support and signs of a solution; someone else computes the products.

    Parameters
    ----------
    gram : array
        ``A'A`` in single precision.
    y, sigma, weights, nonneg
        The problem.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.rough_newton import RoughNewton
    >>> A = np.eye(2)
    >>> y = np.array([3.0, 0.5])
    >>> newton = RoughNewton(A.astype(np.float32), y, 1.0, np.ones(2), False)
    >>> newton.look(y, A.T @ y, np.abs(A.T @ y))
    >>> newton.step()
    >>> newton.steps
    1
    """

    def __init__(
        self, gram: Vector, y: Vector, sigma: float, weights: Vector, nonneg: bool
    ) -> None:
        self._all_gram, self._all_weights, self._nonneg = gram, weights, nonneg
        self.support = np.empty(0, dtype=np.intp)
        self.x = np.empty(0)
        self.steps, self.lost = 0, False
        size = float(np.linalg.norm(y))
        # A hair inside the ball, so that the point is feasible in floating point as well.
        self._sigma = sigma * (1.0 - 1e-12) - 4.0 * float(np.finfo(y.dtype).eps) * size
        self._rows = len(y)
        # A residual that is very short beside y is all rounding in single precision.
        self.fine = self._sigma < 1e-4 * size
        self._alpha, self._floor, self._reached, self._flipped = 0.0, math.inf, False, False
        self._ws = np.empty(0)  # weights times signs
        self._gram = np.empty((0, 0), dtype=np.float32)  # of the support; its lower half is right
        self._factor: Vector | None = None

    def look(self, r: Vector, g: Vector, excess: Vector) -> None:
        """Take note of residual and correlations at the present point, and take in columns."""
        self._square = float(np.vdot(r, r))
        if not self.steps:
            self._floor = _START * float(excess.max(initial=0.0))
            self.lost = self._sigma <= 0.0 or self._square <= self._sigma**2
        excess[self.support] = 0.0
        limit = self._alpha * (1.0 + (_FINE if self.fine else _ROUGH))
        wanted = np.flatnonzero(excess > limit)
        settled = self._reached and not self._flipped and wanted.size == 0
        self.fine = self.fine or settled
        if not self._reached and self.steps:
            self._floor *= _DESCENT
        most = max(10, self._rows // 16, int(_GROWTH * self.support.size))
        if wanted.size > most:
            wanted = wanted[np.argpartition(-excess[wanted], most)[:most]]
        self._take_in(wanted, g)
        self._g = g[self.support].astype(np.float64)
        full = self.support.size == 0 or self.support.size > max(20, self._rows // 2)
        self.lost = self.lost or full or self.steps >= _STEPS

    def _take_in(self, wanted: Vector, g: Vector) -> None:
        n = self.support.size
        if wanted.size == 0:
            return
        self.support = np.concatenate([self.support, wanted])
        self.x = np.concatenate([self.x, np.zeros(wanted.size)])
        signs = 1.0 if self._nonneg else np.sign(g[wanted])
        self._ws = np.concatenate([self._ws, signs * self._all_weights[wanted]])
        gram = np.empty((n + wanted.size, n + wanted.size), dtype=np.float32)
        gram[:n, :n] = self._gram
        # Rows first: they are read in one go.
        gram[n:] = self._all_gram.take(wanted, axis=0).take(self.support, axis=1)
        self._gram, self._factor = gram, None

    def step(self) -> None:
        """Move to the solution for the present signs, and drop columns whose sign has flipped."""
        self.steps += 1
        solved = self._solve(np.stack([self._g - self._alpha * self._ws, self._ws], axis=1))
        if solved is None:
            self.lost = True
            return
        u, v = solved
        change = self._change_of_alpha(u, v)
        self.x = self.x + u - change * v
        self._alpha += change
        kept = self.x * self._ws > 0.0
        self._flipped = not bool(kept.all())
        if self._flipped:
            self._drop(np.flatnonzero(kept))

    def _change_of_alpha(self, u: Vector, v: Vector) -> float:
        """Return how alpha changes, so that the residual becomes as short as sigma, or to the floor.

        With ``e = g - a w s`` the new residual has the square
        ``|r|^2 - e'u - 2 a (w s)'u + (alpha^2 - a^2) (w s)'v``.
        """
        a, ws = self._alpha, self._ws
        e = self._g - a * ws
        missing = self._sigma**2 - self._square + float(e @ u) + 2.0 * a * float(ws @ u)
        growth = missing / float(ws @ v)
        square = a * a + growth
        alpha = math.sqrt(max(square, 0.0))
        self._reached = square > 0.0 and alpha >= self._floor
        if not self._reached:
            return self._floor - a
        self._floor = 0.0
        return growth / (alpha + a)

    def _solve(self, right: Vector) -> tuple[Vector, Vector] | None:
        """Solve with the Gram matrix of the support; None if it is not definite."""
        potrf, potrs = scipy.linalg.get_lapack_funcs(("potrf", "potrs"), (self._gram,))
        if self._factor is None:
            # The transpose of a copy is in the order LAPACK wants, with its upper half right.
            factor, info = potrf(self._gram.copy().T, lower=False, overwrite_a=True, clean=False)
            if info != 0:
                return None
            self._factor = factor
        solved, _ = potrs(self._factor, right.astype(np.float32), lower=False)
        u, v = solved.astype(np.float64).T
        return (u, v) if bool(np.isfinite(solved).all()) and float(self._ws @ v) > 0.0 else None

    def _drop(self, kept: Vector) -> None:
        self.support, self.x, self._ws = self.support[kept], self.x[kept], self._ws[kept]
        self._gram = self._gram.take(kept, axis=0).take(kept, axis=1)
        self._factor = None
