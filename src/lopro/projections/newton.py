"""Newton's method on the optimality conditions of a projection, which computes its last digits.

``z`` is the projection of ``x`` on ``{c_i <= 0}`` if ``x - z = sum mu_i g_i`` with ``mu_i >= 0``,
subgradients ``g_i`` of ``c_i`` at ``z``, and ``c_i(z) = 0`` where ``mu_i > 0``. These conditions are
sufficient for convex functions, smooth or not, however the point was computed. Second derivatives are
differences of gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector

__all__ = ["Equation", "hessian_solver", "polish"]

#: Largest multiplier; beyond it the set is empty or has no interior. Squares of its products with slopes up
#: to 1e50 do not overflow.
HUGE = 1e100
#: Limit of Newton steps and of steps of the root search. `python -m benchmarks.constants projections`: with a
#: tenth 1.25 times the calls, 1.6 times for a smooth function; ten times as many change nothing.
STEPS = 50
#: Number of variables up to which second derivatives form a matrix; larger systems are solved by products.
#: `python -m benchmarks.constants projections`: with a tenth 1.3 times the calls, 6.5 times for a function
#: with kinks; ten times as many change nothing.
_DENSE_UP_TO = 60


@dataclass(frozen=True)
class Equation:
    """A convex function that is zero at the projection."""

    value: Callable[[Vector], float]
    slope: Callable[[Vector], Vector]

    def scaled(self, factor: float) -> Equation:
        """Return the same equation in other units."""
        return Equation(lambda z: factor * self.value(z), lambda z: factor * self.slope(z))


def polish(x: Vector, z: Vector, equations: Sequence[Equation]) -> Vector | None:
    """Return the projection near ``z`` to full accuracy; None where Newton's method does not converge.

    Equations whose multiplier is zero are dropped; the caller checks whether the result satisfies them
    as inequalities.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.newton import Equation, polish
    >>> circle = Equation(lambda z: float(z @ z) - 1.0, lambda z: 2.0 * z)
    >>> polish(np.array([3.0, 4.0]), np.array([0.61, 0.79]), [circle]).round(12)
    array([0.6, 0.8])
    """
    slopes = np.array([e.slope(z) for e in equations]).reshape(len(equations), len(z))
    lengths = np.linalg.norm(slopes, axis=1)
    if len(equations) == 0 or not (lengths > 0.0).all():
        return None
    try:
        u, _ = scipy.optimize.nnls((slopes / lengths[:, None]).T, x - z)
    except RuntimeError:
        return None
    used = u > 1e-9 * float(u.max())
    # With unit slopes at the start, equations in different units have equal weight in the steps.
    scaled = [e.scaled(1.0 / length) for e, length in zip(equations, lengths, strict=True)]
    return _settled(x, z, u[used], [e for e, keep in zip(scaled, used, strict=True) if keep])


def _settled(x: Vector, z: Vector, mu: Vector, equations: list[Equation]) -> Vector | None:
    """Take Newton steps while their lengths decrease; return None if they do not converge to a solution."""
    last = math.inf
    for _ in range(STEPS):
        current_deadline().check()
        if len(mu) == 0 or not (mu > 0.0).all() or not mu.max() < HUGE:
            return None
        G = np.array([e.slope(z) for e in equations])
        excess = np.array([e.value(z) for e in equations])
        try:
            solve = hessian_solver(partial(_combined, equations, mu), z, _size(x, z))
            a, B = solve(z - x + G.T @ mu), np.column_stack([solve(g) for g in G])
            change = np.linalg.lstsq(G @ B, excess - G @ a, rcond=None)[0]
        except np.linalg.LinAlgError:
            return None  # equations in units of very different size
        step = a + B @ change
        length, size = float(np.linalg.norm(step)), _size(x, z)
        # Without a solution the multipliers diverge, and the points tend to minimisers.
        solved = bool((np.abs(excess) <= 1e-9 * size * np.linalg.norm(G, axis=1)).all())
        if not length <= 0.5 * last:
            # Steps that do not decrease are rounding errors, or the start was too far away.
            return z if solved and last <= 1e-9 * size else None
        z, mu, last = z - step, mu + change, length
        if length <= 1e-15 * size:
            return z if solved else None
    return None


def _size(x: Vector, z: Vector) -> float:
    """Return the size that steps are relative to: the norm of the point plus the distance."""
    return float(np.linalg.norm(z) + np.linalg.norm(x - z))


def _combined(equations: list[Equation], mu: Vector, v: Vector) -> Vector:
    return np.asarray(sum(m * e.slope(v) for m, e in zip(mu, equations, strict=True)))


def hessian_solver(
    gradient: Callable[[Vector], Vector], z: Vector, size: float
) -> Callable[[Vector], Vector]:
    """Return ``v -> (I + D gradient(z))^-1 v`` with the derivative from central differences.

    The differences are small relative to the length ``size``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.newton import hessian_solver
    >>> hessian_solver(lambda z: 3.0 * z, np.zeros(2), 1.0)(np.array([4.0, 8.0])).round(6)
    array([1., 2.])
    """
    step = 6e-6 * size

    def curvature(v: Vector) -> Vector:
        current_deadline().check()
        length = float(np.linalg.norm(v))
        if length == 0.0:
            return v
        u = (step / length) * v
        return v + (gradient(z + u) - gradient(z - u)) * (length / (2.0 * step))

    n = z.shape[0]
    if n <= _DENSE_UP_TO:
        H = np.column_stack([curvature(e) for e in np.eye(n)])
        H = 0.5 * (H + H.T)
        return lambda v: np.asarray(np.linalg.solve(H, v))
    operator = scipy.sparse.linalg.LinearOperator((n, n), matvec=curvature, dtype=np.float64)
    return lambda v: np.asarray(scipy.sparse.linalg.cg(operator, v, rtol=1e-8, maxiter=200)[0])
