r"""Which features would lower the objective: a small lasso problem for each of them, all at once.

Let ``A`` be optimal among matrices that live on the features ``F``, with multiplier ``S`` of the cone there
and pair weights ``w``. Adding a little of ``v v'``, with ``v = x`` on ``F`` and 1 on a feature ``i`` outside,
changes the objective at the rate

    ``q_i(x) = x'S x - 2 M_iF x + 2 tau |x|_1 - M_ii``,     ``M = sum_e w_e z_e z_e'``,

so that feature ``i`` is wanted if the least ``q_i`` is negative. By duality, if it is not, ``S`` extends to
``F`` and ``i`` together.

``S`` is singular (it vanishes on the range of ``A``), so that ``q_i`` may be unbounded below. What is asked
is therefore whether ``q_i(x) < -rho (1 + |x|^2)`` for some ``x``, with a small ``rho``: the minimiser of the
difference of the two sides, which is strongly convex, answers it.
"""

from __future__ import annotations

import math

from lopro.core.arrays import Array, namespace

__all__ = ["prices"]

STEPS = 300


def prices(
    S: Array,
    M: Array,
    diagonal: Array,
    tau: float,
    threshold: float = 1e-3,
    steps: int = STEPS,
) -> Array:
    """Return for each feature a small ``q_i``, relative to ``1 + |x|^2``; negative: wanted.

    With enough steps it is below ``-threshold |M_ii|`` if any ``x`` makes it so.

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
        How clearly a feature must be wanted to be noticed, relative to ``M_ii``.
    steps : int
        Accelerated proximal steps; any ``x`` that makes ``q_i`` negative proves the point, so it need not
        be the best.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.pricing import prices
    >>> prices(np.array([[1.0]]), np.array([[3.0, 0.5]]), np.array([-2.0, -2.0]), 1.0).round(2)
    array([-0.4,  2. ])
    """
    xp = namespace(S)
    rho = threshold * xp.abs(diagonal)
    L = max(float(xp.linalg.eigvalsh(S)[-1]), 0.0) + max(float(xp.max(rho)), 1e-300)
    x = ahead = xp.zeros_like(M)
    t = 1.0
    for _ in range(steps):
        moved = ahead - (S @ ahead + rho * ahead - M) / L
        before, x = x, moved - xp.clip(moved, -tau / L, tau / L)
        t, last = 0.5 + math.sqrt(0.25 + t * t), t
        ahead = x + ((last - 1.0) / t) * (x - before)
    q = xp.sum(x * (S @ x - 2.0 * M), axis=0) + 2.0 * tau * xp.sum(xp.abs(x), axis=0) - diagonal
    return q / (1.0 + xp.sum(x * x, axis=0))
