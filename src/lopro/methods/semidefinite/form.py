"""The form of a problem over matrices as a semidefinite program: cost, rows, and blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.matrix_rows import MatrixRows, matrix_rows
from lopro.constraints.polyhedron import Box, Polyhedron
from lopro.constraints.psd import PSDCone
from lopro.constraints.spectrahedron import Spectrahedron
from lopro.core.arrays import is_complex
from lopro.errors import MissingCapabilityError
from lopro.maps.host import transferred
from lopro.newton.sdp import SemidefiniteBlock, SemidefiniteProgram
from lopro.newton.sdp.program import StandardRows
from lopro.objectives import Linear, Objective, SquaredDistance
from lopro.problem import Problem

__all__ = [
    "SemidefiniteForm",
    "check_form",
    "check_set",
    "member_duals",
    "nearest_form",
    "quadratic_parts",
    "semidefinite_form",
]


@dataclass(frozen=True, eq=False)
class SemidefiniteForm:
    """A semidefinite program, and the conversion of its solution to a matrix and multipliers of the members.

    Attributes
    ----------
    program : SemidefiniteProgram
        One block for each set of indices that cost and rows connect; slacks and isolated indices form a last,
        diagonal block.
    indices : tuple of arrays
        The indices of each block; those of the diagonal block are followed by the slacks.
    cost : array
        The cost matrix C of all indices.
    set_ : MatrixRows
        The rows.
    rows : StandardRows
        The rows as equations with slacks.
    """

    program: SemidefiniteProgram
    indices: tuple[Any, ...]
    cost: Any
    set_: MatrixRows
    rows: StandardRows

    def matrix(self, X: tuple[Any, ...]) -> Any:
        """Return the matrix with these diagonal blocks, and zeros elsewhere."""
        whole = np.zeros((self.set_.size, self.set_.size))
        for block, at, x in zip(self.program.blocks, self.indices, X, strict=True):
            if block.diagonal:
                whole[at, at] = x[: len(at)]
            else:
                whole[np.ix_(at, at)] = x
        return whole

    def traces(self, length: float) -> float:
        """Return a bound on the trace, slacks included, of matrices of this norm."""
        sizes = np.sqrt(np.asarray(self.rows.A.multiply(self.rows.A).sum(axis=1)).ravel())
        k, units = self.rows.slack.nonzero()[0], np.abs(self.rows.slack.data)
        slacks = float(((np.abs(self.rows.b[k]) + sizes[k] * length) / units).sum())
        return math.sqrt(self.set_.size) * length + slacks

    def length(self, trace: float) -> float:
        """Return a norm up to which the trace of every matrix, slacks included, is at most this."""
        at_zero = self.traces(0.0)
        slope = self.traces(1.0) - at_zero
        return max(0.0, trace - at_zero) / slope if math.isfinite(trace) else math.inf

    def duals(self, members: Any, y: Any, cost: bool, shift: float) -> tuple[Any, ...]:
        """Return multipliers of each member, signed as those of upper sides; for the cone minus the slack.

        With the cost they belong to a bound, without it to a proof that the set is empty. The shift is added
        to the slack to make it positive semidefinite.
        """
        v = -self.rows.multipliers(y)
        extra = shift * np.eye(self.set_.size) + (self.cost if cost else 0.0)
        return member_duals(members, self.set_, v, extra)


def member_duals(members: Any, set_: MatrixRows, v: Any, extra: Any = 0.0) -> tuple[Any, ...]:
    """Return multipliers of each member: those of its rows, and ``-(A*v + extra)`` for the cone."""
    n = set_.size
    slack = np.asarray(set_.A.T @ v).reshape(n, n) + extra
    found, start = [], 0
    for member, rows in zip(members, set_.counts, strict=True):
        own = v[start : start + rows]
        if isinstance(member, Box):
            A = set_.A[start : start + rows]
            own = np.asarray(A.T @ own).reshape(n, n)
        found.append(-slack if isinstance(member, PSDCone | Spectrahedron) else own)
        start += rows
    return tuple(found)


def semidefinite_form(problem: Problem) -> SemidefiniteForm:
    """Return a problem with a linear objective over positive semidefinite matrices as a program.

    Raises
    ------
    MissingCapabilityError
        If the objective is not linear, or the set is not one cone of real matrices with rows.

    Examples
    --------
    Indices that are not connected form separate blocks:

    >>> import numpy as np, lopro
    >>> from lopro.methods.semidefinite import semidefinite_form
    >>> f = lopro.objectives.Linear(np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 5]]))
    >>> at = np.arange(3)
    >>> fixed = lopro.constraints.Affine.entries((at, at), 1.0, 1.0, shape=(3, 3))
    >>> set_ = lopro.constraints.Intersection(lopro.constraints.PSDCone(3), fixed)
    >>> [block.size for block in semidefinite_form(lopro.Problem(f, set_)).program.blocks]
    [2, 1]
    """
    check_form(problem, distance=False)
    set_ = _rows(problem)
    cost, _, _ = quadratic_parts(problem, set_.size)
    rows = StandardRows.of(set_.A, set_.lower, set_.upper)
    program, indices = _split(cost, rows, set_.size)
    return SemidefiniteForm(program, indices, cost, set_, rows)


def nearest_form(problem: Problem) -> tuple[MatrixRows, Any, float, Any]:
    """Return rows, C, w and Z of ``<C, X> + w/2 |X - Z|^2`` with a positive w; raise for other objectives."""
    check_form(problem, distance=True)
    set_ = _rows(problem)
    return set_, *quadratic_parts(problem, set_.size)


def check_form(problem: Problem, *, distance: bool) -> None:
    """Raise unless a problem has the required form; no data are read."""
    check_set(problem)
    found = [isinstance(own, SquaredDistance) and factor > 0.0 for factor, own in _parts(problem)]
    if any(found) != distance:
        raise MissingCapabilityError(
            "the objective is not a squared distance" if distance else "the objective is not linear"
        )


def check_set(problem: Problem) -> None:
    """Raise unless the set is one cone of real matrices with rows."""
    for part in (problem.objective, problem.constraint):
        if part.like is not None and is_complex(part.like):
            raise MissingCapabilityError("semidefinite programs are made of real numbers")
    members = problem.constraint.members()
    kinds = [isinstance(m, PSDCone | Spectrahedron) for m in members]
    rows = [m for m, cone in zip(members, kinds, strict=True) if not cone]
    only = len(members) == 1 and isinstance(members[0], PSDCone)
    if sum(kinds) != 1 or only or not all(isinstance(m, Polyhedron) for m in rows):
        raise MissingCapabilityError(
            "the set is not one cone of real positive semidefinite matrices, together with rows"
        )


def _parts(problem: Problem) -> tuple[tuple[float, Objective], ...]:
    """Return the summands of the objective with their factors; raise for those of other types."""
    for _, own in problem.objective.summands:
        if not isinstance(own, Linear | SquaredDistance):
            raise MissingCapabilityError(f"the objective {own!r} is neither linear nor a distance")
        if isinstance(own, SquaredDistance) and own.weights is not None:
            raise MissingCapabilityError("the squared distance has weights")
    return problem.objective.summands


def _rows(problem: Problem) -> MatrixRows:
    set_ = matrix_rows(problem.constraint.members())
    assert set_ is not None
    return set_


def quadratic_parts(problem: Problem, n: int) -> tuple[Any, float, Any]:
    """Return C, w and Z of ``<C, X> + w/2 |X - Z|^2``: f on symmetric matrices, up to a constant."""
    C, weight, Z = np.zeros((n, n)), 0.0, np.zeros((n, n))
    for factor, own in _parts(problem):
        if isinstance(own, Linear):
            C = C + factor * transferred(own.a)
        elif isinstance(own, SquaredDistance):
            weight += factor
            Z = Z + factor * transferred(own.z)
    Z = Z / weight if weight > 0.0 else Z
    return 0.5 * (C + C.T), weight, 0.5 * (Z + Z.T)


def _split(cost: Any, rows: StandardRows, n: int) -> tuple[SemidefiniteProgram, tuple[Any, ...]]:
    """Return the blocks of the sparsity pattern of cost and rows.

    Entries between blocks do not enter cost and rows, and can be zero: the diagonal blocks of a positive
    semidefinite matrix form another one.
    """
    label, used = _components(cost, rows, n)
    sizes, slacks = np.bincount(label), rows.slack.shape[1]
    if len(sizes) == 1 and n > 1:
        blocks, indices = [SemidefiniteBlock(n, False, cost, rows.A)], [np.arange(n)]
        if slacks:
            blocks.append(SemidefiniteBlock(slacks, True, np.zeros(slacks), rows.slack))
            indices.append(np.arange(0))
        return SemidefiniteProgram(rows.b, tuple(blocks)), tuple(indices)
    columns = rows.A.tocsc()
    blocks, indices = [], []
    for k in np.flatnonzero(sizes > 1):
        at = np.flatnonzero(label == k)
        own = (at[:, None] * n + at).ravel()
        blocks.append(
            SemidefiniteBlock(len(at), False, cost[np.ix_(at, at)], columns[:, own].tocsr())
        )
        indices.append(at)
    alone = np.flatnonzero((sizes[label] == 1) & used)
    if len(alone) + slacks:
        C = np.concatenate([cost[alone, alone], np.zeros(slacks)])
        A = scipy.sparse.hstack([columns[:, alone * n + alone], rows.slack], format="csr")
        blocks.append(SemidefiniteBlock(len(C), True, C, A))
        indices.append(alone)
    return SemidefiniteProgram(rows.b, tuple(blocks)), tuple(indices)


def _components(cost: Any, rows: StandardRows, n: int) -> tuple[Any, Any]:
    """Return for each index its component of the pattern, and whether it occurs in cost or rows."""
    entries = cost != 0.0
    if (np.count_nonzero(entries, axis=1) - entries.diagonal() == n - 1).any():
        return np.zeros(n, dtype=int), np.ones(n, dtype=bool)  # one index is connected to all
    i, j = np.nonzero(entries)
    places = np.unique(rows.A.indices)
    i, j = np.concatenate([i, places // n]), np.concatenate([j, places % n])
    pattern = scipy.sparse.coo_array((np.ones(len(i)), (i, j)), (n, n))
    _, label = scipy.sparse.csgraph.connected_components(pattern, directed=False)
    used = np.zeros(n, dtype=bool)
    used[i] = used[j] = True
    return label, used
