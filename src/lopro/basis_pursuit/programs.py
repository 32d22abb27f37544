"""Small problems as programs: where Newton's method gets lost among degenerate vertices or very many signs.

For equations the dual is a linear program, ``max <y, v>  s.t. |A'v| <= w``; a point of the path has
``- alpha |v|^2 / 2`` in its objective as well, and ``alpha v`` is its residual. PIQP solves small ones in a
few milliseconds, a twentieth of what HiGHS takes for a vertex; where that is not enough, HiGHS is asked. What
is taken from them is which columns are active, and a dual point with room to spare. The pair is computed anew
from these, at once or by Newton's method, and checked like any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.problem import SparseProblem
from lopro.core.arrays import Array, asarray_like, norm, to_numpy
from lopro.core.deadline import current_deadline
from lopro.engines import (
    AnswerStatus,
    EngineUnavailable,
    QuadraticProgram,
    solve_by_highs,
    solve_by_piqp,
)
from lopro.protocol import Candidate, Multiplier

__all__ = ["Pair", "fits_program", "optimal_pairs"]

Vector: TypeAlias = "np.ndarray[Any, Any]"

_ENTRIES = 2e5  # of A: beyond, a simplex method takes too long
_OPERATIONS = 1e10  # rows squared times columns: beyond, PIQP does
_ACTIVE = 1e-6  # a correlation so close to its weight is at it
_RESIDUAL = 1e-10  # what PIQP is asked for
_DEPENDENT = 1e-9  # a pivot below this share of the largest: columns that depend on others
_MET = 1e-12  # equations are met up to this share of y
_INSIDE = 1.0 - 1e-12  # of sigma: what residuals aim at, so that rounding makes them no longer


def fits_program(sparse: SparseProblem, operations: float = _OPERATIONS) -> bool:
    """Whether the matrix is small, and wide enough for the equations to have more than one solution.

    A step of PIQP takes about the square of the rows times the columns; ``operations`` is the limit of that.
    1e9 are most of a second.
    """
    rows, columns = sparse.ball.A.shape
    return bool(rows < columns and float(rows) ** 2 * columns <= operations)


@dataclass(frozen=True)
class Pair:
    """A solution for one parameter of the path and one of its dual, up to the accuracy of a solver."""

    x: Vector
    dual: Vector
    #: Signs of the columns that are active in the dual point, or in use.
    signs: Vector
    alpha: float = 0.0

    def candidate(self, sparse: SparseProblem, A: Vector, like: Array) -> Candidate | None:
        """Return the solution that the signs tell, as precise as ``like``; None where they are wrong.

        Columns in use that are independent tell it. With ``A = Q R`` on them it is ``R^-1 (Q'y - a t)`` with
        ``t = R^-T w s``, and its residual is what ``Q`` leaves of ``y`` plus ``a Q t``: two parts at a right
        angle, so that the radius tells ``a``. Equations are met where ``a`` is zero, and these columns alone
        do not tell their dual point. That of an interior point method is the centre of all of them, so what
        makes it exact on these columns leaves room on the others.
        """
        y, used = to_numpy(sparse.ball.y).astype(np.float64), np.flatnonzero(self.signs)
        if not 0 < used.size <= len(y):
            return None
        Q, R = np.linalg.qr(A[:, used])
        pivots = np.abs(R.diagonal())
        if pivots.min() <= _DEPENDENT * pivots.max():
            return None
        t = scipy.linalg.solve_triangular(R, (sparse.weights * self.signs)[used], trans="T")
        inside = Q.T @ y
        rest, sigma = y - Q @ inside, sparse.ball.sigma
        room = (_INSIDE * sigma - norm(rest)) * (_INSIDE * sigma + norm(rest))
        lengths = [math.sqrt(room) / norm(t)] if room > 0.0 else []
        # The solution of the equations may do where their signs are not those at the radius.
        for a in [*lengths, 0.0] if self.alpha == 0.0 else lengths:
            x = np.zeros(A.shape[1])
            x[used] = scipy.linalg.solve_triangular(R, inside - a * t)
            if (x * self.signs < 0.0).any() or norm(A @ x - y) > max(sigma, _MET * norm(y)):
                continue
            nu = Q @ t + (rest / a if a > 0.0 else self.dual - Q @ (Q.T @ self.dual))
            proof = sparse.proved(nu, A.T @ nu, norm(A))
            if proof is not None:
                evidence = Multiplier(sparse.as_given(proof, like))
                return Candidate(asarray_like(x, like), evidence)
        return None


def optimal_pairs(sparse: SparseProblem, A: Vector, alpha: float = 0.0) -> Iterator[Pair]:
    """Yield solutions of ``min sum w_i |x_i|  s.t. A x = y``: of PIQP, then a vertex by HiGHS.

    With ``alpha``, of ``min alpha sum w_i |x_i| + |A x - y|^2 / 2``, by PIQP. Nothing where there is none, or
    no time.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.programs import optimal_pairs
    >>> from lopro.basis_pursuit.pose import bpdn_problem
    >>> from lopro.basis_pursuit.problem import SparseProblem
    >>> A = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]])
    >>> sparse = SparseProblem.of(bpdn_problem(A, np.ones(2), 0.0), np.zeros(3))
    >>> [pair.signs for pair in optimal_pairs(sparse, A)]
    [array([0., 0., 1.]), array([0., 0., 1.])]
    """
    y, w = to_numpy(sparse.ball.y).astype(np.float64), np.asarray(sparse.weights, dtype=np.float64)
    unit, size, heavy = (float(np.abs(v).max()) for v in (A, y, w))
    if not (unit > 0.0 and size > 0.0):
        return
    M, y, w = np.asarray(A, dtype=np.float64) / unit, y / size, w / heavy
    by_piqp = partial(_by_piqp, alpha=alpha * heavy / (unit * size))
    for solve in (by_piqp, _by_highs) if A.size <= _ENTRIES and alpha == 0.0 else (by_piqp,):
        deadline = current_deadline()
        deadline.check()
        try:
            found = solve(M, y, w, sparse.nonneg, deadline.left)
        except EngineUnavailable:
            continue
        if found is not None:
            x, dual = found
            pulled = (M.T @ dual) / w
            active = (pulled if sparse.nonneg else np.abs(pulled)) >= 1.0 - _ACTIVE
            in_use = np.abs(x) > _ACTIVE * np.abs(x).max(initial=0.0)
            signs = np.where(active, np.sign(pulled), np.sign(np.where(in_use, x, 0.0)))
            yield Pair(x * (size / unit), dual * (heavy / unit), signs, alpha)


def _by_piqp(
    M: Vector, y: Vector, w: Vector, nonneg: bool, left: float, alpha: float = 0.0
) -> tuple[Vector, Vector] | None:
    """Solve the dual ``max <y, v> - alpha |v|^2 / 2  s.t. |M'v| <= w``; its multipliers are the solution."""
    lower = np.full(len(w), -np.inf) if nonneg else -w
    square = alpha * np.eye(len(y)) if alpha > 0.0 else None
    program = QuadraticProgram.of(square, -y, A=M.T, lower=lower, upper=w)
    answer = solve_by_piqp(program, _RESIDUAL, left)
    if answer.status is not AnswerStatus.SOLVED or not answer.finite:
        return None
    return answer.rows, answer.x


def _by_highs(
    M: Vector, y: Vector, w: Vector, nonneg: bool, left: float
) -> tuple[Vector, Vector] | None:
    both, cost = (M, w) if nonneg else (np.hstack([M, -M]), np.concatenate([w, w]))
    program = QuadraticProgram.of(None, cost, both, y, y, least=0.0)
    found = solve_by_highs(program, 1e-7, left, scaled=False)
    if found.status is not AnswerStatus.SOLVED:
        return None
    d = len(w)
    return (found.x if nonneg else found.x[:d] - found.x[d:]), -found.rows
