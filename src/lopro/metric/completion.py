r"""Proving that features outside can stay there: completing the multiplier of a small problem.

Weights ``w`` of a problem on few features are feasible for the dual on all of them if there is a ``Y`` in the
box ``|Y_ij| <= tau``, ``Y_ii = 0``, with ``S = Y - M(w)`` positive semidefinite: its diagonal is given, and
off the diagonal it lies within ``tau`` of ``-M(w)``. It is searched for as ``S = B'B + diag(s)``, ``s >= 0``,
with few rows in ``B``, so that it is semidefinite whatever ``B`` is, and no eigenvalue is ever computed. What
is left is to make the violation of the box small, a smooth function of ``B``: the sum of the squares of

    ``|b_i'b_j + M_ij| - tau``  and  ``|b_i|^2 + M_ii``,    where they are positive,

in units in which the diagonal of ``S`` is one. The set of solutions may be thin, but a little below ``w`` it
has an interior: `lowered` gives up a chosen share of the bound. And what is still violated can be paid for
(M5 of the theory), so that every ``B`` proves something.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Array, from_numpy, inner, namespace, to_numpy
from lopro.core.deadline import EIGH, current_deadline
from lopro.core.diagonals import diagonal_of, raise_diagonal, without_diagonal
from lopro.methods.inner.lbfgs import LBFGS
from lopro.metric.dual import PairMultiplier, dual_value
from lopro.metric.loss import PairLoss

__all__ = ["Completion", "KnownSlack", "first_factor"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

#: Of the share that is given up, this part scales the weights; the rest lowers them evenly.
SCALED_PART = 0.7
#: The margin between the target box and the box, in units of the share.
MARGIN = 0.2
#: Single precision is enough where this much of the unit diagonal is left to aim at, in half the time.
SINGLE_FROM = 2e-5
#: A feature whose slack is smaller than this, next to the largest, is measured as if it had that much.
LEAST_SLACK = 1e-4
#: Regularisation of the first fit to the known slack, relative to its largest eigenvalue.
RIDGE = 1e-2
#: Directions of which the first fit leaves less than this share unexplained get no row of their own.
UNEXPLAINED = 0.1


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
        The diagonal of ``M(1)``: the unit of features.
    trace : float
        Weight of the trace, which every slack has on its diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.completion import Completion, KnownSlack
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss.from_differences(np.array([[1.0, 1.0], [1.0, -1.0]]), np.ones(2))
    >>> search = Completion(loss, 0.5, np.array([2.0, 2.0]))
    >>> search.aim(np.array([0.05, -0.3]), 0.1, 0.1, KnownSlack(np.array([0]), np.array([[0.25]])))
    >>> while search.violation > 0.0 and search.step():
    ...     pass
    >>> bool(np.linalg.eigvalsh(-search.multiplier().direction).min() >= -1e-12)
    True
    """

    def __init__(self, loss: PairLoss, tau: float, sizes: Array, trace: float = 0.0) -> None:
        self.loss, self.tau, self.sizes, self.trace = loss, tau, sizes, trace
        self._known: KnownSlack | None = None
        self._B: Array | None = None

    def aim(self, weights: Array, fun: float, share: float, known: KnownSlack) -> None:
        """Search for what these weights, less a share of the bound, need.

        The search begins at what is known on some features, or goes on from where it stands if those are the
        same as before.
        """
        self.weights = lowered(self.loss, weights, fun, share)
        self.M = raise_diagonal(self.loss.adjoint(self.weights), -self.trace)
        xp = namespace(self.M)
        self._slack = -diagonal_of(self.M)
        self._roots = xp.sqrt(self._measured(self._slack))
        if self._B is None or self._known is None or not known.same_features(self._known):
            M = self.loss.adjoint(self.weights)
            factor = first_factor(self.loss, M, self._slack, self._roots, known)
            self._B = from_numpy(factor, self.M)
        self._known = known
        self._set_box(1.0 - MARGIN * share, share)
        self._descent = LBFGS(self._violation_at, xp.astype(self._B / self._roots, self._kind))

    def _measured(self, slack: Array) -> Array:
        """Return the slack of each feature that serves as its unit: positive, one where nothing differs."""
        xp = namespace(slack)
        present = self.sizes > 0.0
        ones = 0.0 * self.sizes + 1.0
        relative = xp.where(present, slack / xp.where(present, self.sizes, ones), 0.0 * ones)
        least = max(LEAST_SLACK * float(xp.max(relative)), 1e-300)
        floor = xp.where(relative > least, relative, least * ones)
        return xp.where(present, floor * self.sizes, ones)

    def _set_box(self, width: float, share: float) -> None:
        xp = namespace(self.M)
        inverse = 1.0 / self._roots
        narrow = share * self.tau * float(xp.min(inverse)) ** 2
        single = isinstance(self.M, np.ndarray) and narrow >= SINGLE_FROM
        self._kind = xp.float32 if single else xp.float64
        self._box = xp.astype((width * self.tau * inverse)[:, None] * inverse, self._kind)
        self._most = xp.astype(width * self._slack * inverse**2, self._kind)
        centre = without_diagonal(self.M * (inverse[:, None] * inverse))
        self._centre = xp.astype(centre, self._kind)

    def _violation_at(self, B: Array) -> tuple[float, Array]:
        """Return the sum of squares and its gradient ``B R``, with the matrix ``R`` of violations."""
        current_deadline().need(4.0 * B.shape[0] * B.shape[1] ** 2)
        xp = namespace(B)
        R = B.T @ B
        norms = diagonal_of(R) + 0.0
        R += self._centre
        R -= xp.minimum(xp.maximum(R, -self._box), self._box)
        over = norms - self._most
        R = raise_diagonal(without_diagonal(R), xp.where(over > 0.0, over, 0.0 * over))
        self._latest = R
        return 0.25 * inner(R, R), B @ R

    def step(self) -> bool:
        """Make one step of the descent; False if there is none."""
        going = self._descent.step()
        self._B = self._descent.x * namespace(self.M).astype(self._roots, self._kind)
        return going

    @property
    def violation(self) -> float:
        """The sum of squares of what is violated, with the margin that is aimed for."""
        return self._descent.value

    @property
    def excess(self) -> Array:
        """The contribution of each feature to the violations."""
        R = self._latest
        return namespace(R).sum(R * R, axis=1)

    def proved(self) -> float:
        """Return the value of the dual point that the present factor gives."""
        shift, scale, _ = self._repaired()
        return dual_value(self.loss, self.weights - shift, scale)

    def multiplier(self) -> PairMultiplier:
        """Return that dual point: in the box, with a slack that is semidefinite up to rounding."""
        shift, scale, Y = self._repaired()
        weights = scale * (self.weights - shift)
        M = raise_diagonal(self.loss.adjoint(weights), -self.trace)
        M -= scale * Y
        return PairMultiplier(M, 0.0, weights=weights)

    def _repaired(self) -> tuple[float, float, Array]:
        """Return by how much the weights are lowered, then scaled, and the ``Y`` before the scaling.

        Columns that are too long need more slack, which lower weights have; ``Y`` takes what that does to the
        rest, and entries outside of the box are scaled into it.
        """
        xp = namespace(self.M)
        B = xp.astype(self._B, xp.float64)
        Y = B.T @ B
        present = self.sizes > 0.0
        ones = 0.0 * self.sizes + 1.0
        over = (diagonal_of(Y) - self._slack) / xp.where(present, self.sizes, ones)
        shift = max(0.0, float(xp.max(xp.where(present, over, 0.0 * over))))
        M = self.M if shift == 0.0 else self.loss.adjoint(self.weights - shift)
        Y = without_diagonal(Y + M)
        most = float(xp.max(abs(Y)))
        return shift, min(1.0, self.tau / most) if most > 0.0 else 1.0, Y


@dataclass(frozen=True)
class KnownSlack:
    """A multiplier of the cone on some features."""

    features: np.ndarray[Any, np.dtype[np.int64]]
    S: Matrix

    def same_features(self, other: KnownSlack) -> bool:
        """Whether it speaks of the same features in the same order."""
        return np.array_equal(self.features, other.features)


def first_factor(loss: PairLoss, M: Array, slack: Array, roots: Array, known: KnownSlack) -> Matrix:
    """Return ``B`` with ``B'B`` near what is known on its features, and near ``-M`` elsewhere.

    Off the diagonal, ``-M`` is what ``B'B`` has to be near to. It is ``P'P`` but for its few negative
    eigenvalues. With ``S = E'E`` on the known features ``F``, the columns outside are taken as ``L p_i`` with
    the linear map that makes ``E'L P_F`` the best fit to ``P_F'P_F``, and rows are added for what it does not
    explain. No column is longer than its slack allows.

    Parameters
    ----------
    loss : PairLoss
        The pairs.
    M : array of shape (d, d)
        ``M(w)``, without the trace.
    slack : array of shape (d,)
        The squared length that columns may have.
    roots : array of shape (d,)
        Features are divided by them: in these units all of them count the same.
    known : KnownSlack
        The multiplier on some features.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.completion import KnownSlack, first_factor
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss(np.array([[0.0, 0.0], [1.0, 2.0]]), ([0], [1]), [1.0])
    >>> M, known = -loss.adjoint(np.ones(1)), KnownSlack(np.array([0]), np.eye(1))
    >>> B = first_factor(loss, M, np.array([1.0, 4.0]), np.ones(2), known)
    >>> (B.T @ B).round(1)  # nearly -M, and on the first feature what is known
    array([[1. , 2. ],
           [2. , 3.9]])
    """
    F, units = known.features, to_numpy(roots)
    P = _positive_factor(loss, to_numpy(M), units)
    values, vectors = np.linalg.eigh(0.5 * (known.S + known.S.T) / np.outer(units[F], units[F]))
    values = np.maximum(values, 0.0)
    E = np.sqrt(values)[:, None] * vectors.T
    ridge = max(RIDGE * float(values[-1]), 1e-300)
    L = (E @ P[:, F].T) / (values + ridge)[:, None]
    left, directions = np.linalg.eigh(np.eye(len(P)) - L.T @ L)
    rows = left > UNEXPLAINED
    more = np.sqrt(left[rows])[:, None] * (directions[:, rows].T @ P)
    B = np.vstack([L @ P, more])
    lengths, most = np.square(B).sum(axis=0), np.maximum(to_numpy(slack), 0.0) / units**2
    B *= np.sqrt(np.minimum(1.0, most / np.where(lengths > 0.0, lengths, 1.0)))
    B[:, F] = np.vstack([E, np.zeros((len(more), len(F)))])
    return np.asarray(B * units)


def _positive_factor(loss: PairLoss, M: Matrix, units: Matrix) -> Matrix:
    """Return ``P`` with ``P'P`` the positive part of ``-M`` in these units.

    ``M`` lives on the span of the samples, which is the smaller space where they are few.
    """
    N, d = loss.X.shape
    current_deadline().need(EIGH * min(N, d) ** 3 + 4.0 * d * d * min(N, d))
    M = M / units[:, None] / units
    if d <= N:
        values, vectors = np.linalg.eigh(-M)
    else:
        X = to_numpy(loss.X).astype(np.float64)
        Q = np.linalg.qr(((X - X.mean(axis=0)) / units).T)[0]
        values, small = np.linalg.eigh(-Q.T @ (M @ Q))
        vectors = Q @ small
    kept = values > 1e-10 * max(float(values[-1]), 0.0)
    return np.asarray(np.sqrt(values[kept])[:, None] * vectors[:, kept].T)
