"""One run with products only: which point to propose, what is proved of it, and which algorithm continues.

Douglas and Rachford's splitting for operators whose rows are orthogonal and equally long.

Where ``A A^H = c I`` the projection on the residual ball is explicit. From ``w`` a step is

    z = prox(w),  v = 2 z - w,  r = y - A v,  x = v + (1 - sigma / |r|) A^H r / c,  w <- w + 1.97 (x - z)

It takes one product with ``A`` and one with its adjoint: ``x`` is on the ball and its residual is parallel to
``r``, so that its correlations are known and prove a bound; and as residuals are affine, that of the sparse
point ``z`` follows from those of ``v`` and ``w``. Shrinkage with mixed points is quicker where a solution has
far fewer nonzeros than there are measurements. Where it has about as many, the pieces of that iteration have
no fixed points of their own and it makes little progress.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.basis_pursuit.mixing import Mixture, Point
from lopro.basis_pursuit.penalised import PenalisedProblem
from lopro.basis_pursuit.problem import SparseProblem, images_at
from lopro.basis_pursuit.shrinkage import MixedShrinkage, ShrinkageState, Steps, step_lengths
from lopro.constraints import ResidualBall
from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    is_single,
    namespace,
    nonnegative,
    norm,
)
from lopro.core.vectors import axpy, norms
from lopro.objectives import L1Norm, Objective
from lopro.protocol import Candidate, Workbench

__all__ = ["OperatorSearch", "SplitState", "Splitting", "State", "is_frame", "threshold_for"]


@dataclass(frozen=True)
class Settings:
    """Settings of the choice of algorithm and steps."""

    #: Steps after which the lengths of columns are estimated, by up to 16 products: without that "operator
    #: lengths" of `benchmarks.bpdn.counts` take 1.9 and 3.8 times as many.
    estimate_lengths: int = 20
    #: Steps that progress is measured over, first after so many.
    pace: int = 20
    first: int = 64
    #: Steps left at the present pace beyond which splitting takes over; it may be idle so many times as long.
    slow: int = 300
    patience: int = 10


SETTINGS = Settings()

#: Where one of the two algorithms stands.
State: TypeAlias = "ShrinkageState | SplitState"


@dataclass(frozen=True)
class SplittingSettings:
    """Settings of the splitting."""

    #: Steps are longer than those of the plain iteration by this factor; below 2 it converges.
    relaxation: float = 1.97
    #: The first threshold of shrinkage, in means of the nonzeros of a start.
    threshold: float = 1.5
    #: The threshold changes by this factor at most, after every so many steps, so many times, to bring both
    #: parts of the iteration into this balance: 1461 products instead of 1781 (cosine, 350 of 700).
    change: float = 1.5
    period: int = 50
    changes: int = 12
    balance: float = 0.5
    #: Of the tolerance, what the aim inside the ball may cost: the sparse point lags behind the one on it.
    inside: float = 0.1
    #: Every so many steps a bound is computed.
    bounds: int = 8


SPLITTING = SplittingSettings()


def threshold_for(p: Point) -> float:
    """Return the threshold of shrinkage for entries like those of a point."""
    return SPLITTING.threshold * p.fun / max(1, p.nonzeros)


def is_frame(
    frame: float,
    forward: Callable[[Array], Array],
    adjoint: Callable[[Array], Array],
    y: Array,
) -> bool:
    """Whether ``A A^H = frame I``, checked on a random vector.

    Residuals that look so may all point the same way.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.operator_search import is_frame
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
    """The sparse point: near the ball."""

    x: Array
    length: float  # of its residual


@dataclass(frozen=True, eq=False)
class SplitState:
    """The state of the splitting."""

    w: Array
    rest: Array  # y - A w
    last: Point  # on the ball, or inside: the latest one
    shrunk: _Shrunk
    alpha: float
    threshold: float  # what shrinkage takes off an entry with weight 1
    steps: int = 0

    @property
    def proofs(self) -> tuple[Point, ...]:
        """Points whose correlations are known; few gain much on the one before."""
        return (self.last,) if self.steps % SPLITTING.bounds == 0 else ()

    @property
    def proposals(self) -> tuple[_Shrunk, ...]:
        """Points to choose a solution from, where they are inside the ball."""
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
        The residual to aim at from a value, a multiplier, and what share of the tolerance that may cost.
    threshold : float
        What shrinkage takes off an entry with weight 1, to begin with.

    Examples
    --------
    >>> import numpy as np
    >>> import lopro
    >>> from lopro.basis_pursuit.mixing import Point
    >>> from lopro.basis_pursuit.operator_search import Splitting
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
    aim: Callable[[float, float, float], float]
    threshold: float

    def start(self, p: Point) -> SplitState:
        """Return the state at a point whose residual, divided by alpha, is about a dual solution."""
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
        length, target, kept = norm(r), self.aim(last.fun, alpha, SPLITTING.inside), 1.0
        lag = pulled  # x - z
        if length > target:
            kept = target / length
            alpha = kept * self.frame * threshold / (1.0 - kept)
            lag = axpy((1.0 - kept) / self.frame, q, pulled)
        if steps % SPLITTING.bounds == 0:
            x = z + lag
            last = Point(x, kept * r, kept * q, alpha, float(f.value(x)))
        ratio = 1.0
        if steps % SPLITTING.period == 0 and steps <= SPLITTING.changes * SPLITTING.period:
            ratio = _better_threshold(lag, z - state.shrunk.x, z + lag, pulled)
        of_shrunk = 0.5 * (r + rest)
        if ratio != 1.0:
            # The multiplier, which w - z is in units of the threshold, stays as it is.
            w, rest = z - ratio * pulled, of_shrunk + ratio * (rest - of_shrunk)
        shrunk = _Shrunk(z, norm(of_shrunk))
        rest = axpy(SPLITTING.relaxation, kept * r - of_shrunk, rest, reuse=True)
        w = axpy(SPLITTING.relaxation, lag, w, reuse=True)
        return SplitState(w, rest, last, shrunk, alpha, ratio * threshold, steps)


def _better_threshold(lag: Array, move: Array, x: Array, multiplier: Array) -> float:
    """Return the factor for the threshold.

    Where points differ more than multipliers change, relatively, it is too large.
    """
    differ, change, size, length = norms(lag, move, x, multiplier)
    if not min(differ, change, size, length) > 0.0:
        return 1.0
    balance = (differ / size) / (change / length)
    return min(SPLITTING.change, max(1.0 / SPLITTING.change, SPLITTING.balance / balance))


class OperatorSearch:
    """One run: the best dual point so far, the point to propose, its value and gap.

    Parameters
    ----------
    bench : Workbench
    sparse : SparseProblem or PenalisedProblem
        With ``sigma > 0`` and positive weights; without a ridge.
    memory : int
        How many points may be mixed.
    """

    def __init__(
        self, bench: Workbench, sparse: SparseProblem | PenalisedProblem, memory: int
    ) -> None:
        self.bench, self.sparse = bench, sparse
        #: The norm, its oracles counted where it is the objective.
        self.norm: Objective
        self.ball: ResidualBall | PenalisedProblem
        if isinstance(sparse, SparseProblem):
            self.ball, self.norm, level = sparse.ball, bench.objective, None
        else:
            self.ball, self.norm, level = sparse, sparse.objective, sparse.level(0.0)
        self._shrinkage = MixedShrinkage(
            self.ball, sparse.excess, sparse.nonneg, bench.target.tol, memory, level
        )
        self.algorithm: MixedShrinkage | Splitting = self._shrinkage
        self.bound, self.proof = -math.inf, sparse.at_zero(sparse.weights)
        self.idle, self._least, self._ask, self._stretch = 0, math.inf, 0.9, 0.0
        self._errors: list[float] = []
        self._least_stretch, self._waits = math.inf, True

    def start(self, x0: Array) -> ShrinkageState:
        """Return the state that starts at ``x0``, or at zero where its sign is not allowed."""
        self._like = x0
        x = nonnegative(x0) if self.sparse.nonneg else x0
        state = self._shrinkage.init(self.norm, x, self.bench.rng)
        # From a start that is much too long, where x >= 0, zero is a better one.
        if not self.moving(state):
            state = self._shrinkage.init(self.norm, 0.0 * x, self.bench.rng)
        self._state: State = state
        self._best: Any = state.last
        self.sparse.check_units(state.last.g, state.last.r)
        return state

    def moving(self, state: State) -> bool:
        """Whether there is a direction to go: not where all correlations vanish."""
        if isinstance(state, SplitState):
            return True
        g = state.last.g
        return bool(namespace(g).any(g > 0.0 if self.sparse.nonneg else g != 0.0))

    def judge(self, state: State) -> None:
        """Draw lower bounds from the points that prove some, and pick the point to propose."""
        self._state = state
        proposals = state.proposals
        for p in state.proofs:
            self._improve_bound(p)
        near = [p for p in proposals if p.length <= self.ball.sigma and self._allowed(p.x)]
        inside = [(self._fun(p), p) for p in near]
        # Points of shrinkage are sparse: they come first where they are good enough.
        enough = [pair for pair in inside if self._is_enough(pair[0], self.bound)]
        proposed = enough[:1] or inside or [(self._fun(state.last), state.last)]
        fun, self._best = min(proposed, key=lambda pair: pair[0])
        self._value = fun
        excess = max(0.0, self._best.length / self.ball.sigma - 1.0)
        self._gap = fun - self.bound if inside else math.inf
        unproved = min(1.0, abs(fun - self.bound) / max(fun, 1e-300))
        self._errors.append(excess + unproved)
        self.idle += 1
        if self._errors[-1] < 0.9 * self._least:
            self._least, self.idle = self._errors[-1], 0

    def reconsidered(self, state: State) -> State:
        """Return the state to go on from: with other steps, or of another algorithm, where that pays."""
        if isinstance(state, SplitState):
            return state
        if self.steps == SETTINGS.estimate_lengths:
            self._even_out(state)
        if self.pace_is_known and self.steps_left > SETTINGS.slow:
            return self._split(state) or state
        return state

    @property
    def slowness(self) -> int:
        """The factor by which limits on slow progress are extended."""
        return SETTINGS.patience if isinstance(self.algorithm, Splitting) else 1

    @property
    def _frame(self) -> float | None:
        """The number c with ``A A^H = c I``, as given or as far as the residuals have shown.

        None where there is none, and where ``x >= 0``: points on the ball would have entries below zero.
        """
        if self.sparse.nonneg:
            return None
        if self.ball.tight_frame is not None:
            return self.ball.tight_frame
        rounding = 1e3 * eps(self._like)
        if not self._stretch <= (1.0 + rounding) * self._least_stretch:
            return None
        return self._stretch * self._stretch or None

    @property
    def steps(self) -> int:
        """The number of steps made."""
        return len(self._errors)

    @property
    def steps_left(self) -> float:
        """The number of further steps at the present rate; more than `pace` must have been made."""
        before, now = self._errors[-SETTINGS.pace - 1], self._errors[-1]
        target = max(self.bench.target.tol, eps(self._like))
        if now <= target:
            return 0.0
        return (
            math.inf
            if now >= before
            else SETTINGS.pace * math.log(now / target) / math.log(before / now)
        )

    @property
    def pace_is_known(self) -> bool:
        """Whether it is time to estimate how many steps are left."""
        return self.steps >= SETTINGS.first and (self.steps - SETTINGS.first) % SETTINGS.pace == 0

    # Other steps, fewer entries, another algorithm.

    def _even_out(self, state: ShrinkageState) -> None:
        """Go on with long steps for short columns."""
        if isinstance(self.sparse.objective, L1Norm):
            lengths = step_lengths(self._shrinkage.gradient, self.ball.y)
            if lengths is not None:
                self._shrinkage.with_steps(state, Steps.of(lengths, self.sparse.weights))

    def _split(self, state: ShrinkageState) -> SplitState | None:
        """Go on with splitting, where the rows are orthogonal."""
        p, of, frame = state.last, self._shrinkage, self._frame
        if frame is None:
            return None
        y = of.residual(0.0 * p.x)
        if self.ball.tight_frame is None and not is_frame(frame, of.image, of.gradient, y):
            self._least_stretch = 0.0  # the estimate from residuals was wrong: it is not used again
            return None
        splitting = Splitting(y, frame, of.image, of.gradient, of.aim, threshold_for(p))
        self.algorithm, self.idle = splitting, 0
        return splitting.start(p)

    # Bounds.

    def _improve_bound(self, p: Point | Mixture) -> None:
        """Scale the residual to a feasible dual point; it bounds the optimum from below."""
        if isinstance(p, Mixture):
            # Mixed correlations are those of the mixed residual only up to rounding.
            g, growth = p.g, p.growth
        else:
            g, growth = p.g, 1.0
            # A residual may be nearly orthogonal to the columns; then the image of x shows their size.
            image, x, pulled = norms(self.ball.y - p.r, p.x, g)
            stretch = pulled / (p.length or 1.0)
            self._stretch = max(self._stretch, stretch, image / (x or math.inf))
            self._least_stretch = min(self._least_stretch, stretch)
        found = self.sparse.proved(p.r, g, self._stretch, growth, above=self.bound)
        if found is not None:
            self.bound = self.sparse.bound(found)
            # Real measurements of a complex map have a complex dual.
            self.proof = self.sparse.as_given(found, self._like)

    @property
    def certified(self) -> bool:
        """Whether the point at hand should satisfy the driver.

        A mixture has nonzeros that are left of earlier points: the first one waits for the next step.
        """
        if self._gap == math.inf or not self._is_enough(self._value, self.bound):
            return False
        waits, self._waits = self._waits and isinstance(self._best, Mixture), False
        return not waits

    def _is_enough(self, fun: float, bound: float) -> bool:
        return fun - bound <= self._ask * self.bench.target.gap(fun)

    # Candidates.

    def _allowed(self, x: Array) -> bool:
        return not self.sparse.nonneg or float(namespace(x).min(x)) >= 0.0

    def _fun(self, p: Any) -> float:
        norm_of_x = p.fun if isinstance(p, Point) else float(self.norm.value(p.x))
        constrained = isinstance(self.sparse, SparseProblem)
        return norm_of_x if constrained else self.sparse.value(norm_of_x, p.x, p.r)

    def point(self) -> Array:
        """Return the point to propose."""
        return asarray_like(self._best.x, self._like)

    def candidate(self) -> Candidate:
        """Propose the point; if the driver rejects it, require more next time.

        Where its residual is known to be short enough there is nothing to project.
        """
        self._ask *= 0.3
        if self.bound == -math.inf:
            self._improve_bound(self._state.last)
        x, best, evidence = self.point(), self._best, self.sparse.evidence(self.proof)
        if isinstance(self.sparse, PenalisedProblem):
            measured = isinstance(best, Point) and best.measured and not is_single(self._like)
            known = self.sparse.image_at(x, self.ball.y - best.r) if measured else None
            return Candidate(x, evidence, objective_image=known)
        if isinstance(best, Point) and best.measured and not is_single(self._like):
            image = self.ball.y - best.r
            if norm(image - self.ball.y) <= self.ball.sigma and self._allowed(best.x):
                images = images_at(x, image, self.bench.problem.constraint)
                return Candidate(x, evidence, image=images)
        return Candidate(self.bench.project(x), evidence, before=x)
