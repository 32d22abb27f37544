"""The smooth part of a problem, as the Newton method takes it: losses of images, quadratic forms, sums.

Derivatives are functions of the point and of linear images of it, which are carried along: a step along a
line then needs one product for the direction, none for the point. Points are on the host; images that are as
long as the data stay where the data are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Protocol, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import inner, norm
from lopro.functions.atoms import HalfSquare
from lopro.functions.term import Term
from lopro.linalg.dense import EPS, Array, Matrix
from lopro.linalg.eigenvalues import least_eigenvalue, rounding_of_gram
from lopro.linalg.products import enclose_adjoint, enclose_forward
from lopro.linalg.rounding import Enclosure, dot, length
from lopro.maps import LinearMap
from lopro.maps.host import Transferred, entries_of, host_matrix, host_vector
from lopro.newton.complement_pieces import weighted
from lopro.newton.curvature import LARGEST, ConstantMatrix, Piece, is_host_matrix

__all__ = ["FILL", "Image", "Loss", "Slope", "Smooth", "SmoothSum", "SquaredLoss"]

#: Linear images of a point, kept beside it so that moving along a line costs no products.
Image: TypeAlias = tuple[Array, ...]
#: First and second derivative along a line, as a function of the step.
Slope: TypeAlias = Callable[[float], tuple[float, float]]

#: The normal matrix of sparse rows is formed if it has at most so many times their entries.
FILL = 4


class Smooth(Protocol):
    """A convex, (almost everywhere) twice differentiable function of a vector."""

    size: int
    #: The number of arrays that `image` returns.
    images: int

    def value(self, x: Array) -> float:
        """Return ``f(x)``."""
        ...

    def image(self, x: Array) -> Image:
        """Return the linear images of ``x`` (or of a direction) that the derivatives need."""
        ...

    def gradient(self, x: Array, image: Image) -> Array:
        """Return the gradient at ``x``."""
        ...

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        """Return the gradient, and the size of its terms: what it is compared with where they cancel."""
        ...

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        """Return the Hessian at ``x``, in pieces."""
        ...

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        """Return the derivatives of ``t -> f(x + t d)``; ``direction`` is the image of ``d``."""
        ...

    def enclose(self, x: Array) -> Enclosure:
        """Return value and gradient at ``x`` of a linear function that is nowhere above f, with their errors.

        It touches f at ``x``, or within rounding of it; where `strong_convexity` is positive, at ``x``.
        """
        ...

    def strong_convexity(self) -> float:
        """Return a proved ``mu`` such that ``f - mu/2 |x|^2`` is convex; 0 if none is found."""
        ...


def parabola(slope: float, curvature: float) -> Slope:
    """Return the derivatives of a parabola along a line."""
    return lambda t: (slope + t * curvature, curvature)


def larger(*vectors: Array) -> float:
    """Return the largest norm."""
    return max(norm(v) for v in vectors)


class Loss:
    """A smooth term ``s g(D x - b)`` with second derivatives by entry of the image.

    Parameters
    ----------
    term : Term
        Its atom is smooth; its map is one for host vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Logistic
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import linear_map
    >>> from lopro.newton.smooth import Loss
    >>> loss = Loss(Term(Logistic(np.ones(1)), linear_map(np.array([[2.0]]))))
    >>> x = np.zeros(1)
    >>> round(loss.value(x), 6), loss.gradient(x, loss.image(x))
    (0.693147, array([-1.]))
    """

    images = 1

    def __init__(self, term: Term) -> None:
        assert term.map is not None
        self.term = term
        self.map: LinearMap = term.map
        self.size: int = self.map.shape[1]

    def value(self, x: Array) -> float:
        return self.term.value(Loss.image(self, x)[0])

    def image(self, x: Array) -> Image:
        there = isinstance(self.map, Transferred) and self.map.on_device
        return (self.map.image(x) if there else self.map.forward(x),)  # type: ignore[attr-defined]

    def gradient(self, x: Array, image: Image) -> Array:
        return np.asarray(self.map.adjoint(self.term.slope(image[0])))

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        slope, rows = self.term.slope(image[0]), self.term.row_norms
        gradient = np.asarray(self.map.adjoint(slope))
        # The root of the sum of squares of the rows of D, each times its slope, were they of equal norm.
        return gradient, max(norm(gradient), norm(slope) * norm(rows) / math.sqrt(len(rows)))

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return (weighted(self.map, self.term.curvature(image[0])),)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        z, e = image[0], direction[0]
        if isinstance(self.term.atom, HalfSquare):
            return parabola(inner(self.term.slope(z), e), self.term.scale * inner(e, e))
        squares = e * e

        def derivatives(t: float) -> tuple[float, float]:
            there = z + t * e
            return inner(self.term.slope(there), e), inner(self.term.curvature(there), squares)

        return derivatives

    def enclose(self, x: Array) -> Enclosure:
        rows, columns = self.map.shape
        tall_square = isinstance(self.term.atom, HalfSquare) and rows >= columns
        if tall_square or not self.term.atom.has_enclosed_conjugate:
            value, slope, error = self.term.enclose(*enclose_forward(self.map, x))
            return Enclosure(value, *enclose_adjoint(self.map, slope, error))
        # f(z) >= <D'v, z> - f*(v) for every v, so the error of the image, which is most of that of a
        # gradient, does not count.
        M = host_matrix(self.map)
        image = Loss.image(self, x)[0] if M is None else M @ x  # proofs are not on the ledger
        v = host_vector(self.term.into_domain(self.term.slope(image)))
        normal, off = enclose_adjoint(self.map, v)
        return Enclosure(dot(normal, x, off) - self.term.enclose_conjugate(v), normal, off)

    def strong_convexity(self) -> float:
        identity = self.map.is_identity and isinstance(self.term.atom, HalfSquare)
        return self.term.scale if identity else 0.0


class SquaredLoss(Loss):
    """``s/2 |Bx - b|^2``, through the normal matrix where there are more rows than columns.

    The image of a point is then ``s B'B x``: products with the normal matrix are cheaper than with ``B``.
    """

    @cached_property
    def normal_matrix(self) -> Matrix | None:
        """``s B'B`` where products with it are cheaper than products with ``B`` and ``B'``, else None."""
        B = entries_of(self.map)
        if B is None:
            return None
        if B.shape[0] < self.size if is_host_matrix(B) else self.size > LARGEST:
            return None
        product = B.T @ B
        if scipy.sparse.issparse(product):
            if product.nnz > FILL * B.nnz:
                return None
            product = product.tocsr()
        return product if self.term.scale == 1.0 else self.term.scale * product

    @cached_property
    def _form(self) -> ConstantMatrix | None:
        P = self.normal_matrix
        return None if P is None else ConstantMatrix(P)

    @cached_property
    def _q(self) -> Array:
        """``-s B'b``: the gradient at zero."""
        zero = Loss.image(self, np.zeros(self.size))[0]
        return np.asarray(self.map.adjoint(self.term.slope(zero)))

    def image(self, x: Array) -> Image:
        return super().image(x) if self._form is None else (self._form.apply(x),)

    def gradient(self, x: Array, image: Image) -> Array:
        return super().gradient(x, image) if self._form is None else image[0] + self._q

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        if self._form is None:
            return super().sized_gradient(x, image)
        gradient = image[0] + self._q
        return gradient, larger(gradient, image[0], self._q)

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return super().curvature(x, image) if self._form is None else (self._form,)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        if self._form is None:
            return super().along(x, image, d, direction)
        return parabola(float(d @ (image[0] + self._q)), float(d @ direction[0]))

    def strong_convexity(self) -> float:
        rows, columns = self.map.shape
        B = host_matrix(self.map)
        if rows < columns or (B is None and self.normal_matrix is None):
            return 0.0
        P = self.normal_matrix
        if P is None:
            P = self.term.scale * (B.T @ B)
        trace = self.term.scale * length(self.map.column_norms) ** 2
        return max(0.0, least_eigenvalue(P) - rounding_of_gram(rows, columns, trace))


class SmoothSum:
    """The sum of smooth functions of the same size.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.quadratic_form import QuadraticForm
    >>> from lopro.newton.smooth import SmoothSum
    >>> parts = [QuadraticForm(None, np.ones(2)), QuadraticForm(np.eye(2), np.zeros(2))]
    >>> SmoothSum(parts).value(np.ones(2))
    3.0
    """

    def __init__(self, parts: Sequence[Smooth]) -> None:
        self.parts = tuple(parts)
        sizes = {part.size for part in self.parts}
        if len(sizes) != 1:
            raise ValueError(f"parts: all must have the same size, got {sorted(sizes)}")
        self.size = sizes.pop()
        self.images = sum(part.images for part in self.parts)

    def _shares(self, image: Image) -> Iterator[tuple[Smooth, Image]]:
        start = 0
        for part in self.parts:
            yield part, image[start : start + part.images]
            start += part.images

    def value(self, x: Array) -> float:
        return sum(part.value(x) for part in self.parts)

    def image(self, x: Array) -> Image:
        return tuple(array for part in self.parts for array in part.image(x))

    def gradient(self, x: Array, image: Image) -> Array:
        total = np.zeros(self.size)
        for part, own in self._shares(image):
            total += part.gradient(x, own)
        return total

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        total, largest = np.zeros(self.size), 0.0
        for part, own in self._shares(image):
            gradient, size = part.sized_gradient(x, own)
            total += gradient
            largest = max(largest, size)
        return total, max(largest, norm(total))

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        return tuple(p for part, own in self._shares(image) for p in part.curvature(x, own))

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        pairs = zip(self._shares(image), self._shares(direction), strict=True)
        slopes = [part.along(x, own, d, moved) for (part, own), (_, moved) in pairs]

        def derivatives(t: float) -> tuple[float, float]:
            found = [slope(t) for slope in slopes]
            return sum(f for f, _ in found), sum(s for _, s in found)

        return derivatives

    def enclose(self, x: Array) -> Enclosure:
        first, *others = (part.enclose(x) for part in self.parts)
        return sum(others, start=first)

    def strong_convexity(self) -> float:
        return math.fsum(part.strong_convexity() for part in self.parts) * (1.0 - 4.0 * EPS)
