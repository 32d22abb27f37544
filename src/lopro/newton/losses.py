"""Smooth terms of images in a composite problem: losses by entry, and squares by their normal matrix."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import inner, norm
from lopro.functions.atoms import HalfSquare
from lopro.functions.term import Term
from lopro.linalg.dense import Array, Matrix
from lopro.linalg.eigenvalues import least_eigenvalue, rounding_of_gram
from lopro.linalg.products import enclose_adjoint, enclose_forward
from lopro.linalg.rounding import Enclosure, dot, length
from lopro.maps import LinearMap, linear_map
from lopro.maps.host import Transferred, entries_of, host_matrix, host_vector
from lopro.newton.complement_pieces import weighted
from lopro.newton.curvature import LARGEST, Piece, is_host_matrix
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.smooth import Image, Slope, parabola

__all__ = ["FILL", "Loss", "SquaredLoss"]

#: The normal matrix of sparse rows is formed if it has at most this multiple of their entries. A tenth and
#: ten times as much change no step in ``python -m benchmarks.constants newton.losses``.
FILL = 4


class Loss:
    """A smooth term ``s g(D x - b)`` whose Hessian with respect to the image is diagonal.

    Parameters
    ----------
    term : Term
        A term with a smooth atom, and a map for vectors on the host.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Logistic
    >>> from lopro.functions.term import Term
    >>> from lopro.maps import linear_map
    >>> from lopro.newton.losses import Loss
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
        # As if all rows of D had the same norm: |slope| |D|_F / sqrt(rows).
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
        # f(z) >= <D'v, z> - f*(v) for every v: the error of the image, most of that of a gradient, does not
        # matter.
        M = host_matrix(self.map)
        image = Loss.image(self, x)[0] if M is None else M @ x  # products of proofs are not counted
        v = host_vector(self.term.into_domain(self.term.slope(image)))
        normal, off = enclose_adjoint(self.map, v)
        return Enclosure(dot(normal, x, off) - self.term.enclose_conjugate(v), normal, off)

    def strong_convexity(self) -> float:
        identity = self.map.is_identity and isinstance(self.term.atom, HalfSquare)
        return self.term.scale if identity else 0.0


class SquaredLoss(Loss):
    """``s/2 |B x - b|^2``, by its normal matrix where products with that are cheaper than with B and B'.

    The image of a point is then ``s B'B x``.
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
    def _form(self) -> QuadraticForm | None:
        """The function, up to a constant, by its normal matrix; None without one."""
        P = self.normal_matrix
        if P is None:
            return None
        products = linear_map(P) if is_host_matrix(P) else Transferred(linear_map(P))
        zero = Loss.image(self, np.zeros(self.size))[0]
        return QuadraticForm(products, self.map.adjoint(self.term.slope(zero)))

    def image(self, x: Array) -> Image:
        if self._form is None:
            return super().image(x)
        (P,) = self._form.curvature(x, ())
        return (P.apply(x),)

    def gradient(self, x: Array, image: Image) -> Array:
        form = self._form
        return super().gradient(x, image) if form is None else form.gradient(x, image)

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        form = self._form
        return super().sized_gradient(x, image) if form is None else form.sized_gradient(x, image)

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        form = self._form
        return super().curvature(x, image) if form is None else form.curvature(x, image)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        form = self._form
        return (
            super().along(x, image, d, direction)
            if form is None
            else form.along(x, image, d, direction)
        )

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
