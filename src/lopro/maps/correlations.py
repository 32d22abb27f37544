"""What is kept of a vector of correlations ``A^H y``: a few numbers, put together piece by piece.

A working-set method asks for the correlations of the columns it has, for the columns that correlate most
among the others, and for the largest correlation of all, which is what a certificate rests on. That is
O(k) numbers. Each piece of the columns is summarised where it lies, and summaries are merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Array, from_numpy, is_array, is_complex, namespace, take, to_numpy
from lopro.core.validation import check_array, check_count, check_shape
from lopro.maps.indices import checked_indices, within

__all__ = ["Correlations", "Selection", "Summary", "merge", "select", "summarise"]

Matrix: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Correlations:
    """Part of the correlations ``g = A^H y``; with several dual points, a column for each of them.

    Sizes are ``|g_i| / w_i``, or ``g_i / w_i`` where the selection is signed.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.maps import linear_map
    >>> A = linear_map(np.array([[3.0, -4.0, 1.0, 2.0]]))
    >>> found = A.correlations(np.ones(1), at=[0], largest=2, above=1.5)
    >>> found.at, found.indices, found.values, found.maximum, found.above
    (array([3.]), array([1, 3]), array([-4.,  2.]), 4.0, 2)
    """

    #: Correlations of the columns that were asked for.
    at: Array
    #: The columns of largest size among all others, in descending order; ties in the order of the columns.
    indices: Array
    #: Their correlations.
    values: Array
    #: The largest size of all columns.
    maximum: Array
    #: How many of the others have a size above the threshold.
    above: Array

    def on_host(self) -> Correlations:
        """Return the same in NumPy; from a device everything comes in one transfer."""
        if isinstance(self.at, np.ndarray):
            return self
        parts = [self.at, self.values, self.maximum, self.indices, self.above]
        xp = namespace(self.values)
        # Indices are exact in double precision.
        wide = xp.complex128 if is_complex(self.values) else xp.float64
        packed = to_numpy(xp.concat([xp.reshape(xp.astype(p, wide), (-1,)) for p in parts]))
        ends = np.cumsum([math.prod(p.shape) for p in parts])[:-1]
        shaped = [
            piece.reshape(p.shape) for piece, p in zip(np.split(packed, ends), parts, strict=True)
        ]
        at, values, maximum, indices, above = shaped
        return Correlations(
            at,
            indices.real.astype(np.intp),
            values,
            maximum.real[()],
            above.real.astype(np.intp)[()],
        )


@dataclass(frozen=True, eq=False)
class Selection:
    """Which correlations to keep.

    Parameters
    ----------
    at : array of int
        Columns whose correlations are wanted as they are.
    largest : int
        How many of the other columns are wanted, those of largest size.
    weights : array of length d, optional
        Sizes are in units of these positive numbers.
    signed : bool
        Whether negative correlations are small, and not as large as positive ones; real maps only.
    above : float
        Count the other columns whose size is above this.

    Examples
    --------
    >>> from lopro.maps import Selection
    >>> Selection(largest=5).signed
    False
    """

    at: Any = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    largest: int = 0
    weights: Array | None = None
    signed: bool = False
    above: float = math.inf

    def checked(self, columns: int, complex_values: bool) -> Selection:
        """Return the selection with checked indices and weights, for a map with so many columns."""
        if self.signed and complex_values:
            raise TypeError("signed correlations are for real maps and real dual points")
        weights = self.weights
        if weights is not None:
            # On a device a look at the entries would wait for everything before it.
            here = isinstance(weights, np.ndarray) or not is_array(weights)
            weights = check_array("weights", weights, ndim=1, allow_complex=False, finite=here)
            check_shape("weights", weights, (columns,))
            if here and not (weights > 0.0).all():
                raise ValueError("weights must be positive")
        return replace(
            self,
            at=checked_indices("at", self.at, columns),
            largest=check_count("largest", self.largest, minimum=0),
            weights=weights,
        )

    def within(self, columns: slice) -> Selection:
        """Return the part of the selection in a range of columns, with indices that count from there."""
        weights = None if self.weights is None else self.weights[columns]
        return replace(self, at=within(self.at, columns)[1], weights=weights)

    def sizes(self, g: Array) -> Array:
        """Return the sizes of correlations, a column for each dual point."""
        size = g if self.signed else abs(g)
        if self.weights is None:
            return 1.0 * size if size is g else size
        weights = self.weights
        if isinstance(weights, np.ndarray):
            weights = from_numpy(weights, g)
        return size / weights[:, None]


@dataclass(frozen=True)
class Summary:
    """What is kept of the correlations of some columns; a column for each dual point."""

    at: Matrix
    indices: Matrix
    values: Matrix
    sizes: Matrix
    maximum: Matrix
    above: Matrix

    def finished(self, asked: Matrix, single: bool) -> Correlations:
        """Return the answer, of vectors where there was a single dual point."""
        # Here the columns asked for are in ascending order.
        at = np.empty_like(self.at)
        at[np.argsort(asked, kind="stable")] = self.at
        if not single:
            return Correlations(at, self.indices, self.values, self.maximum, self.above)
        return Correlations(
            at[:, 0],
            self.indices[:, 0],
            self.values[:, 0],
            float(self.maximum[0]),
            int(self.above[0]),
        )


def summarise(g: Matrix, first: int, local: Selection) -> Summary:
    """Summarise the correlations ``g`` (a column for each dual point) of the columns from ``first`` on."""
    sizes = local.sizes(g)
    maximum = sizes.max(axis=0)
    sizes[local.at] = -math.inf
    count = min(local.largest, len(g) - len(np.unique(local.at)))
    kept = np.empty((count, g.shape[1]), dtype=np.intp)
    for k in range(g.shape[1]):
        kept[:, k] = _largest(sizes[:, k], count)
    return Summary(
        at=g[np.sort(local.at, kind="stable")],
        indices=kept + first,
        values=np.take_along_axis(g, kept, axis=0),
        sizes=np.take_along_axis(sizes, kept, axis=0),
        maximum=maximum,
        above=np.count_nonzero(sizes > local.above, axis=0),
    )


def _largest(sizes: Matrix, count: int) -> Matrix:
    """Return the positions of the largest sizes in descending order; ties in the order of positions."""
    if np.isnan(sizes).any():
        sizes = np.where(np.isnan(sizes), math.inf, sizes)
    candidates = np.arange(len(sizes))
    if 0 < count < len(sizes):
        least = np.partition(sizes, len(sizes) - count)[len(sizes) - count]
        candidates = np.flatnonzero(sizes >= least)
    order = np.argsort(-sizes[candidates], kind="stable")[:count]
    return np.asarray(candidates[order])


def merge(summaries: Sequence[Summary], largest: int) -> Summary:
    """Put summaries of consecutive bands of columns together."""
    indices, values, sizes = (
        np.concatenate([getattr(s, name) for s in summaries])
        for name in ("indices", "values", "sizes")
    )
    # The last key of lexsort counts first: size, then the order of the columns.
    order = np.lexsort((indices, -np.where(np.isnan(sizes), math.inf, sizes)), axis=0)[:largest]
    return Summary(
        at=np.concatenate([s.at for s in summaries]),
        indices=np.take_along_axis(indices, order, axis=0),
        values=np.take_along_axis(values, order, axis=0),
        sizes=np.take_along_axis(sizes, order, axis=0),
        maximum=np.max([s.maximum for s in summaries], axis=0),
        above=np.sum([s.above for s in summaries], axis=0),
    )


def select(g: Array, selection: Selection) -> Correlations:
    """Return what is kept of all correlations, in the library they are in.

    On a device nothing is brought to the host: the answer is arrays of the device.
    """
    single = g.ndim == 1
    table = g[:, None] if single else g
    if isinstance(g, np.ndarray):
        return summarise(table, 0, selection).finished(selection.at, single)
    xp = namespace(g)
    sizes = selection.sizes(table)
    maximum = xp.max(sizes, axis=0)
    asked = np.zeros((table.shape[0], 1), dtype=bool)
    asked[selection.at] = True
    others = xp.where(from_numpy(asked, g), -math.inf, sizes)
    count = min(selection.largest, len(asked) - np.count_nonzero(asked))
    indices = xp.argsort(-others, axis=0, stable=True)[:count, :]
    values = xp.take_along_axis(table, indices, axis=0)
    above = xp.sum(xp.astype(others > selection.above, xp.int64), axis=0)
    parts = (take(table, selection.at), indices, values, maximum, above)
    return Correlations(*(part[..., 0] if single else part for part in parts))
