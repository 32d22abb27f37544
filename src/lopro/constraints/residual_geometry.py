"""Constants, from the singular values of A, of the set ``{x : |A x - y| <= sigma}``."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from lopro.core.arrays import Array, eps, norm, to_numpy
from lopro.functions import Constant, Source
from lopro.maps import LinearMap
from lopro.projections.empty_ball import residual_exceeds
from lopro.projections.residual_ball import adjoint_product

__all__ = ["ResidualGeometry"]


class ResidualGeometry:
    """The constants of a ball of residuals; the subclass keeps its data under these names."""

    A: LinearMap
    y: Array
    sigma: float
    #: ``c`` where ``A A^H = c I`` is known of an operator.
    tight_frame: float | None
    _size_of_y: float

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
        """The component of y outside of the range of A; None where it is zero or unknown."""
        if not self.A.explicit or self.tight_frame is not None or self.A.full_row_rank:
            return None
        rest = self.y - self.A.left_spectrum[1] @ self._coordinates()
        # Repeated: a small remainder is orthogonal to the range only up to the rounding of y.
        U = self.A.left_spectrum[1]
        return rest - U @ adjoint_product(U, rest)

    @cached_property
    def is_empty(self) -> bool:
        """Whether the component of y outside the range of A proves the set empty; explicit maps only."""
        if not self.A.explicit or self._size_of_y <= self.sigma or not self._squares_are_numbers:
            return False
        rest = self._rest
        return rest is not None and residual_exceeds(self.A, self.y, self.sigma, rest)

    @property
    def _squares_are_numbers(self) -> bool:
        """Whether the products of entries of A stay in the range of numbers, as far as y shows."""
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
