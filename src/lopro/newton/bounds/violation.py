"""How far a point is outside of the sets, and what that can have gained: it is charged to the gap."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from lopro.certificates import Units, Violation, column_units, of_rows
from lopro.certificates.violation import ball_size, relative
from lopro.functions.atoms import Ball, Interval
from lopro.functions.term import Term
from lopro.maps.host import Transferred, host_matrix
from lopro.newton.arrays import EPS, Array, norm
from lopro.newton.problem import Composite

__all__ = ["relative_violation", "units_of", "violation", "violation_charge"]


def violation_charge(problem: Composite, x: Array, multipliers: Sequence[Array]) -> float:
    """Return ``sum |v_i| viol_i``: by so much, at most, ``f(x)`` may be below the optimal value.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Interval, Linear
    >>> from lopro.functions.term import Term
    >>> from lopro.newton import Composite
    >>> from lopro.newton.bounds import violation_charge
    >>> terms = [Term(Linear(np.array([-2.0]))), Term(Interval([-np.inf], [1.0]))]
    >>> problem = Composite.of(terms, 1)
    >>> charge = violation_charge(problem, np.array([1.5]), [np.array([2.0])])
    >>> abs(charge - 1.0) < 1e-14
    True
    """
    charge = 0.0
    for term, v in zip(problem.terms, multipliers, strict=True):
        excess = term.distance(term.image(x))
        sizes = np.abs(v) if term.separable else np.sqrt(v @ v)
        charge += float(np.sum(sizes * excess)) * (1.0 + (term.size + 4) * EPS)
    return charge


def relative_violation(problem: Composite, x: Array) -> float:
    """Return the largest violation, each relative to what its row or ball compares."""
    return violation(problem, x).relative


def violation(problem: Composite, x: Array, units: Units | None = None) -> Violation:
    """Return the violation of the sets among the terms, measured as `lopro.certificates.violation` says.

    ``units`` are those of the variables where they are not to be taken from the data.
    """
    worst = Violation()
    for term in problem.terms:
        if not term.is_set:
            continue
        image = term.image(x)
        if isinstance(term.atom, Interval):
            found = _of_interval(problem, term, x, image, units)
        else:
            excess = float(term.distance(image))
            found = Violation(excess / _size(term, x, image) if excess > 0.0 else 0.0, excess)
        worst = worst.and_also(found)
    return worst


def _of_interval(
    problem: Composite, term: Term, x: Array, image: Array, units: Units | None
) -> Violation:
    part = term.atom
    assert isinstance(part, Interval)
    worst = Violation()
    for excess, side in ((image - part.upper, part.upper), (part.lower - image, part.lower)):
        if excess.max(initial=0.0) <= 0.0:
            continue
        entries = _entries(term)
        if entries is None and not term.is_identity:
            # An operator: the norms of its rows, which are estimates, times that of the point.
            sizes = term.row_norms * norm(x) + np.abs(np.where(excess > 0.0, side, 0.0))
            found = Violation(float(relative(excess, sizes).max()), float(excess.max()))
        else:
            found = of_rows(entries, x, excess, side, lambda: units or units_of(problem))
        worst = worst.and_also(found)
    return worst


def _size(term: Term, x: Array, image: Array) -> float:
    """Return what a ball or a cone compares: its own data, and where there are none its products."""
    products = norm(term.row_norms) * norm(x)
    offset = 0.0 if term.offset is None else norm(term.offset)
    if isinstance(term.atom, Ball):
        return ball_size(term.atom.radius, offset, lambda: products)
    return norm(image) + offset or products


def _entries(term: Term) -> Any:
    """Return the entries of a map, on the host or on a device; None for the identity and for operators."""
    if isinstance(term.D, Transferred):
        return term.D.device_matrix if term.D.on_device else None
    return host_matrix(term.D)


_UNITS: weakref.WeakKeyDictionary[Composite, Units] = weakref.WeakKeyDictionary()


def units_of(problem: Composite) -> Units:
    """Return the units of the variables, which are found once for each problem."""
    if problem not in _UNITS:
        blocks = []
        for term in problem.terms:
            entries = _entries(term)
            if isinstance(term.atom, Interval) and (entries is not None or term.is_identity):
                blocks += [(entries, term.atom.lower), (entries, term.atom.upper)]
        _UNITS[problem] = column_units(blocks, problem.size)
    return _UNITS[problem]
