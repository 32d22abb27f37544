"""Step sizes and averages of subgradient descent.

An average is defined by its weights: ``xbar_t = (1 - w_t) xbar_(t-1) + w_t x_t`` with ``w_1 = 1``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from lopro.core.validation import check_count, check_number

__all__ = [
    "Average",
    "ConstantStep",
    "InverseTimeStep",
    "LastIterate",
    "LinearWeights",
    "PolynomialDecay",
    "SqrtStep",
    "StepRule",
    "SuffixAverage",
    "UniformAverage",
    "WeightedInverseTimeStep",
]


class StepRule(Protocol):
    """A step size for each iteration ``t = 1, 2, ...``."""

    def size(self, t: int) -> float:
        """Return the step size of iteration ``t``."""
        ...


@dataclass(frozen=True)
class ConstantStep:
    """``eta``, as in LoPGD.

    Examples
    --------
    >>> from lopro.methods.inner import ConstantStep
    >>> ConstantStep(0.1).size(7)
    0.1
    """

    eta: float

    def __post_init__(self) -> None:
        check_number("eta", self.eta, minimum=0.0, exclusive=True)

    def size(self, t: int) -> float:
        return self.eta


@dataclass(frozen=True)
class SqrtStep:
    """``eta_0 / sqrt(t)``: the classical choice without strong convexity.

    Examples
    --------
    >>> from lopro.methods.inner import SqrtStep
    >>> SqrtStep(1.0).size(4)
    0.5
    """

    eta0: float

    def __post_init__(self) -> None:
        check_number("eta0", self.eta0, minimum=0.0, exclusive=True)

    def size(self, t: int) -> float:
        return self.eta0 / math.sqrt(t)


@dataclass(frozen=True)
class InverseTimeStep:
    """``1 / (mu t)``: Cor 1, with suffix or polynomial-decay averaging.

    Examples
    --------
    >>> from lopro.methods.inner import InverseTimeStep
    >>> InverseTimeStep(mu=2.0).size(5)
    0.1
    """

    mu: float

    def __post_init__(self) -> None:
        check_number("mu", self.mu, minimum=0.0, exclusive=True)

    def size(self, t: int) -> float:
        return 1.0 / (self.mu * t)


@dataclass(frozen=True)
class WeightedInverseTimeStep:
    """``2 / (mu (t + 1))``, for `LinearWeights` (C1').

    Examples
    --------
    >>> from lopro.methods.inner import WeightedInverseTimeStep
    >>> WeightedInverseTimeStep(mu=1.0).size(3)
    0.5
    """

    mu: float

    def __post_init__(self) -> None:
        check_number("mu", self.mu, minimum=0.0, exclusive=True)

    def size(self, t: int) -> float:
        return 2.0 / (self.mu * (t + 1))


class Average(Protocol):
    """The weights of a running average."""

    def weight(self, t: int) -> float:
        """Return the weight of iterate ``t`` in the average of the first ``t``."""
        ...


@dataclass(frozen=True)
class LastIterate:
    """No average: the last iterate.

    Examples
    --------
    >>> from lopro.methods.inner import LastIterate
    >>> LastIterate().weight(9)
    1.0
    """

    def weight(self, t: int) -> float:
        return 1.0


@dataclass(frozen=True)
class UniformAverage:
    """The mean of all iterates (Prop 3, LoPGD).

    Examples
    --------
    >>> from lopro.methods.inner import UniformAverage
    >>> UniformAverage().weight(4)
    0.25
    """

    def weight(self, t: int) -> float:
        return 1.0 / t


@dataclass(frozen=True)
class SuffixAverage:
    """The mean of the last ``alpha T`` of ``T`` iterates (Rakhlin, Shamir, Sridharan, 2012).

    Examples
    --------
    >>> from lopro.methods.inner import SuffixAverage
    >>> [SuffixAverage(alpha=0.5, horizon=4).weight(t) for t in (1, 2, 3, 4)]
    [1.0, 1.0, 1.0, 0.5]
    """

    alpha: float
    horizon: int

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, minimum=0.0, maximum=1.0)
        check_count("horizon", self.horizon)
        if self.alpha * self.horizon < 1:
            raise ValueError(f"alpha * horizon must be at least 1, got {self.alpha * self.horizon}")

    def weight(self, t: int) -> float:
        skipped = self.horizon - math.floor(self.alpha * self.horizon)
        return 1.0 / (t - skipped) if t > skipped else 1.0


@dataclass(frozen=True)
class PolynomialDecay:
    """``w_t = (s + 1) / (s + t)`` (Shamir and Zhang, ICML 2013); ``s = 0`` is the mean.

    The default, 3, is that of the authors' experiments.

    Examples
    --------
    >>> from lopro.methods.inner import PolynomialDecay
    >>> PolynomialDecay(s=3).weight(1)
    1.0
    """

    s: float = 3.0

    def __post_init__(self) -> None:
        check_number("s", self.s, minimum=0.0)

    def weight(self, t: int) -> float:
        return (self.s + 1.0) / (self.s + t)


@dataclass(frozen=True)
class LinearWeights:
    """``2 / (T (T + 1)) sum t x_t``: weights proportional to t (C1').

    Examples
    --------
    >>> from lopro.methods.inner import LinearWeights
    >>> LinearWeights().weight(3)
    0.5
    """

    def weight(self, t: int) -> float:
        return 2.0 / (t + 1)
