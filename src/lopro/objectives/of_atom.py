"""An objective made of one atom: ``f(x) = g(D x - b)``."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from lopro.core.arrays import Array
from lopro.core.validation import checked_shape
from lopro.functions.atoms import Atom
from lopro.functions.term import Term
from lopro.objectives.of_image import OfImage

__all__ = ["OfAtom"]


class OfAtom(OfImage):
    """``f(x) = g(D x - b)`` for an atom ``g``, one of `lopro.functions.atoms` or your own.

    Parameters
    ----------
    atom : Atom
        ``g``; what the objective can do follows from what the atom can do.
    D : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (m, d), optional
        Real. Not copied. Without it the atom is one of ``x - b``, with its prox if it has one.
    b : array, optional
        Zero if not given; copied.
    shape : tuple of int, optional
        Shape of the points, where neither ``D`` nor ``b`` tells it.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.functions.atoms import GroupNorm
    >>> f = lopro.objectives.OfAtom(GroupNorm(2), np.eye(4), b=np.array([3.0, 4.0, 0.0, 1.0]))
    >>> f.value(np.zeros(4))
    6.0
    """

    def __init__(self, atom: Atom, D: Any = None, b: Any = None, shape: Any = None) -> None:
        if atom.is_set:
            raise TypeError(f"atom must be a function, but {atom!r} is a set")
        super().__init__(D, None if shape is None else checked_shape(shape), b)
        self.atom = atom
        self.smooth = atom.smooth
        self.proximable = atom.proximable and self.D is None

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(self.atom, self.D, self.offset),)

    def shaped(self, shape: tuple[int, ...]) -> OfAtom:
        return self if self.shape is not None else OfAtom(self.atom, shape=shape)

    def prox(self, x: Array, step: float) -> Array:
        return self.terms[0].prox(x, float(step))
