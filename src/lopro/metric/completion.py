"""Completion of the multiplier of a working set to all features, which proves that the others are zero.

Weights ``w`` of a problem on few features are feasible for the dual on all of them if there is a ``Y`` in the
box ``|Y_ij| <= tau``, ``Y_ii = 0``, with ``S = Y - M(w)`` positive semidefinite: its diagonal is given, and
off the diagonal it lies within ``tau`` of ``-M(w)``. It has the form ``S = B'B + diag(s)``, ``s >= 0``, with
few rows in ``B``, so that it is semidefinite for every ``B``, and no eigenvalue is computed. It remains to
minimise the violation of the box, a smooth function of ``B``: the sum of the squares of

    ``|b_i'b_j + M_ij| - tau``  and  ``|b_i|^2 + M_ii``,    where they are positive,

in units in which the diagonal of ``S`` is one. The set of solutions may have no interior, but it has one for
weights slightly below ``w``: `lowered` sacrifices a given share of the bound. A violation that remains is
subtracted from the bound (M5 of the theory), so that every ``B`` proves a bound.

Few entries reach the box: 0.03 % of them on 2000 genes, 0.01 % on 7129. The sum is taken over a list of
entries near the box or outside, and over all squared lengths; a survey of all entries, in blocks, gives the
bound that is proved and lists entries that have left the box. A step costs the listed entries alone.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, to_numpy
from lopro.core.deadline import current_deadline
from lopro.methods.inner.lbfgs import LBFGS
from lopro.metric.dual import PairMultiplier, lowering, scaled_bound
from lopro.metric.first_factor import KnownSlack, first_factor
from lopro.metric.loss import PairLoss
from lopro.metric.objective import SparseMetric
from lopro.metric.symmetric import ENTRIES_AT_A_TIME

__all__ = ["Completion"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

#: The part of the share that scales the weights; the rest lowers them evenly: 1.01, lost. With 0, 250 x 95
#: samples take 1.24 times the iterations.
SCALED_PART = 0.7
#: The margin between the box aimed at and the box, in units of the share: with a margin a finite number of
#: steps ends inside the box. 1.00, lost.
MARGIN = 0.2
#: Entries above this share of the box are listed: 1.00, lost.
NEAR = 0.9
#: Most steps between two surveys of all entries (0.99, 1.02); a survey follows as soon as the violation has
#: fallen to this share (1.00, 1.00; with 0, 30 x 400 correlated samples take 1.15 times the iterations).
STEPS, ENOUGH = 50, 1e-3
#: The least unit of a squared length, relative to the largest slack: 1.00, 1.00.
LEAST_SLACK = 1e-4


def even_lowering(loss: PairLoss, fun: float, share: float) -> float:
    """Return the number by which lowering all weights costs about a share of the bound.

    Lowering them by 1 costs ``sum_e z_e'A z_e``, which is about the sum of the targets.
    """
    return share * fun / loss.target_size


def lowered(loss: PairLoss, weights: Array, fun: float, share: float) -> Array:
    """Return dual weights whose value is lower by about this share of ``fun``.

    Scaling them widens the box relative to them; lowering all of them raises the slack of every feature.
    """
    even = even_lowering(loss, fun, (1.0 - SCALED_PART) * share)
    return (1.0 - SCALED_PART * share) * weights - even


class Completion:
    """The search for a multiplier of all features.

    Parameters
    ----------
    objective : SparseMetric
        The problem on all features.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric import SparseMetric
    >>> from lopro.metric.completion import Completion, KnownSlack
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss.from_differences(np.array([[1.0, 1.0], [1.0, -1.0]]), np.ones(2))
    >>> search = Completion(SparseMetric(loss, 0.5))
    >>> search.aim(np.array([0.05, -0.3]), 0.1, 0.1, KnownSlack(np.array([0]), np.array([[0.25]])))
    >>> while search.descend(lambda: True):
    ...     pass
    >>> search.violation
    0.0
    """

    def __init__(self, objective: SparseMetric) -> None:
        self.loss, self.tau, self.trace = objective.loss, objective.l1, objective.trace
        self.spread = objective.spread
        self.sizes = to_numpy(self.spread.diagonal)
        self._known: KnownSlack | None = None
        #: The transposed factor: its rows are the columns ``b_i`` of the module's docstring.
        self._rows: Matrix | None = None

    def aim(self, weights: Array, fun: float, share: float, known: KnownSlack) -> None:
        """Set the weights, lowered by a share of the bound, whose multiplier is searched for.

        The search starts from the known multiplier on some features, or from the present factor if the
        features are the same as before.
        """
        self.weights = lowered(self.loss, weights, fun, share)
        self._X, self._LX = self.loss.factors(self.weights)
        self._slack = self.trace - np.einsum("ij,ij->j", self._X, self._LX)
        self._units = np.sqrt(self._measured(self._slack))
        if self._rows is None or self._known is None or not known.same_features(self._known):
            factor = first_factor(self._X, self._LX, self._slack, self._units, known)
            self._rows = np.ascontiguousarray(factor.T)
        self._known = known
        self._width = 1.0 - MARGIN * share
        #: Numbers ``i d + j`` of the entries in the sum of squares.
        self._listed: Indices = np.zeros(0, dtype=np.int64)
        self._survey()

    def _measured(self, slack: Matrix) -> Matrix:
        """Return the unit of each squared length: the slack or a least one; 1 where no pair differs."""
        present = self.sizes > 0.0
        relative = np.where(present, slack / np.where(present, self.sizes, 1.0), 0.0)
        least = max(LEAST_SLACK * float(relative.max()), 1e-300)
        return np.asarray(np.where(present, np.maximum(relative, least) * self.sizes, 1.0))

    @property
    def factor(self) -> Matrix:
        """``B``, with a column for each feature."""
        assert self._rows is not None
        return self._rows.T

    def _survey(self) -> None:
        """Compare all entries with the box: compute the bound that is proved, list entries near the box."""
        w = self.weights - lowering(self.loss, self.spread, self.weights, self.factor, self.trace)
        d, box = len(self.sizes), self._width * self.tau
        near = NEAR * box
        largest, entries, sizes = 0.0, [self._listed], [np.zeros(len(self._listed))]
        for start, Y in self.loss.adjoint_above_diagonal(w, self.factor):
            np.abs(Y, out=Y)
            largest = max(largest, float(Y.max()))
            i, j = np.nonzero(near < Y)
            entries.append((i + start) * d + j + start)
            sizes.append(Y[i, j])
        #: The value of the dual point that the present factor gives.
        self.proved = scaled_bound(self.loss, self.tau, self.spread, w, self.factor, largest)
        found = np.concatenate(entries)
        violated = found[np.concatenate(sizes) > box]
        # A new list restarts the descent: it is made only if an entry outside of the box is not listed.
        if len(self._listed) == 0 or not np.isin(violated, self._listed).all():
            self._listed = np.unique(found)
            self._begin()

    def _begin(self) -> None:
        """Start L-BFGS on the sum of squares over the listed entries, in the rows that it depends on."""
        assert self._rows is not None
        d, units = len(self.sizes), self._units
        first, second = self._listed // d, self._listed % d
        moving = np.einsum("ij,ij->i", self._rows, self._rows) > self._width * self._slack
        moving[first] = moving[second] = True
        moving &= self.sizes > 0.0
        self._moving = np.flatnonzero(moving)
        number = np.cumsum(moving) - 1
        self._ends = number[first], number[second]
        area = units[first] * units[second]
        self._box = self._width * self.tau / area
        self._centre = _products(self._X.T, self._LX.T, first, second) / area
        self._most = (self._width * self._slack / units**2)[self._moving]
        scaled = self._rows[self._moving] / units[self._moving, None]
        self._descent = LBFGS(self._violation_at, scaled)

    def _violation_at(self, rows: Matrix) -> tuple[float, Matrix]:
        """Return the sum of squares over the listed entries and all lengths, and its gradient."""
        current_deadline().check()
        Y = _products(rows, rows, *self._ends) + self._centre
        Y -= np.clip(Y, -self._box, self._box)
        over = np.maximum(np.einsum("ij,ij->i", rows, rows) - self._most, 0.0)
        R = scipy.sparse.coo_array((Y, self._ends), shape=(len(rows),) * 2).tocsr()
        gradient = R @ rows + R.T @ rows + over[:, None] * rows
        self._excess = np.square(over)
        for ends in self._ends:
            self._excess += np.bincount(ends, weights=np.square(Y), minlength=len(rows))
        return 0.25 * float(self._excess.sum()), gradient

    def descend(self, tick: Callable[[], bool]) -> int:
        """Lower the violation of the listed entries, then survey; return the number of steps, 0 at the end.

        ``tick`` is called after each step; False ends the descent.
        """
        assert self._rows is not None
        before, steps = self.violation, 0
        while steps < STEPS and self.violation > ENOUGH * before and self._descent.step():
            steps += 1
            if not tick():
                break
        if steps:
            self._rows[self._moving] = self._descent.x * self._units[self._moving, None]
            self._survey()
        return steps

    @property
    def violation(self) -> float:
        """The sum of the squares of the violations of the box aimed at."""
        return self._descent.value

    @property
    def excess(self) -> Matrix:
        """The contribution of each feature to the violation."""
        total = np.zeros(len(self.sizes))
        total[self._moving] = self._excess
        return total

    def multiplier(self) -> PairMultiplier:
        """Return the dual point of the present factor."""
        return PairMultiplier.of_factor(self.weights, self.factor)


def _products(X: Matrix, Y: Matrix, first: Any, second: Any) -> Matrix:
    """Return the inner products of rows of ``X`` with rows of ``Y``, a chunk at a time."""
    found = np.empty(len(first))
    size = max(1, ENTRIES_AT_A_TIME // X.shape[1])
    for start in range(0, len(first), size):
        part = slice(start, start + size)
        np.einsum("ij,ij->i", X[first[part]], Y[second[part]], out=found[part])
    return found
