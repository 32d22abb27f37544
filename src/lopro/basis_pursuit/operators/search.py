"""A matrix-free search: the point to propose, its bound, and the algorithm that makes the steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from lopro.basis_pursuit.operators.history import Point
from lopro.basis_pursuit.operators.mixing import Mixture, ShrinkageState
from lopro.basis_pursuit.operators.shrinkage import MixedShrinkage
from lopro.basis_pursuit.operators.splitting import SplitState, Splitting, is_frame, threshold_for
from lopro.basis_pursuit.operators.step_lengths import Steps, step_lengths
from lopro.basis_pursuit.penalised import PenalisedProblem
from lopro.basis_pursuit.problem import SparseProblem
from lopro.basis_pursuit.search import Search
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
from lopro.core.vectors import norms
from lopro.objectives import L1Norm, Objective
from lopro.protocol import Candidate, Workbench

__all__ = ["OperatorSearch", "State"]


@dataclass(frozen=True)
class Settings:
    """Settings of the choice of algorithm and steps."""

    #: Steps after which the lengths of columns are estimated, by up to 16 products: without that "operator
    #: lengths" of `benchmarks.bpdn.counts` take 1.9 and 3.8 times as many.
    estimate_lengths: int = 20
    #: The number of steps over which the rate of progress is measured (1.06, certificates lost), and the step
    #: of the first measurement (certificates lost, 1.13): products of the 19 operators of
    #: `benchmarks.constants` with a tenth and with ten times the value.
    pace: int = 20
    first: int = 64
    #: Predicted number of further steps from which on splitting takes over, and the factor by which its
    #: limits on slow progress are extended.
    slow: int = 300
    patience: int = 10


SETTINGS = Settings()

#: The state of one of the two algorithms.
State: TypeAlias = "ShrinkageState | SplitState"


class OperatorSearch(Search):
    """The state of one run: the best bound so far, the point to propose, its value and gap.

    Parameters
    ----------
    bench : Workbench
    sparse : SparseProblem or PenalisedProblem
        With ``sigma > 0`` and positive weights, without a ridge.
    memory : int
        The number of points that may be mixed.
    """

    def __init__(
        self, bench: Workbench, sparse: SparseProblem | PenalisedProblem, memory: int
    ) -> None:
        super().__init__(bench.problem, sparse, bench.target, sparse.like)
        self.bench = bench
        #: The norm; its calls are counted where it is the objective.
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
        self.idle, self._least, self._allowed_share = 0, math.inf, 0.9
        self._errors: list[float] = []
        self._least_stretch, self._waits = math.inf, True

    def start(self, x0: Array) -> ShrinkageState:
        """Return the first state, at ``x0`` with entries of the wrong sign set to zero."""
        self._like = x0
        x = nonnegative(x0) if self.sparse.nonneg else x0
        state = self._shrinkage.init(self.norm, x, self.bench.rng)
        # Where x >= 0, a start that is much too long may have no descent direction.
        if not self.moving(state):
            state = self._shrinkage.init(self.norm, 0.0 * x, self.bench.rng)
        self._state: State = state
        self._best: Any = state.last
        self.sparse.check_units(state.last.g, state.last.r)
        return state

    def moving(self, state: State) -> bool:
        """Whether there is a descent direction: some correlation does not vanish."""
        if isinstance(state, SplitState):
            return True
        g = state.last.g
        return bool(namespace(g).any(g > 0.0 if self.sparse.nonneg else g != 0.0))

    def judge(self, state: State) -> None:
        """Improve the bound by the points with known correlations, and choose the point to propose."""
        self._state = state
        proposals = state.proposals
        for p in state.proofs:
            self._bound_at(p)
        near = [p for p in proposals if p.length <= self.ball.sigma and self._allowed(p.x)]
        inside = [(self._fun(p), p) for p in near]
        # Iterates are sparse, mixtures are not: they are preferred where their gap is small enough.
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
        """Return the next state: with other step lengths, or of another algorithm, where that pays."""
        if isinstance(state, SplitState):
            return state
        if self.steps == SETTINGS.estimate_lengths:
            self._scale_steps(state)
        if self.pace_is_known and self.steps_left > SETTINGS.slow:
            return self._split(state) or state
        return state

    @property
    def slowness(self) -> int:
        """The factor by which limits on slow progress are extended."""
        return SETTINGS.patience if isinstance(self.algorithm, Splitting) else 1

    @property
    def _frame(self) -> float | None:
        """The number c with ``A A^H = c I``, as given or as suggested by the residuals so far.

        None where there is none, and where ``x >= 0``: points on the ball would have negative entries.
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
        """The number of further steps at the present linear rate; after more than `pace` steps."""
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
        """Whether the rate is measured at this step, for an estimate of the remaining steps."""
        return self.steps >= SETTINGS.first and (self.steps - SETTINGS.first) % SETTINGS.pace == 0

    # Other step lengths, another algorithm.

    def _scale_steps(self, state: ShrinkageState) -> None:
        """Continue with step lengths that are inverse to the squared lengths of the columns."""
        if isinstance(self.sparse.objective, L1Norm):
            lengths = step_lengths(self._shrinkage.gradient, self.ball.y)
            if lengths is not None:
                self._shrinkage.with_steps(state, Steps.of(lengths, self.sparse.weights))

    def _split(self, state: ShrinkageState) -> SplitState | None:
        """Continue with splitting if the rows are orthogonal."""
        p, of, frame = state.last, self._shrinkage, self._frame
        if frame is None:
            return None
        y = of.residual(0.0 * p.x)
        if self.ball.tight_frame is None and not is_frame(frame, of.image, of.gradient, y):
            self._least_stretch = 0.0  # the residuals were misleading: do not check again
            return None
        splitting = Splitting(y, frame, of.image, of.gradient, of.aim, threshold_for(p))
        self.algorithm, self.idle = splitting, 0
        return splitting.start(p)

    # The bound and the candidates.

    def _bound_at(self, p: Point | Mixture) -> None:
        """Improve the bound by the residual of a point and its correlations."""
        if isinstance(p, Mixture):
            # Mixed correlations are those of the mixed residual only up to rounding.
            g, growth = p.g, p.growth
        else:
            g, growth = p.g, 1.0
            # If the residual is nearly orthogonal to all columns, the image of x shows their size.
            image, x, pulled = norms(self.ball.y - p.r, p.x, g)
            stretch = pulled / (p.length or 1.0)
            self._stretch = max(self._stretch, stretch, image / (x or math.inf))
            self._least_stretch = min(self._least_stretch, stretch)
        self.improve_bound(p.r, g, growth)

    @property
    def certified(self) -> bool:
        """Whether the point to propose is expected to satisfy the driver.

        A mixture has nonzeros left from earlier points: the first time, the next iterate is awaited.
        """
        if self._gap == math.inf or not self._is_enough(self._value, self.bound):
            return False
        waits, self._waits = self._waits and isinstance(self._best, Mixture), False
        return not waits

    def _is_enough(self, fun: float, bound: float) -> bool:
        return fun - bound <= self._allowed_share * self.target.gap(fun)

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
        """Return the point as a candidate; each time the required share of the allowed gap is reduced.

        Where its residual is known to be short enough there is nothing to project.
        """
        self._allowed_share *= 0.3
        if self.bound == -math.inf:
            self._bound_at(self._state.last)
        x, best = self.point(), self._best
        known = isinstance(best, Point) and best.measured and not is_single(self._like)
        if known and self._allowed(best.x):
            image = self.ball.y - best.r
            measured = self.measured_at(x, image, norm(image - self.ball.y))
            if measured is not None:
                return measured
        if isinstance(self.sparse, PenalisedProblem):
            return Candidate(x, self.evidence)
        return Candidate(self.bench.project(x), self.evidence, before=x)
