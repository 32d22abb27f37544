"""The simplex, filled or its face alone, through the distance in the l1 norm."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.compact import NormDistance, total_row
from lopro.core.arrays import Array, is_complex, namespace
from lopro.core.validation import check_count, check_number, check_shape
from lopro.core.vectors import one_entry
from lopro.engines.cones import ConeRows, halfspace_rows
from lopro.functions import Constant, Source
from lopro.functions.atoms import Interval
from lopro.functions.simplex import project_simplex
from lopro.functions.term import Term
from lopro.maps import linear_map

__all__ = ["Simplex", "excess", "excess_slopes"]


class Simplex(NormDistance):
    """The set ``{x >= 0 : sum x = total}``, or ``sum x <= total`` without ``equality``.

    Parameters
    ----------
    dim : int
        Length of the vectors.
    total : float
        The sum of the entries; positive.
    equality : bool
        Whether the sum must equal ``total`` exactly.

    Notes
    -----
    ``c(x) = sum [-x_i]_+ + |sum [x_i]_+ - total|`` (its positive part without ``equality``) is the
    distance to the set in the l1 norm: negative entries have to be raised to 0, and the others have to
    compensate the difference of the sums. The Euclidean distance is never longer, so rho = 1.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> simplex = lc.Simplex(2)
    >>> simplex.value(np.array([2.0, -1.0])), simplex.project(np.array([2.0, -1.0]))
    (2.0, array([1., 0.]))
    >>> simplex.linear_minimizer(np.array([1.0, -3.0]))
    array([0., 1.])
    """

    norm_name = "l1"
    has_vertices = True
    real_only = True

    def __init__(self, dim: int, total: float = 1.0, *, equality: bool = True) -> None:
        self.dim = check_count("dim", dim)
        self.total = check_number("total", total, minimum=0.0, exclusive=True)
        self.equality = bool(equality)
        self.shape = (self.dim,)

    def __repr__(self) -> str:
        return f"Simplex({self.dim}, {self.total:g}, equality={self.equality})"

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        orthant = Interval(np.zeros(self.dim), np.full(self.dim, np.inf))
        total = Interval([self.total if self.equality else -np.inf], [self.total])
        return Term(orthant), Term(total, linear_map(np.ones((1, self.dim))))

    def _check(self, x: Array) -> None:
        check_shape("x", x, (self.dim,))
        if is_complex(x):
            raise TypeError(f"x must be real for a simplex, got dtype {x.dtype}")

    def value(self, x: Array) -> float:
        self._check(x)
        return excess(x, self.total, self.equality)

    def subgradient(self, x: Array) -> Array:
        self._check(x)
        return excess_slopes(x, self.total, self.equality)

    @property
    def scale(self) -> float:
        return self.total

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        signs = halfspace_rows(-scipy.sparse.identity(self.dim), np.zeros(self.dim))
        return [signs, total_row(np.ones((1, self.dim)), self.total, self.equality)]

    def project(self, x: Array) -> Array:
        self._check(x)
        return project_simplex(x, self.total, equality=self.equality)

    def linear_minimizer(self, direction: Array) -> Array:
        i = int(namespace(direction).argmin(direction))
        outwards = self.equality or float(direction[i]) < 0.0
        return one_entry(self.dim, i, self.total if outwards else 0.0, direction)

    def radius(self) -> Constant | None:
        return Constant(self.total * (1.0 + 1e-15), Source.DERIVED, "the corners")


def excess(values: Array, total: float, equality: bool) -> float:
    """Return the l1 distance of ``values`` from the simplex."""
    xp = namespace(values)
    negative = -float(xp.sum(xp.where(values < 0.0, values, 0.0 * values)))
    surplus = float(xp.sum(xp.where(values > 0.0, values, 0.0 * values))) - total
    return negative + (abs(surplus) if equality else max(0.0, surplus))


def excess_slopes(values: Array, total: float, equality: bool) -> Array:
    """Return a subgradient of `excess`: -1 for negative entries, one common slope for the others."""
    xp = namespace(values)
    surplus = float(xp.sum(xp.where(values > 0.0, values, 0.0 * values))) - total
    slope = float(np.sign(surplus)) if equality else float(surplus > 0.0)
    return xp.where(values < 0.0, 0.0 * values - 1.0, 0.0 * values + slope)
