"""A quadratic program whose multipliers are nearly known: guess the active rows, solve, correct the guess.

After a small change of the data most rows that were active still are. The equations of the active rows are
one linear system, of their number once the matrix of the objective is factorised; rows that its solution
violates become active, multipliers of the wrong sign release theirs, until nothing changes. That is the
primal-dual active set method, a semismooth Newton method (M. Hintermueller, K. Ito, K. Kunisch, SIAM J.
Optim. 13, 2002).
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector
from lopro.engines.answer import Answer, AnswerStatus
from lopro.engines.forms import QuadraticProgram
from lopro.linalg.dense import SingularSystem, cholesky, cholesky_solve

__all__ = ["solve_by_active_set"]

#: Systems at most, and in a row without fewer changes of the guess than before. With ``n`` active rows a
#: system takes ``4/3 n^3`` operations, one iteration of an interior point method ``7 n^3``. Programs n x 2n
#: whose slopes and sides move by 2 % settle after one to five systems (n = 16 to 1000), those that move by
#: 10 % after two to nine, some after three with more changes (``python -m benchmarks.general.sequences``).
_SYSTEMS, _PATIENCE = 12, 3
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
    begin, systems = time.perf_counter(), 0
    with contextlib.suppress(SingularSystem):
        guess = _Guess(program, rows, box)
        least, idle = len(guess.signs), 0
        while systems < _SYSTEMS and idle < _PATIENCE:
            x, multipliers = guess.solved()
            systems, changes = systems + 1, guess.corrected(x, multipliers)
            if changes > guess.active + 2:
                break  # next to nothing of the guess was of use
            if changes == 0:
                own = multipliers[len(rows) :] if program.boxed else np.zeros(len(box))
                vectors, spent = (x, multipliers[: len(rows)], own), time.perf_counter() - begin
                return Answer(AnswerStatus.SOLVED, *vectors, systems, spent, message="settled")
            least, idle = (changes, 0) if changes < least else (least, idle + 1)
    nothing = np.full(len(program.q), np.nan), np.zeros(len(rows)), np.zeros(len(box))
    return Answer(AnswerStatus.FAILED, *nothing, systems, message="the active rows do not settle")


class _Guess:
    """Which rows and bounds are active, at their upper (1) or lower (-1) sides."""

    def __init__(self, program: QuadraticProgram, rows: Vector, box: Vector) -> None:
        p = self.program = program
        self.M, self.lower, self.upper, given = p.A, p.lower, p.upper, rows
        if p.boxed:
            self.M = np.vstack([p.A, np.eye(len(p.q))])
            self.lower = np.concatenate([p.lower, p.least])
            self.upper = np.concatenate([p.upper, p.most])
            given = np.concatenate([rows, box])
        self.equal = self.lower == self.upper
        norms = np.sqrt(np.einsum("ij,ij->i", self.M, self.M))
        #: Products of rows are rounded by no more than this, for points of length 1.
        self.slack = _ROUNDINGS * norms
        # Interior point methods leave a little of all multipliers; in units of the slope they compare.
        pull = np.abs(given) * norms
        known = np.where(pull > _NOTHING * float(pull.max(initial=0.0)), given, 0.0)
        self.signs = _possible(known, self.lower, self.upper, self.equal)
        # With P = L L' every system is one with the Gram matrix of columns of L^-1 M'.
        assert p.P is not None
        self.factor = cholesky(np.array(p.P))
        self.images = self._halfway(self.M.T)
        self.slope = self._halfway(p.q)

    @property
    def active(self) -> int:
        """The number of active rows and bounds."""
        return int(np.count_nonzero(self.signs))

    def _halfway(self, rhs: Any, back: bool = False) -> Any:
        """Return ``L^-1 rhs``, or ``L'^-1 rhs`` on the way back."""
        return scipy.linalg.lapack.dtrtrs(self.factor, rhs, lower=1, trans=int(back))[0]

    def solved(self) -> tuple[Vector, Vector]:
        """Return the point and the multipliers at which the active rows and bounds hold with equality."""
        used = np.flatnonzero(self.signs)
        sides = np.where(self.signs > 0.0, self.upper, self.lower)[used]
        V, active = self.images[:, used], np.zeros(0)
        if len(used):
            active = cholesky_solve(cholesky(V.T @ V), -(sides + self.slope @ V))
        multipliers = np.zeros(len(self.signs))
        multipliers[used] = active
        return -self._halfway(self.slope + V @ active, back=True), multipliers

    def corrected(self, x: Vector, multipliers: Vector) -> int:
        """Take in what is violated and release what pulls the wrong way; return how many sides changed."""
        slack, image = self.slack * float(np.sqrt(x @ x)), self.M @ x
        kept = np.where(self.signs * multipliers >= 0.0, self.signs, 0.0)
        outside = (image > self.upper + slack) * 1.0 - (image < self.lower - slack)
        now = np.where(self.equal, 1.0, np.where(self.signs == 0.0, outside, kept))
        changes = int(np.count_nonzero(now != self.signs))
        self.signs = now
        return changes


def _possible(multipliers: Vector, lower: Vector, upper: Vector, equal: Any) -> Vector:
    """Return the signs of multipliers without those of missing sides; equations are always active."""
    signs = np.sign(multipliers)
    missing = ((signs > 0.0) & np.isposinf(upper)) | ((signs < 0.0) & np.isneginf(lower))
    return np.where(equal, 1.0, np.where(missing, 0.0, signs))
