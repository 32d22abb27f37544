"""The nearest correlation matrix, certified: a feasible matrix and a lower bound of the distance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.newton.arrays import EPS, Array
from lopro.newton.bounds.rounding import gamma, total
from lopro.newton.correlation.bounds import excluded, is_above, lower_bound
from lopro.newton.correlation.dual_newton import DualPoint, newton
from lopro.newton.correlation.problem import Target
from lopro.newton.multipliers import never

__all__ = ["NearestCorrelation", "NoCorrelationMatrix", "nearest_correlation"]


#: How often the residual is lowered, or the margin widened, until the gap is proved.
_ATTEMPTS = 5


class NoCorrelationMatrix(ValueError):
    """No correlation matrix has the fixed entries; ``certificate`` proves it."""

    def __init__(self, certificate: Array) -> None:
        super().__init__(
            "fixed: no correlation matrix with this least eigenvalue has these entries"
        )
        self.certificate = certificate


@dataclass(frozen=True)
class NearestCorrelation:
    """A correlation matrix near the given one, and the proof of how near.

    Attributes
    ----------
    X : array
        Symmetric, with a diagonal of ones, the fixed entries, and no eigenvalue below the least one.
    fun : float
        ``1/2 |W^(1/2) (X - G) W^(1/2)|_F^2``.
    lower_bound : float
        No correlation matrix with these properties has a smaller value; its own rounding is subtracted.
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
        Whether time is up.

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
    G, w, kept = _checked(G, weights, fixed, min_eigenvalue)
    plain = Target.of(G, w, kept, min_eigenvalue)
    # Fixed entries cannot be mixed with those of the identity: the solution itself stays inside by a margin.
    margin = 4.0 * gamma(len(G) + 2) * len(G) if len(plain.rows.i) else 0.0
    target = Target.of(G, w, kept, min_eigenvalue + margin)
    start: Array | DualPoint = plain.b - plain.rows.forward(plain.T)
    accuracy, made, products = min(1e-10, 0.01 * tol), 0, 0
    best: NearestCorrelation | None = None
    for _ in range(_ATTEMPTS):
        run = newton(target, start, accuracy, stopped)
        point, start = run.point, run.point
        made, products = made + run.decompositions, products + run.products
        if not run.solved and len(plain.rows.i) and excluded(plain, point.y):
            raise NoCorrelationMatrix(point.y)
        X = _feasible(target, point, G, min_eigenvalue)
        if X is not None:
            bound, fun = lower_bound(plain, point), _value(X, G, w)
            best = NearestCorrelation(X, fun, bound, point.y, made, products, run.solved)
            if best.gap <= tol * fun:
                break
        if stopped():
            break
        accuracy *= 1e-2
        residual = float(np.abs(point.gradient).max() / w.min())
        if X is None and 16.0 * residual < margin:
            margin *= 8.0
            target, start = Target.of(G, w, kept, min_eigenvalue + margin), point.y
    if best is None:
        raise TimeoutError("no feasible matrix was found within the time and steps allowed")
    return best


def _feasible(target: Target, point: DualPoint, G: Array, least: float) -> Array | None:
    """Return a correlation matrix near the projection whose eigenvalues are proved, or None."""
    X = target.correlation(point.Z, G)
    if len(target.rows.i):
        return X if is_above(X, least) else None
    share = 4.0 * gamma(len(X) + 2) * len(X)
    share += float(np.abs(point.gradient / target.roots**2).max())
    while share < 1.0:
        # The identity is the centre of all correlation matrices: off-diagonal entries shrink.
        mixed = (1.0 - share) * X
        mixed.flat[:: len(X) + 1] = 1.0
        if is_above(mixed, least):
            return mixed
        share *= 8.0
    return np.eye(len(X))


def _checked(G: Any, weights: Any, fixed: Any, least: float) -> tuple[Array, Array, Any]:
    """Return the arguments as arrays, refusing what is not finite, square, symmetric, positive."""
    G = np.array(G, dtype=np.float64)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or not np.all(np.isfinite(G)):
        raise ValueError("G: a square matrix of finite numbers is needed")
    if np.abs(G - G.T).max(initial=0.0) > 64.0 * EPS * np.abs(G).max(initial=0.0):
        raise ValueError("G: a symmetric matrix is needed")
    G = 0.5 * (G + G.T)
    w = np.ones(len(G)) if weights is None else np.array(weights, dtype=np.float64)
    if w.shape != (len(G),) or not np.all((w > 0.0) & np.isfinite(w)):
        raise ValueError("weights: one positive number for each variable is needed")
    kept = np.zeros(G.shape, dtype=bool) if fixed is None else np.asarray(fixed, dtype=bool)
    if kept.shape != G.shape or not np.array_equal(kept, kept.T):
        raise ValueError("fixed: a symmetric pattern of the shape of G is needed")
    if not 0.0 <= least < 1.0:
        raise ValueError(f"min_eigenvalue: a number from 0 to below 1 is needed, got {least}")
    if kept.any() and np.any(np.abs(G[kept & ~np.eye(len(G), dtype=bool)]) > 1.0 - least):
        raise ValueError("fixed: a fixed entry exceeds 1 - min_eigenvalue in size")
    return G, w, kept


def _value(X: Array, G: Array, w: Array) -> float:
    D = X - G
    terms = D * D * (w[:, None] * w)
    return total(terms, 4.0 * EPS * terms).upper() * 0.5
