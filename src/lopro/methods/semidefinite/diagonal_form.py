"""Costs over positive semidefinite matrices with a given diagonal, posed with X or with a factor of it."""

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
from lopro.linalg.rounding import EPS, gamma
from lopro.maps.host import transferred
from lopro.methods.semidefinite.form import check_form, check_set, member_duals, quadratic_parts
from lopro.newton.sdp.factors import LinearCost, WeightedDistance
from lopro.objectives import Objective, Scaled, SquaredDistance
from lopro.problem import Problem

__all__ = [
    "DiagonalForm",
    "FactorCost",
    "RowLengths",
    "check_diagonal_form",
    "default_rank",
    "diagonal_form",
]

#: Share of nonzero entries up to which a dense cost is multiplied as a sparse matrix: a sparse product takes
#: about four times as long for each entry.
_SPARSE = 0.25


class FactorCost(Objective):
    """``f(V) = <C, V V'>``, linear in ``X = V V'``; C is symmetric, sparse or dense."""

    cancels = True

    def __init__(self, C: Any, rank: int) -> None:
        self.C, self.rank, self.shape = C, rank, (C.shape[0], rank)

    def value(self, x: Array) -> float:
        return float(np.vdot(self.C @ x, x))

    def subgradient(self, x: Array) -> Array:
        return np.asarray(2.0 * (self.C @ x))

    def magnitude(self, x: Array, fun: float) -> float:
        """Return the sum of ``|C_ij <v_i, v_j>|``."""
        if not scipy.sparse.issparse(self.C):
            return float(np.abs(self.C * (x @ x.T)).sum())
        i, j = self.C.nonzero()
        total, step = 0.0, max(1, 10**7 // x.shape[1])
        for first in range(0, len(i), step):
            at = slice(first, first + step)
            products = np.einsum("ek,ek->e", x[i[at]], x[j[at]])
            total += float(np.abs(np.asarray(self.C[i[at], j[at]]).ravel() * products).sum())
        return total


class RowLengths(Constraint):
    """Factors V with ``|v_i|^2 = d_i``: those of matrices ``V V'`` with the diagonal d."""

    def __init__(self, diagonal: Array, rank: int) -> None:
        self.diagonal, self.shape = diagonal, (len(diagonal), rank)

    def value(self, x: Array) -> float:
        return float(np.abs(np.einsum("ij,ij->i", x, x) - self.diagonal).max())

    def subgradient(self, x: Array) -> Array:
        raise NotImplementedError

    def violation(self, x: Array) -> float:
        off = np.einsum("ij,ij->i", x, x) - self.diagonal
        return float((np.abs(off) / self.diagonal).max())

    def project(self, x: Array) -> Array:
        lengths = np.sqrt(np.einsum("ij,ij->i", x, x))
        return np.asarray(
            x * (np.sqrt(self.diagonal) / np.where(lengths > 0.0, lengths, 1.0))[:, None]
        )


@dataclass(frozen=True, eq=False)
class DiagonalForm:
    """``min <C, X>`` or ``1/2 sum W_ij (X_ij - G_ij)^2`` over positive semidefinite X with the diagonal d.

    Attributes
    ----------
    problem : Problem
        As it was posed.
    diagonal : array
        d, positive.
    C : array or scipy.sparse array, optional
        The symmetric cost.
    W, G : arrays, optional
        Symmetric weights and target of a squared distance.
    rank : int, optional
        Columns of the factor, where the problem is posed with one.
    """

    problem: Problem
    diagonal: Array
    C: Any = None
    W: Any = None
    G: Any = None
    rank: int | None = None

    @property
    def roots(self) -> Array:
        """The lengths of the rows of a factor."""
        return np.sqrt(self.diagonal)

    @property
    def _plain(self) -> bool:
        return bool((self.diagonal == 1.0).all())

    def cost(self) -> LinearCost | WeightedDistance:
        """Return the cost of the matrix with a diagonal of ones: ``X_ij / sqrt(d_i d_j)``."""
        pairs = 1.0 if self._plain else self.roots[:, None] * self.roots
        if self.C is None:
            return WeightedDistance(self.W * (pairs * pairs), self.G / pairs)
        if not self._plain and scipy.sparse.issparse(self.C):
            R = scipy.sparse.diags_array(self.roots)
            return LinearCost(scipy.sparse.csr_array(R @ self.C @ R))
        return LinearCost(self.C if self._plain else self.C * pairs)

    def rounding(self) -> float:
        """Return what the rounding of scaled weights and targets may change a distance by."""
        if self.C is not None or self._plain:
            return 0.0
        pairs = self.roots[:, None] * self.roots
        return 16.0 * EPS * float((self.W * (pairs + np.abs(self.G)) ** 2).sum())

    def start(self, rank: int | None) -> Array:
        """Return a factor to begin with: at random, or the positive part of the target of a distance."""
        n = len(self.diagonal)
        if self.C is not None:
            shape = n, min(rank or default_rank(n), n)
            return np.random.default_rng(0).standard_normal(shape)
        M = self.G / (self.roots[:, None] * self.roots)
        np.fill_diagonal(M, 1.0)
        count("eigendecompositions")
        values, vectors = np.linalg.eigh(M)
        p = min(n, rank or max(1, int(np.count_nonzero(values > 0.0))))
        # Rows that the positive part leaves empty get a direction by the least size.
        sizes = np.maximum(values[n - p :], 1e-3 * float(values[-1]))
        return np.asarray(vectors[:, n - p :] * np.sqrt(sizes))

    def candidate(self, V: Array, like: Array) -> Array:
        """Return the point of the problem for a factor with rows of unit norm.

        Off-diagonal entries of X shrink by as much as a Cholesky factorisation needs to prove that X is
        positive semidefinite, and as rounding to the precision of ``like`` may take off its eigenvalues.
        """
        if self.rank is not None:
            return np.asarray(V * self.roots[:, None])
        n = len(V)
        X = V @ V.T
        share = 4.0 * gamma(n + 2) * n
        if is_single(like):
            share += 2.0 * math.sqrt(n) * eps(like)
        X *= 1.0 - share
        if not self._plain:
            X *= self.roots[:, None] * self.roots
        X.flat[:: n + 1] = self.diagonal
        return asarray_like(X, like)

    def _diagonal_slope(self) -> Array:
        if self.C is not None:
            return np.asarray(self.C.diagonal())
        return np.asarray(self.W.diagonal() * (self.diagonal - self.G.diagonal()))

    def inequality(self, x: Array, Z: Any, y: Array) -> ValidInequality:
        """Return ``<Z, X> >= d'y``, with the multipliers of the diagonal signed as those of upper sides.

        Z is the slope off the diagonal, and y holds the multipliers without its diagonal, in scaled units.
        """
        y = y / self.diagonal
        own = self._diagonal_slope()
        if self.rank is not None:  # what they prove is about X, not about its factor
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
        dual = constraint.dual_of(member_duals(members, set_, v, slope))
        return ValidInequality(-slope, -float(self.diagonal @ (y + own)), dual)


def default_rank(n: int) -> int:
    """Return the columns that a factor of a linear cost begins with: half of ``sqrt(2 n)``.

    With ``sqrt(2 n)`` of them local minima are global (Boumal et al.); optimal ranks are smaller (G1: 13,
    G32: 12), a step takes time in proportion, and where half is too few the slack shows it and a column is
    added.
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
    n, coefficient = set_.size, np.asarray(set_.A.sum(axis=1)).ravel()
    diagonal = np.zeros(n)
    diagonal[_places(set_.A, n)] = set_.upper / coefficient
    weighted = _weighted(f)
    if weighted is not None:
        return DiagonalForm(problem, diagonal, W=weighted[0], G=weighted[1])
    cost, _, _ = quadratic_parts(problem, n)
    if np.count_nonzero(cost) <= _SPARSE * n * n:
        return DiagonalForm(problem, diagonal, scipy.sparse.csr_array(cost))
    return DiagonalForm(problem, diagonal, cost)


def _weighted(f: Objective) -> tuple[Array, Array] | None:
    """Return weights and target of a weighted squared distance on symmetric matrices; None for others.

    On these the entries (i, j) and (j, i) are one: their weights count together, and their target is the
    mean.
    """
    factor, own = (f.factor, f.f) if isinstance(f, Scaled) else (1.0, f)
    if not isinstance(own, SquaredDistance) or own.weights is None or factor <= 0.0:
        return None
    W, z = (transferred(a) for a in (own.weights, own.z))
    both = 0.5 * (W + W.T)
    terms = 0.5 * (W * z + (W * z).T)
    mean = np.where(both > 0.0, terms / np.where(both > 0.0, both, 1.0), 0.5 * (z + z.T))
    return factor * both, mean


_OTHER = "the rows are not the entries of the diagonal, each once, with a positive right-hand side"


def check_diagonal_form(problem: Problem) -> None:
    """Raise unless rows are the entries of the diagonal, each once, and the cost is linear or weighted."""
    if _is_weighted(problem.objective):
        check_set(problem)
    else:
        check_form(problem, distance=False)
    n = problem.shape[0] if problem.shape else 0
    places: list[Any] = []
    for member in problem.constraint.members():
        if isinstance(member, PSDCone):
            continue
        found = _diagonal_places(member, n)
        if found is None:
            raise MissingCapabilityError(_OTHER)
        places.extend(found)
    if len(places) != n or len(np.unique(places)) != n:
        raise MissingCapabilityError(_OTHER)


def _is_weighted(f: Objective) -> bool:
    own = f.f if isinstance(f, Scaled) else f
    return isinstance(own, SquaredDistance) and own.weights is not None


def _diagonal_places(member: Constraint, n: int) -> Any:
    """Return the indices of the entries that a member fixes to positive numbers; None for other rows."""
    if not isinstance(member, Affine) or not scipy.sparse.issparse(member.M.matrix):
        return None
    M = scipy.sparse.csr_array(member.M.matrix)
    if M.nnz != M.shape[0] or (np.diff(M.indptr) != 1).any():
        return None
    positive = (member.lower == member.upper).all() and (member.upper * M.data > 0.0).all()
    on_diagonal = (M.indices // n == M.indices % n).all()
    return M.indices // n if positive and on_diagonal else None


def _places(A: Any, n: int) -> Any:
    """Return the index of the diagonal entry that each row fixes."""
    return scipy.sparse.csr_array(A).indices // n
