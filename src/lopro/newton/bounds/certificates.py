"""Checks of certificates of emptiness and of unboundedness, apart from whatever found them.

Nothing here is shared with the methods or with the other bounds: dot products are made exact by splitting
every product into its rounded value and its error (Dekker), and `math.fsum` adds all of them exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

__all__ = ["Descent", "Emptiness", "check_descent", "check_empty", "exact_dot"]

_SPLIT = float(2**27 + 1)


def exact_dot(x: Any, y: Any) -> float:
    """Return ``<x, y>`` rounded once (barring overflow and underflow).

    Examples
    --------
    >>> from lopro.newton.bounds.certificates import exact_dot
    >>> exact_dot([1e16, 1.0, -1e16], [1.0, 1.0, 1.0])
    1.0
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    products = a * b
    a_high = _SPLIT * a - (_SPLIT * a - a)
    b_high = _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    errors = ((a_high * b_high - products) + a_high * b_low + a_low * b_high) + a_low * b_low
    return math.fsum([*products.tolist(), *errors.tolist()])


def _columns(M: Any) -> Any:
    """Yield the rows (as indices) and the entries of every column."""
    if scipy.sparse.issparse(M):
        csc = scipy.sparse.csc_array(M)
        for start, stop in zip(csc.indptr[:-1], csc.indptr[1:], strict=True):
            yield csc.indices[start:stop], csc.data[start:stop]
    else:
        dense = np.asarray(M, dtype=np.float64)
        everything = np.arange(dense.shape[0])
        for j in range(dense.shape[1]):
            yield everything, dense[:, j]


@dataclass(frozen=True)
class Emptiness:
    """Every ``x`` with ``lower_i <= A_i x <= upper_i`` for all i has a norm of at least ``radius``.

    ``margin`` is ``-support(y)``, ``residual`` the norm of ``sum A_i' y_i``; the radius is their ratio.
    """

    margin: float
    residual: float

    @property
    def radius(self) -> float:
        """The distance from zero within which no point satisfies all rows; infinite for none at all."""
        if self.margin <= 0.0:
            return 0.0
        return math.inf if self.residual == 0.0 else self.margin / self.residual


def check_empty(rows: Sequence[tuple[Any, Any, Any]], y: Sequence[Any], size: int) -> Emptiness:
    """Check Farkas multipliers ``y`` of rows ``lower <= A x <= upper``.

    If x satisfies the rows then ``<sum A'y, x> <= support(y) = sum max(y lower, y upper)``. Where the support
    is negative, x must be at least as long as its size over the norm of ``sum A'y``.

    Parameters
    ----------
    rows : sequence of (A, lower, upper)
        Matrices (None for the identity) and bounds, infinite where there are none.
    y : sequence of arrays
        Multipliers; entries whose side has no bound are taken as zero.
    size : int
        The number of variables.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.bounds import check_empty
    >>> A = np.array([[1.0], [1.0]])
    >>> rows = [(A, np.array([1.0, -np.inf]), np.array([np.inf, 0.0]))]
    >>> check_empty(rows, [np.array([-1.0, 1.0])], 1).radius
    inf
    """
    residual_terms: list[list[float]] = [[] for _ in range(size)]
    support: list[float] = []
    for (A, lower, upper), weights in zip(rows, y, strict=True):
        w = np.array(weights, dtype=np.float64)
        lo = np.broadcast_to(np.asarray(lower, np.float64), w.shape)
        up = np.broadcast_to(np.asarray(upper, np.float64), w.shape)
        w[((w > 0.0) & np.isinf(up)) | ((w < 0.0) & np.isinf(lo))] = 0.0
        used = w != 0.0
        support.append(exact_dot(w[used], np.where(w > 0.0, up, lo)[used]))
        if A is None:
            for j in np.flatnonzero(used).tolist():
                residual_terms[j].append(float(w[j]))
            continue
        for j, (index, entries) in enumerate(_columns(A)):
            residual_terms[j].append(exact_dot(entries, w[index]))
    residual = [math.fsum(terms) for terms in residual_terms]
    largest = max((abs(r) for r in residual), default=0.0)
    # Each sum is rounded once or twice; a share of 1e-15 more or less covers that.
    length = (
        largest * math.sqrt(math.fsum((r / largest) ** 2 for r in residual)) if largest else 0.0
    )
    margin = -math.fsum(support)
    return Emptiness(margin * (1.0 - 1e-15) if margin > 0.0 else margin, length * (1.0 + 1e-15))


@dataclass(frozen=True)
class Descent:
    """A direction along which a quadratic objective falls, checked.

    Going a distance t from any feasible point changes the objective by at most
    ``-slope t + curvature t^2 / 2`` and leaves the rows by at most ``drift t``, in units of their norms.
    """

    slope: float
    curvature: float
    drift: float

    @property
    def exact(self) -> bool:
        """Whether the objective is proved to be unbounded below (given one feasible point)."""
        return self.slope > 0.0 and self.curvature <= 0.0 and self.drift <= 0.0

    def unbounded(self, distance: float, drift: float) -> bool:
        """Whether it falls all over this distance, the rows being left by at most this share of it."""
        flat = max(self.curvature, 0.0) * distance <= 0.5 * self.slope
        return self.slope > 0.0 and flat and self.drift <= drift


def check_descent(P: Any, gradient: Any, rows: Sequence[tuple[Any, Any, Any]], d: Any) -> Descent:
    """Check a ray ``d`` of the objective ``1/2 x'Px + gradient'x`` over ``lower <= A x <= upper``.

    Parameters
    ----------
    P : matrix or None
        The Hessian; None for a linear objective.
    gradient : array
        The gradient at the point where the ray begins.
    rows : sequence of (A, lower, upper)
        As for `check_empty`.
    d : array
        The direction, of any length.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.bounds import check_descent
    >>> check_descent(None, [-1.0], [(None, [0.0], [np.inf])], [2.0]).exact
    True
    """
    direction = np.asarray(d, dtype=np.float64)
    length = math.sqrt(exact_dot(direction, direction))
    if length == 0.0:
        return Descent(0.0, 0.0, math.inf)
    drift = 0.0
    for A, lower, upper in rows:
        image, norms = _images(A, direction)
        lo, up = (np.broadcast_to(np.asarray(b, np.float64), image.shape) for b in (lower, upper))
        leaving = np.maximum(
            np.where(np.isinf(up), 0.0, image), np.where(np.isinf(lo), 0.0, -image)
        )
        drift = max(drift, float((leaving / norms).max(initial=0.0)) / length)
    curvature = 0.0
    if P is not None:
        curvature = exact_dot(direction, _images(P, direction)[0]) / length**2
    slope = -exact_dot(gradient, direction) / length
    return Descent(slope * (1.0 - 1e-15) if slope > 0.0 else slope, curvature, drift)


def _images(A: Any, d: Any) -> tuple[Any, Any]:
    """Return ``A d``, every entry rounded once, and the norms of the rows (1 for empty ones)."""
    if A is None:
        return d, np.ones(len(d))
    found = [
        (exact_dot(entries, d[index]), math.sqrt(math.fsum((entries * entries).tolist())))
        for index, entries in _columns(A.T)
    ]
    image, norms = np.array([f[0] for f in found]), np.array([f[1] for f in found])
    return image, np.where(norms > 0.0, norms, 1.0)
