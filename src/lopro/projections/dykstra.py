"""Dykstra's method: the projection on an intersection from the projections on its members."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lopro.core.arrays import Array, eps, norm, zeros
from lopro.core.deadline import current_deadline
from lopro.errors import ProjectionError

__all__ = ["dykstra"]


def dykstra(
    x: Array,
    projectors: Sequence[Callable[[Array], Array]],
    *,
    violation: Callable[[Array], float] | None = None,
    tol: float = 1e-12,
    max_cycles: int = 3000,
) -> Array:
    r"""Return the point of the intersection nearest to ``x``.

    Parameters
    ----------
    x : array
        The point to be projected.
    projectors : sequence of callables
        The exact projections on closed convex sets.
    violation : callable, optional
        The violation of a point as measured by the caller, which must be at most ``10 tol`` as well.
    tol : float
        The nearest points of all members must agree with the result to ``tol``, or to the rounding of the
        dtype if that is larger, relative to the norm of ``x`` plus that of the step.
    max_cycles : int
        Limit of the cycles through all members.

    Raises
    ------
    ProjectionError
        If the stopping rule is not met within the limit: the members intersect at too small an angle,
        or not at all.

    Notes
    -----
    The rule checks optimality and not the length of the last step, because Dykstra's iterates can be
    constant for many cycles and then change. After a cycle ``x - z = sum p_i`` with each ``p_i``
    normal to member ``i`` at its own last point ``y_i``; when all ``y_i`` coincide with ``z`` these
    are the optimality conditions.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.dykstra import dykstra
    >>> left = lambda z: np.array([min(z[0], 0.0), z[1]])
    >>> down = lambda z: np.array([z[0], min(z[1], 1.0)])
    >>> dykstra(np.array([2.0, 3.0]), [left, down])
    array([0., 1.])
    """
    relative, size, z = max(tol, 4.0 * eps(x)), norm(x), x
    corrections = [zeros(tuple(x.shape), x) for _ in projectors]
    spread = float("inf")
    deadline = current_deadline()
    for _ in range(max_cycles):
        deadline.check()
        points = []
        for i, project in enumerate(projectors):
            shifted = z + corrections[i]
            z = project(shifted)
            corrections[i] = shifted - z
            points.append(z)
        spread, accuracy = max(norm(y - z) for y in points), relative * (size + norm(x - z))
        if spread <= accuracy and (violation is None or violation(z) <= 10.0 * tol):
            return z
    raise ProjectionError(
        f"Dykstra's method left the members {spread:.3g} apart after {max_cycles} cycles "
        f"({accuracy:.3g} is required)"
    )
