"""Functions of a linear image, ``g(D x - b)``: what they share, with or without a map and an offset."""

from __future__ import annotations

from typing import Any

from lopro.core.arrays import Array, copy, inner, is_array, is_complex
from lopro.core.validation import check_array, check_shape
from lopro.functions import Constant, Image, Linearization, MappedFunction
from lopro.maps import LinearMap, linear_map
from lopro.objectives.base import Objective

__all__ = ["OfImage"]


class OfImage(MappedFunction, Objective):
    """``f(x) = g(D x - b)``, or ``g(x - b)`` without a map; subclasses define `terms`, a single one.

    Parameters
    ----------
    D : array, scipy.sparse matrix, LinearOperator or LinearMap, optional
        Real. Not copied.
    shape : tuple of int, optional
        Shape of the points, where there is no map.
    b : array, optional
        Of the shape of the image; zero if not given. Copied.
    """

    def __init__(self, D: Any = None, shape: tuple[int, ...] | None = None, b: Any = None) -> None:
        self.D: LinearMap | None = None if D is None else linear_map(D, "D")
        self.shape = shape
        if self.D is not None:
            if is_complex(self.D.like):
                raise TypeError(f"D must be real, got dtype {self.D.like.dtype}")
            self.shape, self.like = (self.D.shape[1],), self.D.like
        self.offset: Array | None = None if b is None else copy(check_array("b", b))
        if self.offset is None:
            return
        if self.D is not None:
            check_shape("b", self.offset, (self.D.shape[0],))
            return
        if self.shape is not None:
            check_shape("b", self.offset, self.shape)
        self.shape = tuple(self.offset.shape)
        self.like = self.offset if is_array(b) else None

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

    def least_minorant(self, target: Array) -> tuple[float, Array]:
        """Return the affine minorant of a norm without a map whose slope is nearest to the target.

        For every slope g of the dual ball ``|x - b| >= <g, x - b>``.
        """
        g = self.terms[0].into_domain(target)
        offset = self.terms[0].offset_beside(g)
        return (0.0 if isinstance(offset, float) else -inner(offset, g)), g

    def _times_map(self, value: float, source: Any, note: str) -> Constant:
        """Return a Lipschitz constant of ``g`` as one of ``f``."""
        if self.D is None:
            return Constant(value, source, note)
        s = self.D.largest_singular_value
        return Constant(value * s.value, s.source, f"{note}, times the {s.note}")
