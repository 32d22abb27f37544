"""Projected gradient descent for smooth objectives: a projection in every iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array, eps, inner, norm
from lopro.core.validation import check_count, check_number
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines.projection_multipliers import Multipliers
from lopro.methods.setting import no_estimates
from lopro.methods.starts import feasible_candidate, feasible_start
from lopro.objectives.base import Objective
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["ProjectedGradient", "check_smooth"]


@dataclass(frozen=True)
class ProjectedGradient:
    """Projected gradient descent, a baseline: ``x+ = P(x - grad f(x) / L)``.

    Problem: min f(x) for a smooth f over a set with a projection. Oracles: gradients of f; one
    projection per iteration where L is known, one more for each doubling of L by a search. Theorem:
    values decrease, ``f(x_T) - f_* <= L |x_0 - x_*|^2 / (2 T)``; if f is mu-strongly convex,
    ``|x_T - x_*|^2 <= (1 - mu / L)^T |x_0 - x_*|^2``: ``O((L / mu) log 1/eps)`` projections.

    Parameters
    ----------
    L : float, optional
        Lipschitz constant of the gradient. By default the one that the objective knows, if it is no
        estimate; otherwise a search doubles L until the quadratic upper bound holds.
    iterations : int
        T.
    report : int
        Iterations between two points that the driver certifies; the last point is certified as well.

    References
    ----------
    E. S. Levitin, B. T. Polyak, "Constrained minimization methods", USSR Computational Mathematics and
    Mathematical Physics 6 (1966).

    Departures
    ----------
    An infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import ProjectedGradient
    >>> f = lopro.objectives.LeastSquares(np.diag([1.0, 2.0]), np.array([3.0, 1.0]))
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> result = lopro.solve(lopro.Problem(f, box), method=ProjectedGradient(), tol=1e-9)
    >>> result.success, result.x.round(6), result.counts.projections == result.iterations
    (True, array([1. , 0.5]), True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth and convex",
        oracles="gradients of f",
        rate="O(1/T); linear if f is strongly convex",
        projections="1 per iteration (and 1 for each doubling of L, where that is searched for)",
        reference="Levitin, Polyak (1966)",
    )

    L: float | None = None
    iterations: int = 10_000
    report: int = 20

    def __post_init__(self) -> None:
        if self.L is not None:
            check_number("L", self.L, minimum=0.0, exclusive=True)
        check_count("iterations", self.iterations)
        check_count("report", self.report)

    def check(self, problem: Problem) -> None:
        check_smooth(problem.objective, "ProjectedGradient")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        x, multipliers = feasible_start(bench, x0), Multipliers()
        L, search = self._first(bench.objective, x, bench.unit + norm(x))
        for t in range(1, self.iterations + 1):
            x, L = _step(bench, x, L, search, multipliers)
            last = not bench.tick() or t == self.iterations
            if last or t % self.report == 0:
                yield feasible_candidate(x, multipliers.best(bench, x))
            if last:
                return

    def _first(self, f: Objective, x: Array, size: float) -> tuple[float, bool]:
        """Return the first L, and whether every step has to check the quadratic upper bound."""
        if self.L is not None:
            return self.L, False
        known = f.smoothness()
        if known is not None and no_estimates(known) and known.value > 0.0:
            return known.value, False
        return _curvature(f, x, size), True


def check_smooth(f: Objective, method: str) -> None:
    """Raise unless the objective is smooth."""
    if not f.smooth:
        raise MissingCapabilityError(
            f"{method} needs a smooth objective, {type(f).__name__} has a subgradient only: use "
            "ProjectedSubgradient"
        )


def _curvature(f: Objective, x: Array, size: float) -> float:
    """Return an estimate of L: the change of the gradient over a move of ``1e-3 size`` along it."""
    g = f.subgradient(x)
    length = norm(g)
    if length == 0.0:
        return 1.0
    move = (1e-3 * size / length) * g
    curvature = norm(f.subgradient(x - move) - g) / norm(move)
    return curvature if curvature > 0.0 else length / size


def _step(
    bench: Workbench, x: Array, L: float, search: bool, multipliers: Multipliers
) -> tuple[Array, float]:
    """Make one step; with ``search``, double L until the quadratic upper bound holds."""
    f = bench.objective
    value, gradient = f.linearize_at(f.image(x))
    g = gradient()
    while True:
        before = x - g / L
        after = bench.project(before)
        if not search or _below_parabola(f, x, value, g, after, L):
            multipliers.add(before, after, 1.0 / L)
            return after, L
        L *= 2.0


def _below_parabola(f: Objective, x: Array, value: float, g: Array, y: Array, L: float) -> bool:
    """Whether ``f(y) <= f(x) + <g, y - x> + L/2 |y - x|^2``, up to rounding."""
    d = y - x
    bound = value + inner(g, d) + 0.5 * L * inner(d, d)
    return float(f.value(y)) <= bound + 8.0 * eps(x) * (abs(value) + abs(inner(g, x)))
