"""The atom protocol: everything that one convex function of an array can do.

An atom ``g`` has no data but its parameters. After a linear map, an offset and a factor it is a term of a
problem, ``s g(D x - b)`` (`lopro.functions.term`). A set is an atom whose values are 0 and infinity, and
whose prox is the projection. Methods, engines and certificates call atoms, so that a new function is one
file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from lopro.core.arrays import Array, norm
from lopro.errors import MissingCapabilityError
from lopro.functions.complements import Complement
from lopro.functions.cone_program import ConeBuilder, RealImage
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import Estimate

__all__ = ["LIBRARY_ERROR", "Atom", "Enclosed", "SetAtom", "Step", "largest_ratio"]

#: Step of a prox: one number, or one for each entry of a separable atom.
Step: TypeAlias = "Array | float"
#: Roundings charged to the value and the slope of an atom without an error analysis of its own: enough for a
#: composition of sixteen library functions, which are accurate to 4 units in the last place each.
_ROUNDINGS = 64.0
#: Relative error of exp, log and log1p in libraries, which promise less than 4 units in the last place.
LIBRARY_ERROR = 4.0 * EPS
#: A value, a slope, and a bound of the error of each entry of the slope; the value bounds its own.
Enclosed: TypeAlias = tuple[Estimate, Array, Array]


class Atom:
    """A convex function ``g`` of an array.

    Subclasses define `linearize` and as many of the other methods as they can; those that are not defined
    raise `MissingCapabilityError`. Sets derive from `SetAtom`. Arrays may be of any library, on any device,
    unless the docstring says otherwise.
    """

    #: Whether the values are 0 and infinity.
    is_set: bool = False
    #: Whether there is a gradient, and second derivatives by entry (`curvature`), almost everywhere.
    smooth: bool = False
    #: Whether second-order methods may rely on its gradient; not for classes of users that only declare one.
    differentiable: bool = True
    #: Whether there is a `prox`, and a `complement` of its Jacobian.
    proximable: bool = False
    #: Whether it is a sum of functions of one entry each.
    separable: bool = False
    #: The largest second derivative of a smooth atom, where one is known: it bounds the effect of errors.
    sharpest: float = math.inf
    #: The largest norm of a subgradient, by entry if separable; 0 for a set, infinite where there is none.
    steepness: float = math.inf
    #: The size of entries (of all of z if not separable) at which g changes its shape, where its parameters
    #: determine one: 1 for losses of scores, the radius for a ball. 0 where g has no such size.
    extent: float = 0.0

    def times(self, factor: float) -> Atom | None:
        """Return ``factor * g`` as an atom of the same kind; None where the term has to carry the factor."""
        return self if self.is_set else None

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        """Return ``g(z)``, and a function that returns a subgradient there."""
        raise self._missing("slopes")

    def value(self, z: Array) -> float:
        """Return ``g(z)``."""
        return self.linearize(z)[0]

    def slope(self, z: Array) -> Array:
        """Return a subgradient at ``z``, the gradient where there is one."""
        return self.linearize(z)[1]()

    def curvature(self, z: Array) -> Array:
        """Return the second derivatives by entry; only where ``smooth``."""
        raise self._missing("second derivatives")

    def prox(self, w: Array, step: Step) -> Array:
        """Return the minimiser of ``g(z) + |z - w|^2 / (2 step)``: for a set, the projection."""
        raise self._missing("prox")

    def complement(self, w: Array, step: Step) -> Complement:
        """Return ``I - J`` for a ``J`` in the generalised Jacobian of the prox at ``w``; on the host."""
        raise self._missing("prox")

    def conjugate(self, v: Array) -> float:
        """Return ``sup_z <v, z> - g(z)``: the support function of a set. Infinite outside of its domain."""
        raise self._missing("conjugate")

    def into_domain(self, v: Array) -> Array:
        """Return a point near ``v`` at which the conjugate is finite, in exact arithmetic."""
        raise self._missing("conjugate")

    def gauge(self, v: Array) -> float:
        """Return the least ``t >= 0`` for which ``v`` is in ``t`` times the domain of the conjugate.

        A multiplier becomes admissible when it is divided by that. Only for domains that contain 0; infinite
        where no factor helps, and 0 at all points of a domain that is not the ball of a norm.
        """
        return 0.0 if math.isfinite(self.conjugate(v)) else math.inf

    def distance(self, z: Array) -> Array:
        """Return the distance of ``z`` from the domain of ``g``: by entry if separable, else one number.

        The default is 0: atoms that are not sets are finite everywhere, unless they define this method.
        """
        if self.is_set:
            raise self._missing("distance")
        return np.zeros(z.shape if self.separable else ())

    def enclose(self, z: Array, error: Array) -> Enclosed:
        """Return value and slope at a host array known up to ``error``, with bounds of their errors."""
        if not (self.smooth and self.separable and math.isfinite(self.sharpest)):
            raise self._missing("rounding analysis")
        # The errors of z are bounded by convexity and the second derivative. That the rounding of value and
        # slope is at most `_ROUNDINGS` units is assumed, not proved.
        value, slope = self.value(z), self.slope(z)
        within = np.abs(slope) + 0.5 * self.sharpest * error
        sizes = _ROUNDINGS * EPS * (abs(value) + float(np.abs(slope) @ np.abs(z)))
        off = self.sharpest * error + _ROUNDINGS * EPS * np.abs(slope)
        return Estimate(value, float(within @ error) * (1.0 + 64.0 * EPS) + sizes), slope, off

    def enclose_conjugate(self, v: Array) -> Estimate:
        """Return the conjugate at a point of its domain, with a bound of its error; on the host.

        The bound allows for one rounding of each entry of ``v``, made by a division by the factor of a term.
        """
        raise self._missing("rounding analysis of the conjugate")

    @property
    def has_enclosed_conjugate(self) -> bool:
        """Whether there is an `enclose_conjugate`."""
        return type(self).enclose_conjugate is not Atom.enclose_conjugate

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add ``scale * g`` of an image of the variables to a cone program."""
        raise self._missing("conic form")

    def _missing(self, what: str) -> MissingCapabilityError:
        return MissingCapabilityError(f"{type(self).__name__} has no {what}")


class SetAtom(Atom):
    """A closed convex set as an atom: its values are 0 and infinity, and its prox is the projection.

    Subclasses define `value` and `prox`; `conjugate` is the support function.
    """

    is_set = True
    proximable = True
    steepness = 0.0

    def distance(self, z: Array) -> Array:
        return np.asarray(norm(z - self.prox(z, 1.0)))


def largest_ratio(size: float, allowed: float) -> float:
    """Return ``size / allowed`` for nonnegative numbers, with 0/0 = 0.

    Examples
    --------
    >>> from lopro.functions.atoms.base import largest_ratio
    >>> largest_ratio(3.0, 2.0), largest_ratio(0.0, 0.0), largest_ratio(1.0, 0.0)
    (1.5, 0.0, inf)
    """
    if size == 0.0:
        return 0.0
    return size / allowed if allowed > 0.0 else math.inf
