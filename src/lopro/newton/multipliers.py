"""The method of multipliers, with semismooth Newton steps for the inner problems.

Every outer step minimises the augmented Lagrangian and updates the multipliers. The penalty of a term grows
after inner problems that were solved, if the residual of that term has not decreased enough. All tolerances
are ratios of quantities with the same units, so rescaled data give rescaled iterates.

A tenth and ten times of the module's constants, which guard against rounding, change no step of the problems
of ``python -m benchmarks.constants newton``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lopro.functions.atoms import Step
from lopro.linalg.dense import EPS, Array, SingularSystem, norm
from lopro.newton.inner import Evaluation, NoDescent, minimise
from lopro.newton.lagrangian import (
    CompositeLagrangian,
    PointWithImages,
    mean_curvature,
    squared_norms,
)
from lopro.newton.problem import Composite
from lopro.newton.smooth import Image
from lopro.newton.systems import System, choose_system

__all__ = ["OuterIterate", "Settings", "iterate"]


#: Relative violations below this are rounding, which a larger penalty would only amplify.
_ROUNDED = 64.0 * EPS
#: Penalties are not increased if the rounding of their terms would exceed this share of the gradient of f.
_NOISY = 1e-7
#: A singular system is attributed to penalties whose ratio to the curvature exceeds this over ``n EPS``.
_STIFF = 1e-4


@dataclass(frozen=True)
class Settings:
    """Settings of the method of multipliers; the defaults suit nearly all problems.

    A tenth and ten times of the defaults multiply the steps and factorisations of all problems of
    ``python -m benchmarks.constants newton`` (and those of one, at most) by: stiffness 1.01 and 1.06 (1.53),
    growth 1.41 (6.6: penalties do not grow) and 0.99, decrease 1.00 and 1.44 (6.6), inner 1.03 (1.29) and
    0.96, proximal 0.96 (0.73) and 1.09 (1.9), max_steps 1.

    Attributes
    ----------
    stiffness : float
        The first penalties, relative to the mean curvature of the smooth part.
    growth : float
        Factor by which a penalty grows.
    decrease : float
        A penalty grows if the residual of its term exceeds this share of the last one.
    inner : float
        Relative tolerance of the inner problem, as a share of the relative violation.
    proximal : float
        Weight of the proximal term relative to the mean curvature, where one is needed.
    max_steps : int
        Maximum number of Newton steps.
    """

    stiffness: float = 10.0
    growth: float = 10.0
    decrease: float = 0.1
    inner: float = 0.1
    proximal: float = 1e-3
    max_steps: int = 5000


@dataclass(frozen=True)
class OuterIterate:
    """The state after an outer step.

    Attributes
    ----------
    point : PointWithImages
        The point with its images.
    multipliers : tuple of arrays
        One for each term, in its subdifferential near ``D x``.
    stationarity : float
        Norm of the gradient of the Lagrangian, relative to that of ``f``.
    violation : float
        The largest residual ``|v - u| / beta`` of a term, in units of x, relative to the size of ``x``.
    steps : int
        Number of Newton steps so far.
    """

    point: PointWithImages
    multipliers: Image
    stationarity: float
    violation: float
    steps: int


def never() -> bool:
    """Return False, as without a time limit."""
    return False


def iterate(
    problem: Composite,
    x0: Array | None = None,
    multipliers0: Sequence[Array] | None = None,
    settings: Settings | None = None,
    stopped: Callable[[], bool] = never,
    system: System | None = None,
) -> Iterator[OuterIterate]:
    """Yield the state after every outer step, until the caller stops.

    Parameters
    ----------
    problem : Composite
        The problem.
    x0 : array, optional
        The starting point; zero by default.
    multipliers0 : sequence of arrays, optional
        The first multipliers, one for each term; zero by default.
    settings : Settings, optional
        Constants of the method.
    stopped : callable
        Returns whether time is up.
    system : System, optional
        The solver of linear systems; chosen from the problem by default.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import HalfSquare, Interval
    >>> from lopro.functions.term import Term
    >>> from lopro.newton import Composite, iterate
    >>> square = Term(HalfSquare(), offset=np.array([3.0, 0.5]))
    >>> problem = Composite.of([square, Term(Interval(np.full(2, -np.inf), np.ones(2)))], 2)
    >>> state = next(s for s in iterate(problem) if s.violation < 1e-12)
    >>> state.point.x.round(9), state.multipliers[0].round(9)
    (array([1. , 0.5]), array([2., 0.]))
    """
    run = _OuterLoop(problem, x0, multipliers0, settings or Settings(), system)
    ended = False

    def has_ended() -> bool:
        # `stopped` is called once for every Newton step, so that the caller can count them.
        nonlocal ended
        ended = ended or stopped()
        return ended

    # Outer steps without a Newton step are limited as well; one that changes nothing is the last.
    for _ in range(run.settings.max_steps):
        if ended or run.stuck or run.steps >= run.settings.max_steps:
            return
        state = run.advance(has_ended)
        if not (ended and run.steps == 0):
            yield state


class _OuterLoop:
    """Point, multipliers and penalties of a run."""

    def __init__(
        self,
        problem: Composite,
        x0: Array | None,
        multipliers0: Sequence[Array] | None,
        settings: Settings,
        system: System | None,
    ) -> None:
        self.problem = problem
        self.settings = settings
        x = np.zeros(problem.size) if x0 is None else np.array(x0, dtype=np.float64)
        self.point = PointWithImages.of(problem, x)
        zeros = [np.zeros(term.size) for term in problem.terms]
        given = zeros if multipliers0 is None else [np.array(u, dtype=float) for u in multipliers0]
        self.multipliers: Image = tuple(given)
        self.scale = mean_curvature(problem, self.point)
        squares = [squared_norms(term) for term in problem.terms]
        self.norms = [np.sqrt(square) for square in squares]
        self.penalties: list[Step] = [settings.stiffness * self.scale / s for s in squares]
        self.system = system or self._chosen_system()
        self.last = [np.inf] * len(problem.terms)
        self.length = norm(x)
        self.steps = 0
        self.shift = 0.0
        self.least_shift = 0.0
        self.last_stationarity = np.inf
        self.capped = False
        self.grown = 0
        #: Whether the last outer step has changed nothing, as all further ones would.
        self.stuck = False

    def _chosen_system(self) -> System:
        zeros: list[Array] = [np.zeros(term.size) for term in self.problem.terms]
        F = CompositeLagrangian(self.problem, zeros, self.penalties)
        complements = F.complements(F.targets(self.point))
        return choose_system(self.problem.size, F.pieces(self.point, complements))

    def advance(self, stopped: Callable[[], bool]) -> OuterIterate:
        """Make one outer step; multipliers are updated if the inner problem was solved."""
        before = self.steps
        state, solved = self._minimised(stopped)
        self.stuck = not solved and self.steps == before
        self.length = max(self.length, norm(state.point.x))
        violations = self._violations(state)
        stationarity = norm(state.stationarity)
        relative = stationarity / state.size if state.size > 0.0 else stationarity
        worst = max(violations, default=0.0)
        self.point = state.point
        if solved:
            self.multipliers = state.duals
            self._grow(violations, state)
            self._weaken_proximal(relative, worst)
        return OuterIterate(self.point, state.duals, relative, worst, self.steps)

    def _lagrangian(self) -> CompositeLagrangian:
        anchor = self.point.x if self.shift > 0.0 else None
        return CompositeLagrangian(
            self.problem, self.multipliers, self.penalties, anchor, self.shift
        )

    def _minimised(self, stopped: Callable[[], bool]) -> tuple[Evaluation, bool]:
        """Minimise the augmented Lagrangian, with a proximal term where it is singular."""
        left = self.settings.max_steps - self.steps
        while True:
            F = self._lagrangian()
            try:
                state, steps, solved = minimise(
                    F, self.point, self.system, self._inner_tolerance, stopped, max(1, left)
                )
            except SingularSystem as error:
                if isinstance(error, NoDescent) and not self._can_shift:
                    return error.state, False
                self._regularise()
                continue
            self.steps += steps
            return state, solved

    @property
    def _can_shift(self) -> bool:
        """Whether the weight of the proximal term may be increased further."""
        return self.shift < 1e6 * self.settings.proximal * self.scale

    def _regularise(self) -> None:
        """Make the system regular: reduce penalties that have grown too far, else add a proximal term."""
        stiffest = self.settings.stiffness * self.settings.growth**self.grown
        first = self.settings.proximal * self.scale
        if self.grown and stiffest * self.problem.size * EPS > _STIFF:
            self.grown -= 1
            self.capped = True
            self.penalties = [beta / self.settings.growth for beta in self.penalties]
        elif self._can_shift:
            self.shift = max(first, self.settings.growth**2 * self.shift)
            self.least_shift = self.shift
        else:
            raise SingularSystem("the system is singular even with a proximal term")

    def _weaken_proximal(self, stationarity: float, violation: float) -> None:
        """Weaken the proximal term where it slows the convergence."""
        slow = stationarity > max(self.settings.decrease * self.last_stationarity, violation)
        if slow and self.shift > self.least_shift:
            self.shift /= self.settings.growth
        self.last_stationarity = stationarity

    def _inner_tolerance(self, state: Evaluation) -> float:
        """Return the norm of the gradient to reach: small relative to the violation."""
        violation = max(self._violations(state), default=0.0)
        return self.settings.inner * min(1.0, violation, *self.last) * state.size

    def _violations(self, state: Evaluation) -> list[float]:
        """Return the residual ``|v - u| / beta`` of each term in units of x, relative to its size."""
        length = max(self.length, norm(state.point.x))
        violations = []
        pairs = zip(self.multipliers, state.duals, strict=True)
        sizes = zip(self.problem.terms, self.penalties, self.norms, strict=True)
        for (u, v), (term, beta, norms) in zip(pairs, sizes, strict=True):
            moved = np.abs(v - u) / (beta * norms)
            size = float(moved.max(initial=0.0)) if term.separable else norm(moved)
            violations.append(size / length if length > 0.0 else size)
        return violations

    def _grow(self, violations: Sequence[float], state: Evaluation) -> None:
        """Increase the penalties of terms whose residual decreases too slowly, unless rounding forbids it."""
        decrease = self.settings.decrease
        pairs = zip(violations, self.last, strict=True)
        slow = [now > max(decrease * last, _ROUNDED) for now, last in pairs]
        self.last = list(violations)
        noisy = self.settings.growth * state.noise > _NOISY * state.size
        if self.capped or noisy or not any(slow):
            return
        self.grown += 1
        self.penalties = [
            self.settings.growth * beta if grows else beta
            for beta, grows in zip(self.penalties, slow, strict=True)
        ]
