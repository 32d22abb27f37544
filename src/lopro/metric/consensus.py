r"""ADMM for sparse metric learning: three blocks, for the loss, the l1 norm and the cone.

The copy ``A`` fits the pairs, ``B`` is sparse, ``C`` is positive semidefinite; scaled multipliers ``U`` and
``W`` enforce ``A = B = C``:

    ``A = argmin loss + beta |A - (B - U + C - W) / 2|^2``      (exact, see `loss_step`)
    ``B = soft(A + U, tau / beta)`` off the diagonal,  ``C = P_psd(A + W)``
    ``U += A - B``,  ``W += A - C``,                        with over-relaxed ``A`` in both.

It runs in units in which all features have similar size, with an individual threshold for each entry, so
that the features need not be standardised. The units are powers of two: scaling causes no rounding.

``beta U`` tends to the subgradient ``Y`` of the norm and ``-beta W`` to the multiplier ``S`` of the cone, so
that every iterate gives a dual point.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lopro.core.arrays import Array, eps, namespace, norm
from lopro.core.diagonals import diagonal_of, raise_diagonal, without_diagonal
from lopro.engines import EngineUnavailable
from lopro.functions.atoms.group_norm import row_prox
from lopro.metric.dual import PairMultiplier
from lopro.metric.feature_units import feature_sizes, first_weight, rescaled
from lopro.metric.interior import interior_point
from lopro.metric.loss_step import ByEntries, LossStep, loss_step
from lopro.metric.objective import SparseMetric
from lopro.projections.psd import eigenvalues, project_psd, symmetric_part

__all__ = ["Consensus"]

#: Over-relaxation: below 2 the iteration converges. 0.17 loses one of the fits, 17 all.
RELAXATION = 1.7
#: Iterations between two checks of the residual balance (0.98, lost), the largest number of iterations
#: between them (1.00, 1.00), and the largest ratio of the primal to the dual residual or its inverse (1.10,
#: lost).
BALANCE_EVERY, LONGEST_PAUSE, BALANCE_RATIO = 25, 1600, 3.0
#: The range of ``beta``, in units of the curvature of the loss. Below, the system of the loss step is
#: numerically singular; above, the steps are lost to rounding. 1.00, 1.00.
LEAST_BETA, GREATEST_BETA = 1e-12, 1e12
#: The largest number of features for the interior point method: it takes 0.08 s with 20 features, 1.5 s with
#: 40, more than 9 s with 60 (100 Gaussian samples, one core).
FEW = 40


class Consensus:
    """The state of ADMM on one problem.

    Parameters
    ----------
    objective : SparseMetric
        The objective.
    start : array
        Symmetric; the initial value of all copies.
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
        sizes = feature_sizes(objective)
        xp = namespace(start)
        self._unit = xp.astype(sizes[:, None] * sizes[None, :], start.dtype, copy=False)
        self._loss_step: LossStep = loss_step(rescaled(objective.loss, sizes))
        self._A = self._B = self._C = self._G = start * self._unit
        self._U = self._W = self._T = 0.0 * start
        #: With a weight of the norms of the rows there is a fourth copy ``G`` with the multiplier ``T``.
        self._by_rows = objective.features > 0.0
        self._inverse_sizes = 1.0 / sizes
        self._pause = self._next_balance = BALANCE_EVERY
        self._last_turn = 1.0
        self.beta = first_weight(objective.l1, sizes, norm(self._A), self._loss_step.curvature)

    # Public attributes are in the units of the features.

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

    def settled(self) -> Array:
        """Return ``C`` in the units of the features, positive semidefinite in spite of rounding."""
        return self._settled(self._C)

    def projected(self, A: Array) -> Array:
        """Return the projection on the cone in the units of the iteration."""
        return self._settled(self.project(A * self._unit))

    def _settled(self, C: Array) -> Array:
        """Return ``C`` in the units of the features, its diagonal raised by a bound of its rounding errors.

        They are added in the units of the iteration: semidefiniteness does not depend on the units, and in
        those of the features a bound would exceed small diagonal entries.
        """
        xp, diagonal = namespace(C), diagonal_of(C)
        rise = 4.0 * diagonal.shape[0] * eps(C) * float(xp.max(diagonal))
        # Rounding may make a diagonal entry negative; features without nonzero entries stay unused.
        present = xp.any(C != 0.0, axis=1)
        raised = xp.where(present, 0.0 * diagonal + rise, 0.0 * diagonal)
        return raise_diagonal(1.0 * C, raised) / self._unit

    def with_zeros(self) -> list[Array]:
        """Return psd matrices with the zeros of ``B``.

        Raising its diagonal makes ``B`` psd at no cost in the norm. With the trace the cost may be high, and
        unused features have zero rows; ``C`` without them is then a second choice.
        """
        if self.objective.trace == 0.0 and not self._by_rows:
            return [lifted(self._B) / self._unit]
        used = self._B.diagonal() > 0.0
        if self._by_rows:
            used &= self._G.any(axis=1)
        # A feature with a zero diagonal entry has a row of zeros, once all copies agree.
        kept = used[:, None] & used[None, :]
        return [lifted(self._B * kept) / self._unit, self._settled(self._C * kept)]

    def step(self) -> None:
        """Make one iteration."""
        B, C, G = self._B, self._C, self._G
        if self._by_rows:
            middle = symmetric_part(B - self._U + C - self._W + G - self._T) / 3.0
            self._A = self._loss_step(middle, 1.5 * self.beta)
        else:
            self._A = self._loss_step(0.5 * (B - self._U + C - self._W), self.beta)
        ahead = RELAXATION * self._A
        towards_B = ahead + (1.0 - RELAXATION) * B + self._U
        towards_C = ahead + (1.0 - RELAXATION) * C + self._W
        self._U = self._clipped(towards_B)
        self._B = towards_B - self._U
        self._C = self.project(towards_C)
        self._W = towards_C - self._C
        if self._by_rows:
            towards_G = ahead + (1.0 - RELAXATION) * G + self._T
            weights = (self.objective.features / self.beta) * self._inverse_sizes
            self._G = row_prox(towards_G, weights, self._inverse_sizes)
            self._T = towards_G - self._G
        self.iterations += 1
        if self.iterations >= self._next_balance:
            self._balance(B, C, G)
            self._next_balance = self.iterations + self._pause

    def _clipped(self, A: Array) -> Array:
        """Return the part that the soft threshold removes, in scaled units, with that of the trace.

        The trace shifts the diagonal, whose entries stop at zero; their features are then unused.
        """
        most = (self.objective.l1 / self.beta) / self._unit
        xp = namespace(A)
        taken = without_diagonal(xp.minimum(xp.maximum(A, -most), most))
        if self.objective.trace == 0.0:
            return taken
        share = (self.objective.trace / self.beta) / diagonal_of(self._unit)
        return raise_diagonal(taken, xp.minimum(diagonal_of(A), share))

    def _balance(self, B: Array, C: Array, G: Array) -> None:
        """Adapt ``beta`` to balance the primal and the dual residual."""
        copies, before, duals = [self._B, self._C], [B, C], [self._U, self._W]
        if self._by_rows:
            copies, before, duals = [*copies, self._G], [*before, G], [*duals, self._T]
        apart = math.hypot(*(norm(self._A - copy) for copy in copies))
        moved = math.hypot(*(norm(new - old) for new, old in zip(copies, before, strict=True)))
        primal = apart / max(norm(self._A), 1e-300)
        dual = moved / max(math.hypot(*map(norm, duals)), 1e-300)
        curvature = self._loss_step.curvature
        if primal > BALANCE_RATIO * dual and self.beta < GREATEST_BETA * curvature:
            self._turn(2.0)
        elif dual > BALANCE_RATIO * primal and self.beta > 2.0 * LEAST_BETA * curvature:
            self._turn(0.5)

    def _turn(self, factor: float) -> None:
        """Change ``beta``; after each reversal of direction the changes are spaced further apart."""
        if self._last_turn * factor == 1.0:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._last_turn = factor
        self.rescale(factor)

    def rescale(self, factor: float) -> None:
        """Change ``beta`` without changing the unscaled multipliers."""
        self.beta *= factor
        self._U, self._W, self._T = self._U / factor, self._W / factor, self._T / factor

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
        # beta must not fall below the least value for the new loss step.
        least = LEAST_BETA * other._loss_step.curvature
        other.beta = self.beta
        if other.beta < least:
            other.rescale(least / other.beta)
        return other

    def by_interior_point(self, accuracy: float) -> Consensus | None:
        """Return the state at the solution of an interior point method; None where that is too expensive."""
        d, loss = len(self._A), self._loss_step
        if not isinstance(loss, ByEntries) or d > FEW or self._by_rows:
            return None
        sizes = diagonal_of(self._unit)
        try:
            A, S = interior_point(
                loss, self.objective.l1 / self._unit, self.objective.trace / sizes, accuracy
            )
        except EngineUnavailable:
            return None
        if not np.isfinite(A).all() or not np.isfinite(S).all():
            return None
        other = copy.copy(self)
        other._A = other._B = other._C = self.project(A)
        weights = self.objective.loss.residuals(other.A) / self.objective.loss.count
        Y = S + self.objective.loss.adjoint(weights) / self._unit
        other._U, other._W = self._clipped(Y / self.beta), -S / self.beta
        return other

    def multiplier(self) -> PairMultiplier:
        """Return the dual point of the last iteration."""
        loss = self.objective.loss
        weights = loss.residuals(self.A) / loss.count
        rows = self.beta * self._T * self._unit if self._by_rows else None
        return PairMultiplier(self.beta * self._W * self._unit, 0.0, weights=weights, rows=rows)


def lifted(B: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a symmetric matrix with its diagonal raised until it is psd; features have similar size."""
    used = np.flatnonzero(np.abs(B).sum(axis=0) > np.abs(B.diagonal()))
    raised = np.diag(np.maximum(B.diagonal(), 0.0))
    if used.size:
        block = 0.5 * (B[np.ix_(used, used)] + B[np.ix_(used, used)].T)
        lowest = float(eigenvalues(block)[0])
        # Plus a bound of rounding errors, which could make zero eigenvalues negative.
        rise = max(0.0, -lowest) + 4.0 * len(used) * np.finfo(float).eps * np.abs(block).max()
        np.fill_diagonal(block, block.diagonal() + rise)
        raised[np.ix_(used, used)] = block
    return raised
