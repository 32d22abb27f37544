"""Projected subgradient descent (PGD): a projection in every iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_count, check_number, check_offers
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines._multipliers import Multipliers
from lopro.methods.baselines._steps import BestIterate, DistanceOverGradients, PlannedSizes, Sizes
from lopro.methods.inner.averaging import (
    Average,
    ConstantStep,
    LastIterate,
    StepRule,
    UniformAverage,
)
from lopro.methods.starts import feasible_candidate, feasible_start
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["Descent", "ProjectedSubgradient", "check_stochastic"]


@dataclass(frozen=True)
class ProjectedSubgradient:
    """Projected subgradient descent, a baseline: ``x+ = P(x - eta_t g)``.

    Problem: min f(x) over a set one can project on. Oracles: subgradients of f; one projection per
    iteration. Theorem: with ``|g| <= G``, ``D >= |x_1 - x_*|`` and ``eta = D / (G sqrt T)`` the mean of the
    first T iterates has a gap of at most ``G D / sqrt T`` (`with_horizon`); with ``eta_t = eta0 / sqrt t``
    and a set of diameter D the gap is at most ``(D^2 / (2 eta0) + eta0 G^2) / sqrt T`` for every T. The best
    iterate obeys both bounds. On a `PSDCone` each projection is an eigendecomposition: this is the method
    that LoPGD saves nearly all projections of.

    Parameters
    ----------
    step : StepRule, optional
        From `lopro.inner`: ``SqrtStep(eta0)`` is the classical one. By default an adaptive rule that
        needs no constant, ``max |x_s - x_1| / sqrt(sum |g_s|^2)``.
    average : Average or BestIterate
        What is returned: an average from `lopro.inner` of the iterates whose subgradients were taken,
        ``LastIterate()``, or ``BestIterate()``.
    iterations : int
        When to end.
    report : int
        An epoch, which the driver certifies, is yielded every so many iterations and at the end.
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
    >>> from lopro.methods.baselines import ProjectedSubgradient
    >>> f = lopro.objectives.L1Norm()
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> method = ProjectedSubgradient(step=lopro.inner.SqrtStep(0.5), iterations=2000)
    >>> result = lopro.solve(lopro.Problem(f, half), np.ones(2), method, tol=1e-2)
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
        check_count("iterations", self.iterations)
        check_count("report", self.report)

    @classmethod
    def with_horizon(cls, G: float, D: float, T: int) -> ProjectedSubgradient:
        """Return the method of the theorem: the mean of T iterates with ``eta = D / (G sqrt T)``.

        Examples
        --------
        >>> from lopro.methods.baselines import ProjectedSubgradient
        >>> ProjectedSubgradient.with_horizon(G=2.0, D=1.0, T=25).step
        ConstantStep(eta=0.1)
        """
        check_number("G", G, minimum=0.0, exclusive=True)
        check_number("D", D, minimum=0.0, exclusive=True)
        check_count("T", T)
        return cls(ConstantStep(D / (G * math.sqrt(T))), iterations=T)

    def check(self, problem: Problem) -> None:
        if self.stochastic:
            check_stochastic(problem, "ProjectedSubgradient(stochastic=True)")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        x = feasible_start(bench, x0)
        sizes = (
            DistanceOverGradients(x, bench.unit) if self.step is None else PlannedSizes(self.step)
        )
        descent = Descent(bench, x, sizes, self.average, self.stochastic)
        for t in range(1, self.iterations + 1):
            descent.step()
            last = not bench.tick() or t == self.iterations
            if last or t % self.report == 0:
                yield feasible_candidate(
                    descent.output, descent.multipliers.best(bench, descent.output)
                )
            if last:
                return


class Descent:
    """Projected subgradient descent on its way: the iterate, the output so far, the multipliers."""

    def __init__(
        self,
        bench: Workbench,
        x: Array,
        sizes: Sizes,
        average: Average | BestIterate,
        stochastic: bool = False,
    ) -> None:
        self.x = x
        self.multipliers = Multipliers()
        self._bench = bench
        self._sizes = sizes
        self._average = average
        self._stochastic = stochastic
        self._kept = x  # the average, or the best iterate
        self._least = math.inf
        self._t = 0

    def step(self) -> None:
        """Make one step and one projection."""
        self._t += 1
        x, g = self.x, self._slope()
        eta = self._sizes.size(self._t, x, g)
        before = x - eta * g
        self.x = self._bench.project(before)
        self.multipliers.add(before, self.x, eta)

    def _slope(self) -> Array:
        """Return the subgradient to step along; keep account of the iterate it belongs to."""
        x, f = self.x, self._bench.objective
        if isinstance(self._average, BestIterate):
            value, slope = f.linearize_at(f.image(x))
            if value < self._least:
                self._least, self._kept = value, x
            return self._sampled() if self._stochastic else slope()
        w = self._average.weight(self._t)
        self._kept = x if w == 1.0 else self._kept + w * (x - self._kept)
        return self._sampled() if self._stochastic else f.subgradient(x)

    def _sampled(self) -> Array:
        return self._bench.objective.stochastic_subgradient(self.x, self._bench.rng)

    @property
    def output(self) -> Array:
        """The point that is returned; where the last iterate is wanted, the one after the step."""
        return self.x if isinstance(self._average, LastIterate) else self._kept


def check_stochastic(problem: Problem, method: str) -> None:
    """Raise unless the objective can sample subgradients."""
    f = problem.objective
    if not f.stochastic:
        raise MissingCapabilityError(
            f"{method} needs an objective with stochastic_subgradient(x, rng); "
            f"{type(f).__name__} has none: use stochastic=False"
        )
