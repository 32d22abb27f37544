"""A convex quadratic given by its matrix."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import (
    Array,
    Companion,
    copy,
    eps,
    inner,
    is_complex,
    namespace,
    norm,
    zeros,
)
from lopro.core.deadline import current_deadline
from lopro.core.validation import check_array, check_number, check_shape
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source, atoms
from lopro.functions.term import Term
from lopro.linalg.eigenvalues import least_eigenvalue, negative_curvature
from lopro.maps import LinearMap, linear_map
from lopro.objectives.base import Objective

__all__ = ["Quadratic"]

#: Number of rows up to which the eigenvalues of sparse matrices are computed; larger ones have bounds. With
#: five entries in a row eigenvalues take 0.06 s at 1000 rows, bounds 0.07 s; at 2000 rows 0.5 s and 0.4 s.
_DENSE = 1000


class Quadratic(MappedFunction, Objective):
    """``f(x) = 1/2 x'P x + q'x + constant`` with a symmetric positive semidefinite ``P``.

    Convexity is checked by a factorisation. The constants ``L`` and ``mu`` are the extreme eigenvalues
    of ``P``, computed on first use; for a large sparse ``P`` they are bounds of these.

    Parameters
    ----------
    P : array or scipy.sparse matrix of shape (d, d)
        Real; symmetric and positive semidefinite up to rounding. Not copied.
    q : array of shape (d,), optional
        Zero if not given; copied.
    constant : float
        Added to the value.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import Quadratic
    >>> f = Quadratic(np.diag([1.0, 3.0]), q=np.array([-1.0, 0.0]))
    >>> f.value(np.array([1.0, 1.0]))
    1.0
    >>> f.subgradient(np.array([1.0, 1.0]))
    array([0., 3.])
    """

    smooth = True
    image_length = 2

    def __init__(self, P: Any, q: Any = None, constant: float = 0.0) -> None:
        self.P = _symmetric(linear_map(P, "P"))
        d = self.P.shape[0]
        self.like = self.P.like
        if q is None:
            self._q = Companion(zeros((d,), self.like))
        else:
            self._q = Companion(copy(check_array("q", q, ndim=1, allow_complex=False)))
            check_shape("q", self._q.array, (d,))
        self.constant = check_number("constant", constant)
        self.cancels = self.constant != 0.0 or norm(self._q.array) > 0.0
        self.shape = (d,)
        _check_convex(self.P)

    @cached_property
    def _eigenvalues(self) -> tuple[float, float]:
        """Lower and upper bounds of the extreme eigenvalues."""
        return _eigenvalue_range(self.P)

    @property
    def _mu(self) -> float:
        return self._eigenvalues[0]

    @property
    def _L(self) -> float:
        return self._eigenvalues[1]

    @property
    def q(self) -> Array:
        """The linear part; do not write on it."""
        return self._q.array

    @cached_property
    def _atom(self) -> atoms.Quadratic:
        return atoms.Quadratic(self.P, self._q.array, self.constant)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(self._atom),)

    def image(self, x: Array) -> Image:
        return x, self.P.forward(x)

    def linearize_at(self, image: Image) -> Linearization:
        return self._atom.linearize_with(*image)

    def magnitude(self, x: Array, fun: float) -> float:
        q = self._q.beside(x)
        # The quadratic term, up to a rounding error of the sum of all terms.
        square = fun - inner(q, x) - self.constant
        return abs(square) + inner(abs(q), abs(x)) + abs(self.constant)

    def typical_size(self) -> float | None:
        q = self._q.array
        curvature = inner(q, self.P.forward(q))
        return norm(q) ** 3 / curvature if curvature > 0.0 else None

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        if ball is None or not math.isfinite(ball.radius):
            return None
        value = norm(self.subgradient(ball.center)) + self._L * ball.radius
        return Constant(value, Source.DERIVED, "gradient at the center, largest eigenvalue of P")

    def smoothness(self) -> Constant:
        return Constant(self._L, Source.DERIVED, "largest eigenvalue of P")

    def strong_convexity(self) -> Constant | None:
        if self._mu <= 0.0:
            return None
        return Constant(self._mu, Source.DERIVED, "smallest eigenvalue of P")

    def infimum(self) -> Constant | None:
        if norm(self._q.array) == 0.0:
            return Constant(self.constant, Source.DERIVED, "P is positive semidefinite, q is zero")
        return super().infimum()


def _symmetric(P: LinearMap) -> LinearMap:
    """Return the matrix after checks that it is real, square and symmetric, without asymmetry by rounding."""
    if not P.explicit:
        raise TypeError("P must be a matrix, not an operator, because its eigenvalues are computed")
    if is_complex(P.like):
        raise TypeError(f"P must be real, got dtype {P.like.dtype}")
    if P.shape[0] != P.shape[1]:
        raise ValueError(f"P must be square, got shape {P.shape}")
    matrix = P.matrix
    if isinstance(matrix, np.ndarray) and np.logical_and.reduce(matrix == matrix.T, axis=None):
        return P
    difference, size = matrix - matrix.T, _largest_entry(matrix)
    asymmetry = _largest_entry(difference)
    if asymmetry > 100.0 * eps(P.like) * size:
        raise ValueError(
            f"P must be symmetric, but P - P' has an entry of size {asymmetry:g} "
            "(the same function has (P + P')/2 as its matrix)"
        )
    return P if asymmetry == 0.0 else linear_map(matrix - 0.5 * difference, "P")


def _largest_entry(matrix: Any) -> float:
    if hasattr(matrix, "tocsr"):
        return float(abs(matrix).max())
    xp = namespace(matrix)
    return float(xp.max(xp.abs(matrix)))


def _check_convex(P: LinearMap) -> None:
    """Raise an error for a matrix with a direction of negative curvature beyond rounding."""
    if not isinstance(P.like, np.ndarray):
        _eigenvalue_range(P)
        return
    matrix = P.matrix.astype(np.float64) if P.like.dtype != np.float64 else P.matrix
    # A matrix in single precision may be indefinite by the rounding of its own entries.
    allowed = eps(P.like) / eps(np.zeros(1))
    direction = negative_curvature(matrix, allowed)
    if direction is not None:
        value = float(direction @ (matrix @ direction))
        raise ValueError(
            f"P must be positive semidefinite, but d'Pd = {value:g} for some unit vector d: "
            "the function is not convex"
        )


def _eigenvalue_range(P: LinearMap) -> tuple[float, float]:
    """Return the smallest eigenvalue rounded down and the largest rounded up."""
    if scipy.sparse.issparse(P.matrix) and P.shape[0] > _DENSE:
        sums = np.asarray(abs(P.matrix).sum(axis=1), dtype=np.float64)
        upper = float(sums.max()) * (1.0 + P.shape[0] * eps(P.like))
        return least_eigenvalue(P.matrix.astype(np.float64)), upper
    matrix = P.toarray()
    current_deadline().need(4.0 * P.shape[0] ** 3)
    values = namespace(matrix).linalg.eigvalsh(matrix)
    smallest, largest = float(values[0]), float(values[-1])
    rounding = P.shape[0] * eps(P.like) * max(abs(smallest), abs(largest))
    if smallest < -10.0 * rounding:
        raise ValueError(
            f"P must be positive semidefinite, but its smallest eigenvalue is {smallest:g}: "
            "the function is not convex"
        )
    return smallest - rounding, max(largest, 0.0) + rounding
