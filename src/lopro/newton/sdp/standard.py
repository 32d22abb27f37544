"""Rows with two sides as the equations of a semidefinite program: inequalities get slacks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.units import power_of_two
from lopro.newton.arrays import Array, Matrix

__all__ = ["StandardRows"]


@dataclass(frozen=True)
class StandardRows:
    """``lower <= A x <= upper`` as ``A_k x + slack_k s = b_k``, ``s >= 0``.

    Attributes
    ----------
    A : scipy.sparse array
        The rows, once for each equation and for each side of an inequality.
    slack : scipy.sparse array
        One column for each inequality. Its entry has about the size of the row, so that slacks have the
        units of x.
    b : array
        The right-hand sides.
    source : array of int
        The row that each equation comes from.
    count : int
        How many rows there were.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.newton.sdp.standard import StandardRows
    >>> A = scipy.sparse.csr_array(np.array([[4.0, 0.0], [0.0, 1.0]]))
    >>> rows = StandardRows.of(A, np.array([1.0, 2.0]), np.array([np.inf, 2.0]))
    >>> rows.A.toarray(), rows.slack.toarray().ravel(), rows.b
    (array([[4., 0.],
           [0., 1.]]), array([-4.,  0.]), array([1., 2.]))
    """

    A: Matrix
    slack: Matrix
    b: Array
    source: np.ndarray[Any, np.dtype[np.intp]]
    count: int

    @staticmethod
    def of(A: Matrix, lower: Array, upper: Array) -> StandardRows:
        """Split rows into equations and inequalities."""
        A = scipy.sparse.csr_array(A)
        equal = lower == upper
        above = np.flatnonzero(~equal & np.isfinite(upper))
        below = np.flatnonzero(~equal & np.isfinite(lower))
        same = np.flatnonzero(equal)
        sizes = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
        units = np.array([power_of_two(size) for size in sizes])
        # In the order of the rows, so that what is solved does not depend on the kinds of their sides.
        source = np.concatenate([same, above, below])
        coefficient = np.concatenate([np.zeros(len(same)), units[above], -units[below]])
        b = np.concatenate([upper[same], upper[above], lower[below]])
        order = np.argsort(source, kind="stable")
        source, coefficient, b = source[order], coefficient[order], b[order]
        own = np.flatnonzero(coefficient)
        places = own, np.arange(len(own))
        slack = scipy.sparse.csr_array((coefficient[own], places), (len(b), len(own)))
        return StandardRows(A[source], slack, b, source, A.shape[0])

    def multipliers(self, y: Array) -> Array:
        """Return one multiplier for each row: the sides of a row add up."""
        return np.bincount(self.source, weights=y, minlength=self.count).astype(np.float64)

    def signed(self, y: Array) -> Array:
        """Return multipliers without those whose sign no slack allows for: their slack is not negative."""
        slopes = np.asarray(self.slack.sum(axis=1)).ravel()
        return np.where(slopes * y > 0.0, 0.0, y)

    def slacks(self, x: Array) -> Array:
        """Return what is left at a point up to the sides; not negative where they hold."""
        rows, columns = self.slack.nonzero()
        room = (self.b - self.A @ x)[rows] / self.slack.data
        found = np.empty(len(columns))
        found[columns] = room
        return found
