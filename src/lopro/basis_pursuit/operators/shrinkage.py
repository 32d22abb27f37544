"""Proximal gradient steps along the regularisation path with mixed iterates, from products only.

Shrinkage is the proximal gradient step for ``alpha f(x) + |A x - y|^2 / 2``. Here ``alpha`` decreases from
the value at which the solution is zero to the one at which the residual has the required length (its inverse
is the multiplier of basis pursuit denoising), or to the weight of a penalty. A step costs one product with
``A`` and one with its adjoint: line searches, the next ``alpha`` and the mixture of earlier iterates from
which the next step starts use that residuals and gradients are affine in ``x``.

Vectors stay where the matrix is; of a matrix on a device only numbers are copied to the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit.columns.pieces import at_rank
from lopro.basis_pursuit.levels import Level, target_residual
from lopro.basis_pursuit.operators.history import History, Point, true_count
from lopro.basis_pursuit.operators.mixing import Blend, Mixture, ShrinkageState
from lopro.basis_pursuit.operators.step_lengths import Steps, line_search
from lopro.basis_pursuit.penalised import PenalisedProblem
from lopro.constraints.residual_ball import ResidualBall
from lopro.core.arrays import Array, asarray_like, eps, inner, namespace, nonnegative, norm
from lopro.objectives import Objective

__all__ = ["SETTINGS", "MixedShrinkage"]


@dataclass(frozen=True)
class Settings:
    """Settings of mixed shrinkage.

    Pairs of figures are the products of the 19 operators of `python -m benchmarks.constants basis_pursuit`
    with a tenth and with ten times the value; 2.5 is due to one blur, which takes eight times the products.
    Products of 18 operators (blurs, cosines, random columns), geometric mean 153: without `same` 165, with
    ``outside = 0`` 164, with ``unsolved = 0`` 202, without `growth` 163, without both of these limits 433.
    """

    #: The number of recent points that are kept in any case, and the largest share of nonzeros by which the
    #: supports of older ones may differ (2.57 and 2.57; 1.03 and 2.57).
    recent: int = 5
    same: float = 0.1
    #: Recent points whose largest value a new point may have; with all points, 4 of 12 blurs stall instead
    #: of 2 (2.53, 2.53).
    references: int = 8
    #: Steps after which a mixture that has not improved is replaced by a plain step: without, half of the
    #: runs on matrices of three rows stall (two certificates lost, 0.94).
    window: int = 10
    #: Where alpha would fall below this share of the last one, it is bounded below by ``outside`` times the
    #: largest correlation of a zero plus ``unsolved`` times the mean residual of the fixed-point equation
    #: (``down``: two certificates lost, two lost; ``outside``: 0.98, two lost; ``unsolved``: 2.56, 0.97).
    down: float = 0.95
    outside: float = 0.2
    unsolved: float = 4.0
    #: The smallest factor of alpha in a step: alpha stays positive where no point is feasible (1.00, and two
    #: certificates lost).
    furthest: float = 0.2
    #: Entries that may become nonzero when alpha is reduced, as a multiple of the nonzeros (two lost, 2.53).
    growth: float = 1.2


SETTINGS = Settings()


@dataclass(frozen=True, eq=False)
class MixedShrinkage:
    """Anderson-mixed proximal gradient steps on ``alpha f + |A x - y|^2 / 2`` with variable ``alpha``.

    Problem: f a weighted l1 norm (plus ``x >= 0``), a residual ball. Oracles: one product with A and one
    with its adjoint per step, prox. There is no bound on the number of steps; a mixture that does not lower
    the objective is replaced by a line search along a descent direction.

    Parameters
    ----------
    ball : ResidualBall or PenalisedProblem
        With ``A``, ``y`` and ``sigma > 0``.
    excess : callable
        Returns the moduli of correlations in units of the weights of f. The largest is the dual norm.
    nonneg : bool
        Whether ``x >= 0`` is required.
    tol : float
        Required relative accuracy of f; a tenth of it is spent on a target residual inside the ball.
    memory : int
        The number of points that may be mixed.
    level : Level, optional
        The condition that determines ``alpha``; by default the length of the residual.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.operators.shrinkage import MixedShrinkage
    >>> ball = lopro.constraints.ResidualBall(np.eye(3)[:2], np.array([3.0, 0.1]), sigma=1.0)
    >>> algorithm = MixedShrinkage(ball, excess=abs)
    >>> f, x = lopro.objectives.L1Norm(), np.zeros(3)
    >>> state = algorithm.init(f, x, np.random.default_rng())
    >>> for _ in range(8):
    ...     state = algorithm.step(f, state)
    >>> algorithm.output(state).round(4)
    array([2.005, 0.   , 0.   ])
    """

    ball: ResidualBall | PenalisedProblem
    excess: Callable[[Array], Array]
    nonneg: bool = False
    tol: float = 1e-6
    memory: int = 20
    level: Level | None = None

    def output(self, state: ShrinkageState) -> Array:
        return asarray_like(state.last.x, self.ball.like)

    def residual(self, x: Array) -> Array:
        """Return ``y - A x``, without a product for ``x = 0``."""
        y = self.ball.y
        if true_count(x != 0) == 0:
            return y + namespace(x).sum(x[:1])  # the dtype of the two
        return y - self.image(x)

    def image(self, x: Array) -> Array:
        """Return ``A x``."""
        return self.ball.image(asarray_like(x, self._like(x)))[0]

    def gradient(self, r: Array) -> Array:
        """Return ``A^H r``."""
        return self.ball.pullback((asarray_like(r, self._like(r)),))

    def _like(self, v: Array) -> Array:
        like = self.ball.like
        return v if isinstance(like, np.ndarray) else like

    def init(self, f: Objective, x: Array, rng: np.random.Generator) -> ShrinkageState:
        start = asarray_like(x, self._like(x))
        r = self.residual(start)
        image = norm(self.ball.y - r)
        # With A x = 0 the start is no better than zero.
        if image == 0.0 and true_count(start != 0) > 0:
            start = 0.0 * start
        g = self.gradient(r)
        # From zero, the step length |r|^2 / |A^H r|^2, which is at least 1 / |A|^2.
        moved, seen = (norm(start), image) if image > 0.0 else (norm(r), norm(g))
        ratio = moved / seen if seen > 0.0 else 1.0
        length = ratio * ratio  # ratio**2 raises where it overflows
        length = length if 0.0 < length < math.inf else 1.0
        alpha = self._first_alpha(f, start, g)
        point = Point(start, r, g, alpha, float(f.value(start)))
        history = History(self.memory)
        history.add(point, self._left_at(f, point, length), beside=[])
        return ShrinkageState(history, Mixture.of(point), length)

    def _first_alpha(self, f: Objective, x: Array, g: Array) -> float:
        """Return the alpha that fits the start best, at least half of the largest useful one."""
        largest = float(namespace(g).max(self.excess(g)))
        s = f.subgradient(x)
        square = inner(s, s)
        fitted = inner(g, s) / square if square > 0.0 else 0.0
        least = 0.0 if self.level is None else self.level.least
        return max(min(max(fitted, 0.5 * largest), largest), least)

    def step(self, f: Objective, state: ShrinkageState) -> ShrinkageState:
        start, alpha, t = state.mix, state.mix.alpha, state.length
        z, x = self._shrunk(f, start, alpha, t, state.steps)
        r = self.residual(x)
        fun = 0.0 if state.plain else float(f.value(x))
        base = state.last if state.plain else self._refusal(state, fun, r)
        if base is None:
            earlier = state.points
            state.note_length(state.last, x, r)
            point = Point(x, r, self.gradient(r), alpha, fun, measured=True)
            part_of_step = 1.0 / t if state.steps is None else 1.0 / (t * state.steps.lengths)
            left = point.g - part_of_step * (z - x)
        else:
            # x - base is a descent direction, and the minimiser along it costs no product. Beyond x there
            # may be negative entries, except from zero.
            beyond = state.plain and not (self.nonneg and base.nonzeros > 0)
            tau = line_search(f, base, x - base.x, r - base.r, alpha, 1e9 if beyond else 1.0)
            x, r = base.x + tau * (x - base.x), base.r + tau * (r - base.r)
            # Points of the same affine piece are kept; zero is on a piece of its own.
            earlier = [p for p in state.points if p is not base]
            earlier = [*earlier, base] if base.nonzeros > 0 else []
            state.note_length(base, x, r)
            point = Point(x, r, self.gradient(r), alpha, float(f.value(x)))
            left = self._left_at(f, point, state.length, state.steps)
        state.plain = base is not None and not state.plain
        self._remember(state, point, left, earlier)
        self._prepare(state)
        return state

    def _prepare(self, state: ShrinkageState) -> None:
        """Choose the point from which the next step starts.

        With more nonzeros than the rank of A, the affine piece has no fixed point: plain steps drift along
        the null space until an entry vanishes, and mixing only slows them down. Where mixtures stop improving
        the next step is a plain one with a long line search.
        """
        if not state.plain:
            state.mix, left = self._mixed(state)
            steady = abs(state.mix.alpha - state.last.alpha) <= 0.01 * state.last.alpha
            state.left = [*state.left, left][-SETTINGS.window :] if steady else []
            state.plain = len(state.left) == SETTINGS.window and left > 0.9 * state.left[0]
        if state.plain:
            state.mix, state.left = Mixture.of(state.last), []

    def _shrunk(
        self, f: Objective, start: Point | Mixture, alpha: float, t: float, steps: Steps | None
    ) -> tuple[Array, Array]:
        """Return the end of a gradient step of length ``t``, before and after shrinkage."""
        if steps is None:
            z = start.x + t * start.g
        else:
            z, f = start.x + (t * steps.lengths) * start.g, steps.norm
        # Clipped first: negative entries would add to the length of their block.
        return z, f.prox(nonnegative(z) if self.nonneg else z, t * alpha)

    def _left_at(self, f: Objective, point: Point, t: float, steps: Steps | None = None) -> Array:
        """Return the residual of the fixed-point equation at any point."""
        move = (self._shrunk(f, point, point.alpha, t, steps)[1] - point.x) / t
        return move if steps is None else move / steps.lengths

    def with_steps(self, state: ShrinkageState, steps: Steps) -> None:
        """Continue with these step lengths, which also scale the residuals of mixtures."""
        state.steps, state.lengths, state.left = steps, [], []
        (rows,) = namespace(steps.root).nonzero(state.last.active)
        of_nonzeros = namespace(steps.root).take(steps.root, rows)
        state.length /= inner(of_nonzeros, of_nonzeros) / max(1, rows.shape[0]) or 1.0
        self._prepare(state)

    def _refusal(self, state: ShrinkageState, fun: float, r: Array) -> Point | None:
        """Return the best recent point if a point with this value and residual is worse than all of them."""
        alpha, recent = state.mix.alpha, state.points[-SETTINGS.references :]
        values = [alpha * p.fun + 0.5 * p.square for p in recent]
        if alpha * fun + 0.5 * inner(r, r) <= max(values) * (1.0 + 64.0 * eps(r)):
            return None
        return recent[int(np.argmin(values))]

    def _remember(
        self, state: ShrinkageState, point: Point, left: Array, earlier: list[Point]
    ) -> None:
        """Add a point; of the earlier ones, drop those whose support differs too much."""
        earlier = earlier[max(0, len(earlier) + 1 - self.memory) :]
        old, recent = earlier[: 1 - SETTINGS.recent], earlier[1 - SETTINGS.recent :]
        limit = SETTINGS.same * point.nonzeros
        places = zip(old, point.differs(old), strict=True)
        same = [p for p, count in places if count <= limit]
        state.history.add(point, left, beside=[*same, *recent])

    def _mixed(self, state: ShrinkageState) -> tuple[Mixture, float]:
        """Choose the next alpha and mix the points for it."""
        last = state.last
        blend = Blend(state.history, None if state.steps is None else state.steps.root)
        alpha = self._target(last, blend)
        if alpha < SETTINGS.down * last.alpha:
            alpha = self._careful(state, blend, alpha)
        return blend.at(min(alpha, 1.5 * last.alpha)), blend.left

    def _target(self, last: Point, blend: Blend) -> float:
        """Return the required alpha, extrapolated from the last points."""
        if self.level is not None:
            alpha = self.level.alpha(0.0, 0.0, last.length, 0.0)
            return last.alpha if alpha is None else alpha
        target = self.aim(last.fun, last.alpha)
        alpha = blend.root(target)
        return last.alpha * target / max(last.length, 1e-3 * target) if alpha is None else alpha

    def _careful(self, state: ShrinkageState, blend: Blend, goal: float) -> float:
        """Return an alpha between the last one and the required one.

        If alpha is reduced at a point far from stationary, or until very many entries become nonzero, many of
        these have to vanish again.
        """
        last = state.last
        xp = namespace(last.x)
        g = blend.gradient(last.alpha)
        outside = float(xp.max(self.excess(xp.where(last.active, xp.zeros_like(g), g))))
        unsolved = blend.left / math.sqrt(max(1, last.nonzeros))
        floor = SETTINGS.outside * outside + SETTINGS.unsolved * unsolved
        floor = max(floor, SETTINGS.furthest * last.alpha)
        alpha = max(goal, min(floor, last.alpha))
        mix, t = blend.at(alpha), state.length
        most = 1 + int(SETTINGS.growth * last.nonzeros)
        x = mix.x if state.steps is None else mix.x / state.steps.lengths
        waiting = self.excess(x + t * mix.g)
        if true_count(waiting > t * alpha) > most:
            # 0.1 % above the limit, so that rounding does not decide which entries become nonzero.
            alpha = min(1.001 * at_rank(waiting, most) / t, last.alpha)
        return alpha

    def aim(self, fun: float, alpha: float) -> float:
        """Return the target residual for a value and a multiplier."""
        return float(target_residual(self.ball.sigma, self.tol * fun, alpha))
