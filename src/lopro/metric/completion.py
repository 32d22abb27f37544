r"""Proving that features outside can stay there: completing the multiplier of a small problem.

The weights ``w`` of a problem on few features are feasible for the dual on all of them if there is a ``Y``
in the box ``|Y_ij| <= tau``, ``Y_ii = 0``, with ``Y - M(w)`` positive semidefinite. Splitting (Douglas and
Rachford) looks for it. The set of such ``Y`` may be thin, but for ``theta w`` with ``theta < 1`` it has an
interior, in which the iteration soon ends: the price is the share ``1 - theta`` of the bound, the prize a
point that is feasible exactly.
"""

from __future__ import annotations

import numpy as np

from lopro._arrays import Array, namespace, norm
from lopro.metric._matrices import boxed, diagonal_of, raise_diagonal, scaled
from lopro.metric.dual import is_psd
from lopro.projections.psd import negative_part, symmetric_part

__all__ = ["Completion"]

RELAXATION = 1.7
#: How much of the interior is aimed for: a share of what is given up.
MARGIN = 1.0 / 3.0
#: A slack counts as semidefinite down to this share of its diagonal; bounds pay for what is missing.
ROUNDING = 1e-9
#: Single precision is enough to hit an interior that is not thinner than this, in half the time.
SINGLE_FROM = 2e-3


class Completion:
    """The search for the multiplier of all features.

    Parameters
    ----------
    M : array of shape (d, d)
        ``M(w)``; for a point to be found, its diagonal must not be positive.
    tau : float
        Size of the box.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.completion import Completion
    >>> search = Completion(np.array([[-1.0, 1.1], [1.1, -1.0]]), 0.5)
    >>> while not search.feasible(0.9):
    ...     search.step(0.9)
    >>> bool(np.linalg.eigvalsh(search.slack(0.9)).min() >= 0.0)
    True
    """

    def __init__(self, M: Array, tau: float) -> None:
        self.tau = tau
        self.M = M
        self._z = boxed(M + 0.0, tau)
        #: How far the two sets were apart in the last step, and in which features.
        self.apart = float("inf")
        self.excess: Array = 0.0 * diagonal_of(M)

    def step(self, theta: float) -> None:
        """Make one iteration of the splitting for ``theta w``."""
        xp = namespace(self.M)
        single = isinstance(self.M, np.ndarray) and 1.0 - theta >= SINGLE_FROM
        kind = xp.float32 if single else self.M.dtype
        z = self._z = xp.astype(self._z, kind, copy=False)
        Y = boxed(z + 0.0, self.tau)
        margin = (1.0 - theta) * MARGIN * theta * xp.astype(diagonal_of(self.M), kind)
        # Matrices of this size are what memory is spent on: hence the updates in place.
        wished = xp.astype(-theta * self.M, kind, copy=False)
        wished += 2.0 * Y
        wished -= z
        moved = negative_part(raise_diagonal(wished, margin))
        del wished
        self.excess = diagonal_of(moved) + 0.0
        moved += Y
        moved -= z
        self.apart = norm(moved)
        moved *= RELAXATION
        moved += z
        self._z = symmetric_part(moved)

    def slack(self, theta: float) -> Array:
        """Return ``Y - theta M`` for the present ``Y``."""
        Y = boxed(namespace(self.M).astype(self._z, self.M.dtype), self.tau)
        return Y - theta * self.M

    def feasible(self, theta: float) -> bool:
        """Whether the present slack is positive semidefinite, up to rounding."""
        return is_psd(scaled(self.slack(theta), theta * abs(diagonal_of(self.M))), ROUNDING)
