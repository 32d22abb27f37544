"""Starting points: a multiple of the identity, and a rank-one matrix from a linear program.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Array, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import power_of_two
from lopro.engines import AnswerStatus, QuadraticProgram, solve_by_highs
from lopro.metric.loss import PairLoss
from lopro.metric.objective import SparseMetric

__all__ = [
    "Start",
    "best_start",
    "first_start",
    "good_start",
    "rank_one_direction",
    "scaled_identity",
    "useful",
]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Vector: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Limits of the linear program, which yields one of two starting points: the share of the remaining time; the
#: number of simplex iterations times the entries of the samples, about a second, because Ctrl-C does not
#: interrupt it; and the time per entry before its first iteration, in operations of a matrix product. 1.00,
#: 1.00 for each; without this start 20 x 300 samples take 1.4 times the iterations, and 30 x 400 correlated
#: ones are not certified.
FOR_A_START, WORK, SET_UP = 0.2, 2e8, 3e4


def best_start(objective: SparseMetric) -> Matrix:
    """Return the better of the two starting points as a NumPy matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric import SparseMetric
    >>> from lopro.metric.starts import best_start
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss(np.array([[0.0, 1.0], [2.0, 0.0]]), ([0], [1]), [4.0])
    >>> best_start(SparseMetric(loss, 0.1)).round(6)
    array([[0.8, 0. ],
           [0. , 0.8]])
    """
    return first_start(objective).on(np.arange(objective.loss.X.shape[1]))


@dataclass(frozen=True)
class Start:
    """A starting point ``c I`` or ``v v'``, stored without the matrix.

    Attributes
    ----------
    scale : float
        c.
    vector : array, optional
        v, where the start is of rank one.
    """

    scale: float
    vector: Vector | None = None

    def on(self, features: Any) -> Matrix:
        """Return the submatrix on some features."""
        if self.vector is None:
            return self.scale * np.eye(len(features))
        v = self.vector[features]
        return np.outer(v, v)


def first_start(objective: SparseMetric) -> Start:
    """Return the better of the two starting points, without forming matrices over all features."""
    loss = objective.loss
    along, square = loss.identity_terms()
    c, d = scaled_identity(loss), loss.X.shape[1]
    best = Start(c)
    residual = loss.target_square - c * (2.0 * along - c * square)
    least = 0.5 * residual / loss.count + c * d * (objective.trace + objective.features)
    v = rank_one_direction(loss)
    if v is None:
        return best
    used = np.flatnonzero(v)
    other = Start(0.0, v)
    return other if objective.restricted(used).value(other.on(used)) < least else best


def good_start(objective: SparseMetric, given: Array) -> Matrix:
    """Return the given matrix in NumPy, or `best_start` if its value is not below that of zero.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric import SparseMetric
    >>> from lopro.metric.starts import good_start
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss(np.array([[0.0], [2.0]]), ([0], [1]), [4.0])
    >>> good_start(SparseMetric(loss, 0.1), np.array([[0.9]])).round(6)
    array([[0.9]])
    >>> good_start(SparseMetric(loss, 0.1), np.array([[1e6]])).round(6)
    array([[1.]])
    """
    if useful(objective, given):
        return to_numpy(given).astype(np.float64)
    return best_start(objective)


def useful(objective: SparseMetric, given: Array) -> bool:
    """Whether a given start has a lower value than zero; with widely different units it may not."""
    return bool(to_numpy(given).any()) and objective.value(given) < objective.value(0.0 * given)


def scaled_identity(loss: PairLoss) -> float:
    """Return the ``c >= 0`` with which ``c I`` has the least loss.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.starts import scaled_identity
    >>> from lopro.metric.loss import PairLoss
    >>> scaled_identity(PairLoss(np.array([[0.0], [2.0]]), ([0], [1]), [2.0]))
    0.5
    """
    along, square = loss.identity_terms()
    return max(0.0, along / square) if square > 0.0 else 0.0


def rank_one_direction(loss: PairLoss) -> Vector | None:
    """Return the ``v`` of least l1 norm for which ``v v'`` satisfies every target, or None.

    With targets 0 and ``c`` that split the samples into two groups, ``x_i'v`` must take two values
    ``sqrt(c)`` apart. The least ``|v|_1`` subject to these linear equations is a linear program. Its
    solution has at most as many nonzeros as there are samples, and ``|v|_1^2`` bounds the norm of ``v v'``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.starts import rank_one_direction
    >>> from lopro.metric.loss import PairLoss
    >>> X = np.array([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    >>> rank_one_direction(PairLoss(X, ([0], [1]), [4.0])).round(6) + 0.0
    array([-1., 0., 0.])
    """
    N, d = loss.X.shape
    if d + 1 < N:
        return None  # more equations than unknowns: rarely solvable
    sides = loss.sides()
    if sides is None:
        return None
    deadline = current_deadline()
    if not deadline.affords(SET_UP * N * d / FOR_A_START):
        return None
    X = to_numpy(loss.X).astype(np.float64)
    # Two groups exist only if all positive targets are equal.
    half = 0.5 * math.sqrt(loss.target_square / loss.target_size)
    # Tolerances of the solver are absolute: data and solution are scaled to size 1.
    unit, size = power_of_two(float(np.abs(X).max(initial=0.0))), power_of_two(half)
    # v is the difference of two nonnegative vectors; the level between the groups is free.
    rows = np.hstack([X / unit, -X / unit, np.ones((N, 1))])
    costs = np.concatenate([np.ones(2 * d), [0.0]])
    least = np.append(np.zeros(2 * d), -math.inf)
    targets = (half / size) * sides
    found = solve_by_highs(
        QuadraticProgram.of(None, costs, rows, targets, targets, least),
        1e-7,
        FOR_A_START * deadline.left,
        scaled=False,
        iterations=max(1, int(WORK / (N * d))),
    )
    if found.status is not AnswerStatus.SOLVED:
        return None
    return np.asarray((found.x[:d] - found.x[d : 2 * d]) * (size / unit))
