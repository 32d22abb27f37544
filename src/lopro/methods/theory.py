"""The constants of the paper's theorems and the formulas derived from them: weights, smoothness, epochs.

The formulas contain the corrections of docs/theory.md: the factor ``p`` of Theorem 1 may be 1 with
``lam = G / rho`` (R1), and ``G_c`` may be replaced by an effective constant if ``c`` is smooth and bounded
below (P2). The printed factor remains available as `ProblemConstants.printed_factor`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.core.arrays import Array, asarray_like, norm, to_numpy
from lopro.core.validation import check_constant, check_number
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball, Constant
from lopro.problem import Problem

__all__ = ["ErrorBound", "ProblemConstants", "constants_of", "epochs_needed", "probe_error_bound"]

#: sup over s of q(s) + 2 s q(s) (1 - q(s)), q the logistic function (P2 of docs/theory.md).
SOFTPLUS_CURVATURE = 1.3009
#: The same supremum for the quadratic hinge (P2 of docs/theory.md).
QUADRATIC_CURVATURE = 2.0


@dataclass(frozen=True)
class ProblemConstants:
    """The constants of Assumption 1 and of smoothness, as numbers.

    Parameters
    ----------
    G, Gc : float
        Lipschitz constants of ``f`` (on the feasible set and the iterates) and of ``c``; ``Gc`` may be
        infinite if ``Lc`` and ``c_min`` are given.
    rho : float
        Regularity: ``dist(x, Omega) <= [c(x)]_+ / rho``.
    Lf, Lc : float
        Smoothness constants; infinite for nonsmooth functions. A part of ``f`` that is treated by its prox
        does not count in ``Lf``.
    mu : float
        Strong convexity of ``f``.
    c_min : float
        A lower bound of ``c``.

    Examples
    --------
    >>> from lopro.methods.theory import ProblemConstants
    >>> ProblemConstants(G=2.0, Gc=1.0, rho=0.5).weight
    4.0
    """

    G: float
    Gc: float
    rho: float
    Lf: float = math.inf
    Lc: float = math.inf
    mu: float = 0.0
    c_min: float = -math.inf

    def __post_init__(self) -> None:
        check_number("G", self.G, minimum=0.0)
        check_number("rho", self.rho, minimum=0.0, exclusive=True)
        check_number("mu", self.mu, minimum=0.0)
        for name in ("Gc", "Lf", "Lc"):
            check_constant(name, getattr(self, name))
        check_constant("c_min", self.c_min, minimum=-math.inf)

    @property
    def weight(self) -> float:
        """``lam = G / rho``: exact with factor 1 (R1)."""
        return self.G / self.rho

    def printed_factor(self, lam: float) -> float:
        """Return the paper's ``p = lam rho / (lam rho - G)``; infinite at ``lam = G / rho``."""
        excess = lam * self.rho - self.G
        return math.inf if excess <= 0.0 else lam * self.rho / excess

    def subgradient_bound(self, lam: float) -> float:
        """Return ``G + lam G_c``, the Lipschitz constant of the hinge-penalised objective."""
        return self.G + lam * self.Gc

    @property
    def squared_slope(self) -> float:
        """``min(G_c^2, 2 L_c |inf c|)``, which replaces ``G_c^2`` in the smoothness of softplus (P2)."""
        return self._effective_slope if self._slope_is_effective else self.Gc**2

    @property
    def _effective_slope(self) -> float:
        return 2.0 * self.Lc * abs(self.c_min) if math.isfinite(self.c_min) else math.inf

    @property
    def _slope_is_effective(self) -> bool:
        return self._effective_slope < self.Gc**2

    def base_smoothness(self, lam: float, curvature: float = SOFTPLUS_CURVATURE) -> float:
        """Return the part of the smoothness constant of F that does not depend on gamma.

        Where `squared_slope` is that of P2, ``lam L_c`` is multiplied by ``curvature``, a constant of the
        penalty.
        """
        factor = curvature if self._slope_is_effective else 1.0
        return self.Lf + factor * lam * self.Lc

    def smoothness(self, lam: float, gamma: float) -> float:
        """Return the smoothness constant of ``f + softplus``: ``L_f + lam L_c + lam^2 G_c^2 / (4 gamma)``."""
        return self.base_smoothness(lam) + lam**2 * self.squared_slope / (4.0 * gamma)


def constants_of(problem: Problem, ball: Ball | None = None) -> ProblemConstants:
    """Return the constants that the objective and the constraint provide.

    Raises `MissingCapabilityError` naming the constant of Assumption 1 that is unknown. Objectives that are
    Lipschitz on bounded sets only need a ball.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([3.0, 4.0]))
    >>> ball = lopro.constraints.ResidualBall(np.eye(2), np.zeros(2), 1.0)
    >>> lopro.theory.constants_of(lopro.Problem(f, ball)).G
    5.0
    """
    f, c = problem.objective, problem.constraint
    smooth, _ = f.split()
    Lf = smooth.smoothness() if smooth is not None else None
    proximable_only = smooth is None and f.proximable
    return ProblemConstants(
        G=_required("a Lipschitz constant of the objective (G)", f.lipschitz(ball)),
        Gc=_number(c.lipschitz(ball), math.inf),
        rho=_required("the regularity constant of the constraint (rho)", c.regularity()),
        Lf=0.0 if proximable_only else _number(Lf, math.inf),
        Lc=_number(c.smoothness(), math.inf),
        mu=_number(f.strong_convexity(), 0.0),
        c_min=_number(c.infimum(), -math.inf),
    )


def _number(constant: Constant | None, default: float) -> float:
    return default if constant is None else constant.value


def _required(name: str, constant: Constant | None) -> float:
    if constant is None:
        raise MissingCapabilityError(
            f"Assumption 1 needs {name}, and it is not known here; give lopro.theory.ProblemConstants "
            "yourself, or use a method that needs no constants, such as lopro.Auto()"
        )
    return constant.value


def epochs_needed(eps0: float, eps: float) -> int:
    """Return ``K = ceil(log2(eps0 / eps))``, at least 0: the epochs and projections of Theorems 2 and 3.

    Examples
    --------
    >>> from lopro.methods.theory import epochs_needed
    >>> epochs_needed(1.0, 1e-3)
    10
    """
    check_number("eps0", eps0, minimum=0.0, exclusive=True)
    check_number("eps", eps, minimum=0.0, exclusive=True)
    return max(0, math.ceil(math.log2(eps0 / eps)))


@dataclass(frozen=True)
class ErrorBound:
    """An estimate of the local error bound ``dist(x, Omega_*) <= sigma (f(x) - f_*)^theta``."""

    theta: float
    sigma: float


def probe_error_bound(
    problem: Problem,
    solution: Array,
    *,
    radius: float = 1e-2,
    samples: int = 200,
    seed: int | np.random.Generator | None = 0,
) -> ErrorBound:
    """Estimate theta and sigma of Assumption 2 by sampling feasible points around a unique solution.

    An estimate for exploration, not a proof. Points are sampled along random directions over three decades of
    the distance to the solution; along each direction the distance is fitted by a power of the gap, and the
    least power is theta. Random directions miss a low-dimensional face, such as the support of a sparse
    solution: theta is then too large. Each sample takes one projection.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.L1Norm()
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> bound = lopro.theory.probe_error_bound(lopro.Problem(f, half), np.array([0.5, 0.0]))
    >>> round(bound.theta, 1)
    1.0
    """
    rng = np.random.default_rng(seed)
    lines = (
        _gaps_and_distances(problem, solution, direction, radius)
        for direction in _directions(solution, rng, max(2, samples // 8))
    )
    followed = [line for line in lines if line.size >= 8]
    if not followed:
        raise ValueError("too few samples with a positive gap: is the solution unique and optimal?")
    slopes = [float(np.polyfit(gaps, distances, 1)[0]) for gaps, distances in followed]
    theta = min(1.0, max(min(slopes), 1e-3))
    sigma = max(float(np.exp(np.max(distances - theta * gaps))) for gaps, distances in followed)
    return ErrorBound(theta, sigma)


def _gaps_and_distances(
    problem: Problem, solution: Array, direction: Array, radius: float
) -> np.ndarray[Any, Any]:
    """Return the logarithms of positive gaps and distances of projected points along a direction."""
    best, rows = problem.objective.value(solution), []
    for scale in np.geomspace(1e-3 * radius, radius, 8):
        z = problem.constraint.project(solution + float(scale) * direction)
        gap, distance = problem.objective.value(z) - best, norm(z - solution)
        if gap > 1e-13 * abs(best) and distance > 0.0:
            rows.append((math.log(gap), math.log(distance)))
    return np.array(rows).T


def _directions(solution: Array, rng: np.random.Generator, count: int) -> Iterator[Array]:
    """Yield random unit directions, symmetric matrices where the solution is one."""
    x = to_numpy(solution)
    symmetric = x.ndim == 2 and x.shape[0] == x.shape[1] and np.allclose(x, x.T)
    for _ in range(count):
        noise = rng.standard_normal(x.shape)
        if symmetric:
            noise = noise + noise.T
        yield asarray_like(noise / np.linalg.norm(noise), solution)
