"""A dual active set method for quadratic programs, started from approximate multipliers.

After a small change of the data most active rows stay active. With the matrix of the objective factorised,
their multipliers solve one linear system of the order of the number of active rows; rows with a multiplier of
the wrong sign are dropped. Then the most violated row becomes active, and rows whose multipliers vanish on
the way to it are dropped: the method of D. Goldfarb and A. Idnani, Math. Program. 27 (1983), started near its
end.
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

#: The most exchanges, a constant plus a number for each variable, and the most factorisations. An exchange
#: reads all rows; PIQP factorises a matrix of their size about ten times. Programs n x 2n whose slopes and
#: sides move by 2 % take 0 to 12 exchanges (n = 30 to 300), by 20 % 4 to 9 (n = 30) and 50 to 90 (n = 300),
#: consecutive steps of a walking robot 3 or 4 (``python -m benchmarks.general.sequences``).
_EXCHANGES, _PER_VARIABLE, _FACTORISATIONS = 10, 0.5, 4
#: Share of the slope, or of the largest multiplier, below which a given multiplier counts as 0. For this and
#: the two numbers below a tenth and ten times as much change no step of ``python -m benchmarks.constants
#: engines``.
_ZERO = 1e-6
#: Square of the sine of the angle to the span of the active rows below which a row depends on them.
_INDEPENDENT = 1e-10
#: Share of the norm of the point by which a row of length 1 has to be violated: rounding of their product.
_ROUNDING = 1024.0 * float(np.finfo(np.float64).eps)


def solve_by_active_set(program: QuadraticProgram, rows: Vector, box: Vector) -> Answer:
    """Solve a dense quadratic program from approximate multipliers.

    Parameters
    ----------
    program : QuadraticProgram
        Dense, with a positive definite matrix ``P``.
    rows, box : arrays
        Multipliers of rows and bounds of a similar program.

    Returns
    -------
    Answer
        SOLVED, or FAILED without a point if that takes too many exchanges. Iterations are exchanges and
        factorisations.

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
    begin, made = time.perf_counter(), 0
    with contextlib.suppress(SingularSystem):
        search = _Exchanges(program, rows, box)
        most = _EXCHANGES + _PER_VARIABLE * len(program.q)
        for made in range(1, _FACTORISATIONS + 1):
            search.factorise()
            before, found = search.exchanges, search.violated()
            while found is not None and search.exchanges < most and search.include(*found):
                found = search.violated()
            if found is None and (search.exchanges == before or search.settled()):
                x, multipliers = search.solution()
                own = multipliers[len(rows) :] if program.boxed else np.zeros(len(box))
                vectors, spent = (x, multipliers[: len(rows)], own), time.perf_counter() - begin
                steps = made + search.exchanges
                return Answer(AnswerStatus.SOLVED, *vectors, steps, spent, message="settled")
            if found is not None:
                break
    nothing = np.full(len(program.q), np.nan), np.zeros(len(rows)), np.zeros(len(box))
    return Answer(AnswerStatus.FAILED, *nothing, made, message="the active rows do not settle")


class _Exchanges:
    """The active rows and bounds, their multipliers of the right signs, and the minimiser for these.

    With ``P = L L'`` the point is ``y = L'x``, rows are columns of ``V = L^-1 M'`` scaled to length 1, and
    the active ones with their signs are ``N``: ``y = -(L^-1 q + N v)``. The inverse of ``N'N`` is updated in
    every exchange, and its rounding errors are corrected at the end.
    """

    def __init__(self, program: QuadraticProgram, rows: Vector, box: Vector) -> None:
        p, given = program, rows
        M, lower, upper = p.A, p.lower, p.upper
        if p.boxed:
            M = np.vstack([p.A, np.eye(len(p.q))])
            lower, upper = np.concatenate([p.lower, p.least]), np.concatenate([p.upper, p.most])
            given = np.concatenate([rows, box])
        assert p.P is not None
        self._L = cholesky(np.array(p.P))
        V, self._slope = self._halfway(M.T), self._halfway(p.q)
        lengths = np.sqrt(np.einsum("ij,ij->j", V, V))
        #: The length of a row of zeros is set to 1.
        self._lengths = np.where(lengths > 0.0, lengths, 1.0)
        self._V = V / self._lengths
        self._lower, self._upper = lower / self._lengths, upper / self._lengths
        self._equal = lower == upper
        pull = given * self._lengths
        size = max(float(np.abs(pull).max(initial=0.0)), float(np.linalg.norm(self._slope)))
        known = np.where(np.abs(pull) > _ZERO * size, pull, 0.0)
        missing = ((known > 0.0) & np.isposinf(upper)) | ((known < 0.0) & np.isneginf(lower))
        signs = np.where(self._equal, 1.0, np.where(missing, 0.0, np.sign(known)))
        #: The active rows and bounds, and their sides: 1 for upper ones.
        self._active = np.flatnonzero(signs)
        self._signs = signs[self._active]
        #: Memory for the columns of N and for the inverse of N'N, of which the leading part is in use.
        self._columns = np.empty((len(p.q), len(p.q) + 1), order="F")
        self._room = np.empty((len(p.q) + 1, len(p.q) + 1), order="F")
        #: The Cholesky factor of N'N until the inverse is computed.
        self._factor: Any = None
        self.exchanges = 0

    def _halfway(self, rhs: Any, back: bool = False) -> Any:
        """Return ``L^-1 rhs``, or with ``back`` ``L'^-1 rhs``."""
        return scipy.linalg.lapack.dtrtrs(self._L, rhs, lower=1, trans=int(back))[0]

    @property
    def _N(self) -> Any:
        return self._columns[:, : len(self._active)]

    @property
    def _inverse(self) -> Any:
        return self._room[: len(self._active), : len(self._active)]

    def factorise(self) -> None:
        """Compute multipliers and point after dropping dependent rows and multipliers of the wrong sign."""
        while True:
            N = self._V[:, self._active] * self._signs
            gram = N.T @ N
            _, order, rank, _ = scipy.linalg.lapack.dpstrf(gram, tol=_INDEPENDENT)
            if rank < len(self._active):
                self._keep(np.sort(order[:rank] - 1))
                continue
            self._v, factor = np.zeros(0), None
            if len(self._active):
                factor = cholesky(gram)
                self._v = -cholesky_solve(factor, self._sides() + self._slope @ N)
            wrong = (self._v < 0.0) & ~self._equal[self._active]
            if not wrong.any():
                break
            self._keep(np.flatnonzero(~wrong))
        self._factor = factor
        self._N[:] = N
        self._y = -(self._slope + N @ self._v)

    def settled(self) -> bool:
        """Correct the rounding errors of the exchanges; return whether the conditions of a solution hold.

        These are: the active rows hold, their multipliers have the right signs, and no row is violated.
        """
        missing = self._sides() + (self._slope + self._N @ self._v) @ self._N
        self._v = self._v - self._inverse @ missing
        self._y = -(self._slope + self._N @ self._v)
        off = np.abs(self._y @ self._N - self._sides())
        allowed = _ROUNDING * float(np.linalg.norm(self._y))
        right = (self._v >= 0.0) | self._equal[self._active]
        return bool((off <= allowed).all() and right.all()) and self.violated() is None

    def _keep(self, chosen: Any) -> None:
        self._active, self._signs = self._active[chosen], self._signs[chosen]

    def _sides(self) -> Vector:
        upper, lower = self._upper[self._active], self._lower[self._active]
        return np.where(self._signs > 0.0, upper, -lower)

    def violated(self) -> tuple[int, float] | None:
        """Return the most violated row and the sign of its side; None if no row is violated."""
        image = self._y @ self._V
        excess = np.maximum(image - self._upper, self._lower - image)
        excess[self._active] = 0.0
        row = int(np.argmax(excess)) if len(excess) else 0
        if not len(excess) or excess[row] <= _ROUNDING * float(np.linalg.norm(self._y)):
            return None
        return row, 1.0 if image[row] > self._upper[row] else -1.0

    def include(self, row: int, sign: float) -> bool:
        """Make a row active and drop those whose multipliers vanish; return False if that is impossible."""
        n = sign * self._V[:, row]
        side = self._upper[row] if sign > 0.0 else -self._lower[row]
        pull = 0.0
        if self._factor is not None:
            self._inverse[:] = cholesky_solve(self._factor, np.eye(len(self._active)))
            self._factor = None
        while True:
            self.exchanges += 1
            products = n @ self._N
            change = self._inverse @ products
            direction = n - self._N @ change
            left = float(direction @ direction)
            step, leaving = self._first_to_vanish(change)
            if left > _INDEPENDENT:
                full = (float(n @ self._y) - side) / left
                step, leaving = (full, None) if full <= step else (step, leaving)
                self._y = self._y - step * direction
            elif leaving is None:
                return False  # the active rows contradict this one
            self._v, pull = self._v - step * change, pull + step
            if leaving is None:
                self._add(row, sign, n, pull, change, left)
                return True
            self._remove(leaving)

    def _first_to_vanish(self, change: Vector) -> tuple[float, int | None]:
        """Return the step at which a multiplier becomes zero first, and its index."""
        falling = np.flatnonzero((change > 0.0) & ~self._equal[self._active])
        if not len(falling):
            return np.inf, None
        steps = self._v[falling] / change[falling]
        first = int(np.argmin(steps))
        return max(0.0, float(steps[first])), int(falling[first])

    def _add(
        self, row: int, sign: float, n: Vector, pull: float, change: Vector, left: float
    ) -> None:
        k, inverse = len(self._active), self._inverse
        inverse += np.outer(change, change / left)
        self._room[:k, k] = self._room[k, :k] = -change / left
        self._room[k, k] = 1.0 / left
        self._columns[:, k] = n
        self._active, self._signs = np.append(self._active, row), np.append(self._signs, sign)
        self._v = np.append(self._v, pull)

    def _remove(self, place: int) -> None:
        """Drop an active row; the last one takes its place."""
        k, room = len(self._active) - 1, self._inverse
        room -= np.outer(room[:, place], room[place] / room[place, place])
        for vector in (self._active, self._signs, self._v):
            vector[place] = vector[k]
        room[place], room[:, place] = room[k], room[:, k]
        room[place, place] = room[k, k]
        self._columns[:, place] = self._columns[:, k]
        self._active, self._signs, self._v = self._active[:k], self._signs[:k], self._v[:k]

    def solution(self) -> tuple[Vector, Vector]:
        """Return the point and the multipliers of all rows and bounds."""
        multipliers = np.zeros(len(self._lengths))
        multipliers[self._active] = self._signs * self._v / self._lengths[self._active]
        return self._halfway(self._y, back=True), multipliers
