"""Linear costs over positive semidefinite matrices with a given diagonal, posed with X or a factor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.affine import Affine
from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.matrix_rows import matrix_rows
from lopro.constraints.psd import PSDCone
from lopro.core.arrays import Array
from lopro.errors import MissingCapabilityError
from lopro.methods.semidefinite.form import check_form, member_duals, quadratic_parts
from lopro.objectives import Objective
from lopro.problem import Problem

__all__ = ["DiagonalForm", "FactorCost", "RowLengths", "diagonal_form"]

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
    """``min <C, X>`` over positive semidefinite X with the diagonal d.

    Attributes
    ----------
    C : array or scipy.sparse array
        The symmetric cost.
    diagonal : array
        d, positive.
    problem : Problem
        As it was posed.
    rank : int, optional
        Columns of the factor, where the problem is posed with one.
    """

    C: Any
    diagonal: Array
    problem: Problem
    rank: int | None = None

    @property
    def roots(self) -> Array:
        """The lengths of the rows of a factor."""
        return np.sqrt(self.diagonal)

    def scaled_cost(self) -> Any:
        """Return ``C_ij sqrt(d_i d_j)``: the cost of a matrix with a diagonal of ones."""
        if (self.diagonal == 1.0).all():
            return self.C
        if scipy.sparse.issparse(self.C):
            R = scipy.sparse.diags_array(self.roots)
            return scipy.sparse.csr_array(R @ self.C @ R)
        return self.C * (self.roots[:, None] * self.roots)

    def candidate(self, V: Array) -> Array:
        """Return the point of the problem for a factor with rows of unit norm."""
        V = V * self.roots[:, None]
        if self.rank is not None:
            return np.asarray(V)
        X = V @ V.T
        X.flat[:: len(X) + 1] = self.diagonal
        return np.asarray(X)

    def inequality(self, x: Array, y: Array) -> ValidInequality:
        """Return the multipliers of the diagonal, signed as those of upper sides, with what they prove."""
        if self.rank is not None:  # what they prove is about X, not about its factor
            return ValidInequality(np.zeros_like(x), 0.0, (-y,))
        constraint = self.problem.constraint
        members = constraint.members()
        set_ = matrix_rows(members)
        assert set_ is not None
        coefficient = np.asarray(set_.A.sum(axis=1)).ravel()
        v = -y[_places(set_.A, set_.size)] / coefficient
        cost, _, _ = quadratic_parts(self.problem, set_.size)
        dual = constraint.dual_of(member_duals(members, set_, v, cost))
        return ValidInequality(-cost, -float(self.diagonal @ y), dual)


def diagonal_form(problem: Problem) -> DiagonalForm:
    """Return a problem as a linear cost over matrices with a given diagonal.

    Raises
    ------
    MissingCapabilityError
        Where the rows are not the entries of the diagonal, each once, with positive sides.

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
        return DiagonalForm(f.C, c.diagonal, problem, f.rank)
    check_diagonal_form(problem)
    set_ = matrix_rows(c.members())
    assert set_ is not None
    n, coefficient = set_.size, np.asarray(set_.A.sum(axis=1)).ravel()
    places = _places(set_.A, n)
    diagonal = np.zeros(n)
    diagonal[places] = set_.upper / coefficient
    cost, _, _ = quadratic_parts(problem, n)
    if np.count_nonzero(cost) <= _SPARSE * n * n:
        return DiagonalForm(scipy.sparse.csr_array(cost), diagonal, problem)
    return DiagonalForm(cost, diagonal, problem)


_OTHER = "the rows are not the entries of the diagonal, each once, with a positive right-hand side"


def check_diagonal_form(problem: Problem) -> None:
    """Raise unless the rows are the entries of the diagonal, each once; the cost is not read."""
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
