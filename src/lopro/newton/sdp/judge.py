"""Bounds of a semidefinite program from points and multipliers of any solver, less their rounding.

For feasible X and any y, ``<C, X> = b'y + <C - A*y, X>``. So ``b'y - mu trace(X)`` is a lower bound where
``C - A*y + mu I`` is positive semidefinite. A trace is bounded by ``b'z / l`` for every z with
``A*z >= l I``, ``l > 0``; without one, the bound holds for X up to a trace that is stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import REMNANTS, Emptiness
from lopro.certificates.violation import matrix_units, relative
from lopro.linalg.dense import EPS, Array, Matrix, norm
from lopro.linalg.eigenvalues import semidefinite_shift
from lopro.linalg.rounding import Estimate, dot, gamma, product
from lopro.newton.sdp.entries import row_squares
from lopro.newton.sdp.program import SemidefiniteProgram

__all__ = ["DualBound", "Judge", "PrimalValue"]

#: Covers the rounding of sums of up to 4e5 nonnegative numbers, n EPS relatively (Higham, Accuracy and
#: Stability of Numerical Algorithms, section 3.1).
_SAFE = 1.0 + 1e-10


@dataclass(frozen=True)
class DualBound:
    """``<C, X> >= value - slope * trace(X)`` for every feasible X.

    Attributes
    ----------
    y : array
        The multipliers.
    value, slope : float
        Those of the bound; with a slope of 0 it holds for all traces.
    slack_trace : float
        An upper bound of the trace of the slack, shifted to be positive semidefinite.
    """

    y: Array
    value: float
    slope: float
    slack_trace: float

    def at(self, trace: float) -> float:
        """Return the bound over all X up to this trace."""
        if self.slope == 0.0:
            return self.value
        return -math.inf if math.isinf(trace) else self.value - self.slope * trace * _SAFE


@dataclass(frozen=True)
class PrimalValue:
    """A point with its value and violation.

    Attributes
    ----------
    X : tuple of arrays
        The blocks.
    fun : float
        An upper bound of ``<C, X>``.
    residuals : array
        Upper bounds of ``|A X - b|``, row by row.
    negative : float
        ``X + negative I`` is positive semidefinite.
    violation : float
        The largest violation: of rows relative to their norms and that of X, of blocks in units of their
        diagonals.
    trace : float
        ``trace(X)``.
    """

    X: tuple[Array, ...]
    fun: float
    residuals: Array
    negative: float
    violation: float
    trace: float

    def charge(self, bound: DualBound) -> float:
        """Return an upper bound of the optimal value minus ``fun``, given these multipliers."""
        rows = float(np.abs(bound.y) @ self.residuals)
        return (rows + self.negative * bound.slack_trace) * _SAFE


class Judge:
    """Evaluates what points and multipliers of one program prove.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram
    >>> from lopro.newton.sdp.judge import Judge
    >>> judge = Judge(SemidefiniteProgram.dense(np.diag([2.0, 1.0]), [np.eye(2)], [3.0]))
    >>> round(judge.trace_bound, 9)
    3.0
    >>> bound = judge.dual(
    ...     np.array([1.5])
    ... )  # the slack is diag(0.5, -0.5): half the trace is charged
    >>> round(bound.at(judge.trace_bound), 9)
    3.0
    """

    def __init__(self, program: SemidefiniteProgram) -> None:
        self.program = program
        self.columns: list[Matrix] = [p.A.T.tocsr() for p in program.blocks]
        squares = np.zeros(len(program.b))
        for block in program.blocks:
            squares += row_squares(block.A)
        #: Norms of the rows.
        self.row_norms: Array = np.sqrt(squares)

    def dual(self, y: Array) -> DualBound:
        """Return the bound that multipliers prove."""
        slope, trace = 0.0, 0.0
        for slack, error in self._slacks(y, cost=True):
            slope = max(slope, semidefinite_shift(slack, error))
            diagonal = slack if slack.ndim == 1 else slack.diagonal()
            trace += float(np.abs(diagonal).sum()) + len(slack) * error
        size = sum(p.size for p in self.program.blocks)
        return DualBound(y, dot(self.program.b, y).lower(), slope, (trace + slope * size) * _SAFE)

    def primal(self, X: Sequence[Array]) -> PrimalValue:
        """Return value and violation of a point."""
        value, rows = Estimate(0.0), np.zeros(len(self.program.b))
        errors, negative, trace = np.zeros(len(rows)), 0.0, 0.0
        size, violation = math.sqrt(sum(norm(x) ** 2 for x in X)), 0.0
        for block, x in zip(self.program.blocks, X, strict=True):
            value = value + dot(block.C.ravel(), x.ravel())
            image, error = product(block.A, x.ravel())
            rows, errors = rows + image, errors + error + EPS * np.abs(image)
            shift = semidefinite_shift(x)
            if shift > 0.0:
                violation = max(violation, semidefinite_shift(x / _own_units(x)))
            negative = max(negative, shift)
            trace += float(x.sum() if block.diagonal else x.trace())
        residuals = (np.abs(rows - self.program.b) + errors) * _SAFE
        scales = np.maximum(np.abs(self.program.b), self.row_norms * size)
        violation = max(violation, float(relative(residuals, scales).max(initial=0.0)))
        return PrimalValue(tuple(X), value.upper(), residuals, negative, violation, trace)

    @cached_property
    def trace_bound(self) -> float:
        """An upper bound of the traces of feasible X; infinite if none is found.

        It follows from the multipliers with ``A*z`` nearest to the identity, which is attained by rows that
        fix the diagonal or the trace.
        """
        z = nearest_to_identity(self.program)
        shortage = 0.0
        for image, error in self._slacks(-z, cost=False):
            identity = np.ones(len(image)) if image.ndim == 1 else np.eye(len(image))
            shortage = max(shortage, semidefinite_shift(image - identity, error + 2.0 * EPS))
        if shortage >= 0.5:
            return math.inf
        return max(0.0, dot(self.program.b, z).upper()) / (1.0 - shortage) * _SAFE

    def contradiction(self, y: Array) -> tuple[Array, Emptiness]:
        """Return multipliers near ``y`` that prove an empty set, else those with the largest radius."""
        largest = float(np.abs(y).max(initial=0.0))
        best = y, Emptiness(0.0, 0.0)
        for share in REMNANTS:
            trial = np.where(np.abs(y) > share * largest, y, 0.0)
            found = self.empty(trial)
            if found.proved:
                return trial, found
            best = (trial, found) if found.radius > best[1].radius else best
        return best

    def empty(self, y: Array) -> Emptiness:
        """Return the radius that multipliers prove: no X with a smaller trace is feasible.

        For feasible X, ``b'y = <A*y, X> <= mu trace(X)`` where ``mu I - A*y`` is positive semidefinite. A
        bound of the trace absorbs mu; without one the set is proved to be empty if mu is rounding.
        """
        gain = dot(self.program.b, y).lower()
        if not gain > 0.0:
            return Emptiness(0.0, 0.0)
        mu, rounding = 0.0, True
        for image, error in self._slacks(-y, cost=False):
            shift = semidefinite_shift(-image, error)
            diagonal = image if image.ndim == 1 else image.diagonal()
            lost = error + gamma(len(image) + 2) * float(np.abs(diagonal).sum())
            mu, rounding = max(mu, shift), rounding and shift <= 8.0 * lost
        if gain > mu * self.trace_bound * _SAFE:
            mu = 0.0
        return Emptiness(gain, mu * _SAFE, rounding)

    def unbounded(self, X: Sequence[Array]) -> float:
        """Return a norm below which no multipliers are feasible for the dual; 0 if nothing is proved.

        For feasible y and positive semidefinite X, ``<C, X> = y'AX + <S, X> >= -|y| |A X|``.
        """
        lifted = []
        for x in X:
            # Twice the shift, as the sum is rounded, too.
            shift = 2.0 * semidefinite_shift(x)
            lifted.append(np.maximum(x, 0.0) if x.ndim == 1 else x + shift * np.eye(len(x)))
        ray = Judge(SemidefiniteProgram(0.0 * self.program.b, self.program.blocks)).primal(lifted)
        length = norm(ray.residuals) * _SAFE
        if ray.fun >= 0.0:
            return 0.0
        return math.inf if length == 0.0 else -ray.fun / length / _SAFE

    def _slacks(self, y: Array, cost: bool) -> list[tuple[Array, float]]:
        """Return the blocks of ``C - A*y``, or of ``-A*y``, with bounds of the norms of their errors."""
        found = []
        for block, columns in zip(self.program.blocks, self.columns, strict=True):
            image, error = product(columns, y)
            slack = block.C.ravel() - image if cost else -image
            error = error + EPS * np.abs(slack) + gamma(1) * np.abs(image)
            found.append((slack.reshape(block.shape), norm(error) * _SAFE))
        return found


def _own_units(x: Array) -> Array:
    """Return the units of entries: ``sqrt(X_ii X_jj)``, or the largest entry of a diagonal block."""
    largest = float(np.abs(x).max(initial=0.0)) or 1.0
    if x.ndim == 1:
        return np.full(len(x), largest)
    d = matrix_units(x.diagonal(), largest)
    return np.asarray(d[:, None] * d)


def nearest_to_identity(program: SemidefiniteProgram) -> Array:
    """Return the z with ``A*z`` nearest to the identity in the least squares sense."""
    return solve_gram(program, program.rows([p.identity for p in program.blocks]))


def solve_gram(program: SemidefiniteProgram, rhs: Array) -> Array:
    """Return an approximation of ``(A A*)^-1 rhs``, with a small shift for dependent rows."""
    gram = program.gram()
    scale = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    D = scipy.sparse.diags_array(scale)
    shift = 1e-14 * scipy.sparse.eye_array(len(rhs))
    factor = scipy.sparse.linalg.splu(scipy.sparse.csc_array(D @ gram @ D + shift))
    scaled = scale * rhs
    z = factor.solve(scaled)
    z = z + factor.solve(scaled - scale * (gram @ (scale * z)))
    return np.asarray(scale * z)
