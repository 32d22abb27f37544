"""Which engine a semidefinite program goes to first."""

from __future__ import annotations

import math

import numpy as np

from lopro.core.deadline import EIGH
from lopro.newton.sdp.program import Block, SemidefiniteProgram

__all__ = ["cliques", "order_of_engines", "work_of_a_step"]

#: Newton's method takes about so many eigendecompositions.
_NEWTON = 60.0
#: An interior point method takes about so many steps; each factors a dense block of triangle size.
_STEPS = 15.0
#: Below so many operations the engine that is the more robust one is taken: it ends in a moment.
_MOMENT = 1e9
#: Newton's method may make so many eigendecompositions before the other engine gets its turn, and more where
#: that one takes longer: a decomposition, with the linear systems around it, is counted so many times.
_FIRST, _AROUND = 300.0, 8.0
#: Cliques are determined for slacks with at most this share of nonzero entries.
_SPARSE = 0.2


def order_of_engines(program: SemidefiniteProgram) -> tuple[tuple[str, float], ...]:
    """Return the engines to try, the better one first, and how many eigendecompositions each may make.

    Interior point methods take few steps whatever the condition, but each costs the cube of the number of
    entries of a block: they are for small blocks, and for slacks so sparse that they split into cliques.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram
    >>> from lopro.newton.sdp.rule import order_of_engines
    >>> order_of_engines(SemidefiniteProgram.dense(np.eye(3), [np.eye(3)], [1.0]))
    (('clarabel', inf), ('newton', inf))
    """
    matrices = [block for block in program.blocks if not block.diagonal]
    interior, cubes = _STEPS * work_of_a_step(program), sum(float(p.size) ** 3 for p in matrices)
    if interior <= max(_MOMENT, _NEWTON * EIGH * cubes):
        return ("clarabel", math.inf), ("newton", math.inf)
    first = max(_FIRST, interior / (_AROUND * EIGH * cubes))
    return ("newton", first), ("clarabel", math.inf), ("newton", math.inf)


def work_of_a_step(program: SemidefiniteProgram) -> float:
    """Return about how many operations a step of an interior point method takes on the dual form."""
    sizes = [size for block in program.blocks if not block.diagonal for size in cliques(block)]
    return sum((0.5 * size * (size + 1)) ** 3 / 3.0 for size in sizes)


def cliques(block: Block) -> list[int]:
    """Return the sizes of the cliques that eliminating the sparse slack of a block makes: least degree first.

    A pattern that is not sparse is one clique.
    """
    n = block.size
    if np.count_nonzero(block.C) > _SPARSE * n * n:
        return [n]
    places = np.unique(np.concatenate([block.A.indices, np.flatnonzero(block.C.ravel())]))
    i, j = places // n, places % n
    if len(places) > _SPARSE * n * n:
        return [n]
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for a, b in zip(i[i > j].tolist(), j[i > j].tolist(), strict=True):
        neighbours[a].add(b)
        neighbours[b].add(a)
    left, sizes = set(range(n)), []
    while left:
        least = min(left, key=lambda v: len(neighbours[v]))
        around = neighbours[least]
        sizes.append(len(around) + 1)
        if len(around) + 1 == len(left):
            break
        left.discard(least)
        for v in around:
            neighbours[v] |= around
            neighbours[v] -= {v, least}
    return sizes
