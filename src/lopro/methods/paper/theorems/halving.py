"""The schedules of the paper's experiments: epochs of fixed length, step or smoothing halved after each."""

from __future__ import annotations

from dataclasses import dataclass

from lopro.core.arrays import Array
from lopro.core.validation import check_fields, check_offers
from lopro.methods.inner import (
    AcceleratedGradient,
    Backtracking,
    ConstantStep,
    SubgradientDescent,
    UniformAverage,
)
from lopro.methods.inner.averaging import Average
from lopro.methods.paper.epochs import Epoch, NumberedEpochs, Plan
from lopro.penalties import Hinge, Softplus

__all__ = ["HalvingSmoothing", "HalvingSteps"]


@dataclass(frozen=True)
class HalvingSteps(NumberedEpochs):
    """The practical LoPGD of the paper's experiments: epochs of fixed length, the step halved after each.

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
        check_fields(self, counts=("steps", "epochs"), positive=("lam", "eta"))
        check_offers("average", self.average, "weight")

    def plan(self, start: Array, k: int, last: Epoch | None) -> Plan | None:
        if k > self.epochs:
            return None
        inner = SubgradientDescent(ConstantStep(self.eta / 2.0 ** (k - 1)), self.average)
        return Plan(Hinge(self.lam), inner, self.steps, start)


@dataclass(frozen=True)
class HalvingSmoothing(NumberedEpochs):
    """The practical LoPNAG of the paper's experiments: epochs of fixed length, backtracking, gamma halved.

    Parameters
    ----------
    lam : float
        Penalty weight ("tuned" in the paper; twice the multiplier is best, R4).
    gamma : float
        First smoothing; 1e-3 in the experiments of Table 1.
    steps, epochs : int
        Iterations per epoch, and number of epochs (projections); 5000 and 5 in those experiments.

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
        check_fields(self, counts=("steps", "epochs"), positive=("lam", "gamma"))

    def plan(self, start: Array, k: int, last: Epoch | None) -> Plan | None:
        if k > self.epochs:
            return None
        # Halving gamma doubles the dominant part of the curvature: the search for L starts there.
        L = None if last is None else 2.0 * last.state.L
        inner = AcceleratedGradient(step_rule=Backtracking(L))
        return Plan(Softplus(self.lam, self.gamma / 2.0 ** (k - 1)), inner, self.steps, start)
