"""Epoch-projection methods (Chen et al. 2016): a logarithmic number of projections for strongly convex f."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array, norm
from lopro.core.validation import check_count, check_number
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines.dual_averaging import DualAveraging
from lopro.methods.inner import ConstantStep, InnerAlgorithm
from lopro.methods.inner.subgradient import descent
from lopro.methods.paper.epochs import Plan, minimised_and_projected
from lopro.methods.setting import NeedsConstants, Setting, feasible_candidate
from lopro.methods.theory import ProblemConstants
from lopro.penalties import Hinge
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Claim, Workbench

__all__ = ["EproORDA", "EproSGD"]


@dataclass(frozen=True)
class _EpochProjection(NeedsConstants):
    """Base of both methods: epochs that halve the gap, each with one projection at its end."""

    iterations: int = 100_000
    constants: ProblemConstants | None = None
    radius: float | None = None
    stochastic: bool = False

    strongly_convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("iterations", self.iterations)

    def length(self, s: Setting, V: float) -> int:
        """Return the number of steps that halve a gap of ``V``."""
        raise NotImplementedError

    def inner(self, s: Setting, V: float, steps: int) -> InnerAlgorithm:
        """Return the inner algorithm of an epoch that starts with a gap of ``V``."""
        raise NotImplementedError

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        s = self.needs.find(bench, x0)
        slope = norm(bench.objective.subgradient(s.start))
        if s.solved or slope == 0.0:
            yield feasible_candidate(s.start)
            return
        # Strong convexity: f(x_1) - f_* <= |g_1|^2 / (2 mu).
        V = slope**2 / (2.0 * s.constants.mu)
        start, left = s.start, self.iterations
        needed = self.length(s, V)
        while True:
            steps = min(needed, left)
            claim = None
            if steps == needed and s.certain and not self.stochastic:
                claim = Claim(0.5 * V, f"{type(self).__name__}: the gap halves in every epoch")
            plan = Plan(Hinge(s.weight), self.inner(s, V, steps), steps, start, claim)
            candidate, _ = minimised_and_projected(bench, plan)
            yield candidate
            start, left, V = candidate.x, left - needed, 0.5 * V
            needed = self.length(s, V)
            if needed > left:
                return


@dataclass(frozen=True)
class EproSGD(_EpochProjection):
    """Epoch-projection SGD, a baseline: subgradient epochs on the hinge, each twice as long as the last.

    Problem: min f(x) s.t. c(x) <= 0, f mu-strongly convex, both Lipschitz on a ball that contains the
    solution. Epoch k makes ``T_k`` steps
    ``x+ = Pi_B(x - eta_k dF(x))`` on ``F = f + lam [c]_+`` and projects their mean; then ``eta`` is
    halved and ``T`` doubled. Theorem, with ``V >= f(x_1) - f_*``, ``lam = G / rho``,
    ``Gbar = G + lam G_c``, ``eta_1 = V / (2 Gbar^2)`` and ``T_1 = 8 Gbar^2 / (mu V)``: the gap after
    epoch k is at most ``V / 2^k``, which is ``O(1 / (mu T))`` after T steps and ``O(log T)``
    projections.

    Parameters
    ----------
    iterations : int
        T: limit of the iterations. Epochs run as long as they fit within the limit; the first one is
        shortened to it if necessary.
    constants, radius, stochastic
        As for `FullTouch`.

    References
    ----------
    J. Chen, T. Yang, Q. Lin, L. Zhang, Y. Chang, "Optimal stochastic strongly convex optimization with a
    logarithmic number of projections", UAI 2016 (Epro-SGD).

    Departures
    ----------
    Constants are re-derived with ``lam = G / rho`` and factor 1; ``V = |g_1|^2 / (2 mu)`` is computed at the
    start. The ball is centred at the start, and an infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.SquaredDistance(np.array([2.0, 0.5]))
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> method = lopro.baselines.EproSGD(20_000)
    >>> result = lopro.solve(lopro.Problem(f, box), method=method, tol=0)
    >>> round(result.fun, 2), result.counts.projections == len(result.history)
    (0.5, True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f strongly convex, f and c Lipschitz on a ball",
        oracles="(stochastic) subgradients of f, subgradients of c",
        rate="O(1/T)",
        projections="O(log T): one per epoch",
        reference="Chen, Yang, Lin, Zhang, Chang (UAI 2016)",
    )

    def length(self, s: Setting, V: float) -> int:
        return math.ceil(8.0 * s.slope**2 / (s.constants.mu * V))

    def inner(self, s: Setting, V: float, steps: int) -> InnerAlgorithm:
        return descent(self.stochastic)(ConstantStep(V / (2.0 * s.slope**2)), ball=s.ball)


@dataclass(frozen=True)
class EproORDA(_EpochProjection):
    """Epoch-projection dual averaging, a baseline: like `EproSGD`, with the prox of a simple part of f.

    Problem: min phi(x) + R(x) s.t. c(x) <= 0, the sum mu-strongly convex, phi L-smooth, R with a prox
    (either may be missing), c Lipschitz. Oracles: gradients of phi, prox of R, subgradients of c; one
    projection per epoch. Epoch k makes ``T_k`` steps of accelerated dual averaging on
    ``phi + lam [c]_+`` with the prox of R, and projects the last point. Theorem, with
    ``V >= f(x_1) - f_*``, ``lam = G / rho``, ``M = 2 lam G_c`` and
    ``T_k = max(4 sqrt(L / mu), 43 M^2 2^(k-1) / (mu V))``: the gap after epoch k is at most
    ``V / 2^k``. The Lipschitz constants of phi and R enter the number of steps through lam only.

    Parameters
    ----------
    iterations, constants, radius, stochastic
        As for `EproSGD`. G has to hold on a ball of twice the radius, Gc everywhere.
    noise : float
        Root mean square error of sampled gradients; added to M.

    References
    ----------
    X. Chen, Q. Lin, J. Pena, "Optimal regularized dual averaging methods for stochastic optimization", NIPS
    2012; for the epochs see `EproSGD`.

    Departures
    ----------
    The inner algorithm returns a prox point and no average, as in the original; its constants are derived
    here. It is not restricted to a ball: with ``lam = G / rho`` the penalty is exact, so every epoch ends
    within ``sqrt(2 V / mu)`` of the solution. An infeasible start is projected first, which counts.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.SquaredDistance(np.array([2.0, 0.5])) + 0.6 * lopro.objectives.L1Norm()
    >>> box = lopro.constraints.Box(-np.ones(2), np.ones(2))
    >>> method = lopro.baselines.EproORDA(20_000)
    >>> result = lopro.solve(lopro.Problem(f, box), method=method, tol=0)
    >>> result.x.round(2), result.counts.projections == len(result.history)
    (array([1., 0.]), True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f strongly convex, smooth plus proximable, c Lipschitz",
        oracles="(stochastic) gradients and prox of f, subgradients of c",
        rate="O(1/T)",
        projections="O(log T): one per epoch",
        reference="Chen, Yang, Lin, Zhang, Chang (UAI 2016)",
    )

    ball_ratio: ClassVar[float] = 2.0

    noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("noise", self.noise, minimum=0.0)

    def check(self, problem: Problem) -> None:
        super().check(problem)
        f = problem.objective
        smooth, proximable = f.split()
        if smooth is None and proximable is None:
            raise MissingCapabilityError(
                f"EproORDA needs a smooth part plus a part with a prox, and {type(f).__name__} has no such "
                "split: use EproSGD"
            )
        if self.stochastic and (smooth is None or not smooth.stochastic):
            raise MissingCapabilityError(
                "EproORDA(stochastic=True) needs a smooth part with stochastic_subgradient(x, rng): "
                "use stochastic=False"
            )
        given = self.constants is not None and math.isfinite(self.constants.Lf)
        if smooth is not None and smooth.smoothness() is None and not given:
            raise MissingCapabilityError(
                "EproORDA needs a smoothness constant of the objective (Lf), and it is not known here: "
                "give constants=, or use EproSGD"
            )
        if self.constants is None and problem.constraint.lipschitz() is None:
            raise MissingCapabilityError(
                "EproORDA needs a constraint that is Lipschitz everywhere (Gc): give constants=, or use "
                "EproSGD"
            )

    def length(self, s: Setting, V: float) -> int:
        mu, M = s.constants.mu, self._nonsmoothness(s)
        return math.ceil(
            max(4.0 * math.sqrt(s.constants.Lf / mu), 128.0 / 3.0 * M**2 / (mu * V), 1.0)
        )

    def inner(self, s: Setting, V: float, steps: int) -> InnerAlgorithm:
        distance = math.sqrt(2.0 * V / s.constants.mu)
        return DualAveraging.balanced(
            s.constants.Lf, self._nonsmoothness(s), distance, steps, self.stochastic, s.certain
        )

    def _nonsmoothness(self, s: Setting) -> float:
        """Return ``M``: twice the Lipschitz constant of the hinge, plus the noise."""
        return 2.0 * s.weight * s.constants.Gc + self.noise
