"""The secular equation: the damping at which a residual has a given length.

Projecting on ``{|A x - y| <= sigma}`` shrinks the residual ``h`` in the eigenbasis of ``A A^H`` by
the factors ``kappa / (kappa + s_i)``. ``kappa >= 0`` is the root; ``kappa = 0`` is
the projection on the affine set ``A x = y``.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from lopro.errors import ProjectionError

__all__ = ["damping"]

Vector: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Limit of the Newton steps, which approach the root monotonically and quadratically. `python -m
#: benchmarks.constants projections`: a tenth and ten times as many change nothing.
_MAX_STEPS = 200


def damping(h_squared: Vector, s: Vector, target: float) -> float:
    r"""Return ``kappa >= 0`` with ``sum h_i^2 (kappa / (kappa + s_i))^2 = target^2``.

    Parameters
    ----------
    h_squared : ndarray
        Squared moduli of the residual in the eigenbasis.
    s : ndarray
        The positive eigenvalues that belong to them.
    target : float
        The target length, below that of ``h``; 0 or less gives ``kappa = 0``.

    Notes
    -----
    With ``eta = 1 / kappa`` and ``phi(eta) = sum h_i^2 / (1 + eta s_i)^2``, Newton's method runs on
    ``phi^(-1/2)``. That function is concave and increasing (a power mean of exponent -2 of linear
    functions), so the steps from ``eta = 0`` approach the root from the left without safeguards,
    quadratically, and in one step where all ``s_i`` agree.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.secular import damping
    >>> kappa = damping(np.array([4.0]), np.array([1.0]), 1.0)
    >>> round(kappa, 12)
    1.0
    """
    length = math.sqrt(float(h_squared.sum()))
    # A target below 1e-90 of the residual is treated as zero: cubes would underflow.
    if target <= 1e-90 * length or len(s) == 0:
        return 0.0
    if length <= target:
        return math.inf
    scale = float(s.max())
    weights, rates, goal = h_squared / length**2, s / scale, target / length
    eta = 0.0
    for _ in range(_MAX_STEPS):
        growth = 1.0 + eta * rates
        terms = weights / growth**2
        phi = float(terms.sum())
        if phi <= goal**2 * (1.0 + 4e-16):
            return scale / eta
        slope = 2.0 * float((terms * rates / growth).sum())
        step = 2.0 * (phi * math.sqrt(phi) / goal - phi) / slope
        eta += step
        if step <= 4e-16 * eta:
            return scale / eta
    raise ProjectionError(
        f"the secular equation did not converge in {_MAX_STEPS} Newton steps "
        f"(residual {length:g}, target {target:g}, eigenvalues {float(s.min()):g} to {scale:g})"
    )
