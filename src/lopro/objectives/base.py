"""The objective protocol: a convex function, its splitting into parts, and its lower bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lopro.core.arrays import Array, inner, norm, zeros
from lopro.functions import Ball, Constant, Function
from lopro.functions.atoms import Atom, Opaque
from lopro.functions.term import Term

if TYPE_CHECKING:
    from lopro.constraints.base import Constraint, ValidInequality

__all__ = ["Objective", "OneTerm", "lipschitz_of_smooth", "scale_into"]


class Objective(Function):
    """A convex objective ``f``.

    Subclasses define ``value`` and ``subgradient``, and declare their further abilities: ``smooth``
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
    #: Whether the value is a sum of terms of both signs, so that `magnitude` may exceed its modulus.
    cancels: bool = False
    #: Whether slopes have fewer digits than points, whose precision then overstates what can be proved.
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
        """Factors and objectives that it is the sum of: 1 and itself, unless it is composed of others."""
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
        """Return this objective with the given shape of points, if it has no shape of its own.

        Constants that depend on the dimension are then known.
        """
        return self

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        """Return ``(alpha, g)`` with ``f(z) >= alpha + <g, z>`` for every ``z``.

        Among the known minorants the one whose slope is nearest to ``target`` is preferred: certificates
        pass minus the direction of the multiplier, which is the slope at a minimiser. For a strongly
        convex ``f`` it holds that ``f(z) >= alpha + <g, z> + mu/2 |z - x|^2``, so that strongly
        convex parts must be linearised at ``x``.
        """
        value, subgradient = self.linearize_at(self.image(x))
        g = subgradient()
        return value - inner(g, x), g

    def scale_into_domain(self, v: Array) -> float | None:
        """Return the largest ``t <= 1`` with ``f(z) + t <v, z> >= f(0)`` for every ``z``.

        For norms and similar functions, where scaling makes a dual point feasible; None for others.
        """
        return None

    def dual_bound(
        self, constraint: Constraint, x: Array, normal: ValidInequality, fun: float
    ) -> tuple[float, str] | None:
        """Return a lower bound of ``f`` over the set and its source, if ``f`` has a dual problem of its own.

        ``normal`` is a valid inequality of the set, an approximate multiplier near ``x``; ``fun`` is the
        value at a feasible point.
        """
        return None

    def strong_convexity(self) -> Constant | None:
        """Return ``mu > 0`` if ``f`` is known to be mu-strongly convex, or None."""
        return None

    def infimum(self) -> Constant | None:
        """Return a lower bound of ``f`` over all points, or None."""
        known = self._expansion_at_zero()
        if known is None:
            return None
        mu, value, slope = known
        return Constant(value - slope * slope / (2.0 * mu.value), mu.source, f"f(0), {mu.note}")

    def sublevel_radius(self, level: float) -> Constant | None:
        """Return ``R`` with ``|z| <= R`` whenever ``f(z) <= level``, or None.

        The default follows from strong convexity at zero:
        ``level >= f(z) >= f(0) - |g| |z| + mu/2 |z|^2`` with ``g`` a subgradient at zero.
        """
        known = self._expansion_at_zero()
        if known is None:
            return None
        mu, value, slope = known
        # Where the radicand is negative no point has this level, and any radius is valid.
        root = math.sqrt(max(slope * slope + 2.0 * mu.value * (level - value), 0.0))
        return Constant((slope + root) / mu.value, mu.source, f"f(0), {mu.note}")

    def slope_error(self, x: Array) -> np.ndarray[Any, Any] | None:
        """Return bounds of the errors of the entries of the subgradient at ``x``; None if there are none.

        With errors e, ``f(z) >= f(x) + <g, z - x> - <e, |z - x|>``: lower bounds subtract the last term.
        """
        return None

    def typical_size(self) -> float | None:
        """Return a length that is typical of points near a solution, or None.

        It only sets the scale of first steps, so it need not be exact; but it must scale with the units
        of ``x`` and be cheap.
        """
        return None

    def magnitude(self, x: Array, fun: float) -> float:
        """Return the sum of the absolute values of the terms of ``f(x) = fun``, to which gaps are relative.

        Where terms cancel, the value itself does not determine its attainable accuracy.
        """
        return abs(fun)

    def _expansion_at_zero(self) -> tuple[Constant, float, float] | None:
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


def scale_into(atom: Atom, v: Array) -> float:
    """Return the largest ``t <= 1`` for which ``t v`` is in the domain of the conjugate of an atom."""
    size = atom.gauge(v)
    return 1.0 if size <= 1.0 else 1.0 / size


def lipschitz_of_smooth(f: Objective, ball: Ball | None) -> Constant | None:
    """Return a Lipschitz constant on a ball: the slope at its centre plus the largest change of slopes."""
    if ball is None or not math.isfinite(ball.radius):
        return None
    L = f.smoothness()
    if L is None:
        return None
    value = norm(f.subgradient(ball.center)) + L.value * ball.radius
    return Constant(value, L.source, f"gradient at the center of the ball, {L.note}")
