"""Descent with an extrapolated multiplier step: the inner algorithm of constraint extrapolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, inner
from lopro.core.validation import check_number
from lopro.functions import Ball
from lopro.methods.inner.subgradient import into_ball
from lopro.penalties.penalised import Penalised

__all__ = ["ExtrapolatedDescent", "ExtrapolatedState"]


@dataclass(slots=True)
class ExtrapolatedState:
    """Where the iteration stands, with the mean of the linearised constraints times their multipliers."""

    x: Array
    average: Array  # of x_1, ..., x_T
    ell: float  # c linearised at the last point, here
    ell_before: float  # the same one iteration earlier
    direction: Array
    support: float = 0.0
    multiplier: float = 0.0
    t: int = 0

    @property
    def valid_inequality(self) -> ValidInequality:
        """The mean of the linearised constraints: valid, since each of them is."""
        return ValidInequality(self.direction, self.support).scaled(1.0 / max(self.t, 1))


@dataclass(frozen=True)
class ExtrapolatedDescent:
    """``y+ = [y + (2 l_t - l_(t-1)) / tau]_+``, then ``x+ = prox(x - (df(x) + y+ dc(x)) / eta)``.

    ``l_t`` is ``c`` linearised at ``x_(t-1)`` and evaluated at ``x_t``.

    Parameters
    ----------
    eta, tau : float
        Inverse step sizes of the point and of the multiplier.
    ball : Ball, optional
        Keep the iterates there.
    split : bool
        Take the proximable part of f by its prox, which a ball would spoil.

    Examples
    --------
    >>> from lopro.methods.baselines._extrapolation import ExtrapolatedDescent
    >>> ExtrapolatedDescent(2.0, 1.0).eta
    2.0
    """

    eta: float
    tau: float
    ball: Ball | None = None
    split: bool = False

    def __post_init__(self) -> None:
        check_number("eta", self.eta, minimum=0.0, exclusive=True)
        check_number("tau", self.tau, minimum=0.0, exclusive=True)
        if self.split and self.ball is not None:
            raise ValueError("split=True needs ball=None: a prox and a ball do not go together")

    def check(self, problem: Any) -> None:
        """Subgradients are enough."""

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> ExtrapolatedState:
        value = float(F.constraint.value(x))
        return ExtrapolatedState(x, x, value, value, 0.0 * x)

    def step(self, F: Penalised, state: ExtrapolatedState) -> ExtrapolatedState:
        x, c = state.x, F.constraint
        y = max(0.0, state.multiplier + self.extrapolated(state) / self.tau)
        value, slope = c.linearize_at(c.image(x))
        dc = slope()
        following = self._moved(F, x, y * dc)
        state.t += 1
        state.average = following + (1.0 - 1.0 / state.t) * (state.average - following)
        state.direction = state.direction + y * dc
        state.support += y * (inner(dc, x) - value)
        state.ell_before, state.ell = state.ell, value + inner(dc, following - x)
        state.x, state.multiplier = following, y
        return state

    def extrapolated(self, state: ExtrapolatedState) -> float:
        """Return the guess of the constraint's next value."""
        return 2.0 * state.ell - state.ell_before

    def _moved(self, F: Penalised, x: Array, push: Array) -> Array:
        f = F.objective
        if self.split:
            smooth, proximable = f.split()
            g = push if smooth is None else smooth.subgradient(x) + push
            moved = x - g / self.eta
            return moved if proximable is None else proximable.prox(moved, 1.0 / self.eta)
        moved = x - (f.subgradient(x) + push) / self.eta
        return moved if self.ball is None else into_ball(moved, self.ball)

    def output(self, state: ExtrapolatedState) -> Array:
        return state.average

    def bound(self, state: ExtrapolatedState, distance: float) -> float | None:
        """None: the theorem compares with feasible points only."""
        return None
