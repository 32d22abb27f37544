"""Optimal regularised dual averaging: an inner algorithm that uses the prox of a simple part of f."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.core.arrays import Array
from lopro.penalties.penalised import Penalised

__all__ = ["DualAveraging"]


@dataclass(slots=True)
class DualAveragingState:
    """The start, the output so far, the dual-averaging point, and the weighted sum of subgradients."""

    start: Array
    x: Array
    z: Array
    slopes: Array
    rng: np.random.Generator
    smooth: Any  # the smooth part of f, for sampled gradients
    t: int = 0


@dataclass(frozen=True)
class DualAveraging:
    r"""Accelerated dual averaging for ``F = phi + R``: prox of R, phi smooth plus Lipschitz.

    With weights ``a_t = t``, ``A_t = t (t + 1) / 2`` and ``gamma_t = beta A_t / a_t^2``:
    ``y = ((A_t - a_t) x + a_t z) / A_t``, ``s += a_t g`` with ``g = dphi(y)``,
    ``z = argmin <s, z> + A_t R(z) + beta/2 |z - x_0|^2``,
    ``x = argmin <g, x> + R(x) + gamma_t/2 |x - y|^2``. The output x is a prox point, hence sparse where R
    is an l1 norm. For ``phi(x) <= phi(y) + <dphi(y), x - y> + L/2 |x - y|^2 + M |x - y|`` and
    ``beta > 2 L`` the bound is, for any comparator at distance D from the start,
    ``beta D^2 / (T (T+1)) + M^2 (2 T + 1) / (6 (beta - 2 L))``. For sampled gradients with a root mean
    square error ``s`` it holds in expectation, with ``M + s`` for M.

    Proof: with ``Psi_t(z) = sum a_s (phi(y_s) + <g_s, z - y_s> + R(z)) + beta/2 |z - x_0|^2``, by
    induction ``A_t F(x_t) <= min Psi_t + sum a_s^2 M^2 / (2 (beta - 2 L))``. Psi grows by
    ``beta/2 |z_t - z_(t-1)|^2``, which is ``A_t gamma_t/2 |u - y|^2`` at
    ``u = ((A_t - a_t) x_(t-1) + a_t z_t) / A_t``; there the linear model plus that square is no less than at
    ``x_t``, which minimises it. With ``e = |x_t - y|`` phi is at most ``A_t (L/2 e^2 + M e)`` above its
    model, the square subtracts ``A_t gamma_t/2 e^2``, and since ``a_t^2 < 2 A_t`` the remainder is at most
    ``a_t^2 M^2 / (2 (beta - 2 L))``.

    Parameters
    ----------
    beta, L, M : float
        As above; ``beta > 2 L``.
    stochastic : bool
        Sample the gradients of the smooth part.
    certain : bool
        Whether L and M are known, not estimated; otherwise `bound` returns None.
    """

    beta: float
    L: float
    M: float
    stochastic: bool = False
    certain: bool = True

    @classmethod
    def balanced(
        cls, L: float, M: float, D: float, T: int, stochastic: bool = False, certain: bool = True
    ) -> DualAveraging:
        """Return the method with the ``beta`` that minimises the bound for given D and T."""
        excess = M / D * math.sqrt((2 * T + 1) * T * (T + 1) / 6.0)
        return cls(2.0 * L + excess, L, M, stochastic, certain)

    def check(self, problem: Any) -> None:
        """Accept every problem: L and M are supplied by the caller."""

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> DualAveragingState:
        smooth, _ = F.objective.split()
        return DualAveragingState(start=x, x=x, z=x, slopes=0.0 * x, rng=rng, smooth=smooth)

    def step(self, F: Penalised, state: DualAveragingState) -> DualAveragingState:
        state.t += 1
        weight, total = float(state.t), 0.5 * state.t * (state.t + 1)
        share = weight / total
        y = state.x + share * (state.z - state.x)
        g = self._slope(F, state, y)
        state.slopes = state.slopes + weight * g
        state.z = F.prox(state.start - state.slopes / self.beta, total / self.beta)
        step = weight * share / self.beta
        state.x = F.prox(y - step * g, step)
        return state

    def _slope(self, F: Penalised, state: DualAveragingState, y: Array) -> Array:
        """Return the gradient of the smooth part and the penalty at ``y``, or a sample of it."""
        if not self.stochastic:
            return F.linearize_at(F.image(y))[1]()
        sampled = state.smooth.stochastic_subgradient(y, state.rng)
        c, penalty = F.constraint, F.penalty
        push = penalty.linearize_at(c, penalty.image(c, y))[1]()
        return sampled if push is None else sampled + push

    def output(self, state: DualAveragingState) -> Array:
        return state.x

    def bound(self, state: DualAveragingState, distance: float) -> float | None:
        T = state.t
        if T == 0 or self.stochastic or not self.certain:
            return None
        noise = self.M**2 * (2 * T + 1) / (6.0 * (self.beta - 2.0 * self.L)) if self.M else 0.0
        return self.beta * distance**2 / (T * (T + 1)) + noise
