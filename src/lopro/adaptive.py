"""Schedules that need no constants: the penalty weight, the smoothing and the epoch length adapt.

Three rules carry them. R2: after a projection ``f(x) <= F(x_hat)`` must hold; where it fails, the weight
is too small and doubles. Stalling: when the certified gap (or the value, where there is no certificate)
stops falling, epochs get longer. Re-centring (P7): the slope of the penalty is an estimate of the
multiplier, and a penalty centred at the multiplier has no bias.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lopro._arrays import Array, norm
from lopro._validation import check_count
from lopro.epochs import Epoch, Plan, Workbench, feasible_start
from lopro.inner import AcceleratedGradient, Backtracking, ConstantStep, SubgradientDescent
from lopro.inner.accelerated import curvature_along_gradient
from lopro.penalties import CentredSoftplus, Hinge, Softplus

__all__ = ["AdaptiveSmoothing", "DoublingSubgradient", "Recentring"]


def first_weight(bench: Workbench, x: Array) -> float:
    """Return a first guess of the multiplier: the ratio of the slopes of f and c at ``x``."""
    of_f = norm(bench.problem.objective.subgradient(x))
    of_c = norm(bench.problem.constraint.subgradient(x))
    return of_f / of_c if of_f > 0.0 and of_c > 0.0 else 1.0


def too_light(bench: Workbench, epoch: Epoch, smoothing: float = 0.0) -> bool:
    """Whether R2 failed by more than the smoothing costs anyway: the weight is too small.

    The bound of R2 is ``C gamma + B_T + [f(x) - F(x_hat)]_+``. A last term below the first does no harm
    now, and is looked at again when gamma is smaller; doubling the weight for it would only slow the
    inner algorithm down.
    """
    with bench.observe():
        outside = bench.problem.constraint.value(epoch.x_hat) > 0.0
    return outside and not epoch.exact and epoch.fun - epoch.penalised_value > smoothing


def merit(epoch: Epoch) -> float:
    """Return what should fall: the certified gap, or the value where there is no certificate."""
    assert epoch.certificate is not None
    gap = epoch.certificate.gap
    return gap if math.isfinite(gap) else epoch.fun


@dataclass(frozen=True)
class _Memory:
    """What an adaptive plan remembers of the epochs before it."""

    merits: tuple[float, ...] = ()
    step: float = 0.0  # first step size of the current cycle
    cycle: int = 0  # epochs since the step size was last reset
    longest_move: float = math.inf

    def inner(self) -> SubgradientDescent:
        """Return subgradient descent with the step size of this epoch."""
        step = ConstantStep(self.step / 2.0**self.cycle)
        return SubgradientDescent(step, longest_move=self.longest_move)


@dataclass(frozen=True)
class AdaptivePlan(Plan):
    """A plan with a memory."""

    memory: _Memory = _Memory()


@dataclass(frozen=True)
class DoublingSubgradient:
    """LoPGD without constants: halve the step each epoch, and start over with twice the length.

    A cycle of ``halvings`` epochs of ``steps`` steps; then the next cycle starts where it ended, with epochs
    twice as long and the first step divided by sqrt(2) (the restart rule of R2SG, whose total work is a
    constant times that of the first cycle that is long enough).

    Examples
    --------
    >>> from lopro.adaptive import DoublingSubgradient
    >>> DoublingSubgradient(steps=100).halvings
    8
    """

    steps: int = 200
    halvings: int = 8

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("halvings", self.halvings)

    def first(self, bench: Workbench, x: Array) -> Plan:
        x = feasible_start(bench, x)
        penalty = Hinge(first_weight(bench, x))
        slope = norm(bench.penalised(penalty, x).subgradient(x))
        step = (1.0 + norm(x)) / (slope * math.sqrt(self.steps)) if slope > 0.0 else 1.0
        memory = _Memory(step=step, longest_move=10.0 * (1.0 + norm(x)) / math.sqrt(self.steps))
        return AdaptivePlan(penalty, memory.inner(), self.steps, x, memory=memory)

    def following(self, bench: Workbench, plan: Plan, epoch: Epoch) -> Plan:
        assert isinstance(plan, AdaptivePlan) and isinstance(plan.penalty, Hinge)
        if too_light(bench, epoch):
            return replace(plan, penalty=Hinge(2.0 * plan.penalty.lam))
        memory = plan.memory
        if memory.cycle + 1 < self.halvings:
            memory, steps = replace(memory, cycle=memory.cycle + 1), plan.steps
        else:
            memory = replace(memory, cycle=0, step=memory.step / math.sqrt(2.0))
            steps = 2 * plan.steps
        return replace(
            plan,
            inner=memory.inner(),
            steps=steps,
            start=epoch.x,
            index=plan.index + 1,
            memory=memory,
        )


@dataclass(frozen=True)
class AdaptiveSmoothing:
    """LoPNAG without constants: gamma halves when the gap has come down to it, epochs grow on stalling.

    Examples
    --------
    >>> from lopro.adaptive import AdaptiveSmoothing
    >>> AdaptiveSmoothing().steps
    100
    """

    steps: int = 100

    def __post_init__(self) -> None:
        check_count("steps", self.steps)

    def first(self, bench: Workbench, x: Array) -> Plan:
        x = feasible_start(bench, x)
        lam = first_weight(bench, x)
        gamma = balanced_smoothing(bench, x, lam)
        inner = _restarting()
        return AdaptivePlan(Softplus(lam, gamma), inner, self.steps, x)

    def following(self, bench: Workbench, plan: Plan, epoch: Epoch) -> Plan:
        assert isinstance(plan, AdaptivePlan) and isinstance(plan.penalty, Softplus)
        penalty = plan.penalty
        if too_light(bench, epoch, penalty.above):
            return replace(plan, penalty=replace(penalty, lam=2.0 * penalty.lam))
        merits = (*plan.memory.merits[-1:], merit(epoch))
        stalled = len(merits) == 2 and not merits[1] <= merits[0] / 1.5
        # The gap is C gamma + B_T: a smaller gamma helps only once the inner algorithm has caught up.
        caught_up = not merits[-1] > 10.0 * penalty.above
        return replace(
            plan,
            penalty=replace(penalty, gamma=0.5 * penalty.gamma) if caught_up else penalty,
            inner=_restarting(epoch.state.L),
            steps=2 * plan.steps if stalled else plan.steps,
            start=epoch.x if caught_up else epoch.x_hat,
            index=plan.index + 1,
            memory=_Memory(merits),
        )


@dataclass(frozen=True)
class Recentring:
    """The multiplier-centred LoPNAG (P7): gamma stays, the multiplier moves.

    Each epoch is one inexact step of the entropic proximal point method on the dual. It starts where the
    last one stopped, not at the projected point. Converges linearly where the dual is curved, with a
    smoothing that never has to become small.

    Examples
    --------
    >>> from lopro.adaptive import Recentring
    >>> Recentring(steps=60).steps
    60
    """

    steps: int = 60

    def __post_init__(self) -> None:
        check_count("steps", self.steps)

    def first(self, bench: Workbench, x: Array) -> Plan:
        x = feasible_start(bench, x)
        zeta = first_weight(bench, x)
        lam = 2.0 * zeta
        penalty = CentredSoftplus(lam, balanced_smoothing(bench, x, lam), zeta)
        inner = _restarting()
        return AdaptivePlan(penalty, inner, self.steps, x)

    def following(self, bench: Workbench, plan: Plan, epoch: Epoch) -> Plan:
        assert isinstance(plan, AdaptivePlan) and isinstance(plan.penalty, CentredSoftplus)
        constraint = bench.problem.constraint
        with bench.observe():
            penalty = plan.penalty.recentred(constraint, constraint.image(epoch.x_hat))
        merits = (*plan.memory.merits[-1:], merit(epoch))
        stalled = len(merits) == 2 and not merits[1] <= merits[0] / 2.0
        return replace(
            plan,
            penalty=penalty,
            inner=_restarting(epoch.state.L),
            steps=2 * plan.steps if stalled else plan.steps,
            start=epoch.x_hat,
            index=plan.index + 1,
            memory=_Memory(merits[-1:]),
        )


def _restarting(L: float | None = None) -> AcceleratedGradient:
    return AcceleratedGradient(step_rule=Backtracking(L), restart=True)


def balanced_smoothing(bench: Workbench, x: Array, lam: float) -> float:
    """Return the gamma at which both parts of the curvature of F are alike near ``x`` (P8).

    ``gamma = lam^2 |grad c|^2 / (4 (L_f + lam L_c / 2))`` with the curvatures measured along a gradient: a
    smaller gamma slows the inner algorithm, a larger one the multiplier.
    """
    slope = norm(bench.problem.constraint.subgradient(x))
    huge = 1e6 * (1.0 + lam * slope)  # so flat that the penalty is half of lam c
    F = bench.penalised(Softplus(lam, huge), x)
    base = curvature_along_gradient(F, x, F.image(x))
    gamma = (lam * slope) ** 2 / (4.0 * base)
    return gamma if gamma > 0.0 and math.isfinite(gamma) else 1.0
