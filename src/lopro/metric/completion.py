r"""Proving that features outside can stay there: completing the multiplier of a small problem.

Weights ``w`` of a problem on few features are feasible for the dual on all of them if there is a ``Y`` in the
box ``|Y_ij| <= tau``, ``Y_ii = 0``, with ``Y - M(w)`` positive semidefinite. Splitting (Douglas and Rachford)
looks for it. The set of such ``Y`` may be thin, but a little below ``w`` it has an interior, in which the
iteration soon ends. `lowered` gives up a chosen share of the bound, and the prize is a point that is feasible
exactly.
"""

from __future__ import annotations

import numpy as np

from lopro._util.arrays import Array, namespace, norm
from lopro._util.diagonals import boxed, diagonal_of, raise_diagonal, scaled
from lopro.metric.dual import is_psd
from lopro.metric.loss import PairLoss
from lopro.projections.psd import counted_negative_part, symmetric_part

__all__ = ["Completion"]

RELAXATION = 1.7
#: Of the share that is given up, this part scales the weights; the rest lowers them evenly.
SCALED_PART = 0.7
#: How much of the interior is aimed for, in units of an even lowering that costs the whole share, and down
#: to how much less than nothing a slack counts as semidefinite: bounds pay for what is missing.
MARGIN, ROUNDING = 0.5, 1e-3
#: Single precision is enough to hit an interior that is not thinner than this, in half the time.
SINGLE_FROM = 2e-3


def even_lowering(loss: PairLoss, fun: float, share: float) -> float:
    """Return the number by which all weights can be lowered at the cost of a share of the bound.

    It is worth that number times ``sum_e z_e'A z_e``, which is about the sum of the targets.
    """
    return share * fun / loss.target_size


def lowered(loss: PairLoss, weights: Array, fun: float, share: float) -> Array:
    """Return dual weights whose value is lower by about this share of ``fun``.

    Scaling makes the box wider, relative to them; lowering all of them raises the slack of every feature.
    """
    even = even_lowering(loss, fun, (1.0 - SCALED_PART) * share)
    return (1.0 - SCALED_PART * share) * weights - even


class Completion:
    """The search for the multiplier of all features.

    Parameters
    ----------
    loss : PairLoss
        The pairs.
    tau : float
        Size of the box.
    sizes : array of shape (d,)
        The diagonal of ``M(1)``: the unit in which slack is measured.
    trace : float
        Weight of the trace, which every slack has on its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.completion import Completion
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss.from_differences(np.array([[1.0, 1.0], [1.0, -1.0]]), np.ones(2))
    >>> search = Completion(loss, 0.5, np.array([2.0, 2.0]))
    >>> search.aim(np.array([0.05, -1.0]), fun=1.0, share=0.1)
    >>> while not search.feasible():
    ...     search.step()
    >>> bool(np.linalg.eigvalsh(search.slack()).min() >= 0.0)
    True
    """

    def __init__(self, loss: PairLoss, tau: float, sizes: Array, trace: float = 0.0) -> None:
        self.loss = loss
        self.trace = trace
        self.tau = tau
        self.sizes = sizes
        self._z: Array | None = None
        #: How many eigenvalues were negative in the last step.
        self._negative = 0

    def aim(self, weights: Array, fun: float, share: float) -> None:
        """Search for what these weights, less a share of the bound, need; from where the search stands."""
        self.share = share
        self.weights = lowered(self.loss, weights, fun, share)
        self.M = raise_diagonal(self.loss.adjoint(self.weights), -self.trace)
        self._unit = even_lowering(self.loss, fun, share)
        if self._z is None:
            self._z = boxed(self.M + 0.0, self.tau)
        #: How far the two sets were apart in the last step, and in which features.
        self.apart = float("inf")
        self.excess: Array = 0.0 * self.sizes

    def step(self) -> None:
        """Make one iteration of the splitting."""
        xp = namespace(self.M)
        single = isinstance(self.M, np.ndarray) and self.share >= SINGLE_FROM
        kind = xp.float32 if single else self.M.dtype
        z = self._z = xp.astype(self._z, kind, copy=False)
        Y = boxed(z + 0.0, self.tau)
        # Matrices of this size are what memory is spent on: hence the updates in place.
        wished = xp.astype(-self.M, kind, copy=False)
        wished += 2.0 * Y
        wished -= z
        margin = xp.astype(MARGIN * self._unit * self.sizes, kind, copy=False)
        # Early on most eigenvalues are negative, later few: the smaller side of the spectrum is enough.
        lowered_slack = raise_diagonal(wished, -margin)
        moved, self._negative = counted_negative_part(lowered_slack, self._negative)
        del wished, lowered_slack
        self.excess = diagonal_of(moved) + 0.0
        moved += Y
        moved -= z
        self.apart = norm(moved)
        moved *= RELAXATION
        moved += z
        self._z = symmetric_part(moved)

    def slack(self) -> Array:
        """Return ``Y - M`` for the present ``Y``."""
        return boxed(namespace(self.M).astype(self._z, self.M.dtype), self.tau) - self.M

    def feasible(self) -> bool:
        """Whether the present slack is positive semidefinite, up to a small part of the share."""
        return is_psd(scaled(self.slack(), self.sizes), ROUNDING * self._unit)
