"""Basis pursuit denoising for operators: two products a step, and a certificate that costs none.

The residual and its correlations ``A^H r``, which every step computes, are also a dual point: scaled to
feasibility they bound the optimum from below. So the gap is known at all times, and one projection (which
finds nothing to do, as the path aims a hair inside the ball) ends a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

from lopro._util.arrays import Array, asarray_like, eps, namespace, nonnegative, norm, norms, widest
from lopro._util.validation import check_count
from lopro.basis_pursuit.by_columns import finish_by_columns, reads_columns
from lopro.basis_pursuit.by_cones import fits_cones, solve_by_cones
from lopro.basis_pursuit.column_lengths import step_lengths
from lopro.basis_pursuit.first_piece import first_piece
from lopro.basis_pursuit.mixing import Mixture, Point
from lopro.basis_pursuit.problem import NORMS, SparseProblem, residual_ball_of
from lopro.basis_pursuit.shrinkage import MixedShrinkage, ShrinkageState, Steps
from lopro.basis_pursuit.splitting import SplitState, Splitting, is_frame, threshold_for
from lopro.constraints import ResidualBall
from lopro.constraints.base import ValidInequality
from lopro.errors import MissingCapabilityError, StalledError
from lopro.methods.multipliers import MultiplierMethod
from lopro.objectives import L1Norm
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = ["MatrixFree"]

#: Multiplier updates without progress after which the last resort gives up, too.
_PATIENCE = 20
#: Where interior points have not got there it would take very long and end no better: it has fewer steps
#: between two looks, and fewer updates.
_SHORT, _LITTLE = 5, 2

#: Equations begin with this much of ``|y|`` as a radius, for at most so many steps.
_RELAXED, _RELAXED_STEPS = 1e-2, 60

#: After so many steps columns of different length are worth a few products.
_LONG = 20
#: How many steps progress is judged by, first after so many; where more than so many would be needed at this
#: pace, splitting is tried, which may be idle for so many times as long.
_PACE, _FIRST, _MANY, _SLOW = 20, 64, 300, 10

#: Where one of the two algorithms stands.
State: TypeAlias = "ShrinkageState | SplitState"
#: Another method that goes on from a point.
Resort: TypeAlias = "Callable[[Workbench, SparseProblem, Array], Candidates]"


@dataclass(frozen=True)
class MatrixFree:
    """Mixed shrinkage for ``min sum w_i |x_i|  s.t. |A x - y| <= sigma (and x >= 0)`` from products only.

    Problem: `L1Norm` with positive weights over a `ResidualBall`, real or complex, optionally intersected
    with ``x >= 0``. Oracles: one product with A and one with its adjoint per step, and a few random products
    after which short columns take longer steps. Where it crawls and the rows of A are orthogonal, splitting
    goes on; where there is no progress, and for ``sigma = 0``, `MultiplierMethod` takes over from its point.

    Parameters
    ----------
    memory : int
        How many earlier points are kept (three vectors of the length of x and one of that of y each).
    patience : int
        Give up after so many steps in a row without a better gap.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from scipy.sparse.linalg import aslinearoperator
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((20, 60))
    >>> y = A[:, 0] - 2 * A[:, 5]
    >>> ball = lopro.constraints.ResidualBall(aslinearoperator(A), y, sigma=0.1)
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), ball)
    >>> result = lopro.solve(problem, method=lopro.MatrixFree(), tol=1e-8)
    >>> result.success, np.flatnonzero(result.x), result.counts.projections
    (True, array([0, 5]), 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="l1 norm over a residual ball, optionally x >= 0, any linear operator",
        oracles="products with A and its adjoint",
        rate="linear once the support has settled",
        projections="one per certified candidate",
        reference="this library: Anderson-mixed shrinkage with a root search for the multiplier; "
        "Douglas-Rachford splitting",
    )

    memory: int = 20
    patience: int = 150

    def __post_init__(self) -> None:
        check_count("memory", self.memory, minimum=2)
        check_count("patience", self.patience)

    def check(self, problem: Problem) -> None:
        ball, _ = residual_ball_of(problem.constraint)
        if ball is None or not isinstance(problem.objective, NORMS):
            raise MissingCapabilityError(
                "MatrixFree needs L1Norm over a ResidualBall (and possibly x >= 0), got "
                f"{problem.objective!r} over {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        yield from self._from(bench, x0, solve_by_cones)

    def after_cones(self, bench: Workbench, x0: Array) -> Candidates:
        """Run where interior points have been tried, or are not for this problem."""
        yield from self._from(bench, x0, _nothing)

    def _from(self, bench: Workbench, x0: Array, cones: Resort) -> Candidates:
        sparse = SparseProblem.of(bench.problem, x0)
        ball, w = sparse.ball, sparse.weights
        if norm(ball.y) <= ball.sigma:
            yield _at_zero(bench, sparse, x0)
            return
        found = first_piece(bench, sparse, x0)
        if found is not None:
            yield found
        least = sparse.objective.least_weight
        if ball.sigma == 0.0 or least == 0.0:
            if ball.sigma == 0.0 and least > 0.0 and reads_columns(sparse):
                yield from finish_by_columns(bench, self._nearly(bench, sparse, x0))
            yield from cones(bench, sparse, x0)
            yield from _multipliers(bench, sparse, x0)
            return
        search = _Search(bench, sparse, self.memory)
        state: State = search.start(x0)
        while search.idle <= self.patience * search.slowness and search.moving(state):
            state = bench.advance(search.algorithm, bench.objective, state, 1)
            search.look(state)
            if search.certified or bench.exhausted:
                yield search.candidate()
            if bench.exhausted:
                raise StalledError
            state = search.reconsidered(state)
        # Rounding is in the way, and would be in that of others.
        if bench.target.tol < 1e3 * eps(w):
            yield search.candidate()
            raise StalledError
        if not ball.A.has_columns and reads_columns(sparse):
            yield from finish_by_columns(bench, search.point())
        yield from cones(bench, sparse, search.point())
        yield from _multipliers(bench, sparse, search.point())

    def _nearly(self, bench: Workbench, sparse: SparseProblem, x0: Array) -> Array:
        """Return a point that almost solves equations: its support is the one to begin with."""
        ball = sparse.ball
        relaxed = ResidualBall(ball.A, ball.y, _RELAXED * norm(ball.y))
        search = _Search(bench, replace(sparse, ball=relaxed), self.memory)
        state: State = search.start(x0)
        for _ in range(_RELAXED_STEPS):
            if bench.exhausted or not search.moving(state):
                break
            state = bench.advance(search.algorithm, bench.objective, state, 1)
            search.look(state)
            if search.close(_RELAXED):
                break
        return search.point()


class _Search:
    """One run: the best dual point so far, the point to propose, and what it is worth."""

    def __init__(self, bench: Workbench, sparse: SparseProblem, memory: int) -> None:
        self.bench, self.sparse, self.ball = bench, sparse, sparse.ball
        self._shrinkage = MixedShrinkage(
            sparse.ball, sparse.excess, sparse.nonneg, bench.target.tol, memory
        )
        self.algorithm: MixedShrinkage | Splitting = self._shrinkage
        self.bound, self.inequality = -math.inf, sparse.at_zero(sparse.weights)
        self.idle, self._least, self._ask, self._stretch = 0, math.inf, 0.9, 0.0
        self._errors: list[float] = []
        self._least_stretch, self._waits = math.inf, True

    def start(self, x0: Array) -> ShrinkageState:
        """Return the state that starts at ``x0``, or at zero where its sign is not allowed."""
        self._like = x0
        x = nonnegative(x0) if self.sparse.nonneg else x0
        state = self._shrinkage.init(self.bench.objective, x, self.bench.rng)
        # From a start that is much too long, where x >= 0, zero is a better one.
        if not self.moving(state):
            state = self._shrinkage.init(self.bench.objective, 0.0 * x, self.bench.rng)
        self._best: Any = state.last
        self.sparse.check_units(state.last.g, state.last.r)
        return state

    def moving(self, state: State) -> bool:
        """Whether there is a direction to go: not where all correlations vanish."""
        return self.sparse.gauge(state.last.g) > 0.0

    def look(self, state: State) -> None:
        """Draw lower bounds from the points that prove some, and pick the point to propose."""
        for p in state.proofs:
            self._improve_bound(p)
        near = [p for p in state.proposals if p.length <= self.ball.sigma and self._allowed(p.x)]
        inside = [(self._fun(p), p) for p in near]
        # What comes out of shrinkage is sparse, and first where it is good enough.
        enough = [pair for pair in inside if self._is_enough(pair[0])]
        otherwise = (state.last.fun, state.last)
        fun, self._best = min(enough[:1] or inside, key=lambda pair: pair[0], default=otherwise)
        self._value = fun
        excess = max(0.0, self._best.length / self.ball.sigma - 1.0)
        self._gap = fun - self.bound if inside else math.inf
        error = excess + abs(fun - self.bound) / max(fun, 1e-300)
        self._errors.append(error)
        self.idle += 1
        if error < 0.9 * self._least:
            self._least, self.idle = error, 0

    def reconsidered(self, state: State) -> State:
        """Return the state to go on from: with other steps, or of another algorithm, where that pays."""
        if isinstance(state, SplitState):
            return state
        steps = len(self._errors)
        if steps == _LONG:
            self._even_out(state)
        if steps >= _FIRST and (steps - _FIRST) % _PACE == 0 and self._slow:
            return self._split(state) or state
        return state

    @property
    def slowness(self) -> int:
        """How much patience the algorithm needs."""
        return _SLOW if isinstance(self.algorithm, Splitting) else 1

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
    def _slow(self) -> bool:
        """Whether very many steps would be needed at the present pace."""
        before, now = self._errors[-_PACE - 1], self._errors[-1]
        wanted = max(self.bench.target.tol, eps(self._like))
        if now <= wanted:
            return False
        return now >= before or math.log(now / wanted) * _PACE > _MANY * math.log(before / now)

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
            self._least_stretch = 0.0  # what residuals have shown is not believed again
            return None
        splitting = Splitting(y, frame, of.image, of.gradient, of.aim, threshold_for(p))
        self.algorithm, self.idle = splitting, 0
        return splitting.start(p)

    def _allowed(self, x: Array) -> bool:
        return not self.sparse.nonneg or float(namespace(x).min(x)) >= 0.0

    def _fun(self, p: Any) -> float:
        return p.fun if isinstance(p, Point) else float(self.bench.objective.value(p.x))

    def _improve_bound(self, p: Point | Mixture) -> None:
        """Scale the residual to a feasible dual point; it bounds the optimum from below."""
        growth = p.growth if isinstance(p, Mixture) else 1.0
        if not isinstance(p, Mixture):
            # A residual may be nearly orthogonal to the columns; then the image of x shows their size.
            image, x, g = norms(self.ball.y - p.r, p.x, p.g)
            self._stretch = max(self._stretch, g / (p.length or 1.0), image / (x or math.inf))
            self._least_stretch = min(self._least_stretch, g / (p.length or 1.0))
        # Mixed correlations are those of the mixed residual only up to rounding.
        found = self.sparse.proved(p.r, p.g, self._stretch, growth, above=self.bound)
        if found is not None and -found.support > self.bound:
            self.bound = -found.support
            assert found.dual is not None
            # Real measurements of a complex map have a complex dual.
            like = widest((self.ball.y, self.ball.like))
            self.inequality = ValidInequality(
                asarray_like(found.direction, self._like),
                found.support,
                tuple(asarray_like(v, like) for v in found.dual),
            )

    def close(self, share: float) -> bool:
        """Whether the gap is less than a share of the value."""
        return self._gap <= share * self._value

    @property
    def certified(self) -> bool:
        """Whether the point at hand should satisfy the driver.

        A mixture has nonzeros that are left of earlier points: the first one waits for the next step.
        """
        if self._gap == math.inf or not self._is_enough(self._value):
            return False
        waits, self._waits = self._waits and isinstance(self._best, Mixture), False
        return not waits

    def _is_enough(self, fun: float) -> bool:
        return fun - self.bound <= self._ask * self.bench.target.gap(fun)

    def point(self) -> Array:
        """Return the point to propose."""
        return asarray_like(self._best.x, self._like)

    def candidate(self) -> Candidate:
        """Project the point to propose; should the driver not be content, ask for more next time."""
        self._ask *= 0.3
        x = self.point()
        return Candidate(self.bench.project(x), Multiplier(self.inequality), before=x)


def _multipliers(bench: Workbench, sparse: SparseProblem, x: Array) -> Candidates:
    """Go on with first-order multipliers, the last resort."""
    small = fits_cones(sparse)
    last = MultiplierMethod(_SHORT, _LITTLE) if small else MultiplierMethod(patience=_PATIENCE)
    yield from last.run(bench, x)


def _nothing(bench: Workbench, sparse: SparseProblem, x: Array) -> Candidates:
    yield from ()


def _at_zero(bench: Workbench, sparse: SparseProblem, x0: Array) -> Candidate:
    """Zero is feasible: nothing can be shorter."""
    zero = 0.0 * x0
    return Candidate(zero, Multiplier(sparse.at_zero(zero)))
