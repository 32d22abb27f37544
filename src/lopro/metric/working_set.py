"""The problem on a working set of features: its state, its best points, and who else should join."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from lopro._arrays import to_numpy
from lopro.constraints import PSDCone
from lopro.metric.consensus import Consensus
from lopro.metric.objective import SparseMetric
from lopro.metric.pricing import prices

__all__ = ["Features", "WorkingProblem"]

Features: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Iterations of ADMM between two looks at the gap, and how many may pass without a better one.
LOOK_EVERY, PATIENCE = 50, 6000
#: Pairs whose differences are held at a time.
_BLOCK = 4096


class WorkingProblem:
    """Metric learning restricted to some features, solved by ADMM in NumPy.

    Parameters
    ----------
    objective : SparseMetric
        The problem on all features.
    features : array of int
        The working set.
    start : array
        A symmetric matrix on the working set.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric import SparseMetric
    >>> from lopro.metric.working_set import WorkingProblem
    >>> from lopro.objectives import PairLoss
    >>> loss = PairLoss(
    ...     np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), ([0, 0], [1, 2]), [0.0, 2.0]
    ... )
    >>> work = WorkingProblem(SparseMetric(loss, 0.1), np.array([0]), np.eye(1))
    >>> work.solve(1e-6, tick=lambda: True), work.wanted(most=5, threshold=1e-3)
    (True, array([1]))
    """

    def __init__(self, objective: SparseMetric, features: Features, start: Matrix) -> None:
        self.objective = objective
        self.features = features
        self.admm = Consensus(objective.restricted(features), start)
        self.fun, self.point = np.inf, start
        self.bound, self.multiplier = -np.inf, self.admm.multiplier()
        self._X = to_numpy(objective.loss.X).astype(np.float64, copy=False)

    @property
    def outside(self) -> Features:
        """The features that are not in the working set."""
        present = np.zeros(self._X.shape[1], dtype=bool)
        present[self.features] = True
        return np.flatnonzero(~present)

    def join(self, newcomers: Features) -> None:
        """Let features join, and go on from where ADMM stands."""
        self.features = np.concatenate([self.features, newcomers])
        objective = self.objective.restricted(self.features)
        self.admm = self.admm.extended(objective, len(newcomers))
        self.point = np.pad(self.point, (0, len(newcomers)))
        # What was proved on fewer features need not hold on more of them.
        self.bound = -np.inf

    def solve(self, accuracy: float, tick: Callable[[], bool]) -> bool:
        """Advance ADMM to this relative gap on the working set.

        Returns False when ``tick``, asked after each iteration, says that a budget has run out. An end
        without the accuracy, for want of progress, can be told by `gap`.
        """
        least, idle = np.inf, 0
        while True:
            for _ in range(LOOK_EVERY):
                self.admm.step()
                if not tick():
                    self._look()
                    return False
            self._look()
            if self.gap <= accuracy * abs(self.fun):
                return True
            idle = 0 if self.gap < 0.9 * least else idle + LOOK_EVERY
            least = min(least, self.gap)
            if idle > PATIENCE:
                return True

    @property
    def gap(self) -> float:
        """The gap of the best point among those that live on the working set."""
        return self.fun - self.bound

    def _look(self) -> None:
        """Keep the best point and the best dual point."""
        admm = self.admm
        fun = admm.objective.value(admm.C)
        if fun < self.fun:
            self.fun, self.point = fun, admm.C
        multiplier = admm.multiplier()
        found = admm.objective.dual_bound(PSDCone(len(admm.C)), admm.C, multiplier, self.fun)
        assert found is not None  # it has one over this cone
        if found[0] > self.bound:
            self.bound, self.multiplier = found[0], multiplier

    def wanted(self, most: int, threshold: float) -> Features:
        """Return the features outside that would lower the objective most, if any would."""
        outside = self.outside
        if outside.size == 0:
            return outside
        flow = self._laplacian_times_samples()
        M = self._X[:, self.features].T @ flow[:, outside]
        diagonal = np.einsum("ij,ij->j", self._X[:, outside], flow[:, outside])
        S = -0.5 * (self.multiplier.direction + self.multiplier.direction.T)
        found = prices(S, M, diagonal, self.objective.l1)
        # Nothing is wanted that would hardly be felt.
        count = int((found < -threshold * np.abs(diagonal)).sum())
        return np.sort(outside[np.argsort(found)[: min(count, most)]])

    def _laplacian_times_samples(self) -> Matrix:
        """Return ``Lap(w) X``, with which ``M(w) = X' Lap(w) X`` can be had in parts."""
        first, second = self.objective.loss.pairs
        X, total = self._X, np.zeros_like(self._X)
        for start in range(0, len(first), _BLOCK):
            part = slice(start, start + _BLOCK)
            i, j = first[part], second[part]
            along = self.multiplier.weights[part, None] * (X[i] - X[j])
            np.add.at(total, i, along)
            np.subtract.at(total, j, along)
        return total
