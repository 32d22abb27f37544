"""Violations: absolute, in the units of each row, and relative to the terms of the row.

The relative violation of a row ``a'x <= b`` is ``(a'x - b)_+ / (sum_j |a_j| |x_j| + |b|)``. If its side is 0,
or rounding (`lopro.certificates.sides`), each ``|x_j|`` is replaced by at least the unit of the column
(`lopro.certificates.units`), so that a point near zero is not compared with its own rounding. Neither other
rows nor entries of x outside the row have an influence.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.certificates.sides import is_rounding_of, magnitudes
from lopro.certificates.tolerances import FEASIBLE, NOISE
from lopro.certificates.units import Units
from lopro.core.real_vectors import Vector
from lopro.errors import ZeroRowWarning

__all__ = [
    "Violation",
    "ball_size",
    "matrix_units",
    "noise_rows",
    "of_rows",
    "relative",
    "units_of_entries",
]

#: The most rounds of scaling a matrix: each halves the number of digits by which units are wrong.
_ROUNDS = 60
#: Least unit of a difference, relative to the numbers that it is a difference of: with `FEASIBLE` violations
#: are then measured down to 1e-15 of these numbers, which is their rounding.
_LEAST_UNIT = 1e-6


@dataclass(frozen=True)
class Violation:
    """The violation of a set by a point.

    Attributes
    ----------
    relative : float
        The largest violation relative to the terms of its row, ball or cone.
    absolute : float
        The largest violation in the units of its own row, ball or cone.

    Examples
    --------
    >>> from lopro.certificates import Violation
    >>> Violation(1e-3, 5.0).and_also(Violation(1e-2, 2.0))
    Violation(relative=0.01, absolute=5.0)
    """

    relative: float = 0.0
    absolute: float = 0.0

    def and_also(self, other: Violation) -> Violation:
        """Return the violation of the intersection of two sets."""
        return Violation(max(self.relative, other.relative), max(self.absolute, other.absolute))


def relative(excess: Any, size: Any) -> Any:
    """Return ``excess / size``, 0 without an excess, and infinity for an excess beside the size 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(np.asarray(excess) > 0.0, np.asarray(excess) / np.asarray(size), 0.0)


def of_rows(
    A: Any, x: Vector, excess: Vector, sides: Vector, units: Callable[[], Units]
) -> Violation:
    """Return the violation of rows ``A x <= sides``.

    Parameters
    ----------
    A : matrix or None
        Dense or sparse, of any library; None for the identity. Only rows that are violated are read.
    x : array
        The point, on the host.
    excess : array
        ``A x - sides``.
    sides : array
        One side for each row.
    units : callable
        Returns the units of the columns; called only if a violation without them exceeds `FEASIBLE`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.units import column_units
    >>> from lopro.certificates.violation import of_rows
    >>> A, b, x = np.array([[1.0, 0.0], [0.0, 3.0]]), np.array([2.0, 0.0]), np.array([3.0, 1e-3])
    >>> of_rows(A, x, A @ x - b, b, lambda: column_units([(A, b)], 2))
    Violation(relative=1.0, absolute=1.0)
    >>> of_rows(A[:1], x, (A @ x - b)[:1], b[:1], lambda: column_units([(A, b)], 2)).relative
    0.2
    """
    (out,) = (excess > 0.0).nonzero()
    if len(out) == 0:
        return Violation()
    excess, sides = excess[out], np.abs(sides[out])
    sizes = magnitudes(A, out, np.abs(x)) + sides
    found = relative(excess, sizes)
    # Units only reduce a violation: they are not needed if it is allowed without them.
    if np.maximum.reduce(found) > FEASIBLE:
        known = units().at(x)
        zero = is_rounding_of(sides, magnitudes(A, out, known))
        sizes[zero] = magnitudes(A, out[zero], np.maximum(np.abs(x), known))
        found = relative(excess, sizes)
    return Violation(float(np.maximum.reduce(found)), float(np.maximum.reduce(excess)))


def matrix_units(diagonal: Any, largest: float) -> Vector:
    """Return the units d in which a symmetric matrix X is compared with zero: ``X_ij / (d_i d_j)``.

    X is positive semidefinite if ``v'Xv >= 0`` for all v. Each of these rows has the side 0 and compares
    ``sum v_i^2 X_ii``, the terms that are not negative if X is semidefinite. With ``d_i^2 = X_ii`` the
    largest relative violation is minus the least eigenvalue of the scaled matrix, whatever the other entries
    are, and in all units of the indices. As for balls, numbers below 1e-6 of the largest entry are replaced
    by that: eigenvalues are differences of numbers of that size and have their rounding errors.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.violation import matrix_units
    >>> X = np.diag([1e12, -2.0])  # the second index is violated by 2, whatever the first one is
    >>> d = matrix_units(X.diagonal(), 1e12)
    >>> float(-np.linalg.eigvalsh(X / (d[:, None] * d))[0])
    2e-06
    """
    sizes = np.abs(np.asarray(diagonal, dtype=np.float64))
    return np.sqrt(np.maximum(sizes, _LEAST_UNIT * largest))


def units_of_entries(sizes: Any) -> Vector:
    """Return the units d of a symmetric matrix whose entries are sums of terms with these absolute values.

    The row ``v'Xv >= 0`` compares at most ``sum |v_i v_j| sizes_ij``, and ``d_i d_j >= sizes_ij`` up to 1e-3:
    ``d_i^2 = sizes_ii`` if the diagonal is large enough for that, as it is without cancellation. The units d
    change with those of the indices.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.violation import units_of_entries
    >>> units_of_entries(np.array([[1e12, 1e3], [1e3, 4.0]])), units_of_entries(np.ones((1, 1)))
    (array([1.e+06, 2.e+00]), array([1.]))
    """
    diagonal = np.diagonal(sizes)
    known = diagonal > 0.0
    d = np.where(known, np.sqrt(diagonal), 1.0)
    while not known.all():
        # A unit with the diagonal entry 0 follows from the entries beside indices that have a unit.
        found = np.where(known, 0.0, (sizes[:, known] / d[known]).max(axis=1, initial=0.0))
        d = np.where(found > 0.0, found, d)
        # If none follows, the first index without a unit gets the unit 1: only products of units count.
        known = known | (found > 0.0 if found.any() else np.arange(len(d)) == known.argmin())
    for _ in range(_ROUNDS):
        largest = (sizes / d[:, None] / d).max(axis=1, initial=0.0)
        if (largest <= 1.001).all():
            break
        d = d * np.sqrt(np.maximum(largest, 1.0))
    return np.asarray(d)


def ball_size(radius: float, centre: float, products: Callable[[], float]) -> float:
    """Return the unit of the residual of a ball ``|A x - y| <= radius``.

    That is the radius, but at least 1e-6 of ``|y|``: residuals are differences of numbers of that size and
    have their rounding errors. An equation is compared with ``|y|``, or with the products if y is 0.

    Examples
    --------
    >>> from lopro.certificates.violation import ball_size
    >>> ball_size(2.0, 10.0, lambda: 1.0), ball_size(1e-9, 2.0, lambda: 1.0)
    (2.0, 2e-06)
    """
    size = max(radius, _LEAST_UNIT * centre) if radius > 0.0 else centre
    return size if size > 0.0 else products()


def noise_rows(
    empty: Callable[[Any], Any], missed: Vector, sides: Vector
) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the rows of zeros that are violated only by rounding, and warn of them.

    Rounding is up to 64 units in the last place of the largest side of the same constraint: the error of
    terms that cancelled before the rows were passed on. These rows count as satisfied.

    Parameters
    ----------
    empty : callable
        Returns for an array of rows whether all of their coefficients are exactly 0.
    missed : array
        The violation of each row at zero.
    sides : array
        All sides of the constraint; infinite ones do not count.

    Examples
    --------
    >>> import numpy as np, pytest
    >>> from lopro.certificates import noise_rows
    >>> from lopro.errors import ZeroRowWarning
    >>> sides = np.array([100.0, -7e-18, -1e-3])
    >>> with pytest.warns(ZeroRowWarning):
    ...     noise_rows(lambda rows: rows > 0, -sides, sides)
    array([1])
    """
    finite = np.abs(sides[np.isfinite(sides)])
    largest = float(finite.max(initial=0.0))
    small = np.flatnonzero((missed > 0.0) & (missed <= NOISE * largest))
    rows = small[empty(small)] if len(small) else small
    if len(rows):
        warnings.warn(
            f"{len(rows)} rows have no coefficient but 0 and are missed by at most "
            f"{float(missed[rows].max()):.2g}, which is rounding beside a side of {largest:.3g}: they "
            f"count as satisfied (the first is row {rows[0]})",
            ZeroRowWarning,
            stacklevel=2,
        )
    return rows
