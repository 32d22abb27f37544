"""Subproblem solvers of restart schemes: the paper's two inner algorithms for a given accuracy.

A solver guarantees ``f(P x) - f_* <= eps`` after ``steps(s, delta, eps)`` iterations from a point within
distance ``delta`` of a solution (Theorem 1 with R1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from lopro.core.arrays import Array, norm
from lopro.errors import MissingCapabilityError
from lopro.methods.inner import (
    AcceleratedGradient,
    ConstantStep,
    FixedSmoothness,
    InnerAlgorithm,
    SubgradientDescent,
)
from lopro.methods.setting import Needs, Setting
from lopro.penalties import Hinge, Penalty, Softplus
from lopro.problem import Problem
from lopro.protocol import Workbench

__all__ = [
    "AcceleratedSolver",
    "Solver",
    "SubgradientSolver",
    "initial_gap",
    "initial_setting",
    "target_gap",
]


class Solver(Protocol):
    """An inner algorithm with its penalty, for every accuracy."""

    def tuned(self, s: Setting, eps: float) -> tuple[Penalty, InnerAlgorithm]:
        """Return penalty and algorithm for the accuracy ``eps``."""
        ...

    def steps(self, s: Setting, delta: float, eps: float) -> int:
        """Return the number of iterations that suffices from a point within ``delta`` of a solution."""
        ...


@dataclass(frozen=True)
class SubgradientSolver:
    """The solver of LoPGD: the hinge and step size ``eps / Gbar^2``; ``(delta Gbar / eps)^2`` iterations.

    Examples
    --------
    >>> from lopro import LoPGD
    >>> from lopro.methods.paper.restarts import LogScaleGrid, SubgradientSolver
    >>> LoPGD(LogScaleGrid(SubgradientSolver())).schedule.solver
    SubgradientSolver()
    """

    def tuned(self, s: Setting, eps: float) -> tuple[Penalty, InnerAlgorithm]:
        return Hinge(s.weight), SubgradientDescent(ConstantStep(eps / s.slope**2), ball=s.ball)

    def steps(self, s: Setting, delta: float, eps: float) -> int:
        return max(1, math.ceil((delta * s.slope / eps) ** 2))


@dataclass(frozen=True)
class AcceleratedSolver:
    """The solver of LoPNAG: softplus with ``gamma = eps / (2 log 2)``; ``2 delta sqrt(L / eps)`` iterations.

    Examples
    --------
    >>> from lopro import LoPNAG
    >>> from lopro.methods.paper.restarts import AcceleratedSolver, LogScaleGrid
    >>> LoPNAG(LogScaleGrid(AcceleratedSolver())).schedule.solver
    AcceleratedSolver()
    """

    def tuned(self, s: Setting, eps: float) -> tuple[Penalty, InnerAlgorithm]:
        gamma = _smoothing(eps)
        inner = AcceleratedGradient(step_rule=FixedSmoothness(self._smoothness(s, eps)))
        return Softplus(s.weight, gamma), inner

    def steps(self, s: Setting, delta: float, eps: float) -> int:
        return max(1, math.ceil(2.0 * delta * math.sqrt(self._smoothness(s, eps) / eps)) - 1)

    def _smoothness(self, s: Setting, eps: float) -> float:
        L = s.constants.smoothness(s.weight, _smoothing(eps))
        if not math.isfinite(L):
            raise MissingCapabilityError(
                "AcceleratedSolver needs smoothness constants Lf and Lc, and Gc (or a lower bound of c); "
                "use SubgradientSolver() with lopro.LoPGD"
            )
        return L


def _smoothing(eps: float) -> float:
    """Return the gamma whose bias ``gamma log 2`` is half of the accuracy."""
    return eps / (2.0 * math.log(2.0))


def initial_setting(
    bench: Workbench, x: Array, needs: Needs, eps0: float | None
) -> tuple[Setting, float] | None:
    """Return the setting of a restart schedule and its first gap; None if the start is optimal."""
    needs.check(bench.problem)  # the driver does not check schedules before the run
    s = needs.find(bench, x)
    eps0 = initial_gap(bench.counted, s) if eps0 is None else eps0
    # A weight of 0 means a constant objective.
    return None if s.solved or eps0 <= 0.0 or s.weight == 0.0 else (s, eps0)


def target_gap(bench: Workbench, x: Array, target: float | None) -> float:
    """Return the given accuracy, else the required gap of the run, or 1e-6 relative if that is 0."""
    if target is not None:
        return target
    with bench.observe():
        fun = float(bench.objective.value(x))
    return bench.target.gap(fun) or 1e-6 * max(bench.target.unit(fun), 1e-300)


def initial_gap(problem: Problem, s: Setting) -> float:
    """Return a bound on ``f(x) - f_*`` at the start: ``|g| D``, or ``f(x)`` minus a lower bound of f."""
    f, x = problem.objective, s.start
    bounds = [norm(f.subgradient(x)) * s.ball.radius]
    lowest = f.infimum()
    if lowest is not None:
        bounds.append(float(f.value(x)) - lowest.value)
    return min(bounds)
