"""The augmented Lagrangian method for the dual with semismooth Newton steps (SDPNAL).

Zhao, Sun and Toh, A Newton-CG augmented Lagrangian method for semidefinite programming, 2010.

A tenth and ten times of the constants below multiply the number of eigendecompositions of
``python -m benchmarks.constants newton.sdp`` (and those of one problem, at most) by: `_HALVINGS`
loses ten of twelve proofs, 1.13 (1.56); `_DAMPINGS` loses ten, 1.00; `_INNER` 1.40 (1.86), 1.61 (2.86);
`_LOOSE` 1.14 (1.31), 14 and proofs are lost; `_TIGHT` 1.04 (1.17), 1.06 (1.22); `_SIGMA` 1.04 (2.23), 1.01
(1.21); `_STEPS` loses one proof, 1.00. `_ARMIJO` changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import OutOfTime
from lopro.linalg.dense import EPS, Array, SingularSystem, norm
from lopro.newton.multipliers import never
from lopro.newton.sdp.dual_point import Centre, DualPoint
from lopro.newton.sdp.hessian import Directions
from lopro.newton.sdp.program import SemidefiniteProgram

__all__ = ["DualIterate", "iterate", "minimised"]

#: Sufficient decrease of a line search (Nocedal and Wright, Numerical Optimization, section 3.1).
_ARMIJO = 1e-4
#: Maximum number of trial steps of a line search, each a quarter of the last, and of values of the damping.
_HALVINGS, _DAMPINGS = 4, 4
#: The inner problem is solved if the primal residual is at most this multiple of the dual one.
_INNER = 1.0
#: Bounds of the relative accuracy of directions, which is three times the primal residual.
_LOOSE, _TIGHT = 0.1, 1e-4
#: The first penalty, for programs whose data have about size 1.
_SIGMA = 10.0
#: Maximum number of Newton steps for one augmented Lagrangian.
_STEPS = 60


def _not_known(y: Array) -> bool:
    """Return False: nothing is proved."""
    return False


@dataclass(frozen=True)
class DualIterate:
    """The state after an outer step, in the units of the scaled program.

    Attributes
    ----------
    point : DualPoint
        Multipliers y, the next X, spectra.
    centre : Centre
        The X at the start of the step, and sigma.
    primal, dual : float
        ``|A X - b|`` and ``|C - A*y - S|``.
    decompositions, steps : int
        Numbers of eigendecompositions of all blocks and of Newton steps so far.
    """

    point: DualPoint
    centre: Centre
    primal: float
    dual: float
    decompositions: int
    steps: int


def iterate(
    program: SemidefiniteProgram,
    stopped: Callable[[], bool] = never,
    start: tuple[tuple[Array, ...], Array, float] | None = None,
) -> Iterator[DualIterate]:
    """Yield the state after every outer step, until the caller stops.

    Parameters
    ----------
    program : SemidefiniteProgram
        A program with rows, ``b`` and ``C`` of about size 1 (see `ScaledProgram`).
    stopped : callable
        Returns whether time is up.
    start : (X, y, sigma), optional
        The starting point.
    """
    run = _DualRun(program, start)
    while not stopped():
        yield run.advance(stopped)


def minimised(
    program: SemidefiniteProgram,
    centre: tuple[Array, ...],
    y: Array,
    tolerance: float,
    stopped: Callable[[], bool] = never,
    unbounded: Callable[[Array], bool] = _not_known,
) -> tuple[DualPoint, tuple[int, int]]:
    """Minimise one augmented Lagrangian of penalty 1; return the point, eigendecompositions and products.

    Parameters
    ----------
    program : SemidefiniteProgram
        A program with rows and ``b`` of about size 1.
    centre : tuple of arrays
        The centre, one array for each block; any symmetric matrices.
    y : array
        The starting point.
    tolerance : float
        The residual to reach.
    stopped : callable
        Returns whether time is up.
    unbounded : callable
        Returns whether multipliers prove that the rows have no solution, so that there is no minimum; called
        where a step has increased the residual.
    """
    run = _DualRun(program, (centre, y, 1.0))
    point = run.settle(tolerance, stopped, unbounded)
    return point, (run.decompositions, run.directions.products)


class _DualRun:
    """X, y and sigma of a run."""

    def __init__(
        self, program: SemidefiniteProgram, start: tuple[tuple[Array, ...], Array, float] | None
    ) -> None:
        self.program = program
        self.directions = Directions(program)
        self.decompositions = self.steps = 0
        if start is None:
            zero = tuple(np.zeros(p.shape) for p in program.blocks)
            start = zero, least_squares_multipliers(program), _SIGMA
        self.centre = Centre(start[0], start[2])
        self.y = start[1]

    def advance(self, stopped: Callable[[], bool]) -> DualIterate:
        """Minimise the augmented Lagrangian and update X, or reduce the penalty if that fails."""
        point = self._evaluate(self.y)
        centre, solved = self.centre, True
        while solved and not stopped():
            primal, dual = point.primal_residual, point.moved / centre.sigma
            if primal <= max(_INNER * dual, 4.0 * EPS):
                break
            following = self._newton(point, primal, stopped)
            solved = following is not None
            point = following or point
        primal, dual = point.primal_residual, point.moved / centre.sigma
        self.y = point.y
        self.centre = self._next(point, primal, dual, solved)
        return DualIterate(point, centre, primal, dual, self.decompositions, self.steps)

    def settle(
        self, tolerance: float, stopped: Callable[[], bool], unbounded: Callable[[Array], bool]
    ) -> DualPoint:
        """Minimise the augmented Lagrangian to a residual, as far as steps succeed."""
        point = self._evaluate(self.y)
        for _ in range(_STEPS):
            if point.primal_residual <= tolerance or stopped():
                break
            following = self._newton(point, point.primal_residual, stopped)
            if following is None:
                break
            grows = following.primal_residual > point.primal_residual
            point = following
            if grows and unbounded(point.y):
                break
        return point

    def _next(self, point: DualPoint, primal: float, dual: float, solved: bool) -> Centre:
        """Return the next X and the penalty, which grows if the dual residual exceeds the primal one."""
        sigma = self.centre.sigma
        if not solved and primal > dual:
            return Centre(self.centre.X, sigma / 6.0)
        if dual > primal:
            sigma *= 6.0 if dual > 10.0 * primal else 3.0
        return Centre(point.X, sigma)

    def _evaluate(self, y: Array) -> DualPoint:
        self.decompositions += 1
        return DualPoint.of(self.program, self.centre, y)

    def _newton(
        self, point: DualPoint, primal: float, stopped: Callable[[], bool]
    ) -> DualPoint | None:
        """Return the point after a Newton step; None if no step decreases the function or time is up."""
        damping = 1.0
        accuracy = min(_LOOSE, max(3.0 * primal, _TIGHT))
        for _ in range(_DAMPINGS):
            try:
                d = self.directions.find(point, self.centre.sigma, accuracy, damping)
            except OutOfTime:
                return None
            except SingularSystem:
                following = None
            else:
                following = self._search(point, d, stopped)
            self.steps += 1
            if following is not None or stopped():
                return following
            damping *= 1e3
        return None

    def _search(self, point: DualPoint, d: Array, stopped: Callable[[], bool]) -> DualPoint | None:
        slope = float(point.gradient @ d)
        rounding = 16.0 * EPS * (abs(point.value) + float(np.abs(self.program.b * point.y).sum()))
        t = 1.0
        for _ in range(_HALVINGS):
            following = self._evaluate(point.y + t * d)
            if following.value <= point.value + _ARMIJO * t * slope + rounding:
                better = (
                    abs(t * slope) > rounding or norm(following.gradient) < point.primal_residual
                )
                return following if better else None
            if stopped():
                return None
            t *= 0.25
        return None


def least_squares_multipliers(program: SemidefiniteProgram) -> Array:
    """Return ``y`` with ``A A* y = A C + b``: one step of the alternating direction method from zero."""
    gram = program.gram()
    rhs = program.rows([p.C for p in program.blocks]) + program.b
    size = float(gram.diagonal().mean())
    regular = scipy.sparse.csc_array(gram + 1e-10 * size * scipy.sparse.eye_array(len(rhs)))
    return np.asarray(scipy.sparse.linalg.splu(regular).solve(rhs))
