"""RSG and R2SG: restarted projected subgradient descent (Yang and Lin)."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import ClassVar

from lopro.core.arrays import Array, norm
from lopro.core.validation import check_fields, check_number
from lopro.driver.minorants import solution_radius
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball
from lopro.methods.baselines.projected_subgradient import SubgradientSteps, by_rule
from lopro.methods.inner import ConstantStep, UniformAverage
from lopro.methods.setting import feasible_start
from lopro.methods.theory import epochs_needed
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Verdict, Workbench

__all__ = ["R2SG", "RSG"]


class _Restarted:
    """Base of both methods: rounds of stages; the first step size is given or derived from the problem."""

    steps: int
    stages: int
    step: float | None

    def __post_init__(self) -> None:
        check_fields(self, counts=("steps", "stages"), positive=("step",))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The steps of a stage, for each round."""
        raise NotImplementedError

    def check(self, problem: Problem) -> None:
        if self.step is None and problem.shape is not None:
            first_step(problem, problem.start(None))

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        x = feasible_start(bench, x0)
        step = first_step(bench.counted, x) if self.step is None else self.step
        for length in self.lengths:
            x = yield from run_stages(bench, x, step, length, self.stages)


@dataclass(frozen=True)
class RSG(_Restarted):
    """Restarted subgradient descent, a baseline: stages of projected steps, the step size halved after each.

    Problem: min f(x) over a set with a projection, f Lipschitz, with a local error bound
    ``dist(x, Omega_*) <= sigma (f(x) - f_*)^theta``. Oracles: subgradients of f; one projection per
    iteration. Each of K stages makes t steps of one size and starts the next one from their mean. Theorem,
    with ``eta_1 = eps0 / (2 G^2)`` and ``t >= 4 G^2 sigma^2 / eps^(2 (1 - theta))``: after stage k the gap
    is at most ``eps0 / 2^k + eps``, so that ``K = log2(eps0 / eps)`` stages reach ``2 eps``
    (`with_error_bound`).

    Parameters
    ----------
    steps : int
        t.
    stages : int
        K.
    step : float, optional
        ``eta_1``; by default ``eps0 / (2 G^2)`` with the G and the bound on f_* of the problem.

    References
    ----------
    T. Yang, Q. Lin, "RSG: beating subgradient method without smoothness and strong convexity", Journal of
    Machine Learning Research 19 (2018).

    Departures
    ----------
    Step sizes are halved: ``alpha = 2`` in the paper's notation. An infeasible start is projected first,
    which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), half)
    >>> method = lopro.baselines.RSG(steps=50, stages=20)
    >>> result = lopro.solve(problem, np.ones(2), method, tol=1e-4)
    >>> result.success, round(result.fun, 3), result.counts.projections == result.iterations
    (True, 0.5, True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f convex and Lipschitz, local error bound with exponent theta",
        oracles="subgradients of f",
        rate="O~(eps^(-2 (1 - theta))) iterations",
        projections="1 per iteration",
        reference="Yang, Lin (JMLR 2018)",
    )

    steps: int = 1000
    stages: int = 20
    step: float | None = None

    @property
    def lengths(self) -> tuple[int, ...]:
        """One round, of stages of t steps."""
        return (self.steps,)

    @classmethod
    def with_error_bound(cls, G: float, eps0: float, eps: float, sigma: float, theta: float) -> RSG:
        """Return the schedule of the theorem."""
        stages = max(1, epochs_needed(eps0, eps))
        return cls(stage_length(G, eps, sigma, theta), stages, eps0 / (2.0 * G**2))


@dataclass(frozen=True)
class R2SG(_Restarted):
    """RSG restarted with longer stages, a baseline: sigma need not be known.

    Problem, oracles and projections are those of `RSG`. Round s runs K stages of ``t_s`` steps from the
    last point of the previous round, with ``t_(s+1) = 2^(2 (1 - theta)) t_s``. Theorem: if ``t_1`` is what
    `RSG` needs for some accuracy ``eps_1``, then round s ends with a gap of at most
    ``eps0 / 2^K + eps_1 / 2^(s-1)``.

    Parameters
    ----------
    steps : int
        ``t_1``.
    stages : int
        K, of every round.
    rounds : int
        Number of rounds.
    theta : float
        Exponent of the error bound; 0, the default, is valid for every problem (and quadruples ``t`` in each
        round). With 1 the stages keep their length.
    step : float, optional
        ``eta_1``, as for `RSG`.

    Departures
    ----------
    ``t_s`` is rounded up. An infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), half)
    >>> method = lopro.baselines.R2SG(steps=9)
    >>> result = lopro.solve(problem, np.ones(2), method, tol=1e-4)
    >>> result.success, round(result.fun, 3), result.counts.projections == result.iterations
    (True, 0.5, True)
    """

    card: ClassVar[Card] = replace(
        RSG.card,
        rate="O~(eps^(-2 (1 - theta))) iterations, sigma unknown",
    )

    steps: int = 100
    stages: int = 15
    rounds: int = 5
    theta: float = 0.0
    step: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fields(self, counts=("rounds",))
        check_number("theta", self.theta, minimum=0.0, maximum=1.0)

    @property
    def lengths(self) -> tuple[int, ...]:
        """``t_s`` for each round s."""
        return tuple(self.length(s) for s in range(1, self.rounds + 1))

    def length(self, s: int) -> int:
        """Return ``t_s``."""
        return math.ceil(self.steps * math.pow(2.0, 2.0 * (1.0 - self.theta) * (s - 1)))


def run_stages(
    bench: Workbench, x: Array, step: float, steps: int, count: int
) -> Generator[Candidate, Verdict, Array]:
    """Run the stages of one RSG from a feasible ``x``; each ends with a candidate."""
    for k in range(count):
        sizes = by_rule(ConstantStep(step / 2.0**k))
        stage = SubgradientSteps(bench, x, sizes, UniformAverage())
        go_on = yield from stage.run(steps, steps)
        x = stage.output
        if not go_on:
            break
    return x


def stage_length(G: float, eps: float, sigma: float, theta: float) -> int:
    """Return ``t = ceil(4 G^2 sigma^2 / eps^(2 (1 - theta)))``."""
    for name, value in {"G": G, "eps": eps, "sigma": sigma}.items():
        check_number(name, value, minimum=0.0, exclusive=True)
    check_number("theta", theta, minimum=0.0, maximum=1.0)
    return math.ceil(4.0 * (G * sigma) ** 2 / math.pow(eps, 2.0 * (1.0 - theta)))


def first_step(problem: Problem, x: Array) -> float:
    """Return ``eps0 / (2 G^2)`` for a feasible ``x``, with G and eps0 from the problem."""
    f, value = problem.objective, float(problem.objective.value(x))
    radius = solution_radius(problem, value)
    reach = None if radius is None else Ball(x, norm(x) + radius.value)
    G, least = f.lipschitz(reach), f.infimum()
    gaps = [value - least.value] if least is not None else []
    if G is not None and reach is not None:
        gaps.append(G.value * reach.radius)
    if G is None or not gaps:
        raise MissingCapabilityError(
            "RSG and R2SG derive their first step from a Lipschitz constant of the objective (G) and a "
            "bound on the first gap (its infimum, or the norm of a solution), which are not known here; "
            "give step=, or use ProjectedSubgradient"
        )
    # A gap of 0 means that x is optimal: the step size is arbitrary.
    return min(gaps) / (2.0 * G.value**2) if G.value > 0.0 and min(gaps) > 0.0 else 1.0
