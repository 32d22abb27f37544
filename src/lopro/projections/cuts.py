"""Outer approximation: projection by valid inequalities of the set alone.

The set is replaced by the half-spaces seen so far. The projection on those is an exact small
quadratic program; if that point is outside of the set, an oracle returns a new inequality that
separates it. Every iterate is at most as far from ``x`` as the set itself, and the distances grow to the
true one, whether the set's boundary is smooth or not (Haugazeau 1968, with a bundle of cuts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lopro.certificates import NOISE
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.errors import InfeasibleError, ProjectionError
from lopro.projections.active_set import Contradiction, Face, shortest_vector
from lopro.projections.halfspaces import HalfSpaces

__all__ = ["Cut", "project_by_cuts"]

#: Violations up to this share of the accuracy are tolerated.
_BLUR = 0.05
#: Iterations within which the depth has to halve: a constant plus a number for each dimension, since a cut
#: fixes about one dimension. Rows that differ by many orders of magnitude would need thousands.
_PATIENCE, _PER_DIMENSION = 200, 4


@dataclass(frozen=True)
class Cut:
    """The inequality ``<normal, z> <= bound``, valid for every point of the set."""

    normal: Vector
    bound: float

    def depth(self, z: Vector) -> float:
        """Return the distance of ``z`` to the half-space, negative inside."""
        length = float(np.linalg.norm(self.normal))
        excess = float(self.normal @ z) - self.bound
        return excess / length if length > 0.0 else math.copysign(math.inf, excess)


#: Returns valid inequalities that a point violates; an empty answer means that the point is in the set.
Oracle = Callable[[Vector], Sequence[Cut]]


def project_by_cuts(x: Vector, oracle: Oracle, *, tol: float, max_cuts: int = 2000) -> Vector:
    """Return the projection of ``x`` on a set that is known by valid inequalities.

    Parameters
    ----------
    x : ndarray
        The real vector to project.
    oracle : callable
        ``oracle(z)`` gives cuts violated at ``z``, deep ones if possible.
    tol : float
        The iteration ends when no cut is deeper than ``tol`` times the size of ``x`` and of the step so far.
    max_cuts : int
        Limit of the iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.cuts import Cut, project_by_cuts
    >>> ball = lambda z: [Cut(z, np.linalg.norm(z))] if np.linalg.norm(z) > 1 else []
    >>> project_by_cuts(np.array([3.0, 4.0]), ball, tol=1e-12).round(9)
    array([0.6, 0.8])
    """
    z, bundle, length = x, _Bundle(x), float(np.linalg.norm(x))
    depth = accuracy = least = math.inf
    deadline, last, k = current_deadline(), 0, -1
    patience = _PATIENCE + _PER_DIMENSION * len(x)
    for k in range(max_cuts):
        deadline.check()
        cuts = oracle(z)
        depths = [cut.depth(z) for cut in cuts]
        depth = max(depths, default=0.0)
        size = length + max(float(np.linalg.norm(z - x)), depth)
        accuracy = tol * size
        if depth <= accuracy:
            return z
        if depth <= 0.5 * least:
            least, last = depth, k
        elif k - last >= patience:
            break
        if math.isinf(depth):
            raise InfeasibleError(
                "c has slope zero at an infeasible point: it is positive everywhere"
            )
        # Cuts that are violated by rounding errors alone are already in the bundle.
        bundle.add([c for c, d in zip(cuts, depths, strict=True) if d > _BLUR * accuracy])
        before = z
        try:
            z = bundle.project(_BLUR * accuracy)
        except Contradiction as contradiction:
            if contradiction.excess > 1e-6 * size and bundle.is_empty:
                raise InfeasibleError(
                    f"the set is empty: cuts contradict each other by {contradiction.excess:.3g} (unit rows)"
                ) from None
            raise
        if np.array_equal(z, before):
            # The cuts contradict each other by rounding error: the caller checks the distance to the set.
            return z
    raise ProjectionError(
        f"the outer approximation is still {depth:.3g} away from the set after {k + 1} rounds "
        f"(needed {accuracy:.3g})"
    )


class _Bundle:
    """The cuts seen so far, and the projection of ``x`` on them."""

    def __init__(self, x: Vector) -> None:
        self._x = x
        self._normals = np.empty((0, x.shape[0]))
        self._slack = np.empty(0)
        self._face = Face.empty(x.shape[0])

    def add(self, cuts: Sequence[Cut]) -> None:
        lengths = [float(np.linalg.norm(cut.normal)) for cut in cuts]
        units = [cut.normal / n for cut, n in zip(cuts, lengths, strict=True) if n > 0.0]
        bounds = [cut.bound / n for cut, n in zip(cuts, lengths, strict=True) if n > 0.0]
        normals = np.reshape(units, (len(units), len(self._x)))
        self._normals = np.concatenate([self._normals, normals])
        self._slack = np.concatenate([self._slack, np.array(bounds) - normals @ self._x])

    @property
    def is_empty(self) -> bool:
        """Whether multipliers prove that the cuts have no common point."""
        return HalfSpaces(self._normals, self._slack).excess_everywhere(NOISE) is not None

    def project(self, blur: float) -> Vector:
        halfspaces = HalfSpaces(self._normals, self._slack)
        face = shortest_vector(halfspaces, self._slack, self._face, blur)
        # Drop cuts that are far from active: as the distance to x never decreases, the method converges.
        far = 1e-2 * float(np.linalg.norm(face.w))
        keep = self._slack - self._normals @ face.w <= far
        keep[list(face.rows)] = True
        place = np.cumsum(keep) - 1
        rows = tuple(int(place[i]) for i in face.rows)
        self._normals, self._slack = self._normals[keep], self._slack[keep]
        self._face = replace(face, rows=rows)
        return self._x + face.w
