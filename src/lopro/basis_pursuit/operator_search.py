"""One run with products only: which point to propose, what is proved of it, and which algorithm continues."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from lopro.basis_pursuit.history import Point
from lopro.basis_pursuit.mixing import Mixture
from lopro.basis_pursuit.penalised import PenalisedProblem
from lopro.basis_pursuit.problem import SparseProblem, images_at
from lopro.basis_pursuit.shrinkage import MixedShrinkage
from lopro.basis_pursuit.splitting import SplitState, Splitting, is_frame, threshold_for
from lopro.basis_pursuit.steps import ShrinkageState, Steps, step_lengths
from lopro.constraints import ResidualBall
from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    is_single,
    namespace,
    nonnegative,
    norm,
    norms,
)
from lopro.objectives import L1Norm, Objective
from lopro.protocol import Candidate, Workbench

__all__ = ["OperatorSearch", "State"]


@dataclass(frozen=True)
class Settings:
    """What steers the choice of algorithm and steps."""

    #: Steps after which the lengths of columns are estimated, by up to 16 products: without that "operator
    #: lengths" of `benchmarks.bpdn.counts` take 1.9 and 3.8 times as many.
    estimate_lengths: int = 20
    #: Steps that progress is measured over, first after so many.
    pace: int = 20
    first: int = 64
    #: Steps left at the present pace beyond which splitting is tried; it may be idle so many times as long.
    slow: int = 300
    patience: int = 10
    #: Residuals so many times as long as sigma prove little.
    far: float = 1.5


SETTINGS = Settings()

#: Where one of the two algorithms stands.
State: TypeAlias = "ShrinkageState | SplitState"


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
        if min(p.length for p in proposals) <= SETTINGS.far * self.ball.sigma:
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
        """How much patience the algorithm needs."""
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
        """How many steps have been made."""
        return len(self._errors)

    @property
    def steps_left(self) -> float:
        """How many more would be needed at the present pace; more than `pace` must have been made."""
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
        """Whether it is time to ask how many steps are left."""
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

    # What is proved.

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

    def close(self, share: float) -> bool:
        """Whether the gap is less than a share of the value."""
        return self._gap <= share * self._value

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

    # What is proposed.

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
        """Propose the point; should the driver not be content, ask for more next time.

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
