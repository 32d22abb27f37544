"""Outer approximation: projection on a set that is known only by valid inequalities.

The set is replaced by the half-spaces found so far. The projection on their intersection is a small quadratic
program, which is solved exactly; if that point is outside of the set, an oracle returns an inequality that
separates it. The distances of the iterates from ``x`` increase to that of the set, whether its boundary is
smooth or not (Haugazeau 1968, with a bundle of cuts).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lopro.certificates import NOISE, TOUCHING
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.errors import InfeasibleError, ProjectionError
from lopro.projections.active_set import Contradiction, Face, shortest_vector
from lopro.projections.halfspaces import HalfSpaces

__all__ = ["POSITIVE", "Cut", "project_by_cuts"]

#: Why a set is empty where a subgradient vanishes at a point outside.
POSITIVE = "c has slope zero at an infeasible point: it is positive everywhere"
#: Share of the required accuracy to which the cuts themselves are satisfied. `python -m benchmarks.constants
#: projections`: a tenth and ten times as much change nothing.
_BLUR = 0.05


@dataclass(frozen=True)
class Cut:
    """The inequality ``<normal, z> <= bound``, valid for every point of the set.

    ``size`` is a length typical of the data that it was computed from: it determines their rounding errors.
    """

    normal: Vector
    bound: float
    size: float = 0.0

    def depth(self, z: Vector) -> float:
        """Return the distance of ``z`` to the half-space, negative inside."""
        length = float(np.linalg.norm(self.normal))
        excess = float(self.normal @ z) - self.bound
        return excess / length if length > 0.0 else math.copysign(math.inf, excess)


#: Returns valid inequalities that a point violates, none if the point is in the set.
Oracle = Callable[[Vector], Sequence[Cut]]


def project_by_cuts(x: Vector, oracle: Oracle, *, tol: float, max_cuts: int = 2000) -> Vector:
    """Return the projection of ``x`` on a set that is known by valid inequalities.

    Parameters
    ----------
    x : ndarray
        The real vector to be projected.
    oracle : callable
        ``oracle(z)`` returns cuts that ``z`` violates, deep ones if possible.
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
    depth = accuracy = math.inf
    deadline = current_deadline()
    for _ in range(max_cuts):
        deadline.check()
        cuts = oracle(z)
        depths = [cut.depth(z) for cut in cuts]
        depth = max(depths, default=0.0)
        size = length + max(float(np.linalg.norm(z - x)), depth)
        accuracy = tol * size
        if depth <= accuracy:
            return z
        if math.isinf(depth):
            raise InfeasibleError(POSITIVE)
        # Cuts that are violated by rounding errors alone are already in the bundle.
        bundle.add([c for c, d in zip(cuts, depths, strict=True) if d > _BLUR * accuracy])
        before = z
        z = bundle.project(_BLUR * accuracy, size)
        if np.array_equal(z, before):
            # The cuts contradict each other by rounding errors; the caller checks the distance to the set.
            return z
    raise ProjectionError(
        f"the outer approximation is {depth:.3g} away from the set after {max_cuts} iterations "
        f"({accuracy:.3g} is required)"
    )


class _Bundle:
    """The cuts found so far, and the projection of ``x`` on their intersection."""

    def __init__(self, x: Vector) -> None:
        self._x = x
        self._normals = np.empty((0, x.shape[0]))
        self._slack = np.empty(0)
        #: Contradictions up to this length are rounding errors of sets that touch.
        self._touching = 0.0
        self._face = Face.empty(x.shape[0])

    def add(self, cuts: Sequence[Cut]) -> None:
        lengths = [float(np.linalg.norm(cut.normal)) for cut in cuts]
        units = [cut.normal / n for cut, n in zip(cuts, lengths, strict=True) if n > 0.0]
        bounds = [cut.bound / n for cut, n in zip(cuts, lengths, strict=True) if n > 0.0]
        self._touching = max(self._touching, *(TOUCHING * cut.size for cut in cuts), 0.0)
        normals = np.reshape(units, (len(units), len(self._x)))
        self._normals = np.concatenate([self._normals, normals])
        self._slack = np.concatenate([self._slack, np.array(bounds) - normals @ self._x])

    @property
    def is_empty(self) -> bool:
        """Whether multipliers prove that the cuts have no common point."""
        return HalfSpaces(self._normals, self._slack).excess_everywhere(NOISE) is not None

    def project(self, blur: float, size: float) -> Vector:
        """Return the projection of ``x`` on the cuts; raise an error if these prove the set empty.

        ``blur`` is the violation that is tolerated, ``size`` the scale of contradictions beyond rounding.
        """
        halfspaces = HalfSpaces(self._normals, self._slack)
        try:
            face = shortest_vector(halfspaces, self._slack, self._face, blur)
        except Contradiction as contradiction:
            least = max(1e-6 * size, self._touching)
            if contradiction.excess > least and self.is_empty:
                raise InfeasibleError(
                    f"the set is empty: cuts contradict each other by {contradiction.excess:.3g} (unit rows)"
                ) from None
            raise
        # Cuts that are far from active are dropped; the distance to x still does not decrease, so that the
        # method converges.
        far = 1e-2 * float(np.linalg.norm(face.w))
        keep = self._slack - self._normals @ face.w <= far
        keep[list(face.rows)] = True
        place = np.cumsum(keep) - 1
        rows = tuple(int(place[i]) for i in face.rows)
        self._normals, self._slack = self._normals[keep], self._slack[keep]
        self._face = replace(face, rows=rows)
        return self._x + face.w
