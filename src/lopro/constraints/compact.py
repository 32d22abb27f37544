"""Sets that are easy to project on themselves, and compact ones with a linear minimiser in closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.base import Constraint
from lopro.core.arrays import Array, inner
from lopro.engines.cones import ConeRows, Nonnegative, Zero
from lopro.functions import Image

__all__ = ["CompactSet", "OwnImage", "total_row"]


class OwnImage(Constraint):
    """The set as its own image: M is the identity, and Q the set itself.

    Subclasses define ``support_image`` next to what every constraint defines.
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


def total_row(row: Any, total: float, equality: bool) -> ConeRows:
    """Return ``row z <= total``, or the equation."""
    cone = Zero(1) if equality else Nonnegative(1)
    return ConeRows(scipy.sparse.csc_matrix(row), np.array([total]), cone)
