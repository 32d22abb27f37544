"""Shrinkage along the regularisation path with mixed iterates, for operators known by products only.

Shrinkage is the proximal gradient step for ``alpha f(x) + |A x - y|^2 / 2``. Here ``alpha`` comes down
from the value at which the solution is zero to the one at which the residual has the required length (the
multiplier of basis pursuit denoising is its inverse), or to the weight of a penalty. A step costs one
product with ``A`` and one with its adjoint, whatever happens: line searches, the next ``alpha`` and the
mixture of earlier iterates from which the next step starts use that residuals and gradients are affine in
``x``.

Vectors stay where the matrix is: of a matrix on a device, numbers come to the host and no vectors.

How long the columns of an operator are is estimated from a few products with random vectors: for ``w`` with
independent entries of mean 0 and variance 1, ``|a_i^H w|^2`` has the mean ``|a_i|^2``. One such product shows
whether the columns are equally long at all: then its entries are Gaussian, whose fourth moment is known. A
dozen of them estimate the lengths well enough to choose steps by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lopro.basis_pursuit.mixing import Blend, History, Mixture, Point, how_many
from lopro.basis_pursuit.penalised import PenalisedProblem
from lopro.basis_pursuit.support_newton import Level
from lopro.constraints.residual_ball import ResidualBall
from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    inner,
    is_complex,
    namespace,
    nonnegative,
    norm,
)
from lopro.core.vectors import inners
from lopro.objectives import L1Norm, Objective

__all__ = [
    "SETTINGS",
    "MixedShrinkage",
    "ShrinkageState",
    "Steps",
    "at_rank",
    "line_search",
    "step_lengths",
]


@dataclass(frozen=True)
class Settings:
    """Settings of mixed shrinkage.

    Products of 18 operators (blurs, cosines, random columns), geometric mean 153: without `same` 165, with
    ``outside = 0`` 164, with ``unsolved = 0`` 202, without `growth` 163, without both of these limits 433.
    """

    #: Points that are kept whatever their zeros are, and the share of other zeros that the rest may have.
    recent: int = 5
    same: float = 0.1
    #: Points that a new one is compared with before it is taken; with all, 4 of 12 blurs stall instead of 2.
    references: int = 8
    #: Steps after which a mixture that has not improved is replaced by a plain step; with three rows every
    #: second run would stall.
    window: int = 10
    #: Below this share of the last one, steps down of the parameter are limited: not below ``outside`` of the
    #: largest correlation of a zero plus ``unsolved`` mean residuals of the fixed-point equation.
    down: float = 0.95
    outside: float = 0.2
    unsolved: float = 4.0
    #: The least factor of the parameter in a step; it stays positive where no point is feasible.
    furthest: float = 0.2
    #: So many times the nonzeros may enter in one step down.
    growth: float = 1.2
    #: Products that lengths of columns are estimated from; and how many more would have shown that they
    #: are equal.
    products: int = 16
    prior: float = 2.0
    #: Columns are as good as equally long where the mean square of ``|a_i|^2`` is so many times the
    #: squared mean.
    equal: float = 1.2


SETTINGS = Settings()


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of a length of its own for each entry: short columns need long ones.

    They are those of unit length in the variables ``x / root``.
    """

    lengths: Array  # relative to the one that all share
    root: Array  # of the lengths
    norm: Objective  # f with weights times the lengths: its prox with one parameter shrinks as it should

    @staticmethod
    def of(lengths: Array, weights: Array) -> Steps:
        """Return the steps with these lengths for an l1 norm with these weights."""
        root = namespace(lengths).sqrt(lengths)
        return Steps(lengths, root, L1Norm(weights=weights * lengths))


@dataclass(slots=True)
class ShrinkageState:
    """The state of path following."""

    history: History
    mix: Mixture  # where the next step starts
    length: float  # of the next step
    lengths: list[float] = field(default_factory=list)  # that recent pairs of points suggest
    plain: bool = True  # whether the next step is one from the last point alone, with a line search
    left: list[float] = field(default_factory=list)  # residuals that the recent mixtures had
    steps: Steps | None = None  # all of the same length

    @property
    def points(self) -> list[Point]:
        """Iterates that may be mixed."""
        return self.history.points

    @property
    def last(self) -> Point:
        """The latest iterate."""
        return self.points[-1]

    @property
    def proofs(self) -> tuple[Point | Mixture, ...]:
        """Points whose correlations are known."""
        return self.last, self.mix

    @property
    def proposals(self) -> tuple[Point | Mixture, ...]:
        """Points to choose a solution from, where they are inside the ball."""
        return self.last, self.mix


def step_lengths(adjoint: Callable[[Array], Array], y: Array) -> Array | None:
    """Return for each column what is to its squared length as 1 is to the mean of those.

    None where all columns are about equally long.

    Parameters
    ----------
    adjoint : callable
        The product with ``A^H``.
    y : array
        Of the shape and kind of what it is applied to.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.shrinkage import step_lengths
    >>> A = np.random.default_rng(0).standard_normal((50, 400))
    >>> step_lengths(lambda w: A.T @ w, np.zeros(50)) is None
    True
    >>> A[:, :200] *= 3.0
    >>> lengths = step_lengths(lambda w: A.T @ w, np.zeros(50))
    >>> round(float(lengths[:200].mean()), 1), round(float(lengths[200:].mean()), 1)
    (0.7, 3.7)
    """
    rng = np.random.default_rng(0)  # the same call has the same outcome
    squares = _squares(adjoint, y, rng)
    mean = _mean(squares)
    of_gaussians = 2.0 if is_complex(y) else 3.0
    if not mean > 0.0 or _mean((squares / mean) ** 2) < of_gaussians * SETTINGS.equal:
        return None
    for _ in range(SETTINGS.products - 1):
        squares = squares + _squares(adjoint, y, rng)
    # Chance makes some of them very small.
    n, prior = SETTINGS.products, SETTINGS.prior
    return (n + prior) / (n * squares / _mean(squares) + prior)


def _squares(adjoint: Callable[[Array], Array], y: Array, rng: np.random.Generator) -> Array:
    w = rng.standard_normal(tuple(y.shape))
    if is_complex(y):
        w = (w + 1j * rng.standard_normal(tuple(y.shape))) / np.sqrt(2.0)
    size = namespace(y).abs(adjoint(asarray_like(w, y)))
    return size * size


def _mean(v: Array) -> float:
    return float(namespace(v).mean(v))


def at_rank(sizes: Array, rank: int) -> float:
    """Return the number that so many are not below; 0 stands for the ones that are missing."""
    if rank >= sizes.shape[0]:
        return 0.0
    if isinstance(sizes, np.ndarray):
        return float(np.partition(sizes, sizes.size - rank)[sizes.size - rank])
    return float(namespace(sizes).sort(sizes)[sizes.shape[0] - rank])


def line_search(
    f: Objective, base: Point, move: Array, q: Array, alpha: float, furthest: float
) -> float:
    """Return ``tau <= furthest`` for which the objective at ``base + tau move`` is least.

    ``q`` is what the move does to the residual, so no product is needed.
    """
    along, square = inners((base.r, q), (q, q))
    if base.nonzeros == 0 and square > 0.0:  # f grows evenly from zero
        return min(furthest, max(0.0, -(alpha * float(f.value(move)) + along) / square))

    def slope(tau: float) -> float:
        s = f.subgradient(base.x + tau * move)
        return alpha * inner(s, move) + along + tau * square

    low, high = 0.0, 1.0
    while high < furthest and slope(high) < 0.0:
        low, high = high, 2.0 * high
    while low == 0.0 and high > 1e-40 and slope(high / 16.0) > 0.0:  # the scale may be any
        high /= 16.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class MixedShrinkage:
    """Anderson-mixed proximal gradient steps on ``alpha f + |A x - y|^2 / 2`` with moving ``alpha``.

    Problem: f a weighted l1 norm (plus ``x >= 0``), a residual ball. Oracles: one product with A and one
    with its adjoint per step, prox. No bound is proved for a number of steps; a mixture that does not lower
    the objective is replaced by a line search along a descent direction.

    Parameters
    ----------
    ball : ResidualBall or PenalisedProblem
        Where ``A``, ``y`` and ``sigma > 0`` are.
    excess : callable
        Sizes of correlations in units of the weights of f. The largest is the dual norm: the least ``alpha``
        for which ``A^H r`` is a subgradient of ``alpha f``.
    nonneg : bool
        Whether ``x >= 0`` is required.
    tol : float
        Relative accuracy of f to work at; the residual aims so far inside the ball that a tenth of it is
        spent on that.
    memory : int
        How many points may be mixed.
    level : Level, optional
        What fixes ``alpha``; the length of the residual by default.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.shrinkage import MixedShrinkage
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
        """Return ``y - A x``; nothing is multiplied for ``x = 0``."""
        y = self.ball.y
        if how_many(x != 0) == 0:
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
        # With A x = 0 the start says nothing about the data.
        if image == 0.0 and how_many(start != 0) > 0:
            start = 0.0 * start
        g = self.gradient(r)
        # From zero, the step that the residual itself suggests; it is at least 1 / |A|^2.
        moved, seen = (norm(start), image) if image > 0.0 else (norm(r), norm(g))
        ratio = moved / seen if seen > 0.0 else 1.0
        length = ratio * ratio  # a power would raise where the units are extreme
        length = length if 0.0 < length < math.inf else 1.0
        alpha = self._first_alpha(f, start, g)
        point = Point(start, r, g, alpha, float(f.value(start)))
        history = History(self.memory)
        history.add(point, self._left_at(f, point, length), beside=[])
        return ShrinkageState(history, Mixture.of(point), length)

    def _first_alpha(self, f: Objective, x: Array, g: Array) -> float:
        """Return the parameter that a start fits best; half the largest useful one for zero."""
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
            self._note_length(state, state.last, x, r)
            point = Point(x, r, self.gradient(r), alpha, fun, measured=True)
            part_of_step = 1.0 / t if state.steps is None else 1.0 / (t * state.steps.lengths)
            left = point.g - part_of_step * (z - x)
        else:
            # Between base and x the objective falls at first, and the least point costs no product.
            # Further on than x there may be negative entries; from zero there are none.
            beyond = state.plain and not (self.nonneg and base.nonzeros > 0)
            tau = line_search(f, base, x - base.x, r - base.r, alpha, 1e9 if beyond else 1.0)
            x, r = base.x + tau * (x - base.x), base.r + tau * (r - base.r)
            # Points of the same piece are worth keeping, but zero lies on one of its own.
            earlier = [p for p in state.points if p is not base]
            earlier = [*earlier, base] if base.nonzeros > 0 else []
            self._note_length(state, base, x, r)
            point = Point(x, r, self.gradient(r), alpha, float(f.value(x)))
            left = self._left_at(f, point, state.length, state.steps)
        state.plain = base is not None and not state.plain
        self._remember(state, point, left, earlier)
        self._prepare(state)
        return state

    def _prepare(self, state: ShrinkageState) -> None:
        """Choose where the next step starts.

        Where more entries are nonzero than A has rank for, this piece has no fixed point: plain steps
        drift along the null space until an entry vanishes, and mixing only slows them down. A mixture
        that has stopped improving gives way to a plain step with a long line search.
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
        # Clipped first, or negative entries would add to the length of their block.
        return z, f.prox(nonnegative(z) if self.nonneg else z, t * alpha)

    def _left_at(self, f: Objective, point: Point, t: float, steps: Steps | None = None) -> Array:
        """Return the residual of the fixed-point equation at a point that is not the outcome of a step."""
        move = (self._shrunk(f, point, point.alpha, t, steps)[1] - point.x) / t
        return move if steps is None else move / steps.lengths

    def with_steps(self, state: ShrinkageState, steps: Steps) -> None:
        """Go on with steps of these lengths; points are mixed with that in mind, too."""
        state.steps, state.lengths, state.left = steps, [], []
        (rows,) = namespace(steps.root).nonzero(state.last.active)
        of_nonzeros = namespace(steps.root).take(steps.root, rows)
        state.length /= inner(of_nonzeros, of_nonzeros) / max(1, rows.shape[0]) or 1.0
        self._prepare(state)

    def _refusal(self, state: ShrinkageState, fun: float, r: Array) -> Point | None:
        """Return the best recent point if one with this value and residual is worse than all of them."""
        alpha, recent = state.mix.alpha, state.points[-SETTINGS.references :]
        values = [alpha * p.fun + 0.5 * p.square for p in recent]
        if alpha * fun + 0.5 * inner(r, r) <= max(values) * (1.0 + 64.0 * eps(r)):
            return None
        return recent[int(np.argmin(values))]

    def _note_length(self, state: ShrinkageState, base: Point, x: Array, r: Array) -> None:
        """Take the shortest of the last three steps that two neighbours suggest (Barzilai, Borwein).

        A long one may come from a direction that A hardly sees; the others bound it.
        """
        move, q = x - base.x, r - base.r
        if state.steps is not None:
            move, x = move / state.steps.root, x / state.steps.root
        square, moved, size = inners((q, q), (move, move), (x, x))
        if square > 0.0 and moved > (64.0 * eps(x)) ** 2 * size:  # not rounding alone
            state.lengths = [*state.lengths, moved / square][-20:]
            state.length = min(4.0 * min(state.lengths), *state.lengths[-3:])

    def _remember(
        self, state: ShrinkageState, point: Point, left: Array, earlier: list[Point]
    ) -> None:
        """Keep what belongs to the same piece: points that have almost the same zeros."""
        earlier = earlier[max(0, len(earlier) + 1 - self.memory) :]
        old, recent = earlier[: 1 - SETTINGS.recent], earlier[1 - SETTINGS.recent :]
        limit = SETTINGS.same * point.nonzeros
        places = zip(old, point.differs(old), strict=True)
        same = [p for p, count in places if count <= limit]
        state.history.add(point, left, beside=[*same, *recent])

    def _mixed(self, state: ShrinkageState) -> tuple[Mixture, float]:
        """Choose the next parameter and mix the points for it."""
        last = state.last
        blend = Blend(state.history, None if state.steps is None else state.steps.root)
        alpha = self._target(last, blend)
        if alpha < SETTINGS.down * last.alpha:
            alpha = self._careful(state, blend, alpha)
        return blend.at(min(alpha, 1.5 * last.alpha)), blend.left

    def _target(self, last: Point, blend: Blend) -> float:
        """Return the required parameter, extrapolated from the last points."""
        if self.level is not None:
            alpha = self.level.alpha(0.0, 0.0, last.length, 0.0)
            return last.alpha if alpha is None else alpha
        target = self.aim(last.fun, last.alpha, 0.1)  # inside by a tenth of the tolerance
        alpha = blend.root(target)
        return last.alpha * target / max(last.length, 1e-3 * target) if alpha is None else alpha

    def _careful(self, state: ShrinkageState, blend: Blend, goal: float) -> float:
        """Return a parameter on the way down to the one that the residual requires.

        A point that is far from stationary, or one step that lets in very many entries, would let in those
        that have to leave again.
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
        if how_many(waiting > t * alpha) > most:
            # 0.1 % more than that, so that rounding does not decide which enter.
            alpha = min(1.001 * at_rank(waiting, most) / t, last.alpha)
        return alpha

    def aim(self, fun: float, alpha: float, share: float) -> float:
        """Return the residual that is inside by what costs f this share of its tolerance."""
        sigma = self.ball.sigma
        spare = share * self.tol * fun
        return sigma * (1.0 - min(0.01, spare * alpha / sigma**2))
