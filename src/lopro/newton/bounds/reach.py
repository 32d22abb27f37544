"""Units of the variables of a composite problem: how far out its solutions may be."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from lopro.certificates import Units
from lopro.certificates.units import curvature_units
from lopro.certificates.units import reach_units as units_of_blocks
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.linalg.rounding import length
from lopro.maps import Identity, LinearMap
from lopro.maps.host import Transferred, host_matrix, host_vector
from lopro.newton.arrays import Array, norm
from lopro.newton.problem import Composite
from lopro.newton.smooth import Loss, QuadraticForm

__all__ = ["reach_units"]

_UNITS: weakref.WeakKeyDictionary[Composite, Units] = weakref.WeakKeyDictionary()


def reach_units(problem: Composite) -> Units:
    """Return the units of the variables, from the maps, offsets and bounds of all terms; found once.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import HalfSquare
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import linear_map
    >>> from lopro.newton import Composite
    >>> from lopro.newton.bounds.reach import reach_units
    >>> square = Term(HalfSquare(), linear_map(np.diag([1.0, 1e-12])), np.array([3.0, 4.0]))
    >>> reach_units(Composite.of([square], 2)).known
    array([3.5e+00, 3.5e+12])
    """
    if problem not in _UNITS:
        smooth = getattr(problem.smooth, "parts", (problem.smooth,))
        blocks: list[tuple[Any, Array]] = []
        for part in smooth:
            if isinstance(part, Loss):
                blocks.append(_one_row(part.term))
        for term in problem.terms:
            blocks += _of_term(term)
        forms = [part for part in smooth if isinstance(part, QuadraticForm)]
        _UNITS[problem] = units_of_blocks(blocks, problem.size, _of_curvature(forms, problem.size))
    return _UNITS[problem]


def _of_term(term: Term) -> Iterator[tuple[Any, Array]]:
    """Yield the rows of an interval one by one where they are on the host, and other terms as one row."""
    if not isinstance(term.atom, Interval):
        yield _one_row(term)
        return
    entries = host_matrix(term.D)
    sides = term.atom.lower, term.atom.upper
    if entries is None and not term.is_identity:
        sizes = [norm(b[np.isfinite(b)]) for b in sides]
        yield from ((_column_norms(term.D)[None, :], np.array([size])) for size in sizes)
    else:
        yield from ((entries, side) for side in sides)


def _one_row(term: Term) -> tuple[Array, Array]:
    """Return the norms of the columns of a term, and the size of what its image is compared with."""
    offset = np.zeros(0) if term.offset is None else np.abs(host_vector(term.offset))
    size, extent = norm(offset), term.atom.extent
    if term.atom.separable:
        # Of losses the median counts: a few outliers say nothing about the others.
        root = math.sqrt(term.size)
        median = float(np.median(offset[offset > 0.0])) if size > 0.0 else 0.0
        size, extent = min(size, root * median), root * extent
    return _column_norms(term.D)[None, :], np.array([size + extent])


def _column_norms(D: LinearMap) -> Array:
    """Return the norms of columns; those of an operator are taken to be about as long as each other."""
    if isinstance(D, Identity):
        return np.ones(D.shape[1])
    if isinstance(D, Transferred) and not D.on_device:
        return np.full(D.shape[1], length(D.row_norms) / math.sqrt(D.shape[1]))
    return host_vector(D.column_norms)


def _of_curvature(forms: list[QuadraticForm], size: int) -> Array:
    """Return the units that the quadratic forms tell together."""
    diagonal, q = np.zeros(size), np.zeros(size)
    for form in forms:
        q = q + form.q
        if form.map is not None and host_matrix(form.map) is not None:
            diagonal = diagonal + host_matrix(form.map).diagonal()
    return curvature_units(np.maximum(diagonal, 0.0), q)
