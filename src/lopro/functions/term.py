"""Terms: an atom after a linear map, ``s g(D x - b)``. A problem is a sum of terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, Companion, eps, inner, is_complex, namespace
from lopro.core.real_vectors import to_real_vector
from lopro.functions.atoms.base import Atom, Enclosed, Step
from lopro.functions.atoms.interval import Interval
from lopro.functions.complements import Complement
from lopro.functions.cone_program import ConeBuilder, RealImage, real_matrix, real_vector
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import Estimate, dot
from lopro.maps.arrays import NumPyMap
from lopro.maps.base import LinearMap
from lopro.maps.host import engine_matrix, host_map, host_vector
from lopro.maps.identity import Identity

__all__ = ["Term", "bounds_of", "scaled"]

#: Number of rows from which zeros of a multiplier are searched for, and the ratio of rows to nonzeros from
#: which ``v[used] @ D[used]`` replaces ``D.T @ v``: gathered rows are copied first. By timeit both take the
#: same time at a ratio of 4 for 1e6 entries and of 6 for 1e5; for 1e4 entries gathering takes 1 us more.
_SEARCHED_FROM, _GATHER_RATIO = 64, 4


@dataclass(frozen=True, eq=False)
class Term:
    """``s g(D x - b)``.

    The methods below are those of the function ``z -> s g(z - b)`` of the image ``z = D x``.

    Parameters
    ----------
    atom : Atom
        ``g``.
    map : LinearMap, optional
        ``D``; the identity if it is not given.
    offset : array, optional
        ``b``; zero if it is not given.
    scale : float
        ``s``, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import HalfSquare
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import linear_map
    >>> term = Term(HalfSquare(), linear_map(np.array([[2.0]])), np.array([3.0]), scale=10.0)
    >>> x = np.array([1.0])
    >>> term.value(term.image(x)), term.pullback(term.slope(term.image(x)))
    (5.0, array([-20.]))
    """

    atom: Atom
    map: LinearMap | None = None
    offset: Array | None = None
    scale: float = 1.0
    _b: Companion | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        if self.offset is not None:
            object.__setattr__(self, "_b", Companion(self.offset))

    def on_host(self, size: int) -> Term:
        """Return the term for NumPy vectors of ``size`` doubles, with an explicit map."""
        found = Identity(size) if self.map is None else host_map(self.map)
        offset = None if self.offset is None else host_vector(self.offset)
        if found is self.map and offset is self.offset:
            return self
        return replace(self, map=found, offset=offset)

    # The map.

    def image(self, x: Array) -> Array:
        """Return ``D x``."""
        return x if self.map is None else self.map.forward(x)

    def pullback(self, v: Array) -> Array:
        """Return ``D' v``; for a vector with few nonzeros only the rows of these are multiplied."""
        if self.map is None:
            return v
        if isinstance(self.map, NumPyMap) and isinstance(v, np.ndarray) and v.size > _SEARCHED_FROM:
            used = np.flatnonzero(v)
            if _GATHER_RATIO * len(used) < v.size:
                return np.asarray(v[used] @ self.map.matrix[used])
        return self.map.adjoint(v)

    @property
    def D(self) -> LinearMap:
        """The map of a term on the host (`on_host`), which is always given."""
        assert self.map is not None
        return self.map

    @property
    def is_identity(self) -> bool:
        """Whether ``D`` is the identity."""
        return self.map is None or self.map.is_identity

    @property
    def size(self) -> int:
        """Length of the image; only for terms with a map."""
        return self.D.shape[0]

    @cached_property
    def entries(self) -> Any:
        """The entries of ``D`` on the host; None without a map, for operators and for large device arrays."""
        return None if self.map is None else engine_matrix(self.map)

    @cached_property
    def row_norms(self) -> np.ndarray[Any, Any]:
        """Norms of the rows of ``D``, on the host; an estimate for operators."""
        return host_vector(self.D.row_norms)

    # The function of the image.

    @property
    def is_set(self) -> bool:
        """Whether the values are 0 and infinity."""
        return self.atom.is_set

    @property
    def second_order(self) -> bool:
        """Whether second-order methods may treat it as a smooth function."""
        return self.atom.smooth and self.atom.differentiable

    @property
    def separable(self) -> bool:
        """Whether it is a sum of functions of one entry of the image each."""
        return self.atom.separable

    @property
    def steepness(self) -> float:
        """The largest norm of a subgradient, by entry if separable; 0 for a set."""
        return 0.0 if self.is_set else self.scale * self.atom.steepness

    def _argument(self, z: Array) -> Array:
        return z if self._b is None else z - self._b.beside(z)

    def offset_beside(self, z: Array) -> Array | float:
        """Return ``b`` in the library and precision of an image; 0.0 if there is none."""
        return 0.0 if self._b is None else self._b.beside(z)

    def _times(self, value: Any) -> Any:
        return value if self.scale == 1.0 or self.is_set else self.scale * value

    def value(self, z: Array) -> float:
        """Return ``s g(z - b)``."""
        return float(self._times(self.atom.value(self._argument(z))))

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        """Return the value at an image, and a function that returns a subgradient there."""
        value, slope = self.atom.linearize(self._argument(z))
        return float(self._times(value)), lambda: self._times(slope())

    def slope(self, z: Array) -> Array:
        """Return a subgradient in the image."""
        return self._times(self.atom.slope(self._argument(z)))

    def curvature(self, z: Array) -> Array:
        """Return the second derivatives by entry of the image."""
        return self._times(self.atom.curvature(self._argument(z)))

    def prox(self, w: Array, step: Step) -> Array:
        """Return the minimiser of ``s g(z - b) + |z - w|^2 / (2 step)``."""
        moved = self._argument(w)
        nearest = self.atom.prox(moved, self._times(step))
        if self._b is None:
            return nearest
        # A projection is measured from the offset, so that it keeps the digits of the set; the step of a
        # function is added to w, so that a short one keeps the digits of w.
        return nearest + self._b.beside(w) if self.is_set else w + (nearest - moved)

    def complement(self, w: Array, step: Step) -> Complement:
        """Return ``I - J`` for a ``J`` in the generalised Jacobian of the prox at ``w``."""
        return self.atom.complement(self._argument(w), self._times(step))

    def conjugate(self, v: Array) -> float:
        """Return ``s g*(v / s) + <b, v>``."""
        own = float(self._times(self.atom.conjugate(self._divided(v))))
        return own if self._b is None else own + inner(self._b.beside(v), v)

    def into_domain(self, v: Array) -> Array:
        """Return a point near ``v`` at which the conjugate is finite."""
        if self.scale == 1.0 or self.is_set:
            return self.atom.into_domain(v)
        divided = v / self.scale
        inside = self.atom.into_domain(divided)
        # Multiplying back rounds: entries inside are returned unchanged, others are moved slightly farther.
        moved = (self.scale * (1.0 - 4.0 * eps(v))) * inside
        return namespace(v).where(inside == divided, v, moved)

    def gauge(self, v: Array) -> float:
        """Return the least ``t`` for which ``v`` is in ``t`` times the domain of the conjugate."""
        return self.atom.gauge(self._divided(v))

    def _divided(self, v: Array) -> Array:
        return v if self.scale == 1.0 or self.is_set else v / self.scale

    def distance(self, z: Array) -> Array:
        """Return the distance of an image from the domain of the term: by entry if separable."""
        return self.atom.distance(self._argument(z))

    # With bounds of rounding, on the host.

    def enclose(self, z: Array, error: Array) -> Enclosed:
        """Return value and slope at an image that is known up to ``error``, with bounds of their errors."""
        if self._b is not None:
            z = z - self._b.beside(z)
            error = (error + EPS * np.abs(z)) * (1.0 + 8.0 * EPS)
        value, slope, off = self.atom.enclose(z, error)
        # A scale of 1 is charged a rounding as well, so that bounds do not depend on the units of f.
        scaled_slope = self.scale * slope
        return value * self.scale, scaled_slope, self.scale * off + EPS * np.abs(scaled_slope)

    def enclose_conjugate(self, v: Array) -> Estimate:
        """Return the conjugate at a point of its domain, with a bound of its error."""
        own = self.atom.enclose_conjugate(self._divided(v)) * (1.0 if self.is_set else self.scale)
        if self._b is None or not math.isfinite(own.value):
            return own
        return own + dot(v, host_vector(self._b.beside(v)))

    def add_to_cone_program(self, program: ConeBuilder, zero: Array) -> None:
        """Add the function to a cone program on the real vector of x; ``zero`` is the origin.

        Raises
        ------
        MissingCapabilityError
            Where the atom has no conic form, or the map is an operator.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.engines import ConicProgram
        >>> from lopro.objectives import L1Norm, SquaredDistance
        >>> program = ConicProgram(2)
        >>> for term in (SquaredDistance(np.array([3.0, 0.5])) + L1Norm()).terms:
        ...     term.add_to_cone_program(program, np.zeros(2))
        >>> program.solve(1e-9).x[:2].round(5) + 0.0
        array([2., 0.])
        """
        twofold, b = is_complex(zero), self.offset
        if self.map is None:
            D: Any = scipy.sparse.eye_array(to_real_vector(zero).size, format="csr")
        else:
            D = real_matrix(self.map, twofold)
        offset = np.zeros(D.shape[0])
        if b is not None:
            offset = real_vector(b.reshape(-1) if b.ndim > 1 else b, twofold)
        image = RealImage(D, offset, twofold, self.map is None)
        self.atom.add_to_cone_program(program, image, self.scale)


def scaled(factor: float, terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return ``factor`` times a sum of terms; a factor of 0 drops the terms that are not sets."""
    kept = [term for term in terms if factor != 0.0 or term.is_set]
    atoms = [term.atom.times(factor) for term in kept]
    return tuple(
        replace(term, scale=factor * term.scale) if atom is None else replace(term, atom=atom)
        for term, atom in zip(kept, atoms, strict=True)
    )


def bounds_of(
    terms: Iterable[Term], size: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the largest lower and the smallest upper bound of each of ``size`` variables among the terms.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Interval
    >>> from lopro.functions.term import Term, bounds_of
    >>> signs = Term(Interval(np.zeros(2), np.full(2, np.inf)))
    >>> cube = Term(Interval(-np.ones(2), np.ones(2)))
    >>> bounds_of([signs, cube], 2)
    (array([0., 0.]), array([1., 1.]))
    """
    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    for term in terms:
        if term.is_identity and isinstance(term.atom, Interval):
            lower = np.maximum(lower, term.atom.lower)
            upper = np.minimum(upper, term.atom.upper)
    return lower, upper
