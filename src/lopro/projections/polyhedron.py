"""Projection on a polyhedron by an interior-point solver and an active-set method.

Clarabel solves the quadratic program to about ten digits, which determines the active inequalities. The dual
active-set method starts there, adds missing inequalities, and ends when feasibility and the signs of the
multipliers hold to rounding.
"""

from __future__ import annotations

import math

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.certificate import Status
from lopro.core.arrays import Array, asarray_like, copy, to_numpy
from lopro.core.deadline import current_deadline
from lopro.engines import ConeProgram, EngineUnavailable, QuadraticProgram, solve_cones
from lopro.engines.cones import Nonnegative
from lopro.errors import InfeasibleError, ProjectionError
from lopro.functions.atoms import HalfSquare, Interval
from lopro.functions.term import Term
from lopro.maps import linear_map
from lopro.newton.problem import Composite
from lopro.newton.programs import solve_program
from lopro.newton.solve import solve as newton_solve
from lopro.projections.active_set import Face, shortest_vector
from lopro.projections.halfspaces import HalfSpaces, Matrix

__all__ = ["ACTIVE_SET_ENTRIES", "RepeatedProjection", "least_distance", "project_polyhedron"]

#: Violations of unit rows that are tolerated, relative to the distance: some thousand roundings of a sum.
#: `python -m benchmarks.constants projections`: a tenth and ten times as much change nothing.
_ACCURACY = 1e-12
#: Entries of the rows above which Newton's method is tried before the active set, whose answers are
#: accurate to rounding instead of a gap. For dense rows that cut off a distant point: 0.72 s and 0.05 s at
#: 2e5 entries, 0.29 s and 0.02 s at 8e4, 0.04 s and 0.006 s at 2e4.
ACTIVE_SET_ENTRIES = 2e5
#: Entries above which the active set is not tried: 0.8 GB as a dense matrix.
_HUGE = 1e8
#: The relative gap that is proved then, and an addition of 45 roundings for each variable.
_GAP = 1e-11
_GAP_OF_EACH = 1e-14


def project_polyhedron(x: Array, halfspaces: HalfSpaces) -> Array:
    """Return the point of ``{z : N z <= h}`` nearest to ``x``.

    Parameters
    ----------
    x : array
        A real vector of any array library; the work is done in float64 on the host.
    halfspaces : HalfSpaces
        The inequalities, with unit rows.

    Raises
    ------
    InfeasibleError
        If the multipliers of a linear program prove that the set is empty.
    ProjectionError
        If no point satisfies the optimality conditions.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.halfspaces import HalfSpaces
    >>> from lopro.projections.polyhedron import project_polyhedron
    >>> H = HalfSpaces.from_system(np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([1.0, 1.0]))
    >>> project_polyhedron(np.array([2.0, 2.0]), H).round(12) + 0.0
    array([0.5, 0.5])
    """
    point = np.asarray(to_numpy(x), dtype=np.float64)
    slack = halfspaces.bounds - halfspaces.normals @ point
    if slack.min(initial=0.0) >= 0.0:
        return copy(x)
    step = least_distance(halfspaces, slack, _rounding(halfspaces, point))
    return asarray_like(point + step, x)


class RepeatedProjection:
    """Projections of a sequence of nearby points: each starts from the face of the previous one.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.halfspaces import HalfSpaces
    >>> from lopro.projections.polyhedron import RepeatedProjection
    >>> project = RepeatedProjection(HalfSpaces(np.eye(2), np.zeros(2)))
    >>> project(np.array([1.0, -1.0])) + 0.0, project(np.array([1.1, -1.0])) + 0.0
    (array([ 0., -1.]), array([ 0., -1.]))
    """

    def __init__(self, halfspaces: HalfSpaces) -> None:
        self._halfspaces = halfspaces
        self._rows: tuple[int, ...] = ()

    def __call__(self, x: Array) -> Array:
        """Return the point of the polyhedron nearest to ``x``."""
        H = self._halfspaces
        point = np.asarray(to_numpy(x), dtype=np.float64)
        slack = H.bounds - H.normals @ point
        if slack.min(initial=0.0) >= 0.0:
            return copy(x)
        scale = float(-slack.min())
        blur = max(_ACCURACY, _rounding(H, point) / scale)
        try:
            start = Face.among(H, slack / scale, self._rows)
            face = shortest_vector(H, slack / scale, start, blur)
        except ProjectionError:
            return project_polyhedron(x, H)
        self._rows = face.rows
        return asarray_like(point + scale * face.w, x)


def _rounding(halfspaces: HalfSpaces, point: Matrix) -> float:
    """Return the rounding error of the slacks, which depends on |x| and not on the distance."""
    return 1e-15 * (float(np.linalg.norm(point)) + float(np.abs(halfspaces.bounds).max()))


def least_distance(halfspaces: HalfSpaces, slack: Matrix, rounding: float = 0.0) -> Matrix:
    """Return the shortest ``w`` with ``N w <= slack``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.halfspaces import HalfSpaces
    >>> from lopro.projections.polyhedron import least_distance
    >>> H = HalfSpaces.from_system(np.array([[0.0, 1.0]]), np.array([5.0]))
    >>> least_distance(H, np.array([-2.0])) + 0.0
    array([ 0., -2.])
    """
    scale = float(-slack.min())
    if len(halfspaces) == 1:
        return np.asarray(-scale * halfspaces.rows([0])[0])
    scaled = slack / scale
    blur = max(_ACCURACY, rounding / scale)
    if len(halfspaces) * halfspaces.dimension > ACTIVE_SET_ENTRIES:
        found = _large(halfspaces, scaled, blur)
        if found is not None:
            return scale * found
        if len(halfspaces) * halfspaces.dimension > _HUGE:
            raise_if_empty(halfspaces)
            raise ProjectionError(
                f"no projection on {len(halfspaces)} rows in {halfspaces.dimension} variables could be proved"
            )
    start = _interior_point(halfspaces, scaled)
    try:
        return scale * shortest_vector(halfspaces, scaled, start, blur).w
    except ProjectionError:
        raise_if_empty(halfspaces)
        raise


def _large(halfspaces: HalfSpaces, slack: Matrix, blur: float) -> Matrix | None:
    """Return the shortest ``w`` with a proved gap; None where the proof fails.

    An active set that changes by one row at a time is too slow for faces of thousands of rows. Programs with
    sparse rows are solved by an engine, others by Newton's method.
    """
    deadline, d = current_deadline(), halfspaces.dimension
    allowed = _GAP + _GAP_OF_EACH * d
    deadline.check()
    if _thin(halfspaces):
        eye = scipy.sparse.eye_array(d, format="csc")
        program = QuadraticProgram.of(eye, np.zeros(d), halfspaces.normals, upper=slack)
        left = None if math.isinf(deadline.left) else deadline.left
        outcome = solve_program(program, allowed, blur, seconds=left)
    else:
        rows = Interval(np.full(len(slack), -np.inf), slack)
        terms = [Term(rows, linear_map(halfspaces.normals)), Term(HalfSquare())]
        problem = Composite.of(terms, d)
        outcome = newton_solve(problem, allowed, blur, stopped=lambda: deadline.passed)
    deadline.check()
    return outcome.x if outcome.status is Status.CONVERGED else None


def _thin(halfspaces: HalfSpaces) -> bool:
    """Whether factors are expected to be sparse: few pairs of variables share a row, or d is large."""
    if not scipy.sparse.issparse(halfspaces.normals):
        return False
    d, lengths = halfspaces.dimension, np.diff(halfspaces.normals.indptr).astype(np.float64)
    return d > 3000 or float(lengths @ lengths) <= 0.02 * d * d


def _interior_point(halfspaces: HalfSpaces, slack: Matrix) -> Face:
    """Solve ``min |w|^2 / 2, N w <= slack`` by Clarabel and return the face it ends on."""
    d = halfspaces.dimension
    eye, cones = scipy.sparse.identity(d, format="csc"), [Nonnegative(len(halfspaces))]
    program = ConeProgram(eye, np.zeros(d), halfspaces.csc, slack, cones)
    # The status of the solver is not used: a bad start only costs the active-set method time.
    try:
        # The slacks are already in units of the distance.
        answer = solve_cones(program, 1e-10, scaled=False)
    except EngineUnavailable:
        return Face.empty(d)
    if answer.status.empty:
        raise_if_empty(halfspaces)
    if not answer.finite:
        return Face.empty(d)
    w, multipliers = answer.x, answer.rows
    gap = slack - halfspaces.normals @ w
    return Face.near(halfspaces, slack, w, np.flatnonzero(multipliers > gap))


def raise_if_empty(halfspaces: HalfSpaces) -> None:
    """Raise InfeasibleError if the multipliers of a linear program prove that no point satisfies all rows."""
    excess = halfspaces.excess_everywhere()
    if excess is not None:
        raise InfeasibleError(
            f"the polyhedron is empty: some unit row is violated by {excess:.3g} at every point"
        )
