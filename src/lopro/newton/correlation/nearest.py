"""The nearest correlation matrix, certified: a feasible matrix and a lower bound of the distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.certificates.definite import is_above, missing
from lopro.certificates.rounding import gamma, total
from lopro.newton.arrays import EPS, Array, norm
from lopro.newton.correlation.arguments import Request
from lopro.newton.correlation.bounds import excluded, lower_bound, violation_charge
from lopro.newton.correlation.dual_newton import DualPoint, newton
from lopro.newton.correlation.problem import Target
from lopro.newton.multipliers import never

__all__ = ["NearestCorrelation", "NoCorrelationMatrix", "nearest_correlation"]


#: How often the residual is lowered, or the margin widened, until the gap is proved.
_ATTEMPTS = 5
#: Gaps are relative to the value, and to this share of ``1/2 |G|^2`` where ``G`` is nearer than that.
_NEAR = 1e-8


class NoCorrelationMatrix(ValueError):
    """No correlation matrix has the fixed entries; ``certificate`` proves it."""

    def __init__(self, certificate: Array, decompositions: int) -> None:
        super().__init__(
            "fixed: no correlation matrix with this least eigenvalue has these entries"
        )
        self.certificate = certificate
        self.decompositions = decompositions


@dataclass(frozen=True)
class NearestCorrelation:
    """A correlation matrix near the given one, and the proof of how near.

    Attributes
    ----------
    X : array
        Symmetric, with a diagonal of ones and the fixed entries.
    fun : float
        ``1/2 |W^(1/2) (X - G) W^(1/2)|_F^2``.
    lower_bound : float
        No correlation matrix with these properties has a smaller value; rounding is subtracted, and so is
        what the violation might have gained.
    violation : float
        How far the least eigenvalue may be below the one asked for; 0 where it is proved not to be.
    scale : float
        The least value that gaps are relative to.
    multipliers : array
        Of the diagonal, then of the fixed entries.
    decompositions, products : int
        Eigendecompositions and products with Jacobians made.
    solved : bool
        Whether the dual problem was solved; otherwise time or steps were used up.
    """

    X: Array
    fun: float
    lower_bound: float
    violation: float
    scale: float
    multipliers: Array
    decompositions: int
    products: int
    solved: bool

    @property
    def gap(self) -> float:
        """The proved distance from the optimal value."""
        return self.fun - self.lower_bound


def nearest_correlation(
    G: Any,
    weights: Any = None,
    fixed: Any = None,
    min_eigenvalue: float = 0.0,
    tol: float = 1e-8,
    stopped: Callable[[], bool] = never,
) -> NearestCorrelation:
    """Return the correlation matrix nearest to ``G`` in the W-norm, with a certificate.

    Parameters
    ----------
    G : array, shape (n, n)
        Symmetric.
    weights : array, shape (n,), optional
        One positive weight for each variable; ones by default.
    fixed : array of bool, shape (n, n), optional
        Entries of ``G`` that are kept.
    min_eigenvalue : float
        The least eigenvalue of the result, below 1.
    tol : float
        The relative gap to prove.
    stopped : callable
        Whether there is no time for another eigendecomposition.

    Raises
    ------
    NoCorrelationMatrix
        If the fixed entries leave no such matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.correlation import nearest_correlation
    >>> G = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    >>> found = nearest_correlation(G)
    >>> found.X.round(4)
    array([[1.    , 0.7607, 0.1573],
           [0.7607, 1.    , 0.7607],
           [0.1573, 0.7607, 1.    ]])
    >>> found.gap <= 1e-8 * found.fun
    True
    """
    return _Search(Request.of(G, weights, fixed, min_eigenvalue), tol, stopped).run()


class _Search:
    """Newton's method, repeated with more accuracy or a wider margin until the gap is proved."""

    def __init__(self, request: Request, tol: float, stopped: Callable[[], bool]) -> None:
        self.request, self.tol, self.stopped = request, tol, stopped
        self.plain = self._target(0.0)
        self.scale = _NEAR * 0.5 * norm(self.plain.T) ** 2
        self.decompositions = self.products = 0

    def _target(self, margin: float) -> Target:
        asked = self.request
        return Target.of(asked.G, asked.w, asked.kept, asked.least + margin)

    def _first_margin(self) -> float:
        """Return by how much the solution stays inside: fixed entries cannot be mixed with the identity."""
        n = len(self.request.G)
        proof = 4.0 * gamma(n + 2) * n
        # Rounding to single precision moves eigenvalues by about sqrt(n) units.
        if self.request.dtype == np.float64:
            return proof
        return proof + math.sqrt(n) * float(np.finfo(self.request.dtype).eps)

    @property
    def _keeps(self) -> bool:
        return len(self.plain.rows.i) > 0

    def run(self) -> NearestCorrelation:
        """Return the nearest matrix, or the best that time allows."""
        asked = self.request
        if np.all(asked.G.diagonal() == 1.0) and is_above(asked.G, asked.least):
            return self._found(asked.G, None, True)
        if self.stopped():
            return self._without_any_step()
        start: Array | DualPoint = self.plain.b - self.plain.rows.forward(self.plain.T)
        margin = self._first_margin() if self._keeps else 0.0
        target, accuracy = self._target(margin), min(1e-10, 0.01 * self.tol)
        best: NearestCorrelation | None = None
        for _ in range(_ATTEMPTS):
            run = newton(target, start, accuracy, self.stopped)
            point, start = run.point, run.point
            self.decompositions += run.decompositions
            self.products += run.products
            if not run.solved and self._keeps and excluded(self.plain, point.y):
                raise NoCorrelationMatrix(point.y, self.decompositions)
            X = self._feasible(target, point)
            if X is not None:
                best = self._found(X, point, run.solved)
                if best.gap <= self.tol * max(best.fun, self.scale):
                    return best
            if self.stopped():
                break
            accuracy *= 1e-2
            residual = float(np.abs(point.gradient).max() / asked.w.min())
            if X is None and 16.0 * residual < margin:
                margin *= 8.0
                target, start = self._target(margin), point.y
        return best or self._violating(target, point)

    def _found(self, X: Array, point: DualPoint | None, solved: bool) -> NearestCorrelation:
        """Return a feasible matrix with what is known of it; a sum of squares is not negative."""
        bound = 0.0 if point is None else max(0.0, lower_bound(self.plain, point))
        y = np.zeros(len(self.plain.b)) if point is None else point.y
        return self._result(X, bound, 0.0, y, solved)

    def _result(
        self, X: Array, bound: float, violation: float, y: Array, solved: bool
    ) -> NearestCorrelation:
        asked = self.request
        fun = _value(X, asked.G, asked.w)
        X = X.astype(asked.dtype)
        counts = self.decompositions, self.products
        return NearestCorrelation(X, fun, bound, violation, self.scale, y, *counts, solved)

    def _without_any_step(self) -> NearestCorrelation:
        """Return the identity with the fixed entries, if there is no time for anything else."""
        X = self.plain.correlation(np.eye(len(self.request.G)) * self.request.w, self.request.G)
        violation = 0.0 if is_above(X, self.request.least) else math.inf
        bound = -math.inf if violation else 0.0
        return self._result(X, bound, violation, np.zeros(len(self.plain.b)), False)

    def _violating(self, target: Target, point: DualPoint) -> NearestCorrelation:
        """Return the matrix that was reached, with its violation measured and charged."""
        X = self.request.rounded(target.correlation(point.Z, self.request.G))
        self.decompositions += 1
        short = missing(X - self.request.least * np.eye(len(X)), EPS)
        bound = lower_bound(self.plain, point) - short * violation_charge(self.plain, point)
        return self._result(X, bound, short, point.y, False)

    def _feasible(self, target: Target, point: DualPoint) -> Array | None:
        """Return a correlation matrix near the projection whose eigenvalues are proved, or None."""
        asked, least = self.request, self.request.least
        X = target.correlation(point.Z, asked.G)
        if self._keeps:
            X = asked.rounded(X)
            return X if is_above(X, least) else None
        share = 4.0 * gamma(len(X) + 2) * len(X)
        share += float(np.abs(point.gradient / target.roots**2).max())
        while share < 1.0:
            # The identity is the centre of all correlation matrices: off-diagonal entries shrink.
            mixed = (1.0 - share) * X
            mixed.flat[:: len(X) + 1] = 1.0
            mixed = asked.rounded(mixed)
            if is_above(mixed, least):
                return mixed
            share *= 8.0
        return np.eye(len(X))


def _value(X: Array, G: Array, w: Array) -> float:
    D = X - G
    terms = D * D * (w[:, None] * w)
    return total(terms, 4.0 * EPS * terms).upper() * 0.5
