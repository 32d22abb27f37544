"""The schedules of Theorems 2 and 3: O(log 1/eps) projections under a known local error bound.

Each has the corrected parameters of its theorem (factor ``p = 1`` with ``lam = G / rho``, R1); the
constructors ``printed`` return those of the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lopro.core.arrays import Array
from lopro.core.validation import check_fields, check_number
from lopro.errors import MissingCapabilityError
from lopro.methods.inner import (
    AcceleratedGradient,
    ConstantStep,
    FixedSmoothness,
    SubgradientDescent,
)
from lopro.methods.paper.epochs import Epoch, NumberedEpochs, Plan
from lopro.methods.theory import ProblemConstants, epochs_needed
from lopro.penalties import Hinge, Softplus
from lopro.problem import Problem
from lopro.protocol import Claim

__all__ = ["Theorem2", "Theorem3"]


@dataclass(frozen=True)
class _ErrorBoundTheorem(NumberedEpochs):
    """Parameters of Theorems 2 and 3: problem constants, error bound and accuracies."""

    constants: ProblemConstants
    eps0: float
    eps: float
    sigma: float
    theta: float
    lam: float | None = None
    p: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.constants, ProblemConstants):
            raise TypeError(f"constants must be ProblemConstants, got {self.constants!r}")
        if self.lam is not None:
            check_number("lam", self.lam, minimum=0.0)
        check_fields(self, positive=("eps0", "eps", "sigma"))
        check_number("theta", self.theta, minimum=1e-12, maximum=1.0)
        check_number("p", self.p, minimum=1.0)

    @classmethod
    def printed(
        cls,
        constants: ProblemConstants,
        eps0: float,
        eps: float,
        sigma: float,
        theta: float,
        lam: float | None = None,
    ) -> _ErrorBoundTheorem:
        """Return the schedule with the paper's factor ``p``; ``lam`` is ``2 G / rho`` by default."""
        lam = 2.0 * constants.weight if lam is None else lam
        p = constants.printed_factor(lam)
        if not math.isfinite(p):
            raise ValueError(
                f"the printed p needs lam > G / rho = {constants.weight:g}, got {lam:g}"
            )
        return cls(constants, eps0, eps, sigma, theta, lam, p)

    @property
    def weight(self) -> float:
        """The penalty weight: ``lam``, or ``G / rho`` by default."""
        return self.constants.weight if self.lam is None else self.lam

    @property
    def epochs(self) -> int:
        """``K``, the number of epochs and of projections."""
        return epochs_needed(self.eps0, self.eps)

    def check(self, problem: Problem) -> None:
        """Raise, before any work, if a constant of the theorem is not known."""
        raise NotImplementedError

    def _claim(self, k: int) -> Claim:
        """Return the invariant of the proof, ``f(x_k) - f_* <= eps0 / 2^k + eps``."""
        return Claim(
            self.eps0 / 2.0**k + self.eps, f"{type(self).__name__} with the constants given"
        )


@dataclass(frozen=True)
class Theorem2(_ErrorBoundTheorem):
    """The schedule of LoPGD: ``eta_1 = eps0 / (2 p Gbar^2)``, halved every epoch.

    With ``t = ceil(4 sigma^2 p^2 Gbar^2 / eps^(2(1-theta)))`` steps per epoch it guarantees
    ``f(x_K) - f_* <= 2 eps`` after ``K = ceil(log2(eps0 / eps))`` projections.

    Departures
    ----------
    ``t`` is rounded up, and ``p`` is 1 with ``lam = G / rho`` unless `printed` is used.

    Examples
    --------
    >>> from lopro.methods.paper.theorems import Theorem2
    >>> from lopro.methods.theory import ProblemConstants
    >>> s = Theorem2(ProblemConstants(G=1, Gc=1, rho=1), eps0=1.0, eps=0.125, sigma=1.0, theta=1.0)
    >>> s.epochs, s.steps, s.first_step
    (3, 16, 0.125)
    """

    @property
    def slope(self) -> float:
        """``Gbar = G + lam G_c``."""
        return self.constants.subgradient_bound(self.weight)

    @property
    def steps(self) -> int:
        """``t``, the iterations of each epoch."""
        work = 4.0 * (self.sigma * self.p * self.slope) ** 2
        return math.ceil(work / math.pow(self.eps, 2.0 * (1.0 - self.theta)))

    @property
    def first_step(self) -> float:
        """``eta_1``."""
        return self.eps0 / (2.0 * self.p * self.slope**2)

    def check(self, problem: Problem) -> None:
        if not math.isfinite(self.slope):
            raise MissingCapabilityError("Theorem 2 needs a finite Lipschitz constant Gc of c")

    def plan(self, start: Array, k: int, last: Epoch | None) -> Plan | None:
        if k > self.epochs:
            return None
        inner = SubgradientDescent(ConstantStep(self.first_step / 2.0 ** (k - 1)))
        return Plan(Hinge(self.weight), inner, self.steps, start, self._claim(k))


@dataclass(frozen=True)
class Theorem3(_ErrorBoundTheorem):
    """The schedule of LoPNAG: ``gamma_1 = eps0 / (6 p log 2)``, halved; ``t_k`` as in Theorem 3.

    ``t_k = ceil(sigma / eps^(1-theta) max(lam G_c p sqrt(18 log 2), sqrt(12 p Lbar eps0 / 2^(k-1))))``
    accelerated steps per epoch guarantee ``f(x_K) - f_* <= 2 eps`` after K projections. A proximable
    part of ``f`` is treated by its prox and does not enter the smoothness constant.

    Departures
    ----------
    The gradient is taken at the extrapolated point; the factor ``p`` that is missing under the root in the
    paper is included; ``p`` is 1 unless `printed` is used; ``G_c`` may be the effective one of P2.

    Examples
    --------
    >>> from lopro.methods.paper.theorems import Theorem3
    >>> from lopro.methods.theory import ProblemConstants
    >>> c = ProblemConstants(G=1, Gc=1, rho=1, Lf=0.0, Lc=0.0)
    >>> s = Theorem3(c, eps0=1.0, eps=0.125, sigma=1.0, theta=1.0)
    >>> s.epochs, s.steps(1)
    (3, 4)
    """

    def smoothing(self, k: int) -> float:
        """Return ``gamma_k``."""
        return self.eps0 / (6.0 * self.p * math.log(2.0)) / 2.0 ** (k - 1)

    def steps(self, k: int) -> int:
        """Return ``t_k``."""
        lam, c = self.weight, self.constants
        nonsmooth = lam * math.sqrt(18.0 * math.log(2.0) * c.squared_slope) * self.p
        remaining = self.eps0 / 2.0 ** (k - 1)
        smooth = math.sqrt(12.0 * self.p * c.base_smoothness(lam) * remaining)
        scale = self.sigma / math.pow(self.eps, 1.0 - self.theta)
        return math.ceil(scale * max(nonsmooth, smooth))

    def check(self, problem: Problem) -> None:
        if not math.isfinite(self.constants.smoothness(self.weight, 1.0)):
            raise MissingCapabilityError(
                "Theorem 3 needs smoothness constants Lf and Lc, and Gc (or a lower bound c_min of c)"
            )

    def plan(self, start: Array, k: int, last: Epoch | None) -> Plan | None:
        if k > self.epochs:
            return None
        gamma = self.smoothing(k)
        L = self.constants.smoothness(self.weight, gamma)
        inner = AcceleratedGradient(step_rule=FixedSmoothness(L))
        penalty = Softplus(self.weight, gamma)
        return Plan(penalty, inner, self.steps(k), start, self._claim(k))
