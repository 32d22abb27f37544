"""A quadratic program whose multipliers are nearly known: guess the active rows, solve, correct the guess.

After a small change of the data most rows that were active still are. The equations of the active rows are
one linear system; rows that it violates become active, multipliers of the wrong sign release theirs, until
nothing changes. That is the primal-dual active set method, a semismooth Newton method (M. Hintermueller,
K. Ito, K. Kunisch, SIAM J. Optim. 13, 2002).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from lopro.core.real_vectors import Vector
from lopro.engines.answer import Answer, AnswerStatus
from lopro.engines.forms import QuadraticProgram

__all__ = ["solve_by_active_set"]

#: Systems at most, a quarter of the operations of an interior point method. Of 200 small changes of programs
#: 30 x 60 and 100 x 200 nine in ten settle after one to three; each has to halve the changes of the guess.
_SYSTEMS = 4
#: Share of the largest multiplier below which one is what an interior point method has left of zero.
_NOTHING = 1e-6
#: Roundings of the products of a row below which it is not violated.
_ROUNDINGS = 64.0 * float(np.finfo(np.float64).eps)


def solve_by_active_set(program: QuadraticProgram, rows: Vector, box: Vector) -> Answer:
    """Solve a dense quadratic program whose multipliers are nearly known.

    Parameters
    ----------
    program : QuadraticProgram
        Dense, with a matrix ``P``.
    rows, box : arrays
        Multipliers of rows and bounds of a program much like it.

    Returns
    -------
    Answer
        SOLVED, or FAILED without a point where the guess does not settle.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines import QuadraticProgram
    >>> from lopro.engines.active_set import solve_by_active_set
    >>> program = QuadraticProgram.of(np.eye(2), [-3.0, 0.0], A=[[1.0, 1.0]], upper=[1.0])
    >>> answer = solve_by_active_set(program, np.ones(1), np.zeros(2))
    >>> answer.x, answer.rows, answer.iterations
    (array([ 2., -1.]), array([1.]), 1)
    """
    begin, guess = time.perf_counter(), _Guess(program, rows, box)
    changes = len(program.q) + len(program.lower)
    for systems in range(1, _SYSTEMS + 1):
        try:
            found = guess.solved()
        except (np.linalg.LinAlgError, ValueError):
            break
        if not all(np.isfinite(v).all() for v in found):
            break
        left, changes = changes, guess.corrected(*found)
        if changes == 0:
            spent = time.perf_counter() - begin
            return Answer(AnswerStatus.SOLVED, *found, systems, spent, message="settled")
        if 2 * changes > left:
            break
    nothing = np.full(len(program.q), np.nan), np.zeros(len(rows)), np.zeros(len(box))
    return Answer(AnswerStatus.FAILED, *nothing, _SYSTEMS, message="the active rows do not settle")


class _Guess:
    """Which rows and bounds are active, at their upper (1) or lower (-1) sides."""

    def __init__(self, program: QuadraticProgram, rows: Vector, box: Vector) -> None:
        p = self.program = program
        self.equal, self.fixed = p.lower == p.upper, p.least == p.most
        self.boxed = p.boxed
        norms = np.sqrt(np.einsum("ij,ij->i", p.A, p.A))
        #: Products of rows are rounded by no more than this, for points of length 1.
        self.slack = _ROUNDINGS * norms
        # Interior point methods leave a little of all multipliers; in units of the slope they compare.
        pull = np.abs(rows) * norms
        least = _NOTHING * max(float(pull.max(initial=0.0)), float(np.abs(box).max(initial=0.0)))
        self.rows = _possible(np.where(pull > least, rows, 0.0), p.lower, p.upper, self.equal)
        self.box = np.zeros(len(box))
        if self.boxed:
            known = np.where(np.abs(box) > least, box, 0.0)
            self.box = _possible(known, p.least, p.most, self.fixed)

    def solved(self) -> tuple[Vector, Vector, Vector]:
        """Return the point and the multipliers at which the active rows and bounds hold with equality."""
        p, used = self.program, np.flatnonzero(self.rows)
        inside = np.flatnonzero(self.box == 0.0)
        n, m = len(inside), len(used)
        if m > n:
            raise np.linalg.LinAlgError("more active rows than free variables")
        assert p.P is not None
        A, sides = p.A[used], np.where(self.rows > 0.0, p.upper, p.lower)[used]
        rows, box, K = np.zeros(len(self.rows)), np.zeros(len(p.q)), np.zeros((n + m, n + m))
        if n == len(p.q):
            K[:n, :n], K[n:, :n], K[:n, n:] = p.P, A, A.T
            found = np.linalg.solve(K, np.concatenate([-p.q, sides]))
            rows[used] = found[n:]
            return found[:n], rows, box
        # Variables at their bounds leave the system, and contribute to its right-hand side.
        x = np.where(self.box > 0.0, p.most, p.least)
        x[inside] = 0.0
        K[:n, :n], K[n:, :n] = p.P[np.ix_(inside, inside)], A[:, inside]
        K[:n, n:] = K[n:, :n].T
        found = np.linalg.solve(K, np.concatenate([-(p.q + p.P @ x)[inside], sides - A @ x]))
        x[inside], rows[used] = found[:n], found[n:]
        outside = self.box != 0.0
        box[outside] = -(p.P @ x + p.q + found[n:] @ A)[outside]
        return x, rows, box

    def corrected(self, x: Vector, rows: Vector, box: Vector) -> int:
        """Take in what is violated and release what pulls the wrong way; return how many sides changed."""
        p, length = self.program, float(np.sqrt(x @ x))
        now = _next(self.rows, rows, p.A @ x, p.lower, p.upper, self.slack * length, self.equal)
        own = self.box
        if self.boxed:
            slack = _ROUNDINGS * np.abs(x)
            own = _next(self.box, box, x, p.least, p.most, slack, self.fixed)
        changes = np.count_nonzero(now != self.rows) + np.count_nonzero(own != self.box)
        self.rows, self.box = now, own
        return int(changes)


def _possible(multipliers: Vector, lower: Vector, upper: Vector, equal: Any) -> Vector:
    """Return the signs of multipliers without those of missing sides; equations are always active."""
    signs = np.sign(multipliers)
    missing = ((signs > 0.0) & np.isposinf(upper)) | ((signs < 0.0) & np.isneginf(lower))
    return np.where(equal, 1.0, np.where(missing, 0.0, signs))


def _next(
    signs: Vector,
    multipliers: Vector,
    image: Vector,
    lower: Vector,
    upper: Vector,
    slack: Vector,
    equal: Any,
) -> Vector:
    """Return the sides that are active next."""
    kept = np.where(signs * multipliers >= 0.0, signs, 0.0)
    outside = (image > upper + slack) * 1.0 - (image < lower - slack)
    return np.where(equal, 1.0, np.where(signs == 0.0, outside, kept))
