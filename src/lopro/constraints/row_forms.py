"""Functions that describe a set of rows: the largest violation, and the norm of all violations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.constraints.hoffman import hoffman_max, hoffman_norm
from lopro.core.arrays import Array, norm
from lopro.functions import Constant, Linearization, Source

__all__ = ["MaxForm", "NormForm", "Numbers", "RowForm"]

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True)
class MaxForm:
    """``c(x) = max_i (c_i x - b_i)``: the slope is one active row; negative inside the set.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> lc.Polyhedron(np.eye(2), np.zeros(2), lc.MaxForm()).value(np.array([3.0, 4.0]))
    4.0
    """

    def linearize(self, rows: Any, z: Array) -> Linearization:
        """Return ``c`` at an image, and its subgradient on demand."""
        i, sign, excess = rows.largest_excess(z)
        return excess, lambda: rows.signed_row(i, sign, z)

    def lipschitz(self, rows: Any) -> Constant:
        """Return the Lipschitz constant of ``c``."""
        return Constant(float(rows.row_norms.max()), Source.DERIVED, "longest row of C")

    def infimum(self) -> Constant | None:
        """Return a lower bound of ``c``, or None."""
        return None

    def hoffman(self, C: Numbers) -> float | None:
        """Return the regularity constant of ``C x <= b``; None if there are too many sets of rows."""
        return hoffman_max(C)

    def of_orthonormal_rows(self, count: int) -> float:
        """Return the regularity constant for ``count`` orthonormal rows with one side or two each."""
        return 1.0 / math.sqrt(count)


@dataclass(frozen=True)
class NormForm:
    """``c(x) = |[C x - b]_+|_2``: the slope combines all violated rows; zero inside the set.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> lc.Polyhedron(np.eye(2), np.zeros(2), lc.NormForm()).value(np.array([3.0, 4.0]))
    5.0
    """

    def linearize(self, rows: Any, z: Array) -> Linearization:
        """Return ``c`` at an image, and its subgradient on demand."""
        outside = z - rows.atom.prox(z, 1.0)
        c = norm(outside)
        return c, lambda: rows.pullback((outside / c if c > 0.0 else outside,))

    def lipschitz(self, rows: Any) -> Constant:
        """Return the Lipschitz constant of ``c``."""
        if rows.M is None:
            return Constant(1.0, Source.DERIVED, "a distance")
        largest: Constant = rows.M.largest_singular_value
        return largest

    def infimum(self) -> Constant | None:
        """Return a lower bound of ``c``."""
        return Constant(0.0, Source.DERIVED, "a norm is not negative")

    def hoffman(self, C: Numbers) -> float | None:
        """Return the regularity constant of ``C x <= b``; None if there are too many sets of rows."""
        return hoffman_norm(C)

    def of_orthonormal_rows(self, count: int) -> float:
        """Return the regularity constant for ``count`` orthonormal rows with one side or two each."""
        return 1.0


RowForm: TypeAlias = MaxForm | NormForm
