"""Residual balls as matrices, half-spaces and rows of cones, in double precision, for engines."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.residual_geometry import FEW_COLUMNS
from lopro.constraints.shapes import ShapedPoints
from lopro.core.arrays import Array, is_complex, is_single, to_numpy
from lopro.core.real_vectors import Vector, to_real_vector
from lopro.engines.cones import ConeRows, Zero, active_cone, ball_rows
from lopro.errors import InfeasibleError
from lopro.functions.cone_program import real_matrix, real_vector
from lopro.maps import LinearMap
from lopro.maps.algebra import widened
from lopro.maps.copied import CopiedMap
from lopro.projections.empty_ball import nonnegative_residual_exceeds
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.newton import Equation
from lopro.projections.polyhedron import ACTIVE_SET_ENTRIES

__all__ = ["ResidualRows"]

#: Entries of a matrix in single precision up to which a copy in double precision (8 MB) is kept as well.
_WIDENED = 10**6


class ResidualRows(ShapedPoints):
    """The forms of ``{x : |A x - y| <= sigma}`` that engines read; the subclass holds its data."""

    A: LinearMap
    y: Array
    sigma: float
    like: Array

    def _with_data(self, A: Any, y: Any) -> Self:
        """Return the set with another map and other measurements, and the same radius."""
        raise NotImplementedError

    @cached_property
    def as_matrix(self) -> Self:
        """The same ball with a matrix in place of an operator with few columns, at one product for each."""
        if (
            self.A.explicit
            or self.A.shape[1] > FEW_COLUMNS
            or not isinstance(self.like, np.ndarray)
        ):
            return self
        return self.with_matrix()

    def with_matrix(self) -> Self:
        """Return the same ball with all entries of A, at one product for each column of an operator."""
        A = CopiedMap(self.A.toarray(), self.A.name)
        return self._with_data(A, self.y)

    @property
    def in_double(self) -> Self | None:
        """The same ball in double precision, or this one if it is; None where A is large or not in memory.

        The rounding error of a residual is about ``eps |A| |x|``. Where sigma is not much larger, or close
        to the least-squares residual, single precision cannot locate the boundary.
        """
        A = self.A
        if not isinstance(A.like, np.ndarray) or (A.explicit and not A.in_memory):
            return None
        if not is_single(A.like) and not is_single(self.y):
            return self
        return self._widened

    @cached_property
    def _widened(self) -> Self | None:
        """A copy in double precision; None where A is large or not in memory."""
        A, y = self.A, self.y
        if math.prod(A.shape) > _WIDENED or not self.as_matrix.A.explicit:
            return None
        return self._with_data(widened(self.as_matrix.A.matrix), widened(to_numpy(y)))

    def excludes_orthant(self) -> bool:
        return not is_complex(self.y) and nonnegative_residual_exceeds(self.A, self.y, self.sigma)

    @property
    def cone_rows(self) -> ConeRows | None:
        """Rows of a real ball with a matrix and a positive radius; None for others."""
        if is_complex(self.like) or self.sigma == 0.0 or not self.A.explicit:
            return None
        A = self.A.matrix if scipy.sparse.issparse(self.A.matrix) else to_numpy(self.A.matrix)
        return ball_rows(A.astype(np.float64), to_real_vector(self.y), self.sigma)

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        A, y = real_matrix(self.A, complex_points), real_vector(self.y, complex_points)
        if self.sigma == 0.0:
            return [ConeRows(scipy.sparse.csc_matrix(A), y, Zero(len(y)))]
        return [ball_rows(A, y, self.sigma)]

    @property
    def as_halfspaces(self) -> HalfSpaces | None:
        """The rows of real equations with a small matrix, with both signs; None for others."""
        if self.sigma > 0.0 or is_complex(self.like) or not self.A.explicit:
            return None
        if 2 * math.prod(self.A.shape) > ACTIVE_SET_ENTRIES:
            return None
        matrix, y = to_numpy(self.A.toarray()), to_numpy(self.y)
        try:
            return HalfSpaces.from_system(np.vstack([matrix, -matrix]), np.concatenate([y, -y]))
        except InfeasibleError:  # a row of zeros: emptiness is proved elsewhere, with its margin
            return None

    def boundary(self, near: Vector, slack: Vector, multiplier: Vector) -> list[Equation]:
        """Return ``|A z - y|^2 = sigma^2`` divided by ``2 sigma``, so that its slope has the size of A."""
        if not active_cone(slack, multiplier):
            return []
        A, y = to_numpy(self.A.toarray()), to_real_vector(self.y)
        scale = 1.0 / (2.0 * self.sigma)

        def value(z: Vector) -> float:
            length = float(np.linalg.norm(A @ z - y))
            return scale * (length - self.sigma) * (length + self.sigma)

        return [Equation(value, lambda z: (2.0 * scale) * (A.T @ (A @ z - y)))]
