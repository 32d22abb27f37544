"""The objective protocol: a convex function, how it splits, and what bounds it from below."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lopro.core.arrays import Array, inner, norm, zeros
from lopro.functions import Ball, Constant, Function
from lopro.functions.atoms import Opaque
from lopro.functions.term import Term

if TYPE_CHECKING:
    from lopro.constraints.base import Constraint, ValidInequality

__all__ = ["Objective", "OneTerm", "lipschitz_of_smooth"]


class Objective(Function):
    """A convex objective ``f``.

    Subclasses define ``value`` and ``subgradient``, and declare what else they can do: ``smooth``
    (the subgradient is a gradient, Lipschitz continuous at least on bounded sets), ``proximable``
    (there is a ``prox(x, step)``), ``stochastic`` (there is a ``stochastic_subgradient(x, rng)``).
    Objectives are added with ``+`` and scaled with ``factor * f``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import L1Norm, SquaredDistance
    >>> f = SquaredDistance(np.array([3.0, 0.0])) + 0.5 * L1Norm()
    >>> f.value(np.array([1.0, 0.0]))
    2.5
    """

    smooth: bool = False
    proximable: bool = False
    stochastic: bool = False
    #: Whether terms of both signs make up the value, so that `magnitude` is more than its modulus.
    cancels: bool = False
    #: Whether its slopes have fewer digits than the points: the precision of points then promises no proof.
    coarse_slopes: bool = False

    #: Make ``f + g`` and ``factor * f``; set by `lopro.objectives.sums`, whose classes are objectives too.
    sum_of: ClassVar[Callable[..., Objective]]
    multiple_of: ClassVar[Callable[..., Objective]]

    # NumPy scalars leave ``factor * f`` to `__rmul__` instead of looking for an array in f.
    __array_ufunc__ = None

    def __repr__(self) -> str:
        shape = "" if self.shape is None else f"shape={self.shape}"
        return f"{type(self).__name__}({shape})"

    @property
    def terms(self) -> tuple[Term, ...]:
        """The function as a sum of terms ``s g(D x - b)``; one opaque term where nothing else is known."""
        return (Term(Opaque(self)),)

    @property
    def summands(self) -> tuple[tuple[float, Objective], ...]:
        """The objectives that it is a sum of, each with its factor: itself, unless it is made of others."""
        return ((1.0, self),)

    def prox(self, x: Array, step: float) -> Array:
        """Return ``argmin_u f(u) + |u - x|^2 / (2 step)``; only where ``proximable``."""
        raise NotImplementedError

    def stochastic_subgradient(self, x: Array, rng: np.random.Generator) -> Array:
        """Return an unbiased estimate of a subgradient; only where ``stochastic``."""
        raise NotImplementedError

    def split(self) -> tuple[Objective | None, Objective | None]:
        """Return the smooth part and the proximable part; ``(None, None)`` if it has neither.

        A function that is both goes to the smooth side.
        """
        if self.smooth:
            return self, None
        return (None, self) if self.proximable else (None, None)

    def shaped(self, shape: tuple[int, ...]) -> Objective:
        """Return this objective for points of this shape, where it has none of its own.

        Constants that depend on the dimension are known from then on.
        """
        return self

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        """Return ``(alpha, g)`` with ``f(z) >= alpha + <g, z>`` for every ``z``.

        Of the minorants that are known, the one whose slope is nearest to ``target`` is best: certificates
        pass minus the multiplier's direction, which is the slope at a minimiser. A strongly
        convex ``f`` promises more: ``f(z) >= alpha + <g, z> + mu/2 |z - x|^2``, so that what is
        strongly convex has to be linearised at ``x``.
        """
        value, subgradient = self.linearize_at(self.image(x))
        g = subgradient()
        return value - inner(g, x), g

    def scale_into_domain(self, v: Array) -> float | None:
        """Return the largest ``t <= 1`` with ``f(z) + t <v, z> >= f(0)`` for every ``z``.

        Only for norms and the like, where scaling makes a dual point feasible; None elsewhere.
        """
        return None

    def dual_bound(
        self, constraint: Constraint, x: Array, normal: ValidInequality, fun: float
    ) -> tuple[float, str] | None:
        """Return a lower bound of ``f`` over the set and its source, where ``f`` has a dual of its own.

        ``normal`` is a valid inequality of the set, near ``x`` a multiplier; ``fun`` the value of some
        feasible point.
        """
        return None

    def strong_convexity(self) -> Constant | None:
        """Return ``mu > 0`` if ``f`` is known to be mu-strongly convex, or None."""
        return None

    def infimum(self) -> Constant | None:
        """Return a lower bound of ``f`` over all points, or None."""
        known = self._seen_from_zero()
        if known is None:
            return None
        mu, value, slope = known
        return Constant(value - slope * slope / (2.0 * mu.value), mu.source, f"f(0), {mu.note}")

    def sublevel_radius(self, level: float) -> Constant | None:
        """Return ``R`` with ``|z| <= R`` whenever ``f(z) <= level``, or None.

        The default takes what strong convexity says about the points around zero:
        ``level >= f(z) >= f(0) - |g| |z| + mu/2 |z|^2`` with ``g`` a subgradient at zero.
        """
        known = self._seen_from_zero()
        if known is None:
            return None
        mu, value, slope = known
        # A negative root would mean that no point has this level: then any radius is right.
        root = math.sqrt(max(slope * slope + 2.0 * mu.value * (level - value), 0.0))
        return Constant((slope + root) / mu.value, mu.source, f"f(0), {mu.note}")

    def slope_error(self, x: Array) -> np.ndarray[Any, Any] | None:
        """Return by how much the subgradient at ``x`` may miss all of them, per entry; None for nothing.

        With errors e the function is above ``f(x) + <g, z - x> - <e, |z - x|>``: bounds pay for them.
        """
        return None

    def typical_size(self) -> float | None:
        """Return a length that is typical of good points, or None: it changes with the units of ``x``.

        It only sets the scale of first steps, so it need not be exact; but it must be cheap.
        """
        return None

    def magnitude(self, x: Array, fun: float) -> float:
        """Return the sum of the absolute values of the terms of ``f(x) = fun``: what a gap is relative to.

        Where terms `cancel`, the value itself says nothing about how accurate it can be.
        """
        return abs(fun)

    def _seen_from_zero(self) -> tuple[Constant, float, float] | None:
        """Return mu, ``f(0)`` and ``|g(0)|``, or None where mu or the shape is not known."""
        mu = self.strong_convexity()
        if mu is None or self.shape is None:
            return None
        origin = zeros(self.shape, np.zeros(1) if self.like is None else self.like)
        value, subgradient = self.linearize_at(self.image(origin))
        return mu, value, norm(subgradient())

    def __add__(self, other: Any) -> Objective:
        return Objective.sum_of(self, other) if isinstance(other, Objective) else NotImplemented

    def __rmul__(self, factor: Any) -> Objective:
        return Objective.multiple_of(factor, self)


class OneTerm(Objective):
    """The base of objectives that are one atom of the point itself; subclasses define `terms`."""

    def value(self, x: Array) -> float:
        return self.terms[0].value(x)

    def subgradient(self, x: Array) -> Array:
        return self.terms[0].slope(x)

    def prox(self, x: Array, step: float) -> Array:
        return self.terms[0].prox(x, float(step))


def lipschitz_of_smooth(f: Objective, ball: Ball | None) -> Constant | None:
    """Return a Lipschitz constant on a ball: the slope at its centre, and by how much slopes change on it."""
    if ball is None or not math.isfinite(ball.radius):
        return None
    L = f.smoothness()
    if L is None:
        return None
    value = norm(f.subgradient(ball.center)) + L.value * ball.radius
    return Constant(value, L.source, f"gradient at the center of the ball, {L.note}")
