"""Projected subgradient descent (PGD): a projection in every iteration."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array, inner, norm
from lopro.core.validation import check_count, check_fields, check_number, check_offers
from lopro.core.vectors import mix
from lopro.methods.baselines.projected_steps import ProjectedSteps
from lopro.methods.inner.averaging import (
    Average,
    ConstantStep,
    LastIterate,
    StepRule,
    UniformAverage,
)
from lopro.methods.inner.subgradient import check_stochastic, sampled_or_exact
from lopro.methods.setting import feasible_start
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["BestIterate", "DistanceOverGradients", "ProjectedSubgradient", "SubgradientSteps"]

#: Length of the first step of the adaptive rule, relative to the size of the start. The bound of Ivgi, Hinder
#: and Carmon (2023) depends on it through a logarithm: measured on five problems of tests/traces
#: (linear/ball, lasso/ball, lasso/rows, lsq/l1, logistic/simplex), the gap after 1000 steps is 1.5 to 1.9
#: times as large with 1e-4, and 0.44 to 0.59 times with 1e-2.
FIRST_MOVE = 1e-3

#: The step size for iteration, point and subgradient; called once for each step.
StepSizes = Callable[[int, Array, Array], float]


@dataclass(frozen=True)
class ProjectedSubgradient:
    """Projected subgradient descent, a baseline: ``x+ = P(x - eta_t g)``.

    Problem: min f(x) over a set with a projection. Oracles: subgradients of f; one projection per
    iteration. Theorem: with ``|g| <= G``, ``D >= |x_1 - x_*|`` and ``eta = D / (G sqrt T)`` the mean of the
    first T iterates has a gap of at most ``G D / sqrt T`` (`with_horizon`); with ``eta_t = eta0 / sqrt t``
    and a set of diameter D the gap is at most ``(D^2 / (2 eta0) + eta0 G^2) / sqrt T`` for every T. Both
    bounds also hold for the best iterate. On a `PSDCone` each projection is an eigendecomposition; LoPGD
    needs ``O(log 1/eps)`` of them.

    Parameters
    ----------
    step : StepRule, optional
        From `lopro.inner`: ``SqrtStep(eta0)`` is the classical one. By default an adaptive rule that
        needs no constant, ``max |x_s - x_1| / sqrt(sum |g_s|^2)``.
    average : Average or BestIterate
        The output: an average from `lopro.inner` of the iterates at which subgradients were taken,
        ``LastIterate()``, or ``BestIterate()``.
    iterations : int
        T.
    report : int
        Iterations between two points that the driver certifies; the last point is certified as well.
    stochastic : bool
        Sample the subgradients of f.

    References
    ----------
    N. Z. Shor, "Minimization Methods for Non-Differentiable Functions", Springer 1985. S. Bubeck, "Convex
    optimization: algorithms and complexity", Foundations and Trends in Machine Learning 8 (2015),
    Theorem 3.2.

    Departures
    ----------
    An infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> problem, step = lopro.Problem(lopro.objectives.L1Norm(), half), lopro.inner.SqrtStep(0.5)
    >>> method = lopro.baselines.ProjectedSubgradient(step, iterations=2000)
    >>> result = lopro.solve(problem, np.ones(2), method, tol=1e-2)
    >>> result.success, round(result.fun, 1), result.counts.projections == result.iterations
    (True, 0.5, True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f convex and Lipschitz on the set",
        oracles="subgradients of f",
        rate="O(1/sqrt T)",
        projections="1 per iteration",
        reference="Shor (1985); Bubeck (2015), Theorem 3.2",
    )

    step: StepRule | None = None
    average: Average | BestIterate = UniformAverage()
    iterations: int = 10_000
    report: int = 100
    stochastic: bool = False

    def __post_init__(self) -> None:
        if self.step is not None:
            check_offers("step", self.step, "size")
        if not isinstance(self.average, BestIterate):
            check_offers("average", self.average, "weight")
        check_fields(self, counts=("iterations", "report"))

    @classmethod
    def with_horizon(cls, G: float, D: float, T: int) -> ProjectedSubgradient:
        """Return the method of the theorem: the mean of T iterates with ``eta = D / (G sqrt T)``."""
        check_number("G", G, minimum=0.0, exclusive=True)
        check_number("D", D, minimum=0.0, exclusive=True)
        check_count("T", T)
        return cls(ConstantStep(D / (G * math.sqrt(T))), iterations=T)

    def check(self, problem: Problem) -> None:
        if self.stochastic:
            check_stochastic(problem.objective, "ProjectedSubgradient(stochastic=True)")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        x = feasible_start(bench, x0)
        sizes = DistanceOverGradients(x, bench.unit) if self.step is None else by_rule(self.step)
        steps = SubgradientSteps(bench, x, sizes, self.average, self.stochastic)
        yield from steps.run(self.iterations, self.report)


class SubgradientSteps(ProjectedSteps):
    """``x+ = P(x - eta_t g)``; the output is an average of the iterates, or the best of them."""

    def __init__(
        self,
        bench: Workbench,
        x: Array,
        sizes: StepSizes,
        average: Average | BestIterate,
        stochastic: bool = False,
    ) -> None:
        super().__init__(bench, x)
        self._sizes, self._average = sizes, average
        self._rng = bench.rng if stochastic else None
        self._kept = x  # the average, or the best iterate
        self._least = math.inf
        self._t = 0

    def step(self) -> None:
        self._t += 1
        x, g = self.x, self._subgradient()
        eta = self._sizes(self._t, x, g)
        self.x = self.projected(x - eta * g, eta)

    def _subgradient(self) -> Array:
        """Return the subgradient of the step, and update the output with the iterate."""
        x, f = self.x, self.bench.objective
        if isinstance(self._average, BestIterate):
            value, slope = f.linearize_at(f.image(x))
            if value < self._least:
                self._least, self._kept = value, x
            return slope() if self._rng is None else f.stochastic_subgradient(x, self._rng)
        w = self._average.weight(self._t)
        self._kept = x if w == 1.0 else mix(self._kept, w, x)
        return sampled_or_exact(f, x, self._rng)

    @property
    def output(self) -> Array:
        """The output; for `LastIterate` the point after the step."""
        return self.x if isinstance(self._average, LastIterate) else self._kept


def by_rule(rule: StepRule) -> StepSizes:
    """Return the step sizes of a rule, which depend on the iteration alone."""
    return lambda t, x, g: rule.size(t)


class DistanceOverGradients:
    """``eta_t = r_t / sqrt(|g_1|^2 + ... + |g_t|^2)``, ``r_t`` the largest distance to the start so far.

    Needs no constant (Ivgi, Hinder, Carmon, ICML 2023, "DoG is SGD's best friend").
    """

    def __init__(self, start: Array, unit: float) -> None:
        self._start = start
        self._farthest = FIRST_MOVE * (unit + norm(start))
        self._squares = 0.0

    def __call__(self, t: int, x: Array, g: Array) -> float:
        self._farthest = max(self._farthest, norm(x - self._start))
        self._squares += inner(g, g)
        # All subgradients so far are 0, so the step size is arbitrary.
        return self._farthest / math.sqrt(self._squares) if self._squares > 0.0 else 1.0


@dataclass(frozen=True)
class BestIterate:
    """The iterate of least value, in place of an average; it takes one more value per iteration."""
