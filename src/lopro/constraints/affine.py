"""Affine constraints: rows with a lower bound, an upper bound, or both."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro._util.arrays import Array, asarray_like, is_complex, namespace, take
from lopro._util.validation import check_array, check_shape
from lopro.constraints.polyhedron import Polyhedron, PolyhedronForm
from lopro.constraints.two_sided import joined, parted
from lopro.functions import Image
from lopro.maps import linear_map

__all__ = ["Affine"]


class Affine(Polyhedron):
    """The set ``{x : lower <= M x <= upper}``; equations where both agree.

    Parameters
    ----------
    M : array, scipy.sparse matrix or LinearMap of shape (m, d)
        Real, with entries that can be read; sparse stays sparse. Not copied.
    lower, upper : array of shape (m,) or float, optional
        Infinite entries and None mean no bound.
    form : MaxForm or NormForm
        Which function ``c`` describes the set.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> total = lopro.constraints.Affine([[1.0, 1.0]], lower=1.0, upper=1.0)
    >>> total.project(np.array([1.0, 1.0]))
    array([0.5, 0.5])
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> lopro.solve(lopro.Problem(f, total)).x.round(9)
    array([ 2., -1.])
    """

    def __init__(
        self, M: Any, lower: Any = None, upper: Any = None, form: PolyhedronForm | None = None
    ) -> None:
        self.M = linear_map(M, "M")
        if not self.M.explicit:
            raise TypeError("M must be an array or a sparse matrix: its rows have to be read")
        if is_complex(self.M.like):
            raise TypeError(f"M must be real, got dtype {self.M.like.dtype}")
        rows = self.M.shape[0]
        self.lower = _sides("lower", lower, -np.inf, rows)
        self.upper = _sides("upper", upper, np.inf, rows)
        wrong = np.flatnonzero(self.lower > self.upper)
        if wrong.size:
            i = int(wrong[0])
            raise ValueError(
                f"lower must not exceed upper, but lower[{i}]={self.lower[i]:g} > "
                f"upper[{i}]={self.upper[i]:g}"
            )
        if np.isposinf(self.lower).any() or np.isneginf(self.upper).any():
            raise ValueError("lower must be below +inf and upper above -inf everywhere")
        above = np.flatnonzero(np.isfinite(self.upper))
        below = np.flatnonzero(np.isfinite(self.lower))
        if above.size + below.size == 0:
            raise ValueError("lower and upper must not both be infinite everywhere")
        b = np.concatenate([self.upper[above], -self.lower[below]])
        C = _one_sided(self.M.matrix, above, below)
        super().__init__(C, asarray_like(b, self.M.like), form)

    def multipliers_of(self, dual: Image) -> Image:
        return (joined(dual[0], self.lower, self.upper),)

    def dual_of(self, multipliers: Image) -> Image:
        return (parted(multipliers[0], self.lower, self.upper),)

    def __repr__(self) -> str:
        equations = int(np.count_nonzero(self.lower == self.upper))
        return f"Affine({self.M.shape[0]} rows, {equations} of them equations)"


def _sides(name: str, value: Any, missing: float, rows: int) -> Any:
    """Check one side; None is filled in, and a number stands for all rows."""
    given = np.asarray(missing if value is None else value)
    if given.dtype.kind not in "fiu":
        check_array(name, value, allow_complex=False)
    if np.isnan(given).any():
        raise ValueError(f"{name} must not contain NaN")
    if given.ndim:
        check_shape(name, given, (rows,))
    side = np.array(np.broadcast_to(given, (rows,)), dtype=np.float64)
    side.flags.writeable = False
    return side


def _one_sided(matrix: Any, above: Any, below: Any) -> Array:
    """Return the rows with an upper bound, and below them minus those with a lower one."""
    if scipy.sparse.issparse(matrix):
        rows = matrix.tocsr()
        return scipy.sparse.vstack([rows[above], -rows[below]], format="csr")
    parts = [take(matrix, above), -take(matrix, below)]
    return namespace(matrix).concat(parts, axis=0)
