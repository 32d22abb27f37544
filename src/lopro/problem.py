"""The problem: minimise a convex objective over a convex set given by ``c(x) <= 0``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lopro.constraints.base import Constraint
from lopro.constraints.whole_space import WholeSpace
from lopro.core.arrays import Array, asarray_like, copy, inner, is_complex, norm, widest, zeros
from lopro.core.validation import check_array, check_number, check_shape
from lopro.functions import Constant, Source
from lopro.functions.term import Term
from lopro.objectives.base import Objective

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """``minimize f(x) subject to c(x) <= 0``.

    Parameters
    ----------
    objective : Objective
        From `lopro.objectives`, or your own.
    constraint : Constraint, optional
        From `lopro.constraints`, or your own; by default every point is feasible.
    solution_norm : float, optional
        A known upper bound of the norm of a solution. Only certificates use it, and only where neither
        the set nor the objective bounds the solutions.
    gap_scale : float, optional
        Relative gaps are ``gap / max(gap_scale, |f(x)|)``. By default they are relative to the sum of the
        absolute terms of ``f(x)``, so that an optimum of 0 by cancellation can be reached, and at least to
        1e-8 of the value at the start (where that is 0, of the slope there times a typical length, or of the
        value at a point of typical size). A gap of 64 roundings of that value is accepted for any ``tol``.
    x_scale : float, optional
        A length that is typical of ``x``, the scale of first steps; needed where neither the set, the
        objective nor the start determines one.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([1.0, 1.0]))
    >>> box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    >>> lopro.Problem(f, box).shape
    (2,)
    """

    objective: Objective
    constraint: Constraint = None  # type: ignore[assignment]
    solution_norm: float | None = None
    gap_scale: float | None = None
    x_scale: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.objective, Objective):
            raise TypeError(
                f"objective must be a lopro Objective, got {self.objective!r}; "
                "wrap plain callables in lopro.objectives.FunctionObjective"
            )
        if self.constraint is None:
            object.__setattr__(self, "constraint", WholeSpace(self.objective.shape))
        if not isinstance(self.constraint, Constraint):
            raise TypeError(
                f"constraint must be a lopro Constraint, got {self.constraint!r}; "
                "join several with lopro.constraints.Intersection, and wrap plain callables in "
                "lopro.constraints.FunctionConstraint"
            )
        if self.solution_norm is not None:
            check_number("solution_norm", self.solution_norm, minimum=0.0)
        if self.gap_scale is not None:
            check_number("gap_scale", self.gap_scale, minimum=0.0)
        if self.x_scale is not None:
            check_number("x_scale", self.x_scale, minimum=0.0, exclusive=True)
        f, c = self.objective.shape, self.constraint.shape
        if f is not None and c is not None and f != c:
            raise ValueError(f"objective has points of shape {f}, constraint of shape {c}")
        if f is None and c is not None:
            object.__setattr__(self, "objective", self.objective.shaped(c))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of a point, or None where neither part determines it."""
        return self.objective.shape if self.objective.shape is not None else self.constraint.shape

    @property
    def terms(self) -> tuple[Term, ...]:
        """The problem as a sum of terms ``s g(D x - b)``, those of the objective first."""
        return (*self.objective.terms, *self.constraint.terms)

    @property
    def radius(self) -> Constant | None:
        """The given bound of the norm of a solution."""
        if self.solution_norm is None:
            return None
        return Constant(float(self.solution_norm), Source.GIVEN, "solution_norm")

    def typical_size(self, x0: Array) -> float:
        """Return the scale of first steps, in the units of ``x``."""
        return self.known_size(x0) or 1.0

    def known_size(self, x0: Array) -> float:
        """Return a length that is typical of ``x`` according to the data or the start; 0 if there is none."""
        if self.x_scale is not None:
            return float(self.x_scale)
        sizes = (part.typical_size() for part in (self.constraint, self.objective))
        return next((size for size in sizes if size is not None), norm(x0))

    def typical_value(self, x0: Array) -> float:
        """Return the size of f at a start or, where that is 0, at a point of typical size.

        It is 0 for a start at which f is not defined, and need not be finite.
        """
        f = self.objective
        try:
            value, gradient = f.linearize_at(f.image(x0))
            if value != 0.0:
                return abs(float(value))
            # Where the value is 0, the slope times a typical length has the units of f.
            slope = gradient()
            if norm(slope) > 0.0:
                return self._over_units(slope, x0)
            if not self.constraint.sizes_for_free:
                return 0.0
            # At a minimiser the slope is 0, too. A point with random signs minimises no norm and no square.
            signs = np.random.default_rng(0).choice([-1.0, 1.0], size=tuple(x0.shape))
            for units in self._entry_sizes(x0):
                value = abs(float(f.value(asarray_like(units.reshape(signs.shape) * signs, x0))))
                if value > 0.0:
                    return value
            return abs(float(f.value(asarray_like(self._reach(x0) * signs, x0))))
        except (ValueError, OverflowError):
            return 0.0

    def _over_units(self, slope: Array, x0: Array) -> float:
        """Return ``sum |g_j| s_j`` with units s of the set or, without these, ``|g|`` times a length."""
        sizes = abs(slope)
        for units in self._entry_sizes(x0):
            total = inner(sizes, asarray_like(units.reshape(tuple(slope.shape)), sizes))
            if total > 0.0:
                return total
        return norm(slope) * self._reach(x0)  # last, because it may cost a product

    def _entry_sizes(self, x0: Array) -> Iterator[Array]:
        """Yield typical sizes of the entries: the units of the set, then those up to a common factor."""
        units = self.constraint.column_units()
        if isinstance(units, np.ndarray):
            yield units
            relative = self.constraint.relative_units()
            if relative is not None:
                yield relative * self._reach(x0)

    def _reach(self, x0: Array) -> float:
        """Return a typical length of x, in its units, at which values are measured.

        Where no data determine one, it is the first-order distance to the boundary of the set, or 0 where
        the slope vanishes. A set with its boundary at the start, such as a cone, may have no length at all.
        """
        known, c = self.known_size(x0), self.constraint
        if known > 0.0 or not c.members():
            return known or 1.0
        value, slope = abs(float(c.value(x0))), norm(c.subgradient(x0))
        if value == 0.0:
            return 1.0
        return value / slope if slope > 0.0 else 0.0

    def start(self, x0: Array | None) -> Array:
        """Return a private copy of ``x0`` in the library and precision of the data; zeros for None."""
        f, c = self.objective.like, self.constraint.like
        like = f if c is None else c
        if f is not None and c is not None:
            # The dtypes of different libraries cannot be compared.
            alike = type(f) is type(c) and f.dtype == c.dtype
            like = f if alike else widest((f, c))
        if x0 is None:
            if self.shape is None:
                raise ValueError(
                    "x0 is needed, because neither the objective nor the constraint has a shape"
                )
            return zeros(self.shape, np.zeros(1) if like is None else like)
        x = copy(check_array("x0", x0))
        if self.shape is not None:
            check_shape("x0", x, self.shape)
        if is_complex(x) and any(m.real_only for m in self.constraint.members()):
            raise TypeError(f"x0 must be real for {self.constraint!r}, got dtype {x.dtype}")
        # Complex points with real data remain complex: a conversion would lose the imaginary part.
        return x if like is None or is_complex(x) else asarray_like(x, like)
