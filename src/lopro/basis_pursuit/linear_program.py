"""Small equations as a linear program: where Newton's method gets lost among degenerate vertices.

PIQP solves the dual in a few milliseconds, a twentieth of what HiGHS takes for a vertex; where that is not
enough, HiGHS is asked. What is taken from them is which columns are active, and a dual point with room to
spare. The pair is computed anew from these, at once or by Newton's method, and checked like any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro._util.arrays import Array, asarray_like, norm
from lopro._util.deadline import current_deadline
from lopro.basis_pursuit.problem import SparseProblem
from lopro.newton.engines import AnswerStatus, QuadraticProgram, solve_by_piqp
from lopro.protocol import Candidate, Multiplier

__all__ = ["Pair", "fits_linear_program", "is_quick_program", "optimal_pairs"]

Vector: TypeAlias = "np.ndarray[Any, Any]"

_ENTRIES = 2e5  # of A: beyond, a simplex method takes too long
_OPERATIONS, _QUICK = 1e10, 5e7  # rows squared times columns: beyond, PIQP does, or 30 milliseconds
_ACTIVE = 1e-6  # a correlation so close to its weight is at it
_RESIDUAL = 1e-10  # what PIQP is asked for
_DEPENDENT = 1e-9  # a pivot below this share of the largest: columns that depend on others
_MET = 1e-12  # equations are met up to this share of y


def fits_linear_program(sparse: SparseProblem) -> bool:
    """Whether the matrix is small, and wide enough for the equations to have more than one solution."""
    rows, columns = sparse.ball.A.shape
    return bool(rows < columns and _operations(sparse) <= _OPERATIONS)


def is_quick_program(sparse: SparseProblem) -> bool:
    """Whether it takes no longer than to look for the solution otherwise."""
    return _operations(sparse) <= _QUICK


def _operations(sparse: SparseProblem) -> float:
    rows, columns = sparse.ball.A.shape
    return float(rows) ** 2 * columns


@dataclass(frozen=True)
class Pair:
    """A solution of the equations and one of their dual, up to the accuracy of a solver."""

    x: Vector
    dual: Vector
    #: Signs of the columns that are active in the dual point, or in use.
    signs: Vector

    def candidate(self, sparse: SparseProblem, A: Vector, like: Array) -> Candidate | None:
        """Return the pair computed anew from the signs, as precise as ``like``; None where they are wrong.

        Columns in use that are independent tell the solution. The dual point of an interior point method is
        the centre of all of them, so what makes it exact on these columns leaves room on the others.
        """
        y, used = np.asarray(sparse.ball.y, dtype=np.float64), np.flatnonzero(self.signs)
        if not 0 < used.size <= len(y):
            return None
        Q, R = np.linalg.qr(A[:, used])
        pivots = np.abs(R.diagonal())
        if pivots.min() <= _DEPENDENT * pivots.max():
            return None
        x, target = np.zeros(A.shape[1]), (sparse.weights * self.signs)[used]
        x[used] = scipy.linalg.solve_triangular(R, Q.T @ y)
        nu = self.dual + Q @ (scipy.linalg.solve_triangular(R, target, trans="T") - Q.T @ self.dual)
        wrong = (x * self.signs < 0.0).any() or norm(A @ x - y) > _MET * norm(y)
        proof = None if wrong else sparse.proved(nu, A.T @ nu, norm(A))
        if proof is None:
            return None
        return Candidate(asarray_like(x, like), Multiplier(sparse.as_given(proof, like)))


def optimal_pairs(sparse: SparseProblem, A: Vector) -> Iterator[Pair]:
    """Yield solutions of ``min sum w_i |x_i|  s.t. A x = y``: of PIQP, then a vertex by HiGHS.

    Nothing where there is none, or no time.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.linear_program import optimal_pairs
    >>> from lopro.basis_pursuit.pose import bpdn_problem
    >>> from lopro.basis_pursuit.problem import SparseProblem
    >>> A = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]])
    >>> sparse = SparseProblem.of(bpdn_problem(A, np.ones(2), 0.0), np.zeros(3))
    >>> [pair.signs for pair in optimal_pairs(sparse, A)]
    [array([0., 0., 1.]), array([0., 0., 1.])]
    """
    y, w = np.asarray(sparse.ball.y, dtype=np.float64), np.asarray(sparse.weights, dtype=np.float64)
    unit, size, heavy = (float(np.abs(v).max()) for v in (A, y, w))
    if not (unit > 0.0 and size > 0.0):
        return
    M, y, w = np.asarray(A, dtype=np.float64) / unit, y / size, w / heavy
    for solve in (_by_piqp, _by_highs) if A.size <= _ENTRIES else (_by_piqp,):
        deadline = current_deadline()
        deadline.check()
        found = solve(M, y, w, sparse.nonneg, deadline.left)
        if found is not None:
            x, dual = found
            pulled = (M.T @ dual) / w
            active = (pulled if sparse.nonneg else np.abs(pulled)) >= 1.0 - _ACTIVE
            in_use = np.abs(x) > _ACTIVE * np.abs(x).max(initial=0.0)
            signs = np.where(active, np.sign(pulled), np.sign(np.where(in_use, x, 0.0)))
            yield Pair(x * (size / unit), dual * (heavy / unit), signs)


def _by_piqp(
    M: Vector, y: Vector, w: Vector, nonneg: bool, left: float
) -> tuple[Vector, Vector] | None:
    """Solve the dual ``max <y, v>  s.t. |M'v| <= w``, whose multipliers are the solution."""
    lower = np.full(len(w), -np.inf) if nonneg else -w
    program = QuadraticProgram.of(None, -y, A=M.T, lower=lower, upper=w)
    answer = solve_by_piqp(program, _RESIDUAL, None if math.isinf(left) else left)
    if answer.status is not AnswerStatus.SOLVED or not answer.finite:
        return None
    return answer.rows, answer.x


def _by_highs(
    M: Vector, y: Vector, w: Vector, nonneg: bool, left: float
) -> tuple[Vector, Vector] | None:
    both, cost = (M, w) if nonneg else (np.hstack([M, -M]), np.concatenate([w, w]))
    limits = {} if math.isinf(left) else {"time_limit": left}
    found = scipy.optimize.linprog(cost, A_eq=both, b_eq=y, method="highs", options=limits)
    if found.x is None or found.status != 0:
        return None
    d = len(w)
    return (found.x if nonneg else found.x[:d] - found.x[d:]), found.eqlin.marginals
