"""Objectives that consist of one atom, ``g(D x - b)``, with or without a map and an offset."""

from __future__ import annotations

from copy import copy as shallow_copy
from functools import cached_property
from typing import Any, Self

from lopro.core.arrays import Array, copy, inner, is_array, is_complex
from lopro.core.validation import check_array, check_shape, checked_shape
from lopro.functions import Constant, Image, Linearization, MappedFunction, Source
from lopro.functions.atoms import Atom
from lopro.functions.term import Term
from lopro.maps import LinearMap, linear_map
from lopro.objectives.base import Objective, scale_into

__all__ = ["NormOfImage", "OfAtom"]


class OfAtom(MappedFunction, Objective):
    """``f(x) = g(D x - b)`` for an atom ``g`` of `lopro.functions.atoms` or of your own.

    Parameters
    ----------
    atom : Atom
        ``g``; its methods determine those of the objective.
    D : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (m, d), optional
        Real. Not copied. Without it ``f(x) = g(x - b)``, which has a prox if the atom has one.
    b : array, optional
        Zero if not given; copied.
    shape : tuple of int, optional
        Shape of the points, where neither ``D`` nor ``b`` determines it.

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
        self.atom = atom
        self.D: LinearMap | None = None if D is None else linear_map(D, "D")
        self.shape = None if shape is None else checked_shape(shape)
        self.smooth = atom.smooth
        self.proximable = atom.proximable and self.D is None
        self.offset: Array | None = None if b is None else copy(check_array("b", b))
        if self.D is not None:
            if is_complex(self.D.like):
                raise TypeError(f"D must be real, got dtype {self.D.like.dtype}")
            self.shape, self.like = (self.D.shape[1],), self.D.like
            if self.offset is not None:
                check_shape("b", self.offset, (self.D.shape[0],))
        elif self.offset is not None:
            if self.shape is not None:
                check_shape("b", self.offset, self.shape)
            self.shape = tuple(self.offset.shape)
            self.like = self.offset if is_array(b) else None

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(self.atom, self.D, self.offset),)

    def shaped(self, shape: tuple[int, ...]) -> Self:
        if self.shape is not None:
            return self
        found = shallow_copy(self)
        found.shape = checked_shape(shape)
        return found

    def image(self, x: Array) -> Image:
        if self.D is None:
            if self.shape is not None:
                check_shape("x", x, self.shape)
            return (x,)
        if is_complex(x):
            raise TypeError(f"x must be real, got dtype {x.dtype}")
        return (self.D.forward(x),)

    def linearize_at(self, image: Image) -> Linearization:
        value, slope = self.terms[0].linearize(image[0])
        D = self.D
        return value, slope if D is None else lambda: D.adjoint(slope())

    def prox(self, x: Array, step: float) -> Array:
        return self.terms[0].prox(x, float(step))

    def _times_map(self, value: float, note: str, source: Source = Source.DERIVED) -> Constant:
        """Return the Lipschitz constant of ``f`` for one of ``g``."""
        if self.D is None:
            return Constant(value, source, note)
        s = self.D.largest_singular_value
        return Constant(value * s.value, s.source, f"{note}, times the {s.note}")


class NormOfImage(OfAtom):
    """``f(x) = |D x - b|`` for a norm, which without a map has a prox and minorants from its dual ball."""

    def __init__(self, atom: Atom, D: Any = None, b: Any = None, shape: Any = None) -> None:
        super().__init__(atom, D, b, shape)
        self.proximable = self.D is None

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        if self.D is not None:
            return super().minorant(x, target)
        # |x - b| >= <g, x - b> for every g of the dual ball; the one nearest to the target is used.
        g = self.atom.into_domain(target)
        return (0.0 if self.offset is None else -inner(self.terms[0].offset_beside(g), g)), g

    def scale_into_domain(self, v: Array) -> float | None:
        if self.D is not None or self.offset is not None:
            return None
        return scale_into(self.atom, v)

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a norm")
