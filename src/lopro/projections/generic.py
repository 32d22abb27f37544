"""Projection on ``{c <= 0}`` for a convex function known only by values and subgradients.

For smooth ``c`` a root search determines the multiplier, and Newton's method solves the optimality
conditions with second derivatives from differences of gradients. For other functions, or where that
fails, outer approximation by linearisations requires only subgradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lopro.core.arrays import Array, copy, eps
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector, from_real_vector, to_real_vector
from lopro.errors import InfeasibleError, ProjectionError
from lopro.projections.cuts import POSITIVE, Cut, project_by_cuts
from lopro.projections.empty_sublevel import EmptinessCheck
from lopro.projections.newton import HUGE, STEPS, Equation, hessian_solver, polish

__all__ = ["project_sublevel"]

#: Largest factor between two multipliers of the root search. It matters only for empty sets: after 1e7 the
#: next multiplier would be 3e19, for which no minimisation succeeds in double precision. A tenth and ten
#: times as much change no number of calls in `python -m benchmarks.constants projections`.
_GROWTH = 1e4


def project_sublevel(
    x: Array,
    value: Callable[[Array], float],
    subgradient: Callable[[Array], Array],
    *,
    smooth: bool = False,
    near: Array | None = None,
) -> Array:
    """Return the point of ``{z : c(z) <= 0}`` nearest to ``x``.

    Parameters
    ----------
    x : array
        Of any shape, library and field.
    value, subgradient : callables
        The convex function and one of its subgradients.
    smooth : bool
        Whether the subgradient is a continuous gradient.
    near : array, optional
        The projection of another point; if that point is close to ``x``, a few Newton steps suffice.

    Raises
    ------
    InfeasibleError
        If the linearisations contradict each other, so that the set is empty; with a finite ``radius`` if
        they only exclude the points within this distance of zero.
    ProjectionError
        If the first-order distance to the set stays above 1e-10 of the size of ``x`` and of its own
        first-order distance.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.generic import project_sublevel
    >>> norm, sign = (lambda z: float(np.abs(z).sum()) - 1.0), np.sign
    >>> project_sublevel(np.array([2.0, 0.5]), norm, sign).round(9) + 0.0
    array([1., 0.])
    """
    if value(x) <= 0.0:
        return copy(x)
    c = _Real(x, value, subgradient)
    start = to_real_vector(x)
    size = float(np.linalg.norm(start)) + c.distance(start)
    relative = max(1e-13, 4.0 * eps(x))
    fine = relative * size
    z = None
    if smooth and near is not None:
        z = polish(start, to_real_vector(near), [c.equation])
    if smooth and z is None:
        z = _newton(c, start, fine, size)
    if z is None:
        z = _by_cuts(c, start, relative)
    return from_real_vector(_restored(c, z, fine, size), x)


class _Real:
    """The function on real NumPy vectors."""

    def __init__(
        self, like: Array, value: Callable[[Array], float], subgradient: Callable[[Array], Array]
    ) -> None:
        self._like, self._value, self._subgradient = like, value, subgradient

    def value(self, z: Vector) -> float:
        return self._value(from_real_vector(z, self._like))

    def distance(self, z: Vector) -> float:
        """Return the first-order distance to the set; raise where a point outside has slope zero."""
        excess, slope = self.value(z), float(np.linalg.norm(self.slope(z)))
        if excess > 0.0 and slope == 0.0:
            raise InfeasibleError(POSITIVE)
        return max(excess, 0.0) / slope if slope > 0.0 else 0.0

    def slope(self, z: Vector) -> Vector:
        return to_real_vector(self._subgradient(from_real_vector(z, self._like)))

    @property
    def equation(self) -> Equation:
        return Equation(self.value, self.slope)

    def cuts(self, z: Vector) -> list[Cut]:
        c = self.value(z)
        if c <= 0.0:
            return []
        g = self.slope(z)
        return [Cut(g, float(g @ z) - c)]


def _by_cuts(c: _Real, x: Vector, fine: float) -> Vector:
    """Project by cuts, with a tolerance that is relaxed after each failure, at most to 1e-11.

    A function with kinks may be smooth near the projection. So Newton's method is tried first, from an
    inaccurate result: if ``x - z`` is a nonnegative multiple of a subgradient at z and ``c(z) = 0``, the
    point is optimal in any case.
    """
    z = project_by_cuts(x, c.cuts, tol=1e-6)
    polished = polish(x, z, [c.equation])
    if polished is not None:
        return polished
    for tol in (10.0 * fine, 1e-12, 1e-11):
        try:
            return project_by_cuts(x, c.cuts, tol=max(tol, fine), max_cuts=600)
        except ProjectionError as error:
            failure = error
    raise failure


def _newton(c: _Real, x: Vector, fine: float, size: float) -> Vector | None:
    """Solve ``z - x + mu grad c(z) = 0, c(z) = 0``; None if that fails.

    For fixed ``mu`` the first equation is the minimum of a strongly convex function, and ``c`` at
    that minimum decreases with ``mu``: a root search with a bracket, in which each evaluation starts
    from the last. Near the root the two equations are solved together. Where the set is empty, ``mu`` grows
    and ``z`` tends to a minimiser of ``c``, which gives a proof.
    """
    z, low, high = x, 0.0, math.inf
    check_not_empty = EmptinessCheck(c.value, c.slope, x, size)
    g = c.slope(z)
    mu = c.value(x) / max(float(g @ g), 1e-300)
    deadline = current_deadline()
    for _ in range(STEPS):
        deadline.check()
        if not mu < HUGE:
            return None
        inner = _minimised(c, x, z, mu, fine)
        if inner is None:
            return None
        z, g, solve = inner
        check_not_empty(z)
        joint = polish(x, z, [c.equation])
        if joint is not None:
            return joint
        excess = c.value(z)
        low, high = (mu, high) if excess > 0.0 else (low, mu)
        slope = float(g @ solve(g))
        if not slope > 0.0:
            return None
        # Where there is no root, unlimited steps would lead to multipliers too large for a minimisation.
        mu += min(excess / slope, _GROWTH * mu)
        if not low < mu < high:
            mu = 4.0 * low if math.isinf(high) else 0.5 * (low + high)
    return None


def _minimised(
    c: _Real, x: Vector, z: Vector, mu: float, fine: float
) -> tuple[Vector, Vector, Callable[[Vector], Vector]] | None:
    """Minimise ``|z - x|^2 / 2 + mu c(z)`` by damped Newton steps, to a low accuracy."""

    def objective(v: Vector) -> float:
        return 0.5 * float((v - x) @ (v - x)) + mu * c.value(v)

    deadline, step, last = current_deadline(), np.full(len(x), math.inf), math.inf
    for _ in range(STEPS):
        deadline.check()
        g = c.slope(z)
        residual = z - x + mu * g
        left = float(np.linalg.norm(residual))
        size = float(np.linalg.norm(z) + np.linalg.norm(x - z)) + fine
        solve = hessian_solver(lambda v: mu * c.slope(v), z, size)
        # Accurate enough for the sign of c at the result.
        distance = abs(c.value(z)) / max(float(np.linalg.norm(g)), 1e-300)
        enough = max(fine, min(1e-3 * float(np.linalg.norm(z - x)), 0.05 * distance))
        # Short steps that do not reduce the residual are rounding errors, which a large mu amplifies.
        if left <= enough or (left > 0.5 * last and np.linalg.norm(step) <= 1e-6 * size):
            return z, g, solve
        step, t, here, last = solve(residual), 1.0, objective(z), left
        descent = float(step @ residual)
        while not objective(z - t * step) <= here - 1e-4 * t * descent:
            t *= 0.5
            if t < 1e-8:
                # No descent: the minimum, up to rounding.
                near = np.linalg.norm(step) <= 1e-6 * size
                return (z, g, solve) if near else None
        z = z - t * step
    return None


def _restored(c: _Real, z: Vector, fine: float, size: float) -> Vector:
    """Move the point into the set by a few Newton steps along the slope, slightly longer than necessary."""
    for _ in range(8):
        excess = c.value(z)
        if excess <= 0.0:
            return z
        g = c.slope(z)
        slope = float(np.linalg.norm(g))
        if slope == 0.0:
            raise InfeasibleError(POSITIVE)
        z = z - ((excess / slope + 0.01 * fine) / slope) * g
    distance = c.value(z) / float(np.linalg.norm(c.slope(z)))
    if distance <= max(1e-10 * size, fine):
        return z
    raise ProjectionError(f"the projection remains at a distance of {distance:.3g} from the set")
