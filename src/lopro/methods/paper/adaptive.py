"""Schedules that need no constants: the penalty weight, the smoothing and the epoch length are adapted.

Three rules are used. R2: after a projection ``f(x) <= F(x_hat)`` must hold; if it fails, the weight is too
small and is doubled. Stalling: if the certified gap (or the value, if there is no certificate) does not
decrease sufficiently, epochs become longer. Re-centring (P7): the slope of the penalty is an estimate of the
multiplier, and a penalty centred at the multiplier has no bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from lopro.core.arrays import Array, norm
from lopro.core.validation import check_count
from lopro.errors import StalledError
from lopro.methods.inner import AcceleratedGradient, Backtracking, ConstantStep, SubgradientDescent
from lopro.methods.inner.accelerated import curvature_along_gradient, smooth_gradient
from lopro.methods.paper.epochs import Epoch, Plan
from lopro.methods.setting import feasible_start
from lopro.penalties import CentredSoftplus, Hinge, Penalty, Softplus
from lopro.protocol import Workbench

__all__ = ["AdaptiveSmoothing", "DoublingSubgradient", "Recentring"]


@dataclass(frozen=True)
class AdaptiveSettings:
    """Constants of the adaptive schedules.

    ``python -m benchmarks.constants methods.paper`` divides and multiplies each by ten; "A, B" below are the
    steps in all, relative to those with the value here, after a division and a multiplication.
    """

    #: Longest step of `DoublingSubgradient`, in units of the length of its first step: a safeguard where
    #: subgradients are unbounded. With 1 and with 100 the gaps after 10,000 steps of `LoPGD` are
    #: 0.96 and 1.00 times as large.
    longest_move: float = 10.0
    #: Factor by which the gap of `AdaptiveSmoothing` must decrease in an epoch; with gamma halved, an epoch
    #: of sufficient length halves it. One of four problems is not solved with 0.15, and takes 20 times as
    #: many steps with 15.
    sufficient_decrease: float = 1.5
    #: Ratio of the gap to the bias ``C gamma`` up to which gamma is halved: a smaller gamma reduces the gap
    #: only if ``B_T`` is of the size of the bias: 1.00, 1.00.
    gap_over_bias: float = 10.0
    #: Factor by which the gap of `Recentring`, which converges linearly, must decrease in an epoch. With 0.2
    #: the steps are the same; with 20 each of four problems takes more, one 9 times as many.
    recentring_decrease: float = 2.0
    #: Smoothing, relative to the range of ``lam c``, at which softplus is ``lam c / 2`` plus a constant: its
    #: relative error is the inverse.
    linearising_smoothing: float = 1e6


SETTINGS = AdaptiveSettings()


def first_weight(bench: Workbench, x: Array) -> float:
    """Return an estimate of the multiplier: the ratio ``|df(x)| / |dc(x)|``."""
    of_f = norm(bench.objective.subgradient(x))
    of_c = norm(bench.constraint.subgradient(x))
    return of_f / of_c if of_f > 0.0 and of_c > 0.0 else 1.0


def too_light(bench: Workbench, epoch: Epoch, smoothing: float = 0.0) -> bool:
    """Whether R2 is violated by more than the bias of the smoothing: the weight is too small.

    The bound of R2 is ``C gamma + B_T + [f(x) - F(x_hat)]_+``. The last term is accepted while it is below
    the first; a doubled weight would slow down the inner algorithm.
    """
    verdict = epoch.verdict
    assert verdict.penalised is not None  # an epoch minimises a penalised objective
    with bench.observe():
        outside = bench.constraint.value(epoch.x_hat) > 0.0
    return outside and not verdict.exact and verdict.fun - verdict.penalised > smoothing


@dataclass(frozen=True)
class _Cycle:
    """State of a cycle of decreasing step sizes."""

    step: float  # step size of the first epoch
    longest_move: float
    epoch: int = 0  # number of halvings so far

    def inner(self) -> SubgradientDescent:
        """Return subgradient descent with the step size of this epoch."""
        step = ConstantStep(self.step / 2.0**self.epoch)
        return SubgradientDescent(step, longest_move=self.longest_move)


@dataclass(frozen=True)
class DoublingSubgradient:
    """LoPGD without constants: the step size is halved after each epoch; cycles restart with longer epochs.

    A cycle has ``halvings`` epochs of ``steps`` steps. The next cycle starts from its last point, with epochs
    twice as long and the first step size divided by sqrt(2): the restart rule of R2SG, whose total work is a
    constant times the work of the first cycle of sufficient length.

    Parameters
    ----------
    steps : int
        Steps of an epoch of the first cycle. On the three problems of
        ``python -m benchmarks.constants methods.paper`` the gaps after 10,000 steps are, in all, 0.40 times
        as large with 20 and 5.0 times with 2000.
    halvings : int
        Epochs of a cycle, hence projections. There the gaps are below a hundredth with 80: the objective
        grows linearly around the solutions.

    Examples
    --------
    >>> from lopro.methods.paper.adaptive import DoublingSubgradient
    >>> DoublingSubgradient(steps=100).halvings
    8
    """

    steps: int = 200
    halvings: int = 8

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("halvings", self.halvings)

    def init(self, bench: Workbench, x: Array) -> tuple[Plan, _Cycle]:
        """Return the first plan and the first cycle."""
        x = feasible_start(bench, x)
        penalty = Hinge(first_weight(bench, x))
        slope = norm(bench.penalised(penalty, x).subgradient(x))
        size = bench.unit + norm(x)
        step = size / (slope * math.sqrt(self.steps)) if slope > 0.0 else 1.0
        # The first step has the length size / sqrt(steps).
        cycle = _Cycle(step, longest_move=SETTINGS.longest_move * size / math.sqrt(self.steps))
        return Plan(penalty, cycle.inner(), self.steps, x), cycle

    def next(self, bench: Workbench, state: _Cycle, epoch: Epoch) -> tuple[Plan, _Cycle]:
        """Return the next plan of the cycle, or the first of the next cycle."""
        plan = epoch.plan
        assert isinstance(plan.penalty, Hinge)
        if too_light(bench, epoch):
            return replace(plan, penalty=Hinge(2.0 * plan.penalty.lam)), state
        if state.epoch + 1 < self.halvings:
            cycle, steps = replace(state, epoch=state.epoch + 1), plan.steps
        else:
            cycle = replace(state, epoch=0, step=state.step / math.sqrt(2.0))
            steps = 2 * plan.steps
        return Plan(plan.penalty, cycle.inner(), steps, epoch.x), cycle


class _AcceleratedEpochs:
    """Base of the schedules of LoPNAG: epochs of ``steps`` steps at first; the state is the last merit."""

    steps: int

    def __post_init__(self) -> None:
        check_count("steps", self.steps)

    def first_penalty(self, bench: Workbench, x: Array) -> Penalty:
        """Return the penalty of the first epoch, from a feasible point."""
        raise NotImplementedError

    def init(self, bench: Workbench, x: Array) -> tuple[Plan, float | None]:
        """Return the first plan; the merit is not known yet."""
        x = feasible_start(bench, x)
        return Plan(self.first_penalty(bench, x), _restarting(), self.steps, x), None


@dataclass(frozen=True)
class AdaptiveSmoothing(_AcceleratedEpochs):
    """LoPNAG without constants: gamma is halved when the gap is of its size; epochs double after stalling.

    Parameters
    ----------
    steps : int
        Steps of the first epoch: with 10 and with 1000 the problems of
        ``python -m benchmarks.constants methods.paper`` take up to 6 and 10 times as many steps.

    Examples
    --------
    >>> from lopro.methods.paper.adaptive import AdaptiveSmoothing
    >>> AdaptiveSmoothing().steps
    100
    """

    steps: int = 100

    def first_penalty(self, bench: Workbench, x: Array) -> Softplus:
        lam = first_weight(bench, x)
        return Softplus(lam, balanced_smoothing(bench, x, lam))

    def next(
        self, bench: Workbench, state: float | None, epoch: Epoch
    ) -> tuple[Plan, float | None]:
        """Return the next plan and the merit of this epoch."""
        plan = epoch.plan
        penalty = plan.penalty
        assert isinstance(penalty, Softplus)
        if too_light(bench, epoch, penalty.above):
            return replace(plan, penalty=replace(penalty, lam=2.0 * penalty.lam)), state
        merit = epoch.verdict.merit()
        stalled = state is not None and not merit <= state / SETTINGS.sufficient_decrease
        converged = not merit > SETTINGS.gap_over_bias * penalty.above
        following = Plan(
            penalty=replace(penalty, gamma=0.5 * penalty.gamma) if converged else penalty,
            inner=_restarting(epoch.state.L),
            steps=2 * plan.steps if stalled else plan.steps,
            start=epoch.x if converged else epoch.x_hat,
        )
        return following, merit


@dataclass(frozen=True)
class Recentring(_AcceleratedEpochs):
    """The multiplier-centred LoPNAG (P7): gamma is fixed, and the multiplier is updated.

    Each epoch is one inexact step of the entropic proximal point method on the dual. It starts from the last
    point of the previous epoch before the projection. Where the dual is strongly concave it converges
    linearly without a decreasing smoothing.

    Parameters
    ----------
    steps : int
        Steps of the first epoch: with 6 one of four problems takes a tenth of the steps, with 600 one takes
        ten times as many (``python -m benchmarks.constants methods.paper``).

    Examples
    --------
    >>> from lopro.methods.paper.adaptive import Recentring
    >>> Recentring(steps=60).steps
    60
    """

    steps: int = 60

    def first_penalty(self, bench: Workbench, x: Array) -> CentredSoftplus:
        zeta = first_weight(bench, x)
        lam = 2.0 * zeta
        return CentredSoftplus(lam, balanced_smoothing(bench, x, lam), zeta)

    def next(
        self, bench: Workbench, state: float | None, epoch: Epoch
    ) -> tuple[Plan, float | None]:
        """Return the plan with the new multiplier, and the merit of this epoch."""
        plan, constraint = epoch.plan, bench.constraint
        assert isinstance(plan.penalty, CentredSoftplus)
        with bench.observe():
            penalty = plan.penalty.recentred(constraint, constraint.image(epoch.x_hat))
        merit = epoch.verdict.merit()
        stalled = state is not None and not merit <= state / SETTINGS.recentring_decrease
        steps = 2 * plan.steps if stalled else plan.steps
        return Plan(penalty, _restarting(epoch.state.L), steps, epoch.x_hat), merit


def _restarting(L: float | None = None) -> AcceleratedGradient:
    """Return accelerated gradient with restarts; L is the last smoothness constant."""
    if L is not None and not math.isfinite(L):
        raise StalledError("no step is short enough: decreases are below rounding error")
    return AcceleratedGradient(step_rule=Backtracking(L), restart=True)


def balanced_smoothing(bench: Workbench, x: Array, lam: float) -> float:
    """Return the gamma at which the two parts of the curvature of F are equal near ``x`` (P8).

    ``gamma = lam^2 |grad c|^2 / (4 (L_f + lam L_c / 2))`` with the curvatures measured along a gradient: a
    smaller gamma slows down the inner algorithm, a larger one the multiplier.
    """
    slope = norm(bench.constraint.subgradient(x))
    # With a huge gamma the penalty is lam c / 2 plus a constant, so F has curvature L_f + lam L_c / 2.
    size = bench.unit + norm(x)
    huge = SETTINGS.linearising_smoothing * lam * slope * size
    if huge == 0.0:
        return 1.0
    F = bench.penalised(Softplus(lam, huge), x)
    gradient = partial(smooth_gradient, F)
    base = curvature_along_gradient(gradient, x, gradient(x), size)
    gamma = (lam * slope) ** 2 / (4.0 * base)
    return gamma if gamma > 0.0 and math.isfinite(gamma) else 1.0
