"""Bases of sets that are their own image, of compact sets, and of those described by a norm distance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.base import Constraint
from lopro.core.arrays import Array, inner
from lopro.engines.cones import ConeRows, Nonnegative, Zero
from lopro.functions import Ball, Constant, Image, Source

__all__ = ["CompactSet", "NormDistance", "OwnImage", "total_row"]


class OwnImage(Constraint):
    """A set that is its own image: M is the identity, and Q the set itself.

    Subclasses define ``support_image`` in addition to what every constraint defines.
    """

    has_image_set = True

    def project_image(self, image: Image) -> Image:
        return (self.project(image[0]),)

    def pullback(self, dual: Image) -> Array:
        return 1.0 * dual[0]


class CompactSet(OwnImage):
    """A bounded set over which linear functions are easy to minimise: define ``linear_minimizer``."""

    has_linear_minimizer = True

    def support_image(self, dual: Image) -> float:
        return inner(dual[0], self.linear_minimizer(-dual[0]))


class NormDistance(CompactSet):
    """A compact set through its distance ``c`` in a norm between ``|.|_2`` and ``sqrt(dim) |.|_2``.

    So rho = 1, and c has the Lipschitz constant ``sqrt(dim)``. Violations are relative to ``scale``, the l1
    norm of the points or a bound of it.
    """

    dim: int
    #: The norm, as notes of constants name it.
    norm_name: str

    @property
    def scale(self) -> float:
        """The size of the set."""
        raise NotImplementedError

    def violation(self, x: Array) -> float:
        return max(0.0, self.value(x)) / self.scale

    def typical_size(self) -> float | None:
        return self.scale

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return Constant(
            math.sqrt(self.dim), Source.DERIVED, f"a distance in the {self.norm_name} norm"
        )

    def regularity(self) -> Constant | None:
        return Constant(1.0, Source.DERIVED, f"c is the distance in the {self.norm_name} norm")

    def infimum(self) -> Constant | None:
        return Constant(0.0, Source.DERIVED, "a distance")


def total_row(row: Any, total: float, equality: bool) -> ConeRows:
    """Return ``row z <= total``, or ``row z = total`` for an equality."""
    cone = Zero(1) if equality else Nonnegative(1)
    return ConeRows(scipy.sparse.csc_matrix(row), np.array([total]), cone)
