r"""The problem on a working set of features: ADMM, its best primal and dual points, and pricing.

A feature is added if it can lower the objective, which the solution of a small lasso problem decides.
Let ``A`` be optimal among matrices supported on the features ``F``, with multiplier ``S`` of the cone
there and pair weights ``w``. Adding a little of ``v v'``, with ``v = x`` on ``F`` and 1 on a feature ``i``
outside, changes the objective at the rate

    ``q_i(x) = x'S x - 2 M_iF x + 2 tau |x|_1 - M_ii``,     ``M = sum_e w_e z_e z_e'``,

so that feature ``i`` is to be added if the minimum of ``q_i`` is negative. By duality, if it is not, ``S``
extends to the features ``F`` and ``i``.

``S`` is singular (it vanishes on the range of ``A``), so that ``q_i`` may be unbounded below. The criterion
is therefore whether ``q_i(x) < -rho (1 + |x|^2)`` for some ``x``, with a small ``rho``; the difference of the
two sides is strongly convex, and its minimiser decides.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from lopro.constraints import PSDCone
from lopro.core.arrays import Array, from_numpy, namespace, to_numpy
from lopro.core.deadline import current_deadline
from lopro.methods.stalling import StallCheck
from lopro.metric.consensus import Consensus
from lopro.metric.objective import SparseMetric

__all__ = ["Features", "WorkingProblem", "prices"]

Features: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Iterations of ADMM between two computations of the gap (1.13, lost), and the number of consecutive gaps
#: without progress after which it stops (1.00, 1.00).
CHECK_EVERY, PATIENCE = 50, 120
#: With few features an interior point method is used after ``SLOW`` iterations if the gap still exceeds
#: ``SLOW_GAP`` (0.98, 1.00; 1.00, 1.00), and after ``LONG`` ones in any case (0.93, 1.00). The data
#: on breast cancer (569 samples, 30 features, raw units) end at a gap of 7 % without it and of 1e-5 with it.
SLOW, SLOW_GAP, LONG = 500, 0.1, 2000
#: The relative accuracy of the interior point method: 1.00, 1.00.
INTERIOR_ACCURACY = 1e-10
#: A feature without entries off the diagonal is removed if its diagonal entry is below this share of the
#: largest: 0.99, 0.99.
IDLE = 1e-6
#: The answer omits features below the largest of these shares at which the increase of the objective is less
#: than ``OMISSION_COST`` times the accuracy. They affect which features are zero, but not the iterations
#: (1.00, 1.00).
SHARES, OMISSION_COST = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6), 0.1


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
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss(
    ...     np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), ([0, 0], [1, 2]), [0.0, 2.0]
    ... )
    >>> work = WorkingProblem(SparseMetric(loss, 0.1), np.array([0]), np.eye(1))
    >>> work.solve(1e-6, tick=lambda: True), work.violated(most=5, threshold=1e-3)
    (True, array([1]))
    """

    def __init__(self, objective: SparseMetric, features: Features, start: Matrix) -> None:
        self.objective = objective
        self.features = features
        self.admm = Consensus(objective.restricted(features), start)
        # The start is the first best point: on easy problems no later point is better.
        self.point: Matrix = self.admm.projected(start)
        self.fun = float(self.admm.objective.value(self.point))
        self.sparse_fun, self.sparse_point = np.inf, self.point
        self.accuracy = np.inf
        self._left: set[int] = set()
        #: Whether the interior point method was used on these features.
        self._interior_tried = False
        self.bound, self.multiplier = -np.inf, self.admm.multiplier()

    @property
    def outside(self) -> Features:
        """The features outside of the working set in which some pair differs."""
        excluded = to_numpy(self.objective.spread.diagonal) <= 0.0
        excluded[self.features] = True
        return np.flatnonzero(~excluded)

    def join(self, added: Features) -> None:
        """Add features, remove unused ones, and continue ADMM from its present state."""
        kept, more = self._in_use(), len(added)
        features = np.concatenate([self.features[kept], added])
        objective = self.objective.restricted(features)
        admm = self.admm.moved(objective, kept, more)
        point = np.pad(self.point[np.ix_(kept, kept)], (0, more))
        sparse_point = np.pad(self.sparse_point[np.ix_(kept, kept)], (0, more))
        funs = float(objective.value(point)), float(objective.value(sparse_point))
        # Any line above may raise `OutOfTime`: the state is changed only below, and completely.
        self._left.update(np.delete(self.features, kept).tolist())
        self.features, self.admm = features, admm
        self.point, self.sparse_point = point, sparse_point
        self.fun, self.sparse_fun = funs
        # A bound for the former working set need not hold for the new one.
        self.bound, self._interior_tried = -np.inf, False

    def _in_use(self) -> Features:
        """Return the positions of the features to keep; those added again are kept, to avoid cycling."""
        B = self.admm.B
        off = np.abs(B).sum(axis=0) - np.abs(B.diagonal())
        # With the trace, the sparse copy has zeros on its diagonal too.
        diagonal = B.diagonal() if self.objective.trace > 0.0 else self.admm.C.diagonal()
        used = (off > 0.0) | (diagonal > IDLE * diagonal.max())
        readded = np.isin(self.features, list(self._left))
        return np.flatnonzero(used | readded)

    def solve(self, accuracy: float, tick: Callable[[], bool], for_zeros: float = np.inf) -> bool:
        """Advance ADMM to this relative gap on the working set; return False if a budget is exhausted.

        `answer` has exact zeros if the relative increase of the objective is at most this and ``for_zeros``.
        ``tick`` is called after each iteration and returns False when a budget is exhausted. If ADMM stalls,
        the result is True, and `reached` shows whether the accuracy was attained.
        """
        self.accuracy = min(accuracy, for_zeros)
        progress, spent = StallCheck(PATIENCE), 0
        while True:
            for _ in range(CHECK_EVERY):
                self.admm.step()
                if not tick():
                    self._update_best()
                    return False
            self._update_best()
            if self.reached(accuracy):
                return True
            spent += CHECK_EVERY
            slow = spent >= LONG or (spent >= SLOW and not self.reached(SLOW_GAP))
            if slow and self._by_interior_point() and self.reached(accuracy):
                return True
            if progress.stalled(self.gap):
                return True

    def _by_interior_point(self) -> bool:
        """Move to the solution of the interior point method, once; return False if it is not better."""
        if self._interior_tried:
            return False
        self._interior_tried = True
        found = self.admm.by_interior_point(INTERIOR_ACCURACY)
        if found is None or not found.objective.value(found.C) <= self.fun:
            return False
        self.admm = found
        self._update_best()
        # One iteration of ADMM from a solution yields its zeros.
        found.step()
        self._update_best()
        return True

    @property
    def answer(self) -> Matrix:
        """The best point with exact zeros if it is within the accuracy of the best point, else the latter."""
        allowed = self.accuracy * self._scale
        exact_zeros = self.sparse_fun <= self.fun + allowed
        best = self.sparse_point if exact_zeros else self.point
        most = (self.sparse_fun if exact_zeros else self.fun) + OMISSION_COST * allowed
        choices = (self._selected(best, share) for share in SHARES)
        return next((A for A in choices if self.admm.objective.value(A) <= most), best)

    def _selected(self, A: Matrix, share: float) -> Matrix:
        """Return ``A`` without features whose contribution is below this share of the largest.

        A psd matrix remains psd. Some features were added only for the proof, or belong to the first
        working set.
        """
        sizes = A.diagonal() * to_numpy(self.admm.objective.spread.diagonal)
        kept = sizes > share * sizes.max(initial=0.0)
        return np.asarray(A * (kept[:, None] & kept))

    @property
    def gap(self) -> float:
        """The gap of the best point, among matrices on the working set."""
        return self.fun - self.bound

    def reached(self, accuracy: float) -> bool:
        """Whether the relative gap is within this accuracy."""
        return self.gap <= accuracy * self._scale

    @property
    def _scale(self) -> float:
        return max(self.fun, self.objective.negligible)

    def _update_best(self) -> None:
        """Keep the best point and the best dual point."""
        admm, C = self.admm, self.admm.settled()
        fun = admm.objective.value(C)
        if fun < self.fun:
            self.fun, self.point = fun, C
        for sparse in admm.with_zeros():
            fun = admm.objective.value(sparse)
            if fun < self.sparse_fun:
                self.sparse_fun, self.sparse_point = fun, sparse
        multiplier = admm.multiplier()
        found = admm.objective.dual_bound(PSDCone(len(C)), C, multiplier, self.fun)
        assert found is not None  # over this cone there is always a bound
        if found[0] > self.bound:
            self.bound, self.multiplier = found[0], multiplier

    def violated(self, most: int, threshold: float) -> Features:
        """Return the features outside of the working set with the largest violations of dual constraints."""
        outside = self.outside
        if outside.size == 0:
            return outside
        X, flow = self.objective.loss.factors(self.multiplier.weights)
        M = X[:, self.features].T @ flow[:, outside]
        diagonal = np.einsum("ij,ij->j", X[:, outside], flow[:, outside])
        S = -0.5 * (self.multiplier.direction + self.multiplier.direction.T)
        diagonal = diagonal - self.objective.trace
        # Where no entry of M_iF exceeds the weight of the norm, x = 0 minimises q_i, which is -M_ii there.
        found = -diagonal
        active = np.flatnonzero(np.abs(M).max(axis=0, initial=0.0) > self.objective.l1)
        if active.size:
            parts = S, M[:, active], diagonal[active]
            # Thousands of small problems are solved together, on the device of the samples.
            cone, columns, own = (from_numpy(part, self.objective.loss.X) for part in parts)
            found[active] = to_numpy(prices(cone, columns, own, self.objective.l1, threshold))
        # Violations below the threshold are ignored.
        count = int((found < -threshold * np.abs(diagonal)).sum())
        return np.sort(outside[np.argsort(found)[: min(count, most)]])


def prices(
    S: Array,
    M: Array,
    diagonal: Array,
    tau: float,
    threshold: float = 1e-3,
    steps: int = 300,
) -> Array:
    """Return upper bounds on the minima of ``q_i / (1 + |x|^2)``; where negative, a feature is added.

    With enough steps the bound is below ``-threshold |M_ii|`` if the minimum is.

    Parameters
    ----------
    S : array of shape (f, f)
        Multiplier of the cone on the features in use.
    M : array of shape (f, k)
        ``M_iF`` of the ``k`` other features, one in each column.
    diagonal : array of shape (k,)
        ``M_ii`` of the other features.
    tau : float
        Weight of the norm.
    threshold : float
        Least violation, relative to ``M_ii``, at which a feature is added.
    steps : int
        Number of accelerated proximal steps; any ``x`` with a negative ``q_i`` suffices, so that the
        minimiser is not needed.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.working_set import prices
    >>> prices(np.array([[1.0]]), np.array([[3.0, 0.5]]), np.array([-2.0, -2.0]), 1.0).round(2)
    array([-0.4,  2. ])
    """
    xp = namespace(S)
    rho = threshold * xp.abs(diagonal)
    L = max(float(xp.linalg.eigvalsh(S)[-1]), 0.0) + max(float(xp.max(rho)), 1e-300)
    x = ahead = xp.zeros_like(M)
    t = 1.0
    for _ in range(steps):
        current_deadline().check()
        moved = ahead - (S @ ahead + rho * ahead - M) / L
        before, x = x, moved - xp.clip(moved, -tau / L, tau / L)
        t, last = 0.5 + math.sqrt(0.25 + t * t), t
        ahead = x + ((last - 1.0) / t) * (x - before)
    q = xp.sum(x * (S @ x - 2.0 * M), axis=0) + 2.0 * tau * xp.sum(xp.abs(x), axis=0) - diagonal
    return q / (1.0 + xp.sum(x * x, axis=0))
