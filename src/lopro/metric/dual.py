r"""Lower bounds for sparse metric learning from any point and any multiplier of the cone.

The dual of  min ``1/(2n) sum_e (t_e - z_e'A z_e)^2 + tau |A|_off``  over ``A`` psd is

    max ``t'w - n/2 |w|^2``  s.t.  ``S = Y - M(w)`` psd,  ``|Y_ij| <= tau``,  ``Y_ii = 0``,

with ``M(w) = sum_e w_e z_e z_e'``. At a solution ``w`` is the residual over n, and ``S`` the multiplier of
the cone. A candidate ``(w, Y)`` whose ``S`` is not quite psd is repaired in one of the following directions,
of which the first two are made of ``M1 = M(1)``; all are exact in the limit:

by the diagonal of ``M1``
    With ``S + s diag(M1)`` psd, the point ``(w - s 1, Y - s off(M1))`` has a psd slack; scaled by
    ``tau / (tau + s max|off(M1)|)`` its ``Y`` is back in the box. Scaling further down keeps it feasible, so
    the best scale is taken. Alternatively the bound is reduced by ``s`` times a bound on
    ``<diag(M1), A*>``, which follows from ``f(A*) <= f0``.
by all of ``M1``
    With ``S + s M1`` psd, the point ``(w - s 1, Y)`` is feasible as it is. This needs ``M1`` to be positive
    definite on the range of ``S``: always for ``tau = 0`` (where ``Y = 0``), otherwise with more samples than
    features.
by the trace
    With a weight ``trace`` of the trace, ``S`` is ``Y + trace I - M(w)``. With ``S + s I`` psd, ``w`` scaled
    by ``trace / (trace + s)`` is feasible; or the bound is reduced by ``s f0 / trace``, since
    ``tr(A*) <= f0 / trace``.
by the rows
    With a weight of the norms of the rows, ``S`` has an additional term, the symmetric part of an ``R`` whose
    rows are not longer than the weight. ``R`` takes the place of ``Y`` in the first repair: the rows of
    ``R - s off(M1)`` are longer by at most ``s`` times the longest row of ``off(M1)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, namespace, norm, to_numpy
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.core.diagonals import (
    boxed,
    raise_diagonal,
    scaled,
)
from lopro.functions.atoms import GroupNorm
from lopro.metric.loss import PairLoss
from lopro.metric.pair_sums import PairSum
from lopro.metric.spread import SMALL, Spread
from lopro.projections.psd import eigenvalues, smallest_eigenpairs, symmetric_part

__all__ = ["PairMultiplier", "dual_bound", "lowering", "scaled_bound"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


SOURCE = "dual point of the pairs"


@dataclass(frozen=True, eq=False)
class PairMultiplier(ValidInequality):
    """A multiplier of the cone (``direction = -S``, ``support = 0``) with the dual weights of the pairs."""

    weights: Array = field(kw_only=True)
    #: A subgradient of the norms of the rows, where they have a weight.
    rows: Array | None = field(default=None, kw_only=True)
    #: ``B`` of shape (k, d), in NumPy, where the slack is ``B'B`` plus a nonnegative diagonal. The direction,
    #: which would be a matrix over all features, is then unused.
    factor: Matrix | None = field(default=None, kw_only=True)

    @classmethod
    def of_factor(cls, weights: Array, factor: Matrix) -> PairMultiplier:
        """Return the multiplier whose slack is ``B'B`` plus a nonnegative diagonal."""
        unused = np.broadcast_to(0.0, (factor.shape[1],) * 2)
        return cls(unused, 0.0, weights=weights, factor=factor)


def dual_value(loss: PairLoss, w: Array, most: float = 1.0) -> float:
    """Return the greatest value of the dual along ``c w`` for ``0 <= c <= most``."""
    slope, square = loss.target_terms(w)
    curvature = loss.count * square
    if slope <= 0.0:
        return 0.0
    c = min(most, slope / curvature)
    return c * slope - 0.5 * c * c * curvature


def dual_bound(
    loss: PairLoss,
    tau: float,
    spread: Spread,
    x: Array,
    normal: ValidInequality,
    fun: float,
    trace: float = 0.0,
    features: float = 0.0,
) -> tuple[float, str]:
    """Return the best lower bound that follows from a multiplier of the cone, and its source.

    Parameters
    ----------
    loss, tau, spread, trace, features
        The problem.
    x : array
        The point whose residuals are the weights, unless the multiplier has its own.
    normal : ValidInequality
        Minus its direction is an estimate of ``S``.
    fun : float
        The value of some feasible point.
    """
    if isinstance(normal, PairMultiplier) and normal.factor is not None:
        w = _weights(loss, namespace(x).astype(x, namespace(x).float64, copy=False), normal)
        return factor_bound(loss, tau, spread, w, normal.factor, trace), f"{SOURCE}, feasible"
    xp = namespace(x)
    # Double precision: rounding is subtracted from the bound, which is computed rarely.
    w = _weights(loss, xp.astype(x, xp.float64, copy=False), normal)
    # The trace is linear: its weight is subtracted from the diagonal of M(w).
    M = raise_diagonal(loss.adjoint(w), -trace)
    if features > 0.0 and isinstance(normal, PairMultiplier) and normal.rows is not None:
        # Subgradients of the norms of the rows likewise, once they are in the domain of the conjugate.
        rows = xp.astype(normal.rows, xp.float64, copy=False)
        M -= symmetric_part(GroupNorm(rows.shape[1], features).into_domain(rows))
    S = boxed(M - xp.astype(normal.direction, xp.float64, copy=False), tau)
    bounds = _by_blocks(loss, tau, spread, S, w)
    S -= M
    del M  # matrices of this size take most of the memory
    bounds += [
        *_by_diagonal(loss, tau, spread, S, w, fun),
        *_by_sum(loss, tau, spread, S, w),
        *_by_trace(loss, trace, spread, S, w, fun),
        *_by_rows(loss, features, spread, S, w),
    ]
    return max(bounds, default=(0.0, "a sum of squares"))


def factor_bound(
    loss: PairLoss, tau: float, spread: Spread, w: Any, B: Matrix, trace: float
) -> float:
    """Return the bound for the slack ``B'B`` plus a nonnegative diagonal (M5); it needs no eigenvalue."""
    B = np.where(to_numpy(spread.diagonal) > 0.0, B, 0.0)
    lowered = w - lowering(loss, spread, w, B, trace)
    return scaled_bound(loss, tau, spread, lowered, B, loss.largest_off_diagonal(lowered, B))


def lowering(loss: PairLoss, spread: Spread, w: Any, B: Matrix, trace: float) -> float:
    """Return the least s for which ``trace - M(w - s)_jj`` is at least ``|b_j|^2`` for every j."""
    sizes = to_numpy(spread.diagonal)
    over = np.einsum("ij,ij->j", B, B) + loss.diagonal_of_adjoint(w) - trace
    present = sizes > 0.0
    return float(np.max(over[present] / sizes[present], initial=0.0))


def scaled_bound(
    loss: PairLoss, tau: float, spread: Spread, w: Any, B: Matrix, largest: float
) -> float:
    """Return the value of these weights, scaled until ``off(B'B + M(w))`` is in the box.

    ``largest`` is its largest absolute entry. The rounding errors of the entries lower the weights a little
    further, as in the repair by the diagonal of ``M1``.
    """
    sizes = to_numpy(spread.diagonal)
    present = sizes > 0.0
    # The error of an entry of B'B is at most gamma |b_i| |b_j|; in the units of the features, that of a
    # matrix whose norm is gamma times the sum of squares.
    gamma = 2.0 * (len(B) + loss.X.shape[0] + 2) * float(np.finfo(np.float64).eps)
    squares = np.einsum("ij,ij->j", B, B)[present] / sizes[present]
    rounding = spread.rounding(loss.largest(w)) + gamma * float(squares.sum())
    most = (largest + rounding * spread.largest) * (1.0 + 1e-10) + 1e-300
    return dual_value(loss, w - rounding, min(1.0, tau / most))


def _weights(loss: PairLoss, x: Array, normal: ValidInequality) -> Any:
    if not isinstance(normal, PairMultiplier):
        return loss.residuals(x) / loss.count
    weights = normal.weights
    return weights if isinstance(weights, PairSum) else namespace(x).astype(weights, x.dtype)


def _by_diagonal(
    loss: PairLoss, tau: float, spread: Spread, S: Array, w: Array, fun: float
) -> list[tuple[float, str]]:
    if tau == 0.0:
        return []
    # A feature in which no pair differs has zeros in M, and Y may be zero there.
    s = shortfall(scaled(S, spread.diagonal)) + spread.rounding(loss.largest(w))
    n, scale = loss.count, tau / (tau + s * spread.largest)
    repaired = dual_value(loss, w - s, scale)
    reach = loss.total_target + n * math.sqrt(2.0 * max(fun, 0.0)) + spread.largest * fun / tau
    along, square = loss.target_terms(w)
    paid = along - 0.5 * n * square - s * reach
    return [(repaired, f"{SOURCE}, feasible"), (paid, f"{SOURCE}, its slack paid for")]


def _by_blocks(
    loss: PairLoss, tau: float, spread: Spread, Y: Array, w: Array
) -> list[tuple[float, str]]:
    found = []
    for block in spread.blocks:
        S, most = block.slack(Y, w)
        s = shortfall(S) + spread.rounding(loss.largest(w))
        value = dual_value(loss, w - s, tau / (max(tau, most) + s * block.largest))
        found.append((value, f"{SOURCE}, feasible"))
    return found


def _by_sum(
    loss: PairLoss, tau: float, spread: Spread, S: Array, w: Array
) -> list[tuple[float, str]]:
    if spread.white is not None:
        s = shortfall(-spread.white.loss.adjoint(w)) + spread.rounding(loss.largest(w))
    else:
        V = spread.whitening
        error = spread.rounding(1.0) / spread.least  # of V'M1 V, which is I in exact arithmetic
        if V is None or not spread.full_rank or error > 0.5:
            return []
        s = shortfall(symmetric_part(V.T @ S @ V)) + spread.rounding(loss.largest(w)) / spread.least
        s /= 1.0 - error
    return [(dual_value(loss, w - s), f"{SOURCE}, feasible")]


def _by_trace(
    loss: PairLoss, trace: float, spread: Spread, S: Array, w: Array, fun: float
) -> list[tuple[float, str]]:
    if trace == 0.0:
        return []
    largest = float(namespace(S).max(spread.diagonal))
    s = shortfall(S) + spread.rounding(loss.largest(w)) * largest
    along, square = loss.target_terms(w)
    paid = along - 0.5 * loss.count * square - s * fun / trace
    repaired = dual_value(loss, w, trace / (trace + s))
    return [(repaired, f"{SOURCE}, feasible"), (paid, f"{SOURCE}, its slack paid for")]


def _by_rows(
    loss: PairLoss, features: float, spread: Spread, S: Array, w: Array
) -> list[tuple[float, str]]:
    if features == 0.0:
        return []
    s = shortfall(scaled(S, spread.diagonal)) + spread.rounding(loss.largest(w))
    value = dual_value(loss, w - s, features / (features + s * spread.rows))
    return [(value, f"{SOURCE}, feasible")]


def shortfall(S: Array) -> float:
    """Return the least ``s >= 0``, up to rounding, for which ``S + s I`` is positive semidefinite."""
    d = S.shape[0]
    rounding: float = 4.0 * d * eps(S) * max(norm(S) / math.sqrt(d), 1e-300)
    if _is_small(S):
        return max(0.0, rounding - float(eigenvalues(S)[0]))
    if is_psd(S, rounding):
        return rounding
    # A Lanczos run may miss the smallest eigenvalue; the factorisation proves it.
    s = max(rounding, -float(smallest_eigenpairs(S, 1)[0][0]))
    while not is_psd(S, s + rounding):
        s *= 1.05
    return s + rounding


def is_psd(S: Array, s: float) -> bool:
    """Whether ``S + s I`` is positive semidefinite: by eigenvalues if small, else by a Cholesky factor."""
    if _is_small(S):
        return float(eigenvalues(S)[0]) >= -s
    current_deadline().need(float(len(S)) ** 3 / 3.0)
    count("factorizations")
    diagonal = S.diagonal().copy()
    try:
        # In place: a copy would double the memory.
        np.linalg.cholesky(raise_diagonal(S, s))
    except np.linalg.LinAlgError:
        return False
    finally:
        np.fill_diagonal(S, diagonal)
    return True


def _is_small(S: Array) -> bool:
    """Whether all eigenvalues are computed: of matrices that are small or not NumPy arrays."""
    return not isinstance(S, np.ndarray) or S.shape[0] <= SMALL
