"""Problems over positive semidefinite matrices with a given diagonal, posed in X or in a factor of X."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.affine import Affine
from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.matrix_rows import matrix_rows
from lopro.constraints.psd import PSDCone
from lopro.core.arrays import Array, asarray_like, eps, is_single
from lopro.core.counting import count
from lopro.errors import MissingCapabilityError
from lopro.linalg.rounding import EPS, Estimate, gamma
from lopro.methods.semidefinite.factor_problem import FactorCost, RowLengths
from lopro.methods.semidefinite.form import check_form, check_set, member_duals, quadratic_parts
from lopro.methods.semidefinite.weighted_distance import SymmetricDistance, weighted_distance
from lopro.newton.sdp.factors import LinearCost, WeightedDistance
from lopro.problem import Problem

__all__ = [
    "DiagonalForm",
    "check_diagonal_form",
    "default_rank",
    "diagonal_form",
]

#: Largest share of nonzero entries with which a dense cost is multiplied as a sparse matrix. Time of the
#: sparse product with a factor over that of the dense one, on one core: 0.5, 1.1 and 1.8 with shares of 0.1,
#: 0.25 and 0.4 for n = 400; 0.4, 1.1 and 1.8 for n = 1000.
_SPARSE = 0.25
#: Least size of a column of the first factor, relative to the largest: rows without an entry in the positive
#: part of the target get a direction. A tenth and ten times as much change no step in
#: ``python -m benchmarks.constants methods.semidefinite``.
_LEAST_COLUMN = 1e-3


@dataclass(frozen=True, eq=False)
class DiagonalForm:
    """``min <C, X>`` or ``1/2 sum W_ij (X_ij - G_ij)^2`` over positive semidefinite X with the diagonal d.

    With a squared distance other entries may be fixed as well.

    Attributes
    ----------
    problem : Problem
        The problem as it was posed.
    diagonal : array
        The positive diagonal d.
    C : array or scipy.sparse array, optional
        The symmetric cost matrix.
    distance : SymmetricDistance, optional
        The weighted distance, with its fixed entries.
    rank : int, optional
        Number of columns of the factor, if the problem is posed in a factor.
    """

    problem: Problem
    diagonal: Array
    C: Any = None
    rank: int | None = None
    distance: SymmetricDistance | None = None

    @property
    def fixed(self) -> Array | None:
        """The entries off the diagonal that are fixed; None if there are none."""
        return None if self.distance is None else self.distance.fixed

    @property
    def constant(self) -> Estimate:
        """The part of the value that does not depend on the scaled matrix, with bounds of roundings."""
        if self.distance is None:
            return Estimate(0.0)
        return self.distance.constant - Estimate(self._rounding(self.distance))

    @property
    def roots(self) -> Array:
        """The lengths of the rows of a factor."""
        return np.sqrt(self.diagonal)

    @property
    def _unit_diagonal(self) -> bool:
        return bool((self.diagonal == 1.0).all())

    def cost(self) -> LinearCost | WeightedDistance:
        """Return the cost as a function of the matrix ``X_ij / sqrt(d_i d_j)``, with a diagonal of ones."""
        pairs = 1.0 if self._unit_diagonal else self.roots[:, None] * self.roots
        if self.distance is not None:
            W, G = self.distance.W, self.distance.G
            return WeightedDistance(W * (pairs * pairs), G / pairs, self.fixed)
        if not self._unit_diagonal and scipy.sparse.issparse(self.C):
            R = scipy.sparse.diags_array(self.roots)
            return LinearCost(scipy.sparse.csr_array(R @ self.C @ R))
        return LinearCost(self.C if self._unit_diagonal else self.C * pairs)

    def _rounding(self, distance: SymmetricDistance) -> float:
        """Return a bound on the error of a distance from the rounding of scaled weights and targets."""
        if self._unit_diagonal:
            return 0.0
        pairs = self.roots[:, None] * self.roots
        return 16.0 * EPS * float((distance.W * (pairs + np.abs(distance.G)) ** 2).sum())

    def start(self, rank: int | None) -> Array:
        """Return the first factor: a random one, or that of the positive part of the target of a distance."""
        n = len(self.diagonal)
        if self.distance is None:
            shape = n, min(rank or default_rank(n), n)
            return np.random.default_rng(0).standard_normal(shape)
        M = self.distance.G / (self.roots[:, None] * self.roots)
        np.fill_diagonal(M, 1.0)
        count("eigendecompositions")
        values, vectors = np.linalg.eigh(M)
        p = min(n, rank or max(1, int(np.count_nonzero(values > 0.0))))
        sizes = np.maximum(values[n - p :], _LEAST_COLUMN * float(values[-1]))
        return np.asarray(vectors[:, n - p :] * np.sqrt(sizes))

    def share(self, like: Array) -> float:
        """Return the share of the identity that makes a matrix of unit diagonal provably semidefinite.

        It covers the rounding error of a Cholesky factorisation, and the change of eigenvalues by rounding to
        the precision of ``like``.
        """
        n = len(self.diagonal)
        share = 4.0 * gamma(n + 2) * n
        return share + 2.0 * math.sqrt(n) * eps(like) if is_single(like) else share

    def candidate(self, V: Array, like: Array, share: float) -> Array:
        """Return the point of a factor V with rows of unit norm: ``(1 - share) V V' + share I``, scaled."""
        if self.rank is not None:
            return np.asarray(V * self.roots[:, None])
        X = (1.0 - share) * (V @ V.T)
        if not self._unit_diagonal:
            X *= self.roots[:, None] * self.roots
        if self.distance is not None and self.distance.fixed is not None:
            X[self.distance.fixed] = self.distance.G[self.distance.fixed]
        X.flat[:: len(V) + 1] = self.diagonal
        return asarray_like(X, like)

    def _diagonal_slope(self) -> Array:
        if self.distance is None:
            return np.asarray(self.C.diagonal())
        W, G = self.distance.W.diagonal(), self.distance.G.diagonal()
        return np.asarray(W * (self.diagonal - G))

    def inequality(self, x: Array, Z: Any, y: Array) -> ValidInequality | None:
        """Return ``<Z, X> >= d'y``, with the multipliers of the diagonal signed as those of upper sides.

        None if other entries are fixed. Z is the slope off the diagonal, and y holds the multipliers of the
        scaled diagonal without the slope there.
        """
        if self.fixed is not None:
            return None
        y = y / self.diagonal
        own = self._diagonal_slope()
        if self.rank is not None:  # the multipliers are those of X, not of its factor
            return ValidInequality(np.zeros_like(x), 0.0, (-(y + own),))
        constraint = self.problem.constraint
        members = constraint.members()
        set_ = matrix_rows(members)
        assert set_ is not None
        slope = Z.toarray() if scipy.sparse.issparse(Z) else Z
        slope = slope / (self.roots[:, None] * self.roots)
        slope.flat[:: self.diagonal.size + 1] = own
        coefficient = np.asarray(set_.A.sum(axis=1)).ravel()
        v = -(y + own)[_places(set_.A, set_.size)] / coefficient
        dual = member_duals(members, set_, v, slope)
        return ValidInequality(-slope, -float(self.diagonal @ (y + own)), dual)


def default_rank(n: int) -> int:
    """Return the first number of columns of the factor for a linear cost: half of ``sqrt(2 n)``.

    With ``sqrt(2 n)`` columns local minima are global (Boumal et al., 2016). Optimal ranks are smaller (G1:
    13, G32: 12), and the time of a step is proportional to the rank. If half is too few, the slack has a
    negative eigenvalue and a column is added.
    """
    return max(2, math.ceil(math.sqrt(n / 2.0)))


def diagonal_form(problem: Problem) -> DiagonalForm:
    """Return a problem as a cost over matrices with a given diagonal; see `check_diagonal_form`.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.semidefinite.diagonal_form import diagonal_form
    >>> at = np.arange(2)
    >>> ones = lopro.constraints.Affine.entries((at, at), 1.0, 1.0, shape=(2, 2))
    >>> set_ = lopro.constraints.Intersection(lopro.constraints.PSDCone(2), ones)
    >>> diagonal_form(lopro.Problem(lopro.objectives.Linear(np.ones((2, 2))), set_)).diagonal
    array([1., 1.])
    """
    f, c = problem.objective, problem.constraint
    if isinstance(f, FactorCost) and isinstance(c, RowLengths):
        return DiagonalForm(problem, c.diagonal, f.C, rank=f.rank)
    check_diagonal_form(problem)
    set_ = matrix_rows(c.members())
    assert set_ is not None
    n, values = set_.size, set_.upper / np.asarray(set_.A.sum(axis=1)).ravel()
    places = scipy.sparse.csr_array(set_.A).indices[set_.A.indptr[:-1]]
    i, j = places // n, places % n
    diagonal = np.zeros(n)
    diagonal[i[i == j]] = values[i == j]
    off = i != j
    weighted = SymmetricDistance.of(f, np.sqrt(diagonal), (i[off], j[off], values[off]))
    if weighted is not None:
        return DiagonalForm(problem, diagonal, distance=weighted)
    cost, _, _ = quadratic_parts(problem, n)
    if np.count_nonzero(cost) <= _SPARSE * n * n:
        return DiagonalForm(problem, diagonal, scipy.sparse.csr_array(cost))
    return DiagonalForm(problem, diagonal, cost)


_OTHER = "the rows are not the entries of the diagonal, each once, with a positive right-hand side"
_TWICE = "entries beside the diagonal are fixed only for squared distances with weights, each once"


def check_diagonal_form(problem: Problem) -> None:
    """Raise unless the rows fix each diagonal entry once and the cost is linear or a weighted distance.

    With a weighted distance other entries may be fixed as well.
    """
    is_weighted = weighted_distance(problem.objective) is not None
    if is_weighted:
        check_set(problem)
    else:
        check_form(problem, distance=False)
    n = problem.shape[0] if problem.shape else 0
    places: list[Any] = []
    for member in problem.constraint.members():
        if isinstance(member, PSDCone):
            continue
        found = _entries(member, n)
        if found is None:
            raise MissingCapabilityError(_OTHER)
        places.extend(found)
    i, j = np.array(places, dtype=int) // max(n, 1), np.array(places, dtype=int) % max(n, 1)
    own, other = i[i == j], np.array(places, dtype=int)[i != j]
    if len(own) != n or len(np.unique(own)) != n:
        raise MissingCapabilityError(_OTHER)
    if len(np.unique(other)) != len(other) or (len(other) and not is_weighted):
        raise MissingCapabilityError(_TWICE)


def _entries(member: Constraint, n: int) -> Any:
    """Return the entries that a member fixes, on the diagonal to positive numbers; None for other rows."""
    if not isinstance(member, Affine) or not scipy.sparse.issparse(member.M.matrix):
        return None
    M = scipy.sparse.csr_array(member.M.matrix)
    if not np.diff(M.indptr).all() or not (member.lower == member.upper).all():
        return None
    i, j = M.indices // n, M.indices % n
    places = np.maximum(i, j) * n + np.minimum(i, j)
    first = places[M.indptr[:-1]]
    single = (places == np.repeat(first, np.diff(M.indptr))).all()
    sizes = np.asarray(M.sum(axis=1)).ravel()
    positive = (member.upper * sizes > 0.0) | ((first // n != first % n) & (sizes != 0.0))
    return first if single and positive.all() else None


def _places(A: Any, n: int) -> Any:
    """Return the index of the diagonal entry that each row fixes."""
    return scipy.sparse.csr_array(A).indices // n
