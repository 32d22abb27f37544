"""Emptiness of an intersection of sets, proved by multipliers.

If x is in all sets then ``<r, x> <= S`` with ``r = sum D_i' v_i`` and S the sum of their support functions.
With r = 0 and S < 0 there is no such x; otherwise none within ``-S / |r|`` of zero. Bounds of variables
absorb r.

Sets contradict each other only if they do so by more than `TOUCHING` of the numbers compared: sides are data,
which are known up to that. Terms use `exclude`, rows with two sides `check_empty` (in exact arithmetic),
cones `exclude_cones`; code that computes the residual in another way uses `is_rounding`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.exact import columns
from lopro.certificates.tolerances import FARTHER, NOISE, REMNANTS, TOUCHING
from lopro.certificates.units import reach_units
from lopro.core.arrays import Array, namespace
from lopro.core.exact import exact_terms
from lopro.core.real_vectors import Vector
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.linalg.products import enclose_adjoint
from lopro.linalg.rounding import EPS, Estimate, adjoint_product, dot, gamma, length
from lopro.maps.host import engine_matrix

__all__ = [
    "Emptiness",
    "check_empty",
    "exclude",
    "exclude_cones",
    "interval_rows",
    "is_rounding",
    "without_remnants",
]


@dataclass(frozen=True)
class Emptiness:
    """Every ``x`` that satisfies the constraints has a norm of at least ``radius``.

    ``margin`` is minus the support function at the multipliers, less the uncertainty of the sides;
    ``residual`` is the norm of the sum of ``A_i' y_i``; the radius is their ratio. ``rounding`` is True if
    the residual is within the rounding of multipliers with the residual 0, column by column, and excludes all
    points in the region where solutions are assumed: only then is the set claimed to be empty.
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

    The test of each column is independent of units. ``noise`` is the relative error of the entries themselves
    if they were computed.

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


def without_remnants(v: Array) -> Iterator[Array]:
    """Yield multipliers unchanged, then without small entries that may be the errors of an engine.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.emptiness import without_remnants
    >>> [trial.tolist() for trial in without_remnants(np.array([1.0, 1e-8]))]
    [[1.0, 1e-08], [1.0, 1e-08], [1.0, 0.0]]
    """
    xp = namespace(v)
    largest = float(xp.max(xp.abs(v))) if v.shape[0] else 0.0
    for share in REMNANTS:
        yield xp.where(xp.abs(v) > share * largest, v, 0.0 * v)


def exclude(sets: Sequence[Term], y: Sequence[Vector], size: int) -> Emptiness:
    """Return the emptiness that multipliers of sets prove, rounding of the arithmetic included.

    Parameters
    ----------
    sets : sequence of Term
        Sets of vectors on the host.
    y : sequence of arrays
        One multiplier for each, in the domain of its support function.
    size : int
        The number of variables.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import exclude
    >>> from lopro.functions.atoms import Ball, Interval
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import Identity
    >>> ball = Term(Ball(1.0), Identity(1))
    >>> far = Term(Interval(np.array([2.0]), np.array([np.inf])), Identity(1))
    >>> exclude([ball, far], [np.array([1.0]), np.array([-1.0])], 1).proved
    True
    """
    rows = interval_rows(sets)
    if rows is not None:
        return check_empty(rows, y, size)
    support, normal, error = Estimate(0.0), np.zeros(size), np.zeros(size)
    compared = 0.0
    for term, v in zip(sets, y, strict=True):
        own_support = term.enclose_conjugate(v)
        support, compared = support + own_support, compared + abs(own_support.value)
        own, own_error = enclose_adjoint(term.D, v)
        normal = normal + own
        error = error + own_error + EPS * np.abs(normal)
    # The bound of the rounding of a product is gamma_n |D|' |v|.
    rounding = bool(np.all(np.abs(normal) <= 4.0 * error))
    error = error * (1.0 + 8.0 * EPS)
    return Emptiness(-support.upper() - TOUCHING * compared, length(normal, error), rounding)


def exclude_cones(A: Any, b: Vector, z: Vector, noise: float = 0.0, unit: float = EPS) -> Emptiness:
    """Return the emptiness that a ``z`` in the dual cone proves: ``<A'z, x> <= <b, z>`` for all x.

    Parameters
    ----------
    A : scipy.sparse array
        The rows of all cones.
    b, z : arrays
        Sides, and multipliers in the dual cone.
    noise : float
        The relative error of the entries of rows, if they were computed.
    unit : float
        The rounding unit of the sides: in single precision small contradictions are often rounding.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.certificates import exclude_cones
    >>> rows = scipy.sparse.csr_array([[1.0], [-1.0]])  # x <= 1 and x >= 2
    >>> exclude_cones(rows, np.array([1.0, -2.0]), np.ones(2)).proved
    True
    >>> exclude_cones(rows, np.array([1.0, -1.0]), np.ones(2)).proved
    False
    """
    residual, error = adjoint_product(A, z)
    sizes = np.abs(z)
    longest = int(np.diff(scipy.sparse.csc_array(A).indptr).max(initial=1))
    rounding = is_rounding(residual, np.asarray(abs(A).T @ sizes), longest, noise)
    touching = max(TOUCHING, 64.0 * unit) * float(sizes @ np.abs(b))
    return Emptiness(-dot(b, z).upper() - touching, length(residual, error), rounding)


def interval_rows(terms: Sequence[Term]) -> list[tuple[Any, Vector, Vector]] | None:
    """Return the rows ``lower <= A x <= upper`` of terms that are all of this kind, else None."""
    rows: list[tuple[Any, Vector, Vector]] = []
    for term in terms:
        A = engine_matrix(term.D)  # exact arithmetic needs the entries on the host
        if not isinstance(term.atom, Interval) or (A is None and not term.is_identity):
            return None
        rows.append((A, term.atom.lower, term.atom.upper))
    return rows


def check_empty(rows: Sequence[tuple[Any, Any, Any]], y: Sequence[Any], size: int) -> Emptiness:
    """Check Farkas multipliers ``y`` of rows ``lower <= A x <= upper``.

    If x satisfies the rows then ``<sum A'y, x> <= support(y) = sum max(y lower, y upper)``. Where the support
    is negative, x must be at least as long as its size over the norm of ``sum A'y``.

    Parameters
    ----------
    rows : sequence of (A, lower, upper)
        Matrices (None for the identity) and bounds, infinite if there is none.
    y : sequence of arrays
        Multipliers; entries whose side is infinite count as zero.
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

    ``x_1 >= 1`` and ``x_1 <= 1e-9 x_2`` contradict each other only for ``x_2 < 1e9``:

    >>> A = np.array([[1.0, 0.0], [1.0, -1e-9]])
    >>> rows = [(A, np.array([1.0, -np.inf]), np.array([np.inf, 0.0]))]
    >>> found = check_empty(rows, [np.array([-1.0, 1.0])], 2)
    >>> round(found.radius), found.proved
    (1000000000, False)
    """
    terms: list[list[float]] = [[] for _ in range(size)]
    sizes, counts = np.zeros(size), np.zeros(size)
    support: list[float] = []
    touching, box = 0.0, []
    for (A, lower, upper), weights in zip(rows, y, strict=True):
        w = np.array(weights, dtype=np.float64)
        lo = np.broadcast_to(np.asarray(lower, np.float64), w.shape)
        up = np.broadcast_to(np.asarray(upper, np.float64), w.shape)
        w[((w > 0.0) & np.isinf(up)) | ((w < 0.0) & np.isinf(lo))] = 0.0
        used = w != 0.0
        sides = np.where(w > 0.0, up, lo)[used]
        support += exact_terms(w[used], sides)
        touching += float(np.abs(w[used]) @ _uncertainty(A, lo, up, used, sides))
        if A is None:
            box.append((lo, up))
            sizes, counts = sizes + np.abs(w), counts + used
            for j in np.flatnonzero(used).tolist():
                terms[j].append(float(w[j]))
            continue
        for j, (index, entries) in enumerate(columns(A)):
            terms[j] += exact_terms(entries, w[index])
            sizes[j] += float(np.abs(entries) @ np.abs(w[index]))
            counts[j] += len(index)
    residual = np.array([math.fsum(column) for column in terms])
    for lo, up in box:
        residual, cost = _absorbed(residual, lo, up)
        support += cost
    margin = -math.fsum(support) - touching
    largest = float(np.abs(residual).max(initial=0.0))
    # Each sum is rounded once, which a relative 1e-15 covers.
    scaled = residual / largest if largest else residual
    norm = largest * math.sqrt(math.fsum((scaled * scaled).tolist())) * (1.0 + 1e-15)
    rounding = margin > 0.0 and is_rounding(residual, sizes, int(counts.max(initial=1.0)))
    if rounding and norm > 0.0:
        blocks = [(A, side) for A, lower, upper in rows for side in (lower, upper)]
        far = FARTHER * reach_units(blocks, size).sizes(np.zeros(size))
        rounding = margin > float(np.abs(residual) @ far) * (1.0 + (size + 8) * EPS)
    return Emptiness(margin * (1.0 - 1e-15) if margin > 0.0 else margin, norm, rounding)


def _uncertainty(A: Any, lower: Vector, upper: Vector, used: Any, sides: Vector) -> Vector:
    """Return the uncertainty of the sides in use.

    A side within the rounding of the largest one of the same rows, each in units of its row, is the error of
    numbers that cancelled before: it counts as 0, so its uncertainty is its size.
    """
    if A is None or not used.any():
        return TOUCHING * np.abs(sides)
    both = np.maximum(*(np.where(np.isfinite(b), np.abs(b), 0.0) for b in (lower, upper)))
    entries = abs(A).max(axis=1)
    lengths = np.asarray(entries.toarray() if scipy.sparse.issparse(entries) else entries).ravel()
    in_units = both[lengths > 0.0] / lengths[lengths > 0.0]
    largest = lengths[used] * in_units.max(initial=0.0)
    size = np.abs(sides)
    return np.where(size <= NOISE * largest, size, TOUCHING * size)


def _absorbed(residual: Vector, lower: Vector, upper: Vector) -> tuple[Vector, list[float]]:
    """Return the part of a residual that bounds of variables do not absorb, and the cost of the rest.

    A further multiplier ``-r_j`` of a bound cancels the entry, if the side that it belongs to is finite.
    """
    sides = np.where(residual < 0.0, upper, lower)
    taken = (residual != 0.0) & np.isfinite(sides)
    return np.where(taken, 0.0, residual), exact_terms(-residual[taken], sides[taken])
