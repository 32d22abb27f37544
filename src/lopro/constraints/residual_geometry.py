"""Constants, from the singular values of A, of the set ``{x : |A x - y| <= sigma}``."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from lopro.constraints.residual_forms import ResidualForm
from lopro.constraints.shapes import ShapedPoints
from lopro.core.arrays import Array, Companion, eps, norm, to_numpy
from lopro.functions import Ball, Constant, MappedFunction, Source
from lopro.maps import LinearMap, SparseMap
from lopro.projections.empty_ball import residual_exceeds
from lopro.projections.residual_ball import adjoint_product

__all__ = ["FEW_COLUMNS", "ResidualGeometry"]

#: Number of columns up to which all entries of an operator may be computed, and of rows or columns up to
#: which a matrix is factorised for its constants: 20 * 300^3 operations, 5 ms.
FEW_COLUMNS = 300
#: Bytes up to which products with a matrix are negligible: 1 MiB is read in 0.1 ms at 10 GB/s.
_SMALL_BYTES = 2**20


class ResidualGeometry(MappedFunction, ShapedPoints):
    """The constants of a residual ball; the subclass holds its data under the names below."""

    A: LinearMap
    y: Array
    sigma: float
    form: ResidualForm
    #: ``c`` with ``A A^H = c I``, where it is given.
    tight_frame: float | None
    _y: Companion
    _size_of_y: float

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        largest = self.largest_singular_value
        if not self.form.smooth:
            return largest
        if ball is None:
            return None
        r = norm(self.image(ball.center)[0] - self._y.beside(ball.center))
        value = 2.0 * largest.value * (r + largest.value * ball.radius)
        return Constant(value, largest.source, "2 |A| times the longest residual on the ball")

    def smoothness(self) -> Constant | None:
        if not self.form.smooth:
            return None
        largest = self.largest_singular_value
        return Constant(2.0 * largest.value**2, largest.source, f"2 |A|^2, {largest.note}")

    def infimum(self) -> Constant | None:
        misfit = max(0.0, self.misfit - self._rounding)  # stays a lower bound after rounding
        note = "least-squares residual" if self._spectrum_known else "the residual is not negative"
        return Constant(self.form.value(misfit, self.sigma), Source.DERIVED, note)

    def regularity(self) -> Constant | None:
        if not self._spectrum_known or (self.A.explicit and self.is_empty):
            return None
        rho = self.form.regularity(self._smallest, self._inner_radius, self.sigma)
        if rho <= 0.0:
            return None
        source = Source.DERIVED if self.tight_frame is None else Source.GIVEN
        return Constant(rho, source, "smallest nonzero singular value of A and the radius")

    def radius(self) -> Constant | None:
        tall = self.A.shape[0] >= self.A.shape[1]
        if isinstance(self.A, SparseMap) and min(self.A.shape) > FEW_COLUMNS:
            return None  # its singular values would take a dense matrix
        if not (tall and self.A.explicit and self.A.full_column_rank and self._smallest > 0.0):
            return None
        s, U = self.A.left_spectrum
        centre = norm(self.A.adjoint(U @ (self._coordinates() / s)))
        value = (centre + self._inner_radius / self._smallest) * (1.0 + 1e3 * eps(self.y))
        return Constant(value, Source.DERIVED, "least-squares solution, smallest singular value")

    def infeasibility(self) -> str | None:
        # Above this size the factorisation costs more than many solves; projections then detect an empty set.
        # Data that are not in memory are not read for this purpose.
        if min(self.A.shape) > FEW_COLUMNS or not self.A.in_memory or not self.is_empty:
            return None
        return (
            f"no x has |A x - y| <= sigma: the least-squares residual is {self.misfit:.6g}, "
            f"sigma is {self.sigma:.6g}"
        )

    @property
    def sizes_for_free(self) -> bool:
        return self.A.explicit and self.A.in_memory and self.A.nbytes <= _SMALL_BYTES

    def typical_size(self) -> float | None:
        pulled = norm(self.A.adjoint(self.y)) if self._size_of_y > 0.0 else 0.0
        # The square may be out of the range of numbers.
        return self._size_of_y * (self._size_of_y / pulled) if pulled > 0.0 else None

    @cached_property
    def largest_singular_value(self) -> Constant:
        """``|A|_2`` and where it comes from."""
        if self.tight_frame is not None:
            return Constant(math.sqrt(self.tight_frame), Source.GIVEN, "tight_frame")
        return self.A.largest_singular_value

    @property
    def _spectrum_known(self) -> bool:
        return self.A.explicit or self.tight_frame is not None

    @cached_property
    def _smallest(self) -> float:
        """The smallest nonzero singular value, rounded down."""
        if self.tight_frame is not None:
            return math.sqrt(self.tight_frame)
        largest, smallest = self.A.singular_range
        return max(0.0, smallest - max(self.A.shape) * eps(self.A.like) * largest)

    @property
    def _rounding(self) -> float:
        return 1e2 * eps(self.y) * self._size_of_y

    @cached_property
    def misfit(self) -> float:
        """The least-squares residual ``min |A x - y|`` (0 where it is not known)."""
        rest = self._rest
        return 0.0 if rest is None or norm(rest) <= self._rounding else norm(rest)

    @cached_property
    def _rest(self) -> Array | None:
        """The component of y orthogonal to the range of A; None where it is zero or unknown."""
        if not self.A.explicit or self.tight_frame is not None or self.A.full_row_rank:
            return None
        rest = self.y - self.A.left_spectrum[1] @ self._coordinates()
        # A second projection: after one, a small component is orthogonal only up to the rounding of y.
        U = self.A.left_spectrum[1]
        return rest - U @ adjoint_product(U, rest)

    @cached_property
    def is_empty(self) -> bool:
        """Whether the part of y orthogonal to the range of A proves the set empty; explicit maps only."""
        if not self.A.explicit or self._size_of_y <= self.sigma or not self._squares_are_finite:
            return False
        rest = self._rest
        return rest is not None and residual_exceeds(self.A, self.y, self.sigma, rest)

    @property
    def _squares_are_finite(self) -> bool:
        """Whether products of entries of A do not overflow, as estimated from the product with y."""
        stretch = norm(self.A.adjoint(self.y)) / self._size_of_y
        return stretch < math.sqrt(float(np.finfo(to_numpy(self.A.like).dtype).max)) / 1e14

    def _coordinates(self) -> Array:
        """Return the coordinates of y in the range of A."""
        return adjoint_product(self.A.left_spectrum[1], self.y)

    @property
    def _inner_radius(self) -> float:
        """The radius of the ball within the range of A; 0 where only least-squares solutions are feasible."""
        e = self.misfit
        return math.sqrt(max(0.0, (self.sigma - e) * (self.sigma + e)))
