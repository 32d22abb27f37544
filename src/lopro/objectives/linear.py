"""A linear objective."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from lopro.core.arrays import Array, Companion, copy, is_array, namespace, norm
from lopro.core.validation import check_array
from lopro.functions import Ball, Constant, Source, atoms
from lopro.functions.term import Term
from lopro.objectives.base import OneTerm

__all__ = ["Linear"]


class Linear(OneTerm):
    """``f(x) = Re <a, x>`` for points of the shape of ``a``.

    Parameters
    ----------
    a : array
        The slope; copied.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import Linear
    >>> f = Linear(np.array([3.0, 4.0]))
    >>> f.value(np.array([1.0, 1.0]))
    7.0
    >>> f.lipschitz().value
    5.0
    """

    smooth = True
    proximable = True
    cancels = True

    def __init__(self, a: Any) -> None:
        self._a = Companion(copy(check_array("a", a)))
        self.shape = tuple(self._a.array.shape)
        self.like = self._a.array if is_array(a) else None

    @property
    def a(self) -> Array:
        """The slope; do not write on it."""
        return self._a.array

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(atoms.Linear(self.a)),)

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        return 0.0, self.terms[0].slope(x)

    def magnitude(self, x: Array, fun: float) -> float:
        terms = self._a.beside(x) * x
        return float(namespace(terms).sum(abs(terms)))

    def lipschitz(self, ball: Ball | None = None) -> Constant:
        return Constant(norm(self._a.array), Source.DERIVED, "norm of a")

    def smoothness(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "linear")

    def infimum(self) -> Constant | None:
        if norm(self._a.array) > 0.0:
            return None
        return Constant(0.0, Source.DERIVED, "a is zero")
