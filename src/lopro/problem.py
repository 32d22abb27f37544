"""The problem: minimise a convex objective over a convex set given by ``c(x) <= 0``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.constraints.base import Constraint
from lopro.constraints.whole_space import WholeSpace
from lopro.core.arrays import Array, asarray_like, copy, is_complex, norm, widest, zeros
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
        From `lopro.constraints`, or your own; without one every point is feasible.
    solution_norm : float, optional
        A number that the norm of a solution is known not to exceed. Only certificates use it, and
        only where neither the set nor the objective bounds the solutions by itself.
    gap_scale : float, optional
        Relative gaps are ``gap / max(gap_scale, |f(x)|)``. By default they are relative to the sum of the
        absolute terms of ``f(x)`` (so that an optimum of 0 by cancellation can be reached), and at
        least to 1e-8 of the value at the start (where that is 0, of the slope there times a typical length,
        or of the value at a point of typical size); a gap of 64 roundings of that value is small at any
        ``tol``.
    x_scale : float, optional
        A length that is typical of ``x``, where neither the set, the objective nor the start gives one:
        the scale of first steps.

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
        """Shape of a point, or None where neither part fixes it."""
        return self.objective.shape if self.objective.shape is not None else self.constraint.shape

    @property
    def terms(self) -> tuple[Term, ...]:
        """The problem as a sum of terms ``s g(D x - b)``, those of the objective first."""
        return (*self.objective.terms, *self.constraint.terms)

    @property
    def radius(self) -> Constant | None:
        """The bound on the norm of a solution that the user has given."""
        if self.solution_norm is None:
            return None
        return Constant(float(self.solution_norm), Source.GIVEN, "solution_norm")

    def typical_size(self, x0: Array) -> float:
        """Return the length that first steps are compared with, in the units of ``x``."""
        return self.known_size(x0) or 1.0

    def known_size(self, x0: Array) -> float:
        """Return a length that is typical of ``x`` by the data or the start; 0 where they give none."""
        if self.x_scale is not None:
            return float(self.x_scale)
        sizes = (part.typical_size() for part in (self.constraint, self.objective))
        return next((size for size in sizes if size is not None), norm(x0))

    def start(self, x0: Array | None) -> Array:
        """Return a private copy of ``x0`` in the library and precision of the data; zeros for None."""
        f, c = self.objective.like, self.constraint.like
        like = f if c is None else c
        if f is not None and c is not None:
            alike = (
                type(f) is type(c) and f.dtype == c.dtype
            )  # dtypes of two libraries do not compare
            like = f if alike else widest((f, c))
        if x0 is None:
            if self.shape is None:
                raise ValueError(
                    "x0 is needed: neither the objective nor the constraint has a shape"
                )
            return zeros(self.shape, np.zeros(1) if like is None else like)
        x = copy(check_array("x0", x0))
        if self.shape is not None:
            check_shape("x0", x, self.shape)
        if is_complex(x) and any(m.real_only for m in self.constraint.members()):
            raise TypeError(f"x0 must be real for {self.constraint!r}, got dtype {x.dtype}")
        # Complex points with real data are allowed; the converse would lose the imaginary part.
        return x if like is None or is_complex(x) else asarray_like(x, like)
