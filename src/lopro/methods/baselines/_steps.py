"""Step sizes that watch the run, and the output that is no average."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from lopro.core.arrays import Array, inner, norm
from lopro.methods.inner.averaging import StepRule

__all__ = ["BestIterate", "DistanceOverGradients", "PlannedSizes", "Sizes"]

#: The first step of the adaptive rule moves the start by this part of its size.
FIRST_MOVE = 1e-3


class Sizes(Protocol):
    """Step sizes of one run, which may depend on what the run has met."""

    def size(self, t: int, x: Array, g: Array) -> float:
        """Return the size of step ``t`` from ``x`` along ``-g``; called once for each step."""
        ...


@dataclass(frozen=True)
class PlannedSizes:
    """The sizes of a rule that looks at the time only."""

    rule: StepRule

    def size(self, t: int, x: Array, g: Array) -> float:
        return self.rule.size(t)


class DistanceOverGradients:
    """``eta_t = r_t / sqrt(|g_1|^2 + ... + |g_t|^2)``, ``r_t`` the longest distance from the start so far.

    Needs no constant (Ivgi, Hinder, Carmon, ICML 2023, "DoG is SGD's best friend").

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.methods.baselines._steps import DistanceOverGradients
    >>> sizes = DistanceOverGradients(np.zeros(2), unit=1.0)
    >>> sizes.size(1, np.zeros(2), np.array([0.0, 1.0]))
    0.001
    """

    def __init__(self, start: Array, unit: float) -> None:
        self._start = start
        self._farthest = FIRST_MOVE * (unit + norm(start))
        self._squares = 0.0

    def size(self, t: int, x: Array, g: Array) -> float:
        self._farthest = max(self._farthest, norm(x - self._start))
        self._squares += inner(g, g)
        # Without any slope so far, no step moves: any size is right.
        return self._farthest / math.sqrt(self._squares) if self._squares > 0.0 else 1.0


@dataclass(frozen=True)
class BestIterate:
    """In place of an average: the iterate of least value, for one more value in every iteration.

    Examples
    --------
    >>> from lopro.methods.baselines import BestIterate, ProjectedSubgradient
    >>> ProjectedSubgradient(average=BestIterate()).average
    BestIterate()
    """
