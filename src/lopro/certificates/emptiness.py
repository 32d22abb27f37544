"""Emptiness of rows ``lower <= A x <= upper``: what Farkas multipliers prove, in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.certificates.exact import columns, exact_dot
from lopro.core.real_vectors import Vector
from lopro.linalg.rounding import gamma

__all__ = ["Emptiness", "check_empty", "is_rounding"]


@dataclass(frozen=True)
class Emptiness:
    """Every ``x`` that satisfies the constraints has a norm of at least ``radius``.

    ``margin`` is minus the support function at the multipliers, ``residual`` the norm of the sum of
    ``A_i' y_i``; the radius is their ratio. ``rounding`` says whether the residual is no more than the
    rounding of multipliers that leave none, column by column: only then is the set claimed to be empty.
    """

    margin: float
    residual: float
    rounding: bool = False

    @property
    def radius(self) -> float:
        """The distance from zero within which no point satisfies all rows; infinite for none at all."""
        if self.margin <= 0.0:
            return 0.0
        return math.inf if self.residual == 0.0 else self.margin / self.residual

    @property
    def proved(self) -> bool:
        """Whether the set is empty: a contradiction without a residual that is more than rounding."""
        return self.margin > 0.0 and (self.residual == 0.0 or self.rounding)


def is_rounding(residual: Vector, sizes: Vector, terms: int, noise: float = 0.0) -> bool:
    """Whether ``|r_k| <= 4 gamma_n sizes_k`` for every column, with ``sizes = sum |A_i|' |y_i|``.

    Column by column, so that it does not depend on units. ``noise`` is by how much the entries themselves may
    be off, relatively, where they were computed.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.emptiness import is_rounding
    >>> is_rounding(np.array([1e-16, 0.0]), np.array([1.0, 0.0]), 2)
    True
    >>> is_rounding(np.array([1e-16, 1e-16]), np.array([1.0, 1e-9]), 2)
    False
    """
    allowed = 4.0 * gamma(max(1, terms)) + noise
    return bool(np.all(np.abs(residual) <= allowed * sizes))


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
    >>> from lopro.certificates import check_empty
    >>> A = np.array([[1.0], [1.0]])
    >>> rows = [(A, np.array([1.0, -np.inf]), np.array([np.inf, 0.0]))]
    >>> found = check_empty(rows, [np.array([-1.0, 1.0])], 1)
    >>> found.radius, found.proved
    (inf, True)

    ``x_1 >= 1`` and ``x_1 <= 1e-9 x_2`` exclude each other for ``x_2 < 1e9`` only:

    >>> A = np.array([[1.0, 0.0], [1.0, -1e-9]])
    >>> rows = [(A, np.array([1.0, -np.inf]), np.array([np.inf, 0.0]))]
    >>> found = check_empty(rows, [np.array([-1.0, 1.0])], 2)
    >>> round(found.radius), found.proved
    (1000000000, False)
    """
    residual_terms: list[list[float]] = [[] for _ in range(size)]
    sizes, counts = np.zeros(size), np.zeros(size)
    support: list[float] = []
    for (A, lower, upper), weights in zip(rows, y, strict=True):
        w = np.array(weights, dtype=np.float64)
        lo = np.broadcast_to(np.asarray(lower, np.float64), w.shape)
        up = np.broadcast_to(np.asarray(upper, np.float64), w.shape)
        w[((w > 0.0) & np.isinf(up)) | ((w < 0.0) & np.isinf(lo))] = 0.0
        used = w != 0.0
        support.append(exact_dot(w[used], np.where(w > 0.0, up, lo)[used]))
        if A is None:
            sizes, counts = sizes + np.abs(w), counts + used
            for j in np.flatnonzero(used).tolist():
                residual_terms[j].append(float(w[j]))
            continue
        for j, (index, entries) in enumerate(columns(A)):
            residual_terms[j].append(exact_dot(entries, w[index]))
            sizes[j] += float(np.abs(entries) @ np.abs(w[index]))
            counts[j] += len(index)
    residual = np.array([math.fsum(terms) for terms in residual_terms])
    largest = float(np.abs(residual).max(initial=0.0))
    # Each sum is rounded once or twice; a share of 1e-15 more or less covers that.
    scaled = residual / largest if largest else residual
    length = largest * math.sqrt(math.fsum((scaled * scaled).tolist()))
    margin = -math.fsum(support)
    rounding = is_rounding(residual, sizes, int(counts.max(initial=1.0)))
    return Emptiness(
        margin * (1.0 - 1e-15) if margin > 0.0 else margin, length * (1.0 + 1e-15), rounding
    )
