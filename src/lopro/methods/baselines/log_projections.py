"""LogTProjections: extragradient epochs with growing mini-batches (Zhang et al. 2013)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_count, check_number
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines.projected_gradient import check_smooth
from lopro.methods.baselines.projection_multipliers import Multipliers
from lopro.methods.inner.subgradient import check_stochastic
from lopro.methods.starts import feasible_candidate, feasible_start
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["LogTProjections"]


@dataclass(frozen=True)
class LogTProjections:
    r"""``O(kappa log T)`` projections, a baseline: larger mini-batches instead of more steps.

    Problem: min f(x) over a set with a projection, f L-smooth and mu-strongly convex,
    ``kappa = L / mu``. Oracles: (sampled) gradients of f; two projections per iteration. Every epoch
    makes ``M = 4 / (eta mu)`` extragradient steps ``z = P(w - eta g(w))``, ``w = P(w - eta g(z))`` with
    ``eta = 1 / (sqrt(6) L)``, each gradient the mean of B samples; the next epoch starts from the mean of
    the z, and B is doubled. Theorem, with ``V >= f(x_1) - f_*`` and ``B_1 >= 12 eta s^2 / V`` for samples of
    variance ``s^2``: the expected gap after epoch k is at most ``V / 2^k``. So T samples need
    ``O(kappa log T)`` projections. With exact gradients the gap is at most ``V / 4^k``.

    Parameters
    ----------
    stages : int
        K.
    L, mu : float, optional
        By default those that the objective knows.
    batch : int
        ``B_1``, samples per gradient in the first epoch.
    stochastic : bool
        Sample the gradients of f; otherwise they are exact and ``batch`` is not used.

    References
    ----------
    L. Zhang, T. Yang, R. Jin, X. He, "O(log T) projections for stochastic optimization of smooth and
    strongly convex functions", ICML 2013.

    Departures
    ----------
    Constants are re-derived, in expectation. The factor per epoch is 1/4 for exact gradients and 1/2 for
    sampled ones. M is rounded up. An infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import LogTProjections
    >>> f = lopro.objectives.LeastSquares(np.diag([1.0, 2.0]), np.array([3.0, 1.0]))
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> result = lopro.solve(lopro.Problem(f, box), method=LogTProjections(), tol=1e-6)
    >>> result.success, result.x.round(3), result.counts.projections == 2 * result.iterations
    (True, array([1. , 0.5]), True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth and strongly convex, kappa = L / mu",
        oracles="(stochastic) gradients of f",
        rate="O(1/T) for T samples",
        projections="O(kappa log T): 2 per iteration",
        reference="Zhang, Yang, Jin, He (ICML 2013)",
    )

    stages: int = 20
    L: float | None = None
    mu: float | None = None
    batch: int = 1
    stochastic: bool = False

    def __post_init__(self) -> None:
        check_count("stages", self.stages)
        check_count("batch", self.batch)
        for name in ("L", "mu"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), minimum=0.0, exclusive=True)

    def check(self, problem: Problem) -> None:
        check_smooth(problem.objective, "LogTProjections")
        if self.stochastic:
            check_stochastic(problem.objective, "LogTProjections(stochastic=True)")
        self._constants(problem)

    def _constants(self, problem: Problem) -> tuple[float, float]:
        """Return L and mu."""
        f = problem.objective
        known = {"L": f.smoothness(), "mu": f.strong_convexity()}
        found = []
        for name, constant in known.items():
            given = getattr(self, name)
            if given is None and constant is None:
                raise MissingCapabilityError(
                    f"LogTProjections needs the constant {name} of a smooth and strongly convex "
                    f"objective, and it is not known here: give {name}=, or use ProjectedGradient"
                )
            found.append(constant.value if given is None and constant is not None else given)
        L, mu = found
        return L, mu

    def schedule(self, problem: Problem) -> tuple[float, int]:
        """Return the step size and M, the iterations of every epoch."""
        L, mu = self._constants(problem)
        eta = 1.0 / (math.sqrt(6.0) * L)
        return eta, math.ceil(4.0 / (eta * mu))

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        w = feasible_start(bench, x0)
        eta, M = self.schedule(bench.counted)
        for k in range(self.stages):
            multipliers, mean = Multipliers(), w
            for t in range(1, M + 1):
                z, w = self._extragradient(bench, w, eta, self.batch * 2**k, multipliers)
                mean = z if t == 1 else mean + (z - mean) / t
                if not bench.tick():
                    break
            w = mean
            yield feasible_candidate(w, multipliers.best(bench, w))

    def _extragradient(
        self, bench: Workbench, w: Array, eta: float, batch: int, multipliers: Multipliers
    ) -> tuple[Array, Array]:
        """Return the extrapolated point z and the next iterate w."""
        z = bench.project(w - eta * self._gradient(bench, w, batch))
        before = w - eta * self._gradient(bench, z, batch)
        after = bench.project(before)
        multipliers.add(before, after, eta)
        return z, after

    def _gradient(self, bench: Workbench, x: Array, batch: int) -> Array:
        f = bench.objective
        if not self.stochastic:
            return f.subgradient(x)
        total = f.stochastic_subgradient(x, bench.rng)
        for _ in range(batch - 1):
            total = total + f.stochastic_subgradient(x, bench.rng)
        return total / batch
