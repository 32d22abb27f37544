"""Grouping of problems that can be solved together, and stacking of their data."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from array_api_compat import device, is_torch_array

from lopro.batch.programs import in_double
from lopro.certificates.batched_programs import Programs, Square
from lopro.core.arrays import (
    Array,
    asarray_like,
    from_numpy,
    is_complex,
    namespace,
    on_host,
    zeros,
)
from lopro.functions.atoms import HalfSquare, Interval, Linear, Quadratic
from lopro.functions.term import Term
from lopro.maps.arrays import ArrayMap, NumPyMap
from lopro.problem import Problem

__all__ = ["grouped", "like_of", "slices", "stacked"]

#: Number of entries of the matrices that are stacked at a time on the host: 8 MB, about the size of caches.
#: An eighth and eight times as much take 9 and 8 % more time in ``python -m benchmarks.constants batch``.
_HOST_ENTRIES = 2**20
#: The same on a device: 2 GB, enough to occupy all of its cores. And the bytes of memory that are reserved
#: for each entry: at most 34 were in use (50 x 100, an H200).
_DEVICE_ENTRIES = 2**28
_BYTES_EACH = 128


def grouped(problems: Sequence[Problem]) -> tuple[list[list[int]], list[int]]:
    """Return the indices of problems that can be solved together, group by group, and of the rest.

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
    >>> grouped([lopro.Problem(f, box) for f in fs])
    ([[0, 2]], [1])
    """
    groups: dict[Hashable, list[int]] = {}
    for place, problem in enumerate(problems):
        groups.setdefault(_shape(problem), []).append(place)
    others = groups.pop(None, [])
    found = []
    for places in groups.values():
        terms = problems[places[0]].terms
        n = (problems[places[0]].shape or (1,))[0]
        rows = sum(0 if t.map is None else t.map.shape[0] for t in terms)
        found += [places[part] for part in slices(len(places), n, rows, like_of(terms))]
    return found, others


def slices(count: int, n: int, rows: int, like: Array) -> Iterator[slice]:
    """Yield the ranges of problems, of ``n`` variables and ``rows`` rows, that are solved at a time."""
    most = _HOST_ENTRIES if on_host(like) else _device_entries(like)
    step = max(16, most // (n * (n + rows)))
    for start in range(0, count, step):
        yield slice(start, min(count, start + step))


def _device_entries(like: Array) -> int:
    """Return the number of entries that are stacked on a device, limited by its free memory where known."""
    if not is_torch_array(like) or like.device.type != "cuda":
        return _DEVICE_ENTRIES
    import torch

    free, _ = torch.cuda.mem_get_info(like.device)
    return int(min(2 * _DEVICE_ENTRIES, max(_DEVICE_ENTRIES // 16, free // _BYTES_EACH)))


def _shape(problem: Problem) -> Hashable | None:
    """Return a key that is equal for problems that can be solved together; None for other kinds."""
    shape, terms = problem.shape, problem.terms
    like = like_of(terms)
    if shape is None or len(shape) != 1 or like is None or is_complex(like):
        return None
    if problem.solution_norm is not None:
        return None
    found = [_term_shape(term, like) for term in terms]
    # Adding slopes would round them, and the proof would be that of another problem.
    sloped = sum(type(term.atom) in (Linear, Quadratic) for term in terms)
    boxes = sum(type(term.atom) is Interval and term.map is None for term in terms)
    if None in found or sloped > 1 or boxes > 1:
        return None
    return shape, type(like), like.dtype, str(device(like)), *found


def _term_shape(term: Term, like: Array) -> Hashable | None:
    atom, D, shape = term.atom, term.map, None
    if D is not None:
        if type(D) not in (NumPyMap, ArrayMap) or not _same_kind(D.like, like):
            return None
        shape = D.shape
    if type(atom) is HalfSquare:
        return ("square", shape) if term.offset is None or _same_kind(term.offset, like) else None
    if term.offset is not None:
        return None
    if type(atom) is Interval:
        return "interval", shape, b"" if D is None else (atom.lower == atom.upper).tobytes()
    if D is not None:
        return None
    if type(atom) is Linear:
        return "linear" if _same_kind(atom.c, like) else None
    if type(atom) is Quadratic and type(atom.P) in (NumPyMap, ArrayMap):
        exact = math.frexp(term.scale)[0] == 0.5  # products with powers of two are not rounded
        alike = _same_kind(atom.P.like, like) and _same_kind(atom.q, like)
        return "quadratic" if exact and alike else None
    return None


def like_of(terms: Sequence[Term]) -> Array | None:
    """Return an array of the library, dtype and device of the data; None where no term has any."""
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


def stacked(problems: Sequence[Problem]) -> Programs:
    """Return the data of problems of one shape."""
    like = in_double(like_of(problems[0].terms)[..., :0])  # type: ignore[index]
    xp, count, n = namespace(like), len(problems), (problems[0].shape or (0,))[0]
    q, P = zeros((count, n), like), zeros((count, n, n), like)
    constant, infinite = zeros((count,), like), zeros((count, n), like) + float("inf")
    squares, rows, sides, box = [], [], [], (-infinite, infinite)
    for terms in zip(*(problem.terms for problem in problems), strict=True):
        atoms, first = [term.atom for term in terms], terms[0]
        scale = asarray_like(np.array([term.scale for term in terms]), like)
        if isinstance(first.atom, HalfSquare):
            D = _matrices(terms) if first.map is not None else _identities(count, n, like)
            zero = zeros((D.shape[1],), like)
            b = [zero if term.offset is None else in_double(term.offset) for term in terms]
            squares.append(Square(D, xp.stack(b), scale))
        elif isinstance(first.atom, Interval):
            pair = [np.stack([getattr(a, side) for a in atoms]) for side in ("lower", "upper")]
            pair = [in_double(from_numpy(side, like)) for side in pair]
            if first.map is None:
                box = pair[0], pair[1]
            else:
                rows.append(_matrices(terms))
                sides.append(pair)
        elif isinstance(first.atom, Linear):
            q = in_double(xp.stack([atom.c for atom in atoms]))  # factors are in the slope already
        else:
            P = in_double(xp.stack([atom.P.matrix for atom in atoms])) * scale[:, None, None]
            P = 0.5 * (P + xp.matrix_transpose(P))  # exactly symmetric: the gradient is P x
            q = in_double(xp.stack([atom.q for atom in atoms])) * scale[:, None]
            constant = scale * asarray_like(np.array([atom.constant for atom in atoms]), like)
    A = xp.concat(rows, axis=1) if rows else zeros((count, 0, n), like)
    lower, upper = (
        xp.concat([pair[k] for pair in sides], axis=1) if rows else zeros((count, 0), like)
        for k in range(2)
    )
    scales, gap_scale = [problem.gap_scale for problem in problems], None
    if any(scale is not None for scale in scales):
        gap_scale = asarray_like(np.array(scales, dtype=np.float64), like)  # NaN for None
    return Programs(q, P, constant, A, lower, upper, *box, tuple(squares), gap_scale)


def _matrices(terms: Sequence[Term]) -> Array:
    found = [term.D.matrix for term in terms]
    return in_double(namespace(found[0]).stack(found))


def _identities(count: int, n: int, like: Array) -> Array:
    return namespace(like).broadcast_to(asarray_like(np.eye(n), like), (count, n, n))
