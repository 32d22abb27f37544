"""No constraint: every point is feasible."""

from __future__ import annotations

from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, copy
from lopro.functions import Ball, Constant, Source
from lopro.functions.term import Term

__all__ = ["WholeSpace"]


class WholeSpace(Constraint):
    """The set of all points, with ``c(x) = 0``: the constraint of a `lopro.Problem` without one.

    Parameters
    ----------
    shape : tuple of int, optional
        Shape of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints import WholeSpace
    >>> WholeSpace().project(np.array([3.0]))
    array([3.])
    """

    smooth = True

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self.shape = shape

    def __repr__(self) -> str:
        return "WholeSpace()"

    @property
    def terms(self) -> tuple[Term, ...]:
        return ()

    def members(self) -> tuple[Constraint, ...]:
        return ()

    def value(self, x: Array) -> float:
        return 0.0

    def subgradient(self, x: Array) -> Array:
        return 0.0 * x

    def project(self, x: Array) -> Array:
        return copy(x)

    @property
    def projects_in_closed_form(self) -> bool:
        return True

    def violation(self, x: Array) -> float:
        return 0.0

    def valid_inequality(self, x: Array, weight: float) -> ValidInequality:
        return ValidInequality.trivial(x)

    def regularity(self) -> Constant:
        return Constant(1.0, Source.DERIVED, "every point is feasible")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "c is zero")

    def lipschitz(self, ball: Ball | None = None) -> Constant:
        return Constant(0.0, Source.DERIVED, "c is constant")

    def smoothness(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "c is constant")

    def radius(self) -> Constant | None:
        return None

    def typical_size(self) -> float | None:
        return None
