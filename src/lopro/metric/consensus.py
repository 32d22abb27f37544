r"""ADMM for sparse metric learning: one copy of the matrix for each of its three wishes.

Copy ``A`` fits the pairs, ``B`` is sparse, ``C`` is positive semidefinite; multipliers make them agree:

    ``A = argmin loss + beta |A - (B - U + C - W) / 2|^2``      (exact, see `loss_step`)
    ``B = soft(A + U, tau / beta)`` off the diagonal,  ``C = P_psd(A + W)``
    ``U += A - B``,  ``W += A - C``,                        with over-relaxed ``A`` in both.

``beta U`` tends to the slope ``Y`` of the norm and ``-beta W`` to the multiplier ``S`` of the cone, so that
every iterate comes with a dual point.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lopro._arrays import Array, norm
from lopro.metric.dual import PairMultiplier
from lopro.metric.loss_step import LossStep, loss_step
from lopro.metric.objective import SparseMetric
from lopro.projections.psd import project_psd

__all__ = ["Consensus"]

RELAXATION = 1.7
#: Iterations between two looks at the balance of the residuals, and how far they may be apart.
BALANCE_EVERY, BALANCE_RATIO = 25, 3.0
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
    >>> from lopro.objectives import PairLoss
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
        self._loss_step: LossStep = loss_step(objective.loss)
        self.A = self.B = self.C = start
        self.U = self.W = 0.0 * start
        self.beta = self._first_beta = _first_weight(objective, start)

    def step(self) -> None:
        """Make one iteration."""
        B, C = self.B, self.C
        self.A = self._loss_step(0.5 * (B - self.U + C - self.W), self.beta)
        ahead = RELAXATION * self.A
        towards_B = ahead + (1.0 - RELAXATION) * B + self.U
        towards_C = ahead + (1.0 - RELAXATION) * C + self.W
        _, sparse = self.objective.split()
        assert sparse is not None
        self.B = sparse.prox(towards_B, 1.0 / self.beta)
        self.C = self.project(towards_C)
        self.U, self.W = towards_B - self.B, towards_C - self.C
        self.iterations += 1
        if self.iterations % BALANCE_EVERY == 0:
            self._balance(B, C)

    def _balance(self, B: Array, C: Array) -> None:
        """Shift the weight to the residual that lags: between the copies, or between iterations."""
        apart = math.hypot(norm(self.A - self.B), norm(self.A - self.C))
        moved = math.hypot(norm(self.B - B), norm(self.C - C))
        primal = apart / max(norm(self.A), 1e-300)
        dual = moved / max(math.hypot(norm(self.U), norm(self.W)), 1e-300)
        if primal > BALANCE_RATIO * dual and self.beta < FARTHEST * self._first_beta:
            self.rescale(2.0)
        elif dual > BALANCE_RATIO * primal and self.beta * FARTHEST > self._first_beta:
            self.rescale(0.5)

    def rescale(self, factor: float) -> None:
        """Change ``beta`` without changing the multipliers it stands for."""
        self.beta *= factor
        self.U, self.W = self.U / factor, self.W / factor

    def extended(self, objective: SparseMetric, more: int) -> Consensus:
        """Return this state for a problem with ``more`` features after the present ones."""
        other = Consensus(objective, _padded(self.C, more), self.project)
        other.A, other.B = _padded(self.A, more), _padded(self.B, more)
        other.U, other.W = _padded(self.U, more), _padded(self.W, more)
        other.beta, other._first_beta = self.beta, self._first_beta
        return other

    def multiplier(self) -> PairMultiplier:
        """Return the dual point of the last iteration."""
        loss = self.objective.loss
        weights = (loss.targets - loss.distances(self.A)) / loss.targets.shape[0]
        return PairMultiplier(self.beta * self.W, 0.0, weights)


def _padded(A: Array, more: int) -> Array:
    return np.pad(A, ((0, more), (0, more)))


def _first_weight(objective: SparseMetric, start: Array) -> float:
    """Return a ``beta`` at which the threshold ``tau / beta`` is small beside the start.

    Balancing finds the right size soon, but from far away it would take many iterations.
    """
    size = norm(start)
    if objective.l1 > 0.0 and size > 0.0:
        return 10.0 * objective.l1 / size
    return 1e-3 * max(objective.loss.smoothness().value, 1e-300)
