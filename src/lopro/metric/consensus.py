r"""ADMM for sparse metric learning: one copy of the matrix for each of its three wishes.

Copy ``A`` fits the pairs, ``B`` is sparse, ``C`` is positive semidefinite; multipliers make them agree:

    ``A = argmin loss + beta |A - (B - U + C - W) / 2|^2``      (exact, see `loss_step`)
    ``B = soft(A + U, tau / beta)`` off the diagonal,  ``C = P_psd(A + W)``
    ``U += A - B``,  ``W += A - C``,                        with over-relaxed ``A`` in both.

It runs in units in which all features are of one size, with a threshold of its own for each entry, so that
nobody has to standardise for its sake.

``beta U`` tends to the slope ``Y`` of the norm and ``-beta W`` to the multiplier ``S`` of the cone, so that
every iterate comes with a dual point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lopro._util.arrays import Array, namespace, norm
from lopro._util.diagonals import without_diagonal
from lopro.metric.dual import PairMultiplier
from lopro.metric.loss import PairLoss
from lopro.metric.loss_step import LossStep, loss_step
from lopro.metric.objective import SparseMetric
from lopro.projections.psd import project_psd

__all__ = ["Consensus"]

RELAXATION = 1.7
#: Iterations between two looks at the balance of the residuals, and how far they may be apart.
BALANCE_EVERY, BALANCE_RATIO = 25, 3.0
#: Features are not blown up beyond this share of the largest spread: it would be their rounding.
SMALLEST = 1e-16
#: How far balancing may take ``beta``: where a residual is zero but for rounding it would never end.
FARTHEST = 1e12


class Consensus:
    """The state of ADMM on one problem.

    Parameters
    ----------
    objective : SparseMetric
        What is minimised.
    start : array
        Symmetric; taken as sparse and as semidefinite copy.
    project : callable
        Projection on the cone.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric import SparseMetric
    >>> from lopro.metric.consensus import Consensus
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss(
    ...     np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), ([0, 0], [1, 2]), [0.0, 2.0]
    ... )
    >>> admm = Consensus(SparseMetric(loss, 0.1), np.eye(2))
    >>> for _ in range(200):
    ...     admm.step()
    >>> admm.C.round(4) + 0.0
    array([[0. , 0. ],
           [0. , 0.5]])
    """

    def __init__(
        self,
        objective: SparseMetric,
        start: Array,
        project: Callable[[Array], Array] = project_psd,
    ) -> None:
        self.objective = objective
        self.project = project
        self.iterations = 0
        sizes = _sizes(objective)
        xp = namespace(start)
        self._unit = xp.astype(sizes[:, None] * sizes[None, :], start.dtype, copy=False)
        self._loss_step: LossStep = loss_step(_rescaled(objective.loss, sizes))
        self._A = self._B = self._C = start * self._unit
        self._U = self._W = 0.0 * start
        self.beta = self._first_beta = _first_weight(objective, start)

    # Outside, matrices are in the units of the features.

    @property
    def A(self) -> Array:
        """The copy that fits the pairs."""
        return self._A / self._unit

    @property
    def B(self) -> Array:
        """The copy with zeros."""
        return self._B / self._unit

    @property
    def C(self) -> Array:
        """The positive semidefinite copy."""
        return self._C / self._unit

    def step(self) -> None:
        """Make one iteration."""
        B, C = self._B, self._C
        self._A = self._loss_step(0.5 * (B - self._U + C - self._W), self.beta)
        ahead = RELAXATION * self._A
        towards_B = ahead + (1.0 - RELAXATION) * B + self._U
        towards_C = ahead + (1.0 - RELAXATION) * C + self._W
        self._U = self._clipped(towards_B)
        self._B = towards_B - self._U
        self._C = self.project(towards_C)
        self._W = towards_C - self._C
        self.iterations += 1
        if self.iterations % BALANCE_EVERY == 0:
            self._balance(B, C)

    def _clipped(self, A: Array) -> Array:
        """Return what the soft threshold takes away, in the scaled units: nothing on the diagonal."""
        most = (self.objective.l1 / self.beta) / self._unit
        xp = namespace(A)
        return without_diagonal(xp.minimum(xp.maximum(A, -most), most))

    def _balance(self, B: Array, C: Array) -> None:
        """Shift the weight to the residual that lags: between the copies, or between iterations."""
        apart = math.hypot(norm(self._A - self._B), norm(self._A - self._C))
        moved = math.hypot(norm(self._B - B), norm(self._C - C))
        primal = apart / max(norm(self._A), 1e-300)
        dual = moved / max(math.hypot(norm(self._U), norm(self._W)), 1e-300)
        if primal > BALANCE_RATIO * dual and self.beta < FARTHEST * self._first_beta:
            self.rescale(2.0)
        elif dual > BALANCE_RATIO * primal and self.beta * FARTHEST > self._first_beta:
            self.rescale(0.5)

    def rescale(self, factor: float) -> None:
        """Change ``beta`` without changing the multipliers it stands for."""
        self.beta *= factor
        self._U, self._W = self._U / factor, self._W / factor

    def moved(self, objective: SparseMetric, kept: Any, more: int) -> Consensus:
        """Return this state for the features ``kept`` (by position), and ``more`` new ones after them."""

        def carried(A: Array) -> Array:
            return np.pad(A[np.ix_(kept, kept)], (0, more))

        other = Consensus(objective, carried(self.C), self.project)
        unit = other._unit
        other._A, other._B = carried(self.A) * unit, carried(self.B) * unit
        # Multipliers have the inverse units.
        other._U = carried(self._U * self._unit) / unit
        other._W = carried(self._W * self._unit) / unit
        other.beta, other._first_beta = self.beta, self._first_beta
        return other

    def multiplier(self) -> PairMultiplier:
        """Return the dual point of the last iteration."""
        loss = self.objective.loss
        weights = (loss.targets - loss.distances(self.A)) / loss.targets.shape[0]
        return PairMultiplier(self.beta * self._W * self._unit, 0.0, weights=weights)


def _sizes(objective: SparseMetric) -> Array:
    """Return the size of each feature, 1 on (geometric) average; 1 too where no pair differs.

    Without the norm the axes mean nothing: they may be directions in which there is only rounding.
    """
    spread = objective.spread.diagonal
    if objective.l1 == 0.0:
        return 0.0 * spread + 1.0
    xp = namespace(spread)
    present = spread > 0.0
    floor = max(SMALLEST * float(xp.max(spread)), 1e-300)
    logs = xp.where(
        present, xp.log(xp.where(spread > floor, spread, floor + 0.0 * spread)), 0.0 * spread
    )
    count = max(1.0, float(xp.sum(xp.astype(present, spread.dtype))))
    centred = xp.where(present, logs - float(xp.sum(logs)) / count, 0.0 * spread)
    return xp.exp(0.5 * centred)


def _rescaled(loss: PairLoss, sizes: Array) -> PairLoss:
    """Return the loss of features that are all of one size."""
    X = loss.X / namespace(loss.X).astype(sizes, loss.X.dtype, copy=False)[None, :]
    return PairLoss(X, loss.pairs, loss.targets)


def _first_weight(objective: SparseMetric, start: Array) -> float:
    """Return a ``beta`` at which the threshold ``tau / beta`` is small beside the start.

    Balancing finds the right size soon, but from far away it would take many iterations.
    """
    size = norm(start)
    if objective.l1 > 0.0 and size > 0.0:
        return 10.0 * objective.l1 / size
    return 1e-3 * max(objective.loss.smoothness().value, 1e-300)
