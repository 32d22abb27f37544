"""The schedules of the paper's experiments: fixed epochs, step or smoothing halved after each."""

from __future__ import annotations

from dataclasses import dataclass

from lopro.core.arrays import Array
from lopro.core.validation import check_count, check_number, check_offers
from lopro.methods.inner import (
    AcceleratedGradient,
    Backtracking,
    ConstantStep,
    SubgradientDescent,
    UniformAverage,
)
from lopro.methods.inner.averaging import Average
from lopro.methods.paper.epochs import Epoch, Plan
from lopro.methods.setting import feasible_start
from lopro.penalties import Hinge, Softplus
from lopro.protocol import Workbench

__all__ = ["HalvingSmoothing", "HalvingSteps"]


@dataclass(frozen=True)
class HalvingSteps:
    """The practical LoPGD of the paper's experiments: fixed epochs, the step halved after each.

    Parameters
    ----------
    lam : float
        Penalty weight ("tuned" in the paper).
    eta : float
        Step size of the first epoch.
    steps, epochs : int
        Iterations per epoch, and number of epochs (projections).
    average : Average
        The average that an epoch projects: the mean of its iterates as in Algorithm 1, or another one from
        `lopro.inner`.

    Examples
    --------
    >>> from lopro.methods.paper.theorems import HalvingSteps
    >>> HalvingSteps(lam=10.0, eta=1e-6).steps
    1000
    """

    lam: float
    eta: float
    steps: int = 1000
    epochs: int = 8
    average: Average = UniformAverage()

    def __post_init__(self) -> None:
        check_number("lam", self.lam, minimum=0.0, exclusive=True)
        check_number("eta", self.eta, minimum=0.0, exclusive=True)
        check_count("steps", self.steps)
        check_count("epochs", self.epochs)
        check_offers("average", self.average, "weight")

    def init(self, bench: Workbench, x: Array) -> tuple[Plan | None, int]:
        """Return the first plan and the number of its epoch."""
        return self._plan(feasible_start(bench, x), 1), 1

    def next(self, bench: Workbench, state: int, epoch: Epoch) -> tuple[Plan | None, int]:
        """Return the plan of the next epoch and its number."""
        k = state + 1
        return (self._plan(epoch.x, k) if k <= self.epochs else None), k

    def _plan(self, start: Array, k: int) -> Plan:
        inner = SubgradientDescent(ConstantStep(self.eta / 2.0 ** (k - 1)), self.average)
        return Plan(Hinge(self.lam), inner, self.steps, start)


@dataclass(frozen=True)
class HalvingSmoothing:
    """The practical LoPNAG of the paper's experiments: fixed epochs, backtracking, gamma halved.

    Parameters
    ----------
    lam : float
        Penalty weight ("tuned" in the paper; twice the multiplier is best, R4).
    gamma : float
        First smoothing.
    steps, epochs : int
        Iterations per epoch, and number of epochs (projections).

    Examples
    --------
    >>> from lopro.methods.paper.theorems import HalvingSmoothing
    >>> HalvingSmoothing(lam=5.0).gamma
    0.001
    """

    lam: float
    gamma: float = 1e-3
    steps: int = 5000
    epochs: int = 5

    def __post_init__(self) -> None:
        check_number("lam", self.lam, minimum=0.0, exclusive=True)
        check_number("gamma", self.gamma, minimum=0.0, exclusive=True)
        check_count("steps", self.steps)
        check_count("epochs", self.epochs)

    def init(self, bench: Workbench, x: Array) -> tuple[Plan | None, int]:
        """Return the first plan and the number of its epoch."""
        inner = AcceleratedGradient(step_rule=Backtracking())
        start = feasible_start(bench, x)
        return Plan(Softplus(self.lam, self.gamma), inner, self.steps, start), 1

    def next(self, bench: Workbench, state: int, epoch: Epoch) -> tuple[Plan | None, int]:
        """Return the plan of the next epoch and its number."""
        if state == self.epochs:
            return None, state
        # Halving gamma doubles the dominant part of the curvature: the search for L starts there.
        inner = AcceleratedGradient(step_rule=Backtracking(2.0 * epoch.state.L))
        penalty = Softplus(self.lam, self.gamma / 2.0**state)
        return Plan(penalty, inner, self.steps, epoch.x), state + 1
