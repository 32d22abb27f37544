"""Gradient and extragradient steps for smooth objectives, with a projection after each step."""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array, eps, inner, norm
from lopro.core.validation import check_fields
from lopro.errors import MissingCapabilityError
from lopro.functions import Constant, Source
from lopro.methods.baselines.projected_steps import ProjectedSteps
from lopro.methods.inner.accelerated import curvature_along_gradient
from lopro.methods.inner.subgradient import check_stochastic
from lopro.methods.setting import feasible_start, no_estimates
from lopro.objectives.base import Objective
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["LogTProjections", "ProjectedGradient"]


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
        Lipschitz constant of the gradient. By default that of the objective, if it is known and not
        estimated; otherwise a search doubles L until the quadratic upper bound holds.
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
    >>> f = lopro.objectives.LeastSquares(np.diag([1.0, 2.0]), np.array([3.0, 1.0]))
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> problem, method = lopro.Problem(f, box), lopro.baselines.ProjectedGradient()
    >>> result = lopro.solve(problem, method=method, tol=1e-9)
    >>> result.success, result.x.round(6), result.counts.projections == result.iterations
    (True, array([1. , 0.5]), True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth and convex",
        oracles="gradients of f",
        rate="O(1/T); linear if f is strongly convex",
        projections="1 per iteration (and 1 for each doubling of L, if L is not known)",
        reference="Levitin, Polyak (1966)",
    )

    L: float | None = None
    iterations: int = 10_000
    report: int = 20

    def __post_init__(self) -> None:
        check_fields(self, counts=("iterations", "report"), positive=("L",))

    def check(self, problem: Problem) -> None:
        check_smooth(problem.objective, "ProjectedGradient")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        steps = GradientSteps(bench, feasible_start(bench, x0), self.L)
        yield from steps.run(self.iterations, self.report)


class GradientSteps(ProjectedSteps):
    """``x+ = P(x - grad f(x) / L)``; if L is neither given nor known, it is found by doubling."""

    def __init__(self, bench: Workbench, x: Array, L: float | None) -> None:
        super().__init__(bench, x)
        known = bench.objective.smoothness() if L is None else None
        if known is not None and no_estimates(known) and known.value > 0.0:
            L = known.value
        self._search = L is None
        if L is None:
            f = bench.objective
            L = curvature_along_gradient(f.subgradient, x, f.subgradient(x), bench.unit + norm(x))
        self.L = L

    def step(self) -> None:
        f, x = self.bench.objective, self.x
        value, gradient = f.linearize_at(f.image(x))
        g = gradient()
        while True:
            before = x - g / self.L
            after = self.bench.project(before)
            if not self._search or _below_parabola(f, x, value, g, after, self.L):
                break
            self.L *= 2.0
        self.multipliers.add(before, after, 1.0 / self.L)
        self.x = after


@dataclass(frozen=True)
class LogTProjections:
    r"""``O(kappa log T)`` projections, a baseline: larger mini-batches instead of more steps.

    Problem: min f(x) over a set with a projection, f L-smooth and mu-strongly convex,
    ``kappa = L / mu``. Every epoch
    makes ``M = 4 / (eta mu)`` extragradient steps ``z = P(w - eta g(w))``, ``w = P(w - eta g(z))`` with
    ``eta = 1 / (sqrt(6) L)``, each gradient the mean of B samples; the next epoch starts from the mean of
    the z, and B is doubled. Theorem, with ``V >= f(x_1) - f_*`` and ``B_1 >= 12 eta s^2 / V`` for samples of
    variance ``s^2``: the expected gap after epoch k is at most ``V / 2^k``. So T samples need
    ``O(kappa log T)`` projections. With exact gradients the gap is at most ``V / 4^k``.

    Parameters
    ----------
    stages : int
        K.
    L, mu : float, optional
        By default those of the objective.
    batch : int
        ``B_1``, samples per gradient in the first epoch.
    stochastic : bool
        Sample the gradients of f; otherwise they are exact and ``batch`` is not used.

    References
    ----------
    L. Zhang, T. Yang, R. Jin, X. He, "O(log T) projections for stochastic optimization of smooth and
    strongly convex functions", ICML 2013.

    Departures
    ----------
    Constants are re-derived, in expectation. The factor per epoch is 1/4 for exact gradients and 1/2 for
    sampled ones. M is rounded up. An infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.LeastSquares(np.diag([1.0, 2.0]), np.array([3.0, 1.0]))
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> problem, method = lopro.Problem(f, box), lopro.baselines.LogTProjections()
    >>> result = lopro.solve(problem, method=method, tol=1e-6)
    >>> result.success, result.x.round(3), result.counts.projections == 2 * result.iterations
    (True, array([1. , 0.5]), True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth and strongly convex, kappa = L / mu",
        oracles="(stochastic) gradients of f",
        rate="O(1/T) for T samples",
        projections="O(kappa log T): 2 per iteration",
        reference="Zhang, Yang, Jin, He (ICML 2013)",
    )

    stages: int = 20
    L: float | None = None
    mu: float | None = None
    batch: int = 1
    stochastic: bool = False

    def __post_init__(self) -> None:
        check_fields(self, counts=("stages", "batch"), positive=("L", "mu"))

    def check(self, problem: Problem) -> None:
        check_smooth(problem.objective, "LogTProjections")
        if self.stochastic:
            check_stochastic(problem.objective, "LogTProjections(stochastic=True)")
        self._constants(problem)

    def _constants(self, problem: Problem) -> tuple[float, float]:
        """Return L and mu."""
        f = problem.objective
        L = f.smoothness() if self.L is None else Constant(self.L, Source.GIVEN)
        mu = f.strong_convexity() if self.mu is None else Constant(self.mu, Source.GIVEN)
        if L is None or mu is None:
            name = "L" if L is None else "mu"
            raise MissingCapabilityError(
                f"LogTProjections needs the constant {name} of a smooth and strongly convex "
                f"objective, and it is not known here: give {name}=, or use ProjectedGradient"
            )
        return L.value, mu.value

    def schedule(self, problem: Problem) -> tuple[float, int]:
        """Return the step size and M, the iterations of every epoch."""
        L, mu = self._constants(problem)
        eta = 1.0 / (math.sqrt(6.0) * L)
        return eta, math.ceil(4.0 / (eta * mu))

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        w = feasible_start(bench, x0)
        eta, M = self.schedule(bench.counted)
        for k in range(self.stages):
            steps = ExtragradientSteps(bench, w, eta, self.batch * 2**k if self.stochastic else 0)
            yield from steps.run(M, M)
            w = steps.output


class ExtragradientSteps(ProjectedSteps):
    """``z = P(w - eta g(w))``, ``w = P(w - eta g(z))``; the output is the mean of the z.

    With a positive ``batch``, each g is the mean of that number of samples.
    """

    def __init__(self, bench: Workbench, w: Array, eta: float, batch: int) -> None:
        super().__init__(bench, w)
        self.eta, self.batch = eta, batch
        self._mean, self._t = w, 0

    @property
    def output(self) -> Array:
        return self._mean

    def step(self) -> None:
        w, t = self.x, self._t + 1
        z = self.bench.project(w - self.eta * self._gradient(w))
        self.x = self.projected(w - self.eta * self._gradient(z), self.eta)
        self._mean = z if t == 1 else self._mean + (z - self._mean) / t
        self._t = t

    def _gradient(self, x: Array) -> Array:
        f, rng = self.bench.objective, self.bench.rng
        if self.batch == 0:
            return f.subgradient(x)
        samples = (f.stochastic_subgradient(x, rng) for _ in range(self.batch))
        return functools.reduce(operator.add, samples) / self.batch


def check_smooth(f: Objective, method: str) -> None:
    """Raise unless the objective is smooth."""
    if not f.smooth:
        raise MissingCapabilityError(
            f"{method} needs a smooth objective, {type(f).__name__} has only subgradients: use "
            "ProjectedSubgradient"
        )


def _below_parabola(f: Objective, x: Array, value: float, g: Array, y: Array, L: float) -> bool:
    """Whether ``f(y) <= f(x) + <g, y - x> + L/2 |y - x|^2``, up to rounding."""
    d = y - x
    bound = value + inner(g, d) + 0.5 * L * inner(d, d)
    return float(f.value(y)) <= bound + 8.0 * eps(x) * (abs(value) + abs(inner(g, x)))
