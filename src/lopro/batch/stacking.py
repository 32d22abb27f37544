"""Which problems can be solved together, and their data, stacked."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from array_api_compat import device

from lopro import objectives
from lopro.batch.programs import QuadraticPrograms, Square
from lopro.constraints import Affine, Constraint, Intersection, Polyhedron
from lopro.core.arrays import Array, from_numpy, is_complex, namespace
from lopro.functions.atoms import HalfSquare, Interval, Linear, Quadratic
from lopro.functions.term import Term
from lopro.maps.arrays import ArrayMap
from lopro.maps.numpy_map import NumPyMap
from lopro.problem import Problem

__all__ = ["Group", "grouped", "posed", "slices", "stacked"]

#: Entries of the matrices that are stacked at a time on the host: 8 MB, about what stays in the caches.
_HOST_ENTRIES = 2**20
#: The same on a device, which a batch has to fill: 2 GB.
_DEVICE_ENTRIES = 2**28


@dataclass
class Group:
    """Problems of one shape, by their places in the list of the user."""

    places: list[int] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def grouped(problems: Sequence[Problem]) -> tuple[list[Group], list[int]]:
    """Return groups of problems that can be solved together, and the places of the others.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.batch.stacking import grouped
    >>> box = lopro.constraints.Polyhedron.box(np.zeros(2), np.ones(2))
    >>> fs = [
    ...     lopro.objectives.Linear(np.ones(2)),
    ...     lopro.objectives.L1Norm(),
    ...     lopro.objectives.Linear(-np.ones(2)),
    ... ]
    >>> groups, others = grouped([lopro.Problem(f, box) for f in fs])
    >>> [group.places for group in groups], others
    ([[0, 2]], [1])
    """
    groups: dict[Hashable, Group] = {}
    others = []
    for place, problem in enumerate(problems):
        shape = _shape(problem)
        if shape is None:
            others.append(place)
            continue
        group = groups.setdefault(shape, Group())
        group.places.append(place)
        group.problems.append(problem)
    return [part for group in groups.values() for part in _pieces(group)], others


def _pieces(group: Group) -> Iterable[Group]:
    """Yield parts of a group that fit in the caches, or on the device."""
    first = group.problems[0]
    n = (first.shape or (1,))[0]
    rows = sum(0 if t.map is None else t.map.shape[0] for t in first.terms)
    for at in slices(len(group.places), n, rows, _like(first.terms)):
        yield Group(group.places[at], group.problems[at])


def slices(count: int, n: int, rows: int, like: Array) -> Iterable[slice]:
    """Yield ranges of problems with ``n`` variables and so many rows that are solved at a time."""
    most = _HOST_ENTRIES if isinstance(like, np.ndarray) else _DEVICE_ENTRIES
    step = max(16, most // (n * (n + rows)))
    for start in range(0, count, step):
        yield slice(start, min(count, start + step))


def _shape(problem: Problem) -> Hashable | None:
    """Return what problems that are solved together have in common; None for those of other kinds."""
    shape = problem.shape
    if shape is None or len(shape) != 1 or problem.solution_norm is not None:
        return None
    terms = problem.terms
    like = _like(terms)
    if like is None or is_complex(like):
        return None
    found: list[Any] = [shape, type(like), like.dtype, str(device(like))]
    if sum(type(term.atom) in (Linear, Quadratic) for term in terms) > 1:
        return None  # sums of their slopes would be rounded, and the proof be of another problem
    for term in terms:
        own = _term_shape(term, like)
        if own is None:
            return None
        found.append(own)
    return tuple(found)


def _term_shape(term: Term, like: Array) -> Hashable | None:
    atom, D = term.atom, term.map
    if D is not None and not (type(D) in (NumPyMap, ArrayMap) and _same_kind(D.like, like)):
        return None
    shape = None if D is None else D.shape
    if type(atom) is HalfSquare:
        alike = term.offset is None or _same_kind(term.offset, like)
        return ("square", shape, term.offset is None) if alike else None
    if term.offset is not None:
        return None
    if type(atom) is Interval:
        equal = (atom.lower == atom.upper).tobytes() if D is not None else b""
        return "interval", shape, equal
    if D is not None:
        return None
    if type(atom) is Linear:
        return "linear" if _same_kind(atom.c, like) else None
    if type(atom) is Quadratic and type(atom.P) in (NumPyMap, ArrayMap):
        exact = math.frexp(term.scale)[0] == 0.5  # products with powers of two are not rounded
        alike = _same_kind(atom.P.like, like) and _same_kind(atom.q, like)
        return "quadratic" if exact and alike else None
    return None


def _like(terms: Sequence[Term]) -> Array | None:
    """Return an array of the library, dtype and device of the data."""
    for term in terms:
        if term.map is not None:
            return term.map.like
        if type(term.atom) is Quadratic:
            return term.atom.P.like
        if type(term.atom) is Linear:
            return term.atom.c
        if term.offset is not None:
            return term.offset
    return None


def _same_kind(x: Array, like: Array) -> bool:
    if type(x) is not type(like) or x.dtype != like.dtype:
        return False
    return isinstance(x, np.ndarray) or bool(device(x) == device(like))


def stacked(problems: Sequence[Problem]) -> QuadraticPrograms:
    """Return the data of problems of one shape."""
    columns = list(zip(*(problem.terms for problem in problems), strict=True))
    like = _like(problems[0].terms)
    assert like is not None
    xp, n = namespace(like), (problems[0].shape or (0,))[0]
    zero = xp.zeros((len(problems), n), dtype=like.dtype, device=device(like))
    parts: dict[str, Any] = {"q": zero}
    squares: list[Square] = []
    rows: list[Sequence[Term]] = []
    boxes: list[Sequence[Term]] = []
    for terms in columns:
        atom = terms[0].atom
        scale = _numbers([term.scale for term in terms], like)
        if isinstance(atom, HalfSquare):
            D = None if terms[0].map is None else xp.stack([term.D.matrix for term in terms])
            b = None if terms[0].offset is None else xp.stack([term.offset for term in terms])
            squares.append(Square(D, b, scale))
        elif isinstance(atom, Interval):
            (boxes if terms[0].map is None else rows).append(terms)
        else:
            parts |= _linear_and_quadratic([term.atom for term in terms], scale)
    given = [problem.gap_scale for problem in problems]
    gap_scale = None
    if any(scale is not None for scale in given):
        gap_scale = _numbers([np.nan if scale is None else scale for scale in given], like)
    return QuadraticPrograms(
        **parts, **_rows(rows, like), **_box(boxes, like), squares=tuple(squares),
        gap_scale=gap_scale, checked=True,
    )  # fmt: skip


def _linear_and_quadratic(atoms: Sequence[Any], scale: Array) -> dict[str, Array]:
    """Return the parts of the objectives that are linear or quadratic functions."""
    xp = namespace(scale)
    if isinstance(atoms[0], Linear):
        return {"q": xp.stack([atom.c for atom in atoms])}  # factors are in the slope already
    narrow = xp.astype(scale, atoms[0].q.dtype)
    return {
        "P": xp.stack([atom.P.matrix for atom in atoms]) * narrow[:, None, None],
        "q": xp.stack([atom.q for atom in atoms]) * narrow[:, None],
        "constant": scale * _numbers([atom.constant for atom in atoms], scale),
    }


def _numbers(values: Sequence[float], like: Array) -> Array:
    return from_numpy(np.asarray(values, dtype=np.float64), like)


def _sides(terms: Sequence[Term], like: Array) -> tuple[Array, Array]:
    both = [np.stack([getattr(t.atom, name) for t in terms]) for name in ("lower", "upper")]
    return from_numpy(both[0], like), from_numpy(both[1], like)


def _rows(rows: Sequence[Sequence[Term]], like: Array) -> dict[str, Array]:
    """Return the rows of several sets, one after the other."""
    if not rows:
        return {}
    xp = namespace(like)
    A = [xp.stack([term.D.matrix for term in terms]) for terms in rows]
    sides = [_sides(terms, like) for terms in rows]
    return {
        "A": xp.concat(A, axis=1),
        "lower": xp.concat([each[0] for each in sides], axis=1),
        "upper": xp.concat([each[1] for each in sides], axis=1),
    }


def _box(boxes: Sequence[Sequence[Term]], like: Array) -> dict[str, Array]:
    """Return the intersection of several boxes."""
    if not boxes:
        return {}
    xp = namespace(like)
    least, most = _sides(boxes[0], like)
    for terms in boxes[1:]:
        low, high = _sides(terms, like)
        least, most = xp.maximum(least, low), xp.minimum(most, high)
    return {"least": least, "most": most}


def posed(programs: QuadraticPrograms, place: int) -> Problem:
    """Return one of the programs as a problem."""

    def at(array: Array) -> Array:
        return array[place, ...]

    q, P, box = at(programs.q), programs.P, programs.box
    f = objectives.Linear(q) if P is None else objectives.Quadratic(at(P), q)
    sets: list[Constraint] = []
    if programs.A is not None:
        low, high = programs.sides
        sets.append(Affine(at(programs.A), at(low), at(high)))
    if box is not None and not bool(namespace(q).all(namespace(q).isinf(at(box[0]) - at(box[1])))):
        sets.append(Polyhedron.box(at(box[0]), at(box[1])))
    if len(sets) > 1:
        return Problem(f, Intersection(*sets))
    return Problem(f, sets[0]) if sets else Problem(f)
