"""Douglas-Rachford splitting for operators whose rows are orthogonal and equally long.

Where ``A A^H = c I`` the projection on the residual ball is explicit. From ``w`` a step is

    z = prox(w),  v = 2 z - w,  r = y - A v,  x = v + (1 - sigma / |r|) A^H r / c,  w <- w + 1.97 (x - z)

It takes one product with ``A`` and one with its adjoint: ``x`` is on the ball and its residual is parallel to
``r``, so that its correlations are known and prove a bound; and as residuals are affine, that of the sparse
point ``z`` follows from those of ``v`` and ``w``. Mixed shrinkage is faster where a solution has far fewer
nonzeros than there are measurements. Where it has about as many, the affine pieces of that iteration have no
fixed points of their own and it makes little progress.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.basis_pursuit.operators.history import Point
from lopro.core.arrays import Array, asarray_like, eps, norm
from lopro.core.vectors import axpy, norms
from lopro.objectives import Objective

__all__ = ["SplitState", "Splitting", "is_frame", "threshold_for"]


@dataclass(frozen=True)
class Settings:
    """Settings of the splitting.

    Pairs of figures are the products of "cosine 350x700, splitting" of `python -m benchmarks.constants
    basis_pursuit` with a tenth and with ten times the value.
    """

    #: The factor of over-relaxation; the iteration converges for factors below 2 (a tenth does not in 6000
    #: steps).
    relaxation: float = 1.97
    #: The first threshold of shrinkage, in units of the mean modulus of the nonzeros of a start (1.01, 1.11).
    threshold: float = 1.5
    #: The threshold is adapted by a factor of at most `change` (1.22, 1.00), after every `period` steps
    #: (1.03, 1.03), at most `changes` times (1.03, 1.06), so that the ratio of the relative changes of points
    #: and multipliers approaches `balance` (1.90, and not in 6000 steps): 1461 products instead of 1781
    #: without.
    change: float = 1.5
    period: int = 50
    changes: int = 12
    balance: float = 0.5
    #: Steps between two bounds; each takes several vector operations (0.97, 1.06).
    bounds: int = 8


SETTINGS = Settings()


def threshold_for(p: Point) -> float:
    """Return the first threshold of shrinkage, from the mean modulus of the nonzeros of a point."""
    return SETTINGS.threshold * p.fun / max(1, p.nonzeros)


def is_frame(
    frame: float,
    forward: Callable[[Array], Array],
    adjoint: Callable[[Array], Array],
    y: Array,
) -> bool:
    """Whether ``A A^H = frame I``, checked on a random vector.

    Residuals are no such check: they may all be parallel.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.operators.splitting import is_frame
    >>> def judged(A):
    ...     return is_frame(4.0, lambda x: A @ x, lambda r: A.T @ r, np.zeros(2))
    >>> judged(2.0 * np.eye(3)[:2]), judged(np.diag([2.0, 1.0]))
    (True, False)
    """
    v = asarray_like(np.random.default_rng(0).standard_normal(tuple(y.shape)), y)
    off = norm(forward(adjoint(v)) - frame * v)
    return bool(off <= math.sqrt(eps(v)) * frame * norm(v))


@dataclass(frozen=True, slots=True)
class _Shrunk:
    """The sparse point, close to the ball."""

    x: Array
    length: float  # of the residual


@dataclass(frozen=True, eq=False)
class SplitState:
    """The state of the splitting."""

    w: Array
    rest: Array  # y - A w
    last: Point  # the latest one on the ball, or inside
    shrunk: _Shrunk
    alpha: float
    threshold: float  # of shrinkage, for weight 1
    steps: int = 0

    @property
    def proofs(self) -> tuple[Point, ...]:
        """Points whose correlations are known, every few steps: bounds improve slowly."""
        return (self.last,) if self.steps % SETTINGS.bounds == 0 else ()

    @property
    def proposals(self) -> tuple[_Shrunk, ...]:
        """Points that may be proposed, if they are inside the ball."""
        return (self.shrunk,)


@dataclass(frozen=True, eq=False)
class Splitting:
    """The iteration for one problem.

    Parameters
    ----------
    y : array
    frame : float
        The number c.
    forward, adjoint : callable
        Products with A and with its adjoint.
    aim : callable
        The target residual for a value and a multiplier.
    threshold : float
        The first threshold of shrinkage, for weight 1.

    Examples
    --------
    >>> import numpy as np
    >>> import lopro
    >>> from lopro.basis_pursuit.operators.history import Point
    >>> from lopro.basis_pursuit.operators.splitting import Splitting
    >>> A, y = np.eye(3)[:2], np.array([3.0, 0.1])
    >>> algorithm = Splitting(y, 1.0, lambda x: A @ x, lambda r: A.T @ r, lambda *_: 1.0, 1.0)
    >>> f, zero = lopro.objectives.L1Norm(), np.zeros(3)
    >>> state = algorithm.start(Point(zero, y, A.T @ y, 3.0, 0.0))
    >>> for _ in range(400):
    ...     state = algorithm.step(f, state)
    >>> algorithm.output(state).round(4)
    array([2.005, 0.   , 0.   ])
    """

    y: Array
    frame: float
    forward: Callable[[Array], Array]
    adjoint: Callable[[Array], Array]
    aim: Callable[[float, float], float]
    threshold: float

    def start(self, p: Point) -> SplitState:
        """Return the state at a point whose residual, divided by alpha, approximates a dual solution."""
        step = self.threshold / p.alpha
        w, rest = p.x + step * p.g, (1.0 - step * self.frame) * p.r
        return SplitState(w, rest, p, _Shrunk(p.x, p.length), p.alpha, self.threshold)

    def init(self, f: Objective, x: Array, rng: np.random.Generator) -> SplitState:
        r = self.y - self.forward(x)
        return self.start(Point(x, r, self.adjoint(r), 1.0, 0.0))

    def output(self, state: Any) -> Array:
        return state.shrunk.x

    def step(self, f: Objective, state: SplitState) -> SplitState:
        w, rest, last = state.w, state.rest, state.last
        threshold, alpha, steps = state.threshold, state.alpha, state.steps + 1
        z = f.prox(w, threshold)
        pulled = z - w
        r = self.y - self.forward(z + pulled)
        q = self.adjoint(r)
        length, target, kept = norm(r), self.aim(last.fun, alpha), 1.0
        lag = pulled  # x - z
        if length > target:
            kept = target / length
            alpha = kept * self.frame * threshold / (1.0 - kept)
            lag = axpy((1.0 - kept) / self.frame, q, pulled)
        if steps % SETTINGS.bounds == 0:
            x = z + lag
            last = Point(x, kept * r, kept * q, alpha, float(f.value(x)))
        ratio = 1.0
        if steps % SETTINGS.period == 0 and steps <= SETTINGS.changes * SETTINGS.period:
            ratio = _better_threshold(lag, z - state.shrunk.x, z + lag, pulled)
        of_shrunk = 0.5 * (r + rest)
        if ratio != 1.0:
            # The multiplier, (w - z) / threshold, does not change.
            w, rest = z - ratio * pulled, of_shrunk + ratio * (rest - of_shrunk)
        shrunk = _Shrunk(z, norm(of_shrunk))
        rest = axpy(SETTINGS.relaxation, kept * r - of_shrunk, rest, reuse=True)
        w = axpy(SETTINGS.relaxation, lag, w, reuse=True)
        return SplitState(w, rest, last, shrunk, alpha, ratio * threshold, steps)


def _better_threshold(lag: Array, move: Array, x: Array, multiplier: Array) -> float:
    """Return the factor that balances the relative changes of points and multipliers.

    Where the points differ relatively more than the multipliers change, the threshold is too large.
    """
    differ, change, size, length = norms(lag, move, x, multiplier)
    if not min(differ, change, size, length) > 0.0:
        return 1.0
    balance = (differ / size) / (change / length)
    return min(SETTINGS.change, max(1.0 / SETTINGS.change, SETTINGS.balance / balance))
