"""The arithmetic of bounds and violations for many problems at once, where their data are.

Arrays have one leading axis for the problems; everything is in double precision, in the library and on the
device of the data, and no number is copied to the host. Errors are bounds of rounding errors for any order
of summation; they are computed with twice the constant that the analysis gives, which covers their own
rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

from lopro.core.arrays import Array, namespace
from lopro.linalg.rounding import gamma

__all__ = ["Enclosures", "enclosed_dot", "enclosed_product", "lower_bounds", "row_violations"]


@dataclass(frozen=True, eq=False)
class Enclosures:
    """Numbers with bounds of their errors; both arrays have one shape.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.batched import Enclosures
    >>> third = Enclosures(np.ones(1) / 3.0, np.full(1, 1e-16))
    >>> both = third + third
    >>> bool((both.lower() < 2.0 / 3.0).all()), bool((both.error > 2e-16).all())
    (True, True)
    """

    value: Array
    error: Array

    def __add__(self, other: Enclosures) -> Enclosures:
        value = self.value + other.value
        return Enclosures(value, self.error + other.error + gamma(2) * abs(value))

    def __sub__(self, other: Enclosures) -> Enclosures:
        return self + Enclosures(-other.value, other.error)

    def times(self, factor: Array) -> Enclosures:
        """Return the product with exact numbers."""
        value = factor * self.value
        return Enclosures(
            value, abs(factor) * self.error * (1.0 + gamma(4)) + gamma(2) * abs(value)
        )

    def lower(self) -> Array:
        """Return numbers that are not above the exact ones."""
        return self.value - self.error - gamma(4) * (abs(self.value) + self.error)


def enclosed_product(M: Array, x: Array, error: Array | None = None) -> Enclosures:
    """Return ``M x`` for matrices and vectors of each problem; ``x`` is known up to ``error``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.batched import enclosed_product
    >>> found = enclosed_product(np.array([[[1.0, 2.0]]]), np.array([[3.0, 4.0]]))
    >>> found.value, bool(found.error[0, 0] < 1e-14)
    (array([[11.]]), True)
    """
    n = M.shape[-1]
    uncertain = 2.0 * gamma(n + 2) * abs(x)
    if error is not None:
        uncertain = uncertain + (1.0 + gamma(2 * n + 8)) * error
    return Enclosures(_times(M, x), _times(abs(M), uncertain))


def enclosed_dot(x: Array, y: Array, error: Array | None = None) -> Enclosures:
    """Return the inner products of each problem; ``x`` is known up to ``error``, ``y`` exactly."""
    xp, n = namespace(x), x.shape[-1]
    terms = x * y
    off = 2.0 * gamma(n + 2) * xp.sum(abs(terms), axis=-1)
    if error is not None:
        off = off + (1.0 + gamma(2 * n + 8)) * xp.sum(error * abs(y), axis=-1)
    return Enclosures(xp.sum(terms, axis=-1), off)


def _times(M: Array, x: Array) -> Array:
    return (M @ x[..., None])[..., 0]


def lower_bounds(
    lagrangian: Enclosures,
    gradient: Enclosures,
    x: Array,
    box: tuple[Array, Array] | None,
    convexity: Array,
    lengths: Array,
    reach: Array,
) -> Array:
    """Return what a Lagrangian is at least, over a box and within reach, less all rounding.

    Parameters
    ----------
    lagrangian, gradient : Enclosures
        Value and gradient at ``x``, one for each problem.
    x : array of shape (problems, n)
        Where they were evaluated.
    box : (least, most), optional
        Bounds of single variables: over ``x_j >= l_j`` a slope ``c_j >= 0`` costs ``c_j (x_j - l_j)``.
    convexity : array of shape (problems,)
        Proved numbers ``mu`` such that the Lagrangian less ``mu/2 sum (x_j / lengths_j)^2`` is convex, or 0.
        What is left of the slope costs ``sum (lengths_j c_j)^2 / (2 mu)``.
    lengths : array of shape (problems, n)
        The units of the variables in which convexity is measured.
    reach : array of shape (problems, n)
        Where mu is 0, the bound holds for points with ``|z_j - x_j| <= reach_j``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.batched import Enclosures, lower_bounds
    >>> value, slope = (
    ...     Enclosures(np.ones(1), np.zeros(1)),
    ...     Enclosures(np.ones((1, 1)), np.zeros((1, 1))),
    ... )
    >>> x, far = np.full((1, 1), 3.0), np.full((1, 1), 100.0)
    >>> one = np.ones((1, 1))
    >>> bound = lower_bounds(value, slope, x, None, np.full(1, 2.0), one, far)  # 1 - 1 / (2 * 2)
    >>> bound.round(12), bool(bound[0] < 0.75)
    (array([0.75]), True)
    >>> box = np.full((1, 1), 2.5), np.full((1, 1), np.inf)
    >>> lower_bounds(value, slope, x, box, np.zeros(1), one, far).round(12)
    array([0.5])
    >>> lower_bounds(value, slope, x, None, np.zeros(1), one, far).round(12)
    array([-99.])
    """
    xp, n = namespace(x), x.shape[-1]
    zero = xp.zeros_like(x)
    most_down = xp.maximum(gradient.value + gradient.error, zero)
    most_up = xp.maximum(gradient.error - gradient.value, zero)
    cost = zero
    if box is not None:
        least, most = box
        below, above = xp.isfinite(least), xp.isfinite(most)
        down = most_down * xp.maximum(x - xp.where(below, least, x), zero)
        up = most_up * xp.maximum(xp.where(above, most, x) - x, zero)
        cost = xp.maximum(down, up)
        most_down, most_up = xp.where(below, zero, most_down), xp.where(above, zero, most_up)
    rise = xp.maximum(most_down, most_up)
    curved = convexity > 0.0
    mu = xp.where(curved, convexity, xp.ones_like(convexity))
    own = rise * lengths
    square, slope = xp.sum(own * own, axis=-1) / (2.0 * mu), xp.sum(rise * reach, axis=-1)
    paid = (xp.sum(cost, axis=-1) + xp.where(curved, square, slope)) * (1.0 + 2.0 * gamma(n + 8))
    return lagrangian.lower() - paid - gamma(4) * (abs(lagrangian.value) + paid)


def row_violations(excess: Array, sizes: Array, multipliers: Array) -> tuple[Array, Array, Array]:
    """Return the largest relative and absolute violation, and what it may have gained, of each problem.

    Parameters
    ----------
    excess : array of shape (problems, rows)
        How far each row is violated; not positive where it is met.
    sizes : array
        What each row compares: ``|a|'|x| + |side|``.
    multipliers : array
        Of the violated sides, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates.batched import row_violations
    >>> excess, sizes = np.array([[0.5, -1.0]]), np.array([[10.0, 1.0]])
    >>> row_violations(excess, sizes, np.array([[2.0, 3.0]]))
    (array([0.05]), array([0.5]), array([1.]))
    """
    xp = namespace(excess)
    out = excess > 0.0
    absolute = xp.where(out, excess, xp.zeros_like(excess))
    told = sizes > 0.0
    ratio = absolute / xp.where(told, sizes, xp.ones_like(sizes))
    ratio = xp.where(out & ~told, xp.full_like(excess, float("inf")), ratio)
    gained = xp.sum(absolute * multipliers, axis=-1)
    return xp.max(ratio, axis=-1), xp.max(absolute, axis=-1), gained
