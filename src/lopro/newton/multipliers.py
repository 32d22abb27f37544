"""The method of multipliers with semismooth Newton steps inside.

Every outer step minimises the augmented Lagrangian and takes over the multipliers found. Penalties grow for
each term by itself, only after the inner problem was solved, and only where its residual has not fallen.
All tolerances are ratios of quantities with the same units, so rescaled data give rescaled iterates.

Ten times more or less of a constant below changes no step of the problems of ``python -m benchmarks.constants
newton``: they are guards against rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lopro.functions.atoms import Step
from lopro.linalg.dense import EPS, Array, SingularSystem, norm
from lopro.newton.inner import Local, NoDescent, minimise
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


#: Relative violations below this are rounding; a larger penalty would only amplify it.
_ROUNDED = 64.0 * EPS
#: Penalties stop growing where their rounding would exceed this share of the gradient of f.
_NOISY = 1e-7
#: Beyond this share of the digits, a singular system is blamed on the penalties.
_STIFF = 1e-4


@dataclass(frozen=True)
class Settings:
    """Settings of the method of multipliers; the defaults suit nearly all problems.

    What a tenth and ten times the default do to the steps and factorisations of all problems of
    ``python -m benchmarks.constants newton``, and at most to those of one: stiffness 1.01 and 1.06 (1.53),
    growth 1.41 (6.6: penalties stay as they are) and 0.99, decrease 1.00 and 1.44 (6.6), inner 1.03 (1.29),
    0.96, proximal 0.96 (0.73) and 1.09 (1.9), max_steps nothing.

    Attributes
    ----------
    stiffness : float
        First penalties, relative to the mean curvature of the smooth part.
    growth : float
        By how much a penalty grows.
    decrease : float
        It grows where the residual of its term did not fall below this share of the last one.
    inner : float
        The inner problem is solved to this share of the present violation, both relative.
    proximal : float
        Weight of the proximal term relative to the mean curvature, where one is needed.
    max_steps : int
        Newton steps in all.
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
        One for each term, in the subdifferential of its part near ``D x``.
    stationarity : float
        Norm of the gradient of the Lagrangian, relative to that of ``f``.
    violation : float
        Largest distance of an image to where its multiplier belongs, relative to the size of ``x``.
    steps : int
        Newton steps so far.
    """

    point: PointWithImages
    multipliers: Image
    stationarity: float
    violation: float
    steps: int


def never() -> bool:
    """Return False: no time limit."""
    return False


def iterate(
    problem: Composite,
    x0: Array | None = None,
    multipliers0: Sequence[Array] | None = None,
    settings: Settings | None = None,
    stopped: Callable[[], bool] = never,
    system: System | None = None,
) -> Iterator[OuterIterate]:
    """Yield the state after every outer step; it is for the consumer to stop.

    Parameters
    ----------
    problem : Composite
        What to minimise.
    x0 : array, optional
        Where to begin; zero by default.
    multipliers0 : sequence of arrays, optional
        First multipliers, one for each term; zero by default.
    settings : Settings, optional
        Constants of the method.
    stopped : callable
        Whether time is up.
    system : System, optional
        What solves the linear systems; chosen from the problem by default.

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

    def asked() -> bool:
        # Called once for every Newton step, so that the caller can count them.
        nonlocal ended
        ended = ended or stopped()
        return ended

    # Outer steps without a Newton step are bounded as well, and one that changes nothing is the last.
    for _ in range(run.settings.max_steps):
        if ended or run.stuck or run.steps >= run.settings.max_steps:
            return
        state = run.advance(asked)
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
        self.system = system or self._fitting_system()
        self.last = [np.inf] * len(problem.terms)
        self.length = norm(x)
        self.steps = 0
        self.shift = 0.0
        self.loosest = 0.0
        self.last_stationarity = np.inf
        self.capped = False
        self.grown = 0
        #: Whether the last outer step has changed nothing: then none of the next would.
        self.stuck = False

    def _fitting_system(self) -> System:
        zeros: list[Array] = [np.zeros(term.size) for term in self.problem.terms]
        F = CompositeLagrangian(self.problem, zeros, self.penalties)
        complements = F.complements(F.targets(self.point))
        return choose_system(self.problem.size, F.pieces(self.point, complements))

    def advance(self, stopped: Callable[[], bool]) -> OuterIterate:
        """Make one outer step; an inner problem that was left unsolved keeps its multipliers."""
        before = self.steps
        local, solved = self._solved(stopped)
        self.stuck = not solved and self.steps == before
        self.length = max(self.length, norm(local.point.x))
        violations = self._violations(local)
        stationarity = norm(local.stationarity)
        relative = stationarity / local.size if local.size > 0.0 else stationarity
        worst = max(violations, default=0.0)
        self.point = local.point
        if solved:
            self.multipliers = local.duals
            self._grow(violations, local)
            self._loosen(relative, worst)
        return OuterIterate(self.point, local.duals, relative, worst, self.steps)

    def _lagrangian(self) -> CompositeLagrangian:
        anchor = self.point.x if self.shift > 0.0 else None
        return CompositeLagrangian(
            self.problem, self.multipliers, self.penalties, anchor, self.shift
        )

    def _solved(self, stopped: Callable[[], bool]) -> tuple[Local, bool]:
        """Minimise the augmented Lagrangian; a singular one gets a proximal term."""
        left = self.settings.max_steps - self.steps
        while True:
            F = self._lagrangian()
            try:
                local, steps, solved = minimise(
                    F, self.point, self.system, self._inner_tolerance, stopped, max(1, left)
                )
            except SingularSystem as error:
                if isinstance(error, NoDescent) and not self._can_shift:
                    return error.local, False
                self._regularise()
                continue
            self.steps += steps
            return local, solved

    @property
    def _can_shift(self) -> bool:
        """Whether the proximal term may still be made stronger."""
        return self.shift < 1e6 * self.settings.proximal * self.scale

    def _regularise(self) -> None:
        """Make the next system regular: take back penalties that grew too far, else add a proximal term."""
        stiffest = self.settings.stiffness * self.settings.growth**self.grown
        first = self.settings.proximal * self.scale
        if self.grown and stiffest * self.problem.size * EPS > _STIFF:
            self.grown -= 1
            self.capped = True
            self.penalties = [beta / self.settings.growth for beta in self.penalties]
        elif self._can_shift:
            self.shift = max(first, self.settings.growth**2 * self.shift)
            self.loosest = self.shift
        else:
            raise SingularSystem("singular in spite of a proximal term")

    def _loosen(self, stationarity: float, violation: float) -> None:
        """Weaken the proximal term where it is what keeps the iterates from a solution."""
        slow = stationarity > max(self.settings.decrease * self.last_stationarity, violation)
        if slow and self.shift > self.loosest:
            self.shift /= self.settings.growth
        self.last_stationarity = stationarity

    def _inner_tolerance(self, local: Local) -> float:
        """Return the size of the gradient that is small beside the present violation."""
        present = max(self._violations(local), default=0.0)
        return self.settings.inner * min(1.0, present, *self.last) * local.size

    def _violations(self, local: Local) -> list[float]:
        """Return the residual ``|v - u| / beta`` of each term in units of x, relative to its size."""
        length = max(self.length, norm(local.point.x))
        found = []
        pairs = zip(self.multipliers, local.duals, strict=True)
        sizes = zip(self.problem.terms, self.penalties, self.norms, strict=True)
        for (u, v), (term, beta, norms) in zip(pairs, sizes, strict=True):
            moved = np.abs(v - u) / (beta * norms)
            size = float(moved.max(initial=0.0)) if term.separable else norm(moved)
            found.append(size / length if length > 0.0 else size)
        return found

    def _grow(self, violations: Sequence[float], local: Local) -> None:
        """Stiffen the terms whose residual falls too slowly, unless rounding would grow with them."""
        decrease = self.settings.decrease
        pairs = zip(violations, self.last, strict=True)
        slow = [now > max(decrease * last, _ROUNDED) for now, last in pairs]
        self.last = list(violations)
        noisy = self.settings.growth * local.noise > _NOISY * local.size
        if self.capped or noisy or not any(slow):
            return
        self.grown += 1
        self.penalties = [
            self.settings.growth * beta if grows else beta
            for beta, grows in zip(self.penalties, slow, strict=True)
        ]
