"""The nearest positive semidefinite matrix that satisfies rows, by Newton's method for the dual.

``min 1/2 |X - G|^2`` over ``lower <= A X <= upper`` and X positive semidefinite is solved by
``X = P_+(G + A*y)`` for the right multipliers y. With equations alone they minimise one augmented Lagrangian
of `lopro.newton.sdp.multipliers`, whose centre is G and whose penalty is 1. Inequalities get slacks with a
small weight in the distance, whose centre is updated (a proximal point method).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.certificate import Status
from lopro.core.arrays import Array as AnyArray
from lopro.core.arrays import namespace, nonnegative, norm, zeros
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import power_of_two
from lopro.linalg.dense import EPS, Array, Matrix, SingularSystem
from lopro.linalg.rounding import Estimate, dot, gamma, product
from lopro.newton.multipliers import never
from lopro.newton.sdp.dual_point import DualPoint
from lopro.newton.sdp.entries import row_squares
from lopro.newton.sdp.judge import Judge
from lopro.newton.sdp.multipliers import minimised
from lopro.newton.sdp.program import SemidefiniteBlock, SemidefiniteProgram, StandardRows
from lopro.newton.sdp.solve import solve
from lopro.newton.spectral import Spectrum

__all__ = ["Nearest", "NearestProblem"]

#: Maximum number of centres of the slacks. A tenth loses "nearest, bounds of entries" of
#: ``python -m benchmarks.constants newton.sdp``, ten times as many change nothing.
_CENTRES = 60
#: Unit of the slacks: a larger one reduces their weight in the distance, which takes fewer centres and more
#: steps for each. On random bounds of entries, n = 100: 58, 53, 58, 99 steps for 1, 2, 4, 8.
_LIGHT = 2.0
#: Inner problems are solved to this share of the last residual. Solved to rounding at once, "nearest, bounds
#: of entries" of ``python -m benchmarks.constants newton.sdp`` takes 76 eigendecompositions instead of 60.
_INNER = 1e-3
#: The residual to reach and the one that is accepted, in units of G and the bounds. A tenth and ten times as
#: much multiply the eigendecompositions of ``python -m benchmarks.constants newton.sdp`` by 1.16 and 0.99 (of
#: one problem by 1.89 and 0.88), and by 1.00 and 1.00.
_TOLERANCE, _ACCEPTED = 8.0 * EPS, 1e-11


@dataclass(frozen=True)
class Nearest:
    """An approximation of the nearest matrix, and its multipliers.

    Attributes
    ----------
    X, y : arrays
        ``X = P_+(G + A*y)`` on the device of G, and one multiplier for each row, on the host.
    F : array
        The multiplier of the cone is ``F F'``, the negative part of ``G + A*y``.
    solved : bool
        Whether the violations of the rows, scaled to unit norm, are within the tolerance.
    decompositions, products : int
        Numbers of eigendecompositions and of products with Jacobians.
    empty : float
        No matrix up to this trace is feasible; 0 if nothing is proved.
    """

    X: AnyArray
    y: Array
    F: AnyArray
    solved: bool
    decompositions: int
    products: int
    empty: float = 0.0

    @property
    def emptiness(self) -> str | None:
        """A sentence that states the proved emptiness of the set; None without a proof."""
        if self.empty == 0.0:
            return None
        where = "" if math.isinf(self.empty) else f" up to a trace of {self.empty:.3g}"
        return f"no positive semidefinite matrix{where} satisfies the rows"


class NearestProblem:
    """``min 1/2 |X - G|^2`` over ``lower <= A X <= upper``, X positive semidefinite, for any G.

    Parameters
    ----------
    size : int
        Order of X.
    A : scipy.sparse array of shape (m, size^2)
        Coefficients of ``X.ravel()`` in the rows; symmetric.
    lower, upper : arrays of shape (m,)
        Their sides.

    Examples
    --------
    >>> import numpy as np, scipy.sparse
    >>> from lopro.newton.sdp.nearest import NearestProblem
    >>> diagonal = scipy.sparse.csr_array(np.array([[1.0, 0, 0, 0], [0, 0, 0, 1.0]]))
    >>> problem = NearestProblem(2, diagonal, np.ones(2), np.ones(2))
    >>> problem.solve(np.array([[3.0, 2.0], [2.0, 0.0]])).X.round(9)
    array([[1., 1.],
           [1., 1.]])
    """

    def __init__(self, size: int, A: Matrix, lower: Array, upper: Array) -> None:
        self.size = size
        self.units = np.array([power_of_two(length) for length in np.sqrt(row_squares(A))])
        scale = scipy.sparse.diags_array(1.0 / self.units)
        self.A = scipy.sparse.csr_array(scale @ scipy.sparse.csr_array(A))
        self.lower, self.upper = lower / self.units, upper / self.units
        self.rows = StandardRows.of(self.A, self.lower, self.upper)
        self._block: SemidefiniteBlock | None = None
        #: Whether the program without a cost was solved to prove that the set is empty.
        self._solved_without_cost = False

    def solve(
        self,
        G: AnyArray,
        stopped: Callable[[], bool] = never,
        accuracy: float = 0.0,
        start: Array | None = None,
        wider: NearestProblem | None = None,
    ) -> Nearest:
        """Return an approximate solution for a symmetric G.

        Parameters
        ----------
        G : array of shape (size, size)
            The given matrix, in double precision; matrices remain on its device.
        stopped : callable
            Returns whether time is up.
        accuracy : float
            With equations only: a residual relative to their sides that suffices.
        start : array, optional
            The first multipliers. By default those of the nearest matrix that satisfies the equations, if
            these have no common entries, else 0.
        wider : NearestProblem, optional
            The problem with the same rows whose set must be proved empty, if the sides of this one were moved
            by a margin; this one by default.
        """
        unit = power_of_two(max(norm(G), float(np.abs(self.rows.b).max(initial=0.0))))
        s = np.maximum(self.rows.slacks(np.zeros(self.size**2)), 0.0) / unit
        y = self._start(G, start) / unit
        G, F = G / unit, zeros((self.size, 0), G)
        decompositions, products, residual, X = 0, 0, math.inf, G
        contradiction = _Contradiction((wider or self).program(unit, 1.0))
        program = self.program(unit, _LIGHT, G)
        accepted = max(_ACCEPTED, accuracy * norm(program.b))
        tolerance = _INNER if len(s) else max(_TOLERANCE, accuracy * norm(program.b))
        for _ in range(_CENTRES if len(s) else 1):
            try:
                point, work = minimised(
                    program, (G, s / _LIGHT), y, tolerance, stopped, contradiction.found_at
                )
            except SingularSystem:
                break
            last, s, y, X = s, point.X[1] * _LIGHT, point.y, point.X[0]
            F = _root(point)
            decompositions, products = decompositions + work[0], products + work[1]
            moved = float(np.abs(s - last).max(initial=0.0))
            before, residual = residual, max(point.primal_residual, moved)
            stuck = point.primal_residual > max(tolerance, accepted)
            stalled = residual > 0.5 * before and residual <= _ACCEPTED
            if residual <= _TOLERANCE or stuck or stalled or stopped():
                break
            tolerance = max(_TOLERANCE, _INNER * residual)
        empty, solved = 0.0, residual <= accepted
        if not solved and not stopped():
            y, empty = self._emptiness(y, contradiction)
        F, y = F * math.sqrt(unit), self._original(y) * unit
        return Nearest(X * unit, y, F, solved, decompositions, products, empty)

    def bound(self, G: AnyArray, found: Nearest) -> float:
        """Return the lower bound of ``1/2 |X - G|^2`` over feasible X that the multipliers prove.

        With ``U = A*y + F F'``, ``1/2 |X - G|^2 >= <U, X - G> - 1/2 |U|^2`` for all X, and ``<U, X>`` is at
        least ``sum min(y lower, y upper)``: ``F F'`` is positive semidefinite by construction, also with
        inaccurate eigenvectors. The rounding of U and of the products is subtracted.
        """
        y = found.y * self.units
        allowed = np.where(y > 0.0, np.isfinite(self.lower), np.isfinite(self.upper))
        y = np.where(allowed, y, 0.0)
        # Rows that are not among those of the block have no finite side, and no multiplier.
        used = self.block(G).used
        image, error = product(used.restricted(self.A).T.tocsr(), y)
        S = found.F @ found.F.T
        U = used.matrix(image) + S
        lost = norm(error) + gamma(found.F.shape[1] + 1) * norm(found.F) ** 2 * 1.01
        lost = (lost + EPS * norm(U)) * (1.0 + 1e-10)
        sides = np.where(y > 0.0, self.lower, np.where(y < 0.0, self.upper, 0.0))
        # <U, G> + 1/2 |U|^2 = <U, G + U/2>, with less cancellation.
        other = G + 0.5 * U
        value = dot(y, sides) - dot(other, U, EPS * abs(other))
        charge = lost * (norm(other) + norm(U) + lost) * (1.0 + 1e-10)
        return (value - Estimate(charge)).lower()

    def off(self, X: AnyArray) -> Array:
        """Return ``A X - upper``: the violations of upper sides, or the residuals of equations."""
        if isinstance(X, np.ndarray):
            return np.asarray(self.A @ X.ravel() - self.upper)
        used = self.block(X).used
        return np.asarray(used.restricted(self.A) @ used.of(X) - self.upper)

    def block(self, like: AnyArray) -> SemidefiniteBlock:
        """Return the rows as a block without a cost, on the device of ``like``."""
        if self._block is None or type(self._block.C) is not type(like):
            n = self.size
            self._block = SemidefiniteBlock(n, False, zeros((n, n), like), self.rows.A)
        return self._block

    def program(
        self, unit: float = 1.0, light: float = 1.0, like: AnyArray | None = None
    ) -> SemidefiniteProgram:
        """Return the rows as a program without a cost, in units of ``unit`` and slacks in units of ``light``.

        Its matrix is on the device of ``like``, by default on the host.
        """
        s = self.rows.slack.shape[1]
        slacks = scipy.sparse.csr_array(light * self.rows.slack)
        block = self.block(np.zeros(1) if like is None else like)
        blocks = (block, SemidefiniteBlock(s, True, np.zeros(s), slacks))
        return SemidefiniteProgram(self.rows.b / unit, blocks)

    def _start(self, G: AnyArray, start: Array | None) -> Array:
        """Return the first multipliers, of rows of unit norm."""
        if self.rows.slack.shape[1]:
            return np.zeros(len(self.rows.b))
        if start is not None:
            return np.asarray(start * self.units)
        block, rows = self.block(G), self.rows.A
        if len(block.used.places) < len(rows.indices):
            return np.zeros(len(self.rows.b))
        squares = row_squares(rows)
        own = np.where(squares > 0.0, squares, 1.0)
        return np.asarray((self.rows.b - block.image(G)) / own)

    def _original(self, y: Array) -> Array:
        return np.asarray(self.rows.multipliers(y) / self.units)

    def _emptiness(self, y: Array, contradiction: _Contradiction) -> tuple[Array, float]:
        """Return multipliers that prove the set to be empty, and infinity; else the given ones, and 0.

        If those of Newton's method are no proof, the program without a cost is solved, once.
        """
        if contradiction.found_at(y):
            return contradiction.ray, math.inf
        if not self._solved_without_cost:
            self._solved_without_cost = True
            left = current_deadline().left
            answer = solve(contradiction.program, 1e-6, None if math.isinf(left) else left)
            if answer.status is Status.INFEASIBLE:
                return answer.multipliers, math.inf
        return y, 0.0


class _Contradiction:
    """Multipliers that prove a program without a cost to be empty, along which Newton's method diverges.

    The first proof is kept, as later multipliers may prove nothing because of rounding.
    """

    def __init__(self, program: SemidefiniteProgram) -> None:
        self.program = program
        self.proved = False
        self.ray = np.zeros(len(program.b))

    @cached_property
    def _judge(self) -> Judge:
        return Judge(self.program)

    def found_at(self, y: Array) -> bool:
        """Return whether these multipliers, or earlier ones, are a proof."""
        length = norm(y)
        if not self.proved and length > 0.0:
            self.ray, found = self._judge.contradiction(y / length)
            self.proved = found.proved
        return self.proved


def _root(point: DualPoint) -> AnyArray:
    """Return F with ``F F'`` the negative part of the first block."""
    values, vectors = cast(Spectrum, point.spectra[0]).negative
    return vectors * namespace(values).sqrt(nonnegative(values))
