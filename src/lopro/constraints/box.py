"""Boxes: polyhedra whose every constant and projection is a formula."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.polyhedron import MaxForm, PolyhedronForm
from lopro.constraints.two_sided import TwoSided, check_sides
from lopro.core.arrays import (
    Array,
    Companion,
    asarray_like,
    is_array,
    is_complex,
    namespace,
    take,
)
from lopro.core.validation import check_array, check_shape, host_array
from lopro.functions import Constant, Image, Source
from lopro.functions.atoms import Interval
from lopro.functions.term import Term

__all__ = ["Box"]

# A sparse product costs a few microseconds whatever its size: small boxes are faster dense.
_DENSE_UP_TO = 64


class Box(TwoSided):
    """The set ``{x : lower <= x <= upper}``, made by `Polyhedron.box`.

    Parameters
    ----------
    lower, upper : array
        Of the shape of the points, with ``lower <= upper``; infinite entries mean no bound.
    form : MaxForm or NormForm
        Which function ``c`` describes the set.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints.box import Box
    >>> Box([-1.0, -1.0], [1.0, 1.0]).regularity().value.__round__(6)
    0.707107
    """

    def __init__(self, lower: Any, upper: Any, form: PolyhedronForm | None = None) -> None:
        low, high = _bound("lower", lower), _bound("upper", upper)
        check_shape("upper", high, tuple(low.shape))
        check_sides(low, high)
        above, below = np.flatnonzero(np.isfinite(high)), np.flatnonzero(np.isfinite(low))
        C = _selection(low.size, above, below)
        b = np.concatenate([high.ravel()[above], -low.ravel()[below]])
        like = next((a for a in (lower, upper) if is_array(a)), b)
        if low.size <= _DENSE_UP_TO or not isinstance(like, np.ndarray):
            C = asarray_like(C.toarray(), _floating(like))
        else:
            C = C.astype(_floating(like).dtype)
        super().__init__(C, asarray_like(b, _floating(like)), form, low.shape)
        self.lower, self.upper = low, high
        self._low, self._high = Companion(low), Companion(high)
        self._bounded = len(np.union1d(above, below))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(Interval(self.lower, self.upper)),)

    def image(self, x: Array) -> Image:
        # A box that was given by NumPy's numbers bounds points of any library: no product is needed.
        if isinstance(x, np.ndarray) or not isinstance(self.C.like, np.ndarray) or is_complex(x):
            return super().image(x)
        v = self._vector(x)
        above, below = self._places
        return (namespace(v).concat([take(v, above), -take(v, below)]),)

    def pullback(self, dual: Image) -> Array:
        (v,) = dual
        if isinstance(v, np.ndarray) or not isinstance(self.C.like, np.ndarray):
            return super().pullback(dual)
        xp, (above, below) = namespace(v), self._places
        # Entries without a bound get the zero at the end.
        ended = xp.concat([v, xp.zeros_like(v[:1])])
        at = np.full((2, self._low.array.size), len(above) + len(below))
        at[0, above], at[1, below] = np.arange(len(above)), len(above) + np.arange(len(below))
        return self._point(take(ended, at[0]) - take(ended, at[1]))

    @cached_property
    def _places(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The entries with an upper bound, and those with a lower one."""
        low, high = self._low.array.ravel(), self._high.array.ravel()
        return np.flatnonzero(np.isfinite(high)), np.flatnonzero(np.isfinite(low))

    @property
    def is_orthant(self) -> bool:
        """Whether the set is ``x >= 0``."""
        return bool((self._low.array == 0.0).all() and np.isposinf(self._high.array).all())

    def regularity(self) -> Constant | None:
        value = 1.0 / math.sqrt(self._bounded) if isinstance(self.form, MaxForm) else 1.0
        return Constant(value, Source.DERIVED, "orthogonal rows")

    def radius(self) -> Constant | None:
        corner = np.maximum(np.abs(self._low.array), np.abs(self._high.array))
        if not np.isfinite(corner).all():
            return None
        value = float(np.linalg.norm(corner)) * (1.0 + 1e-15)
        return Constant(value, Source.DERIVED, "the farthest corner")

    def infeasibility(self) -> str | None:
        return None

    def project(self, x: Array) -> Array:
        if is_complex(x):
            raise TypeError(f"x must be real for a polyhedron, got dtype {x.dtype}")
        check_shape("x", x, self.shape)
        xp = namespace(x)
        low, high = self._low.beside(x), self._high.beside(x)
        return xp.where(x < low, low, xp.where(x > high, high, x))

    @property
    def projects_in_closed_form(self) -> bool:
        return True

    def projector(self) -> Callable[[Array], Array]:
        return self.project

    def linear_minimizer(self, direction: Array) -> Array:
        xp = namespace(direction)
        low, high = self._low.beside(direction), self._high.beside(direction)
        return xp.where(direction > 0.0, low, high)

    def support_inequality(self, direction: Array) -> ValidInequality:
        return Constraint.support_inequality(self, direction)  # a corner is exact, no program is


def _bound(name: str, value: Any) -> np.ndarray[Any, Any]:
    """Check a bound that may be infinite but not NaN, and bring it to the host."""
    host = host_array(name, value)
    finite = np.where(np.isinf(host), 0.0, host) if host.dtype.kind in "fiu" else value
    check_array(name, finite, allow_complex=False)
    if host.ndim == 0:
        raise ValueError(f"{name} must have at least 1 dimension, got a number")
    return np.asarray(host, dtype=np.float64)


def _floating(like: Array) -> Array:
    """Return an array of the library of ``like`` that holds floating-point numbers."""
    xp = namespace(like)
    return like if xp.isdtype(like.dtype, "real floating") else xp.astype(like, xp.float64)


def _selection(d: int, above: np.ndarray[Any, Any], below: np.ndarray[Any, Any]) -> Any:
    """Return the rows ``e_i`` for upper and ``-e_i`` for lower bounds."""
    rows = np.arange(len(above) + len(below))
    signs = np.concatenate([np.ones(len(above)), -np.ones(len(below))])
    return scipy.sparse.csr_array((signs, (rows, np.concatenate([above, below]))), (len(rows), d))
