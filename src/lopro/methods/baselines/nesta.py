"""NESTA: Nesterov's method on the smoothed l1 norm, with two projections per iteration."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, from_numpy, inner, namespace, norm, to_numpy
from lopro.core.validation import check_count, check_fields, check_number
from lopro.driver.minorants import lower_bound, solution_radius
from lopro.errors import InfeasibleError
from lopro.methods.baselines.l1_residual_ball import (
    checked_parts,
    parts,
    preimage,
    scaled_to_dual_ball,
)
from lopro.problem import Problem
from lopro.projections.residual_ball import adjoint_product, project_residual_ball
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = ["NESTA"]


@dataclass(frozen=True)
class NestaSettings:
    """Constants of version 1.1 of the authors' program."""

    #: Relative variation at which a continuation begins (Becker, Bobin, Candes (2011), NESTA.m).
    first_variation: float = 0.1
    #: First smoothing relative to the largest entry of the least-norm solution: 0.9 in NESTA.m (2011).
    first_smoothing: float = 0.9
    #: Number of values that the stopping rule averages: 10 in Core_Nesterov.m (2011).
    averaged_values: int = 10


SETTINGS = NestaSettings()


@dataclass(frozen=True)
class NESTA:
    r"""NESTA, a baseline: accelerated steps on a smoothed l1 norm, with feasible iterates.

    Problem: min ``|x|_1`` (weights allowed) s.t. ``|A x - y| <= sigma``. Oracles: gradients of the smoothed
    norm, and two projections per iteration, which dominate its cost. Assumptions: none beyond feasibility.
    After T iterations the smoothed objective is within ``O(1 / (mu T^2))`` of its minimum; the smoothing adds
    a bias of up to ``mu / 2 |w|^2`` (``d mu / 2`` without weights), independent of T.

    Parameters
    ----------
    mu_final : float
        The last smoothing, which determines the bias.
    stages : int
        Number of smoothings, from a coarse one to ``mu_final``; 0 or 1 means no continuation.
    variation : float or None
        Stopping rule of a stage: it ends when the smoothed objective is, for the second time, within this
        relative distance of the mean of its last ten values. With None every stage makes ``max_iter`` steps.
    max_iter : int
        Limit of the iterations of a stage.
    report : int
        Iterations between two points that the driver certifies; the last point of a stage is certified too.

    References
    ----------
    S. Becker, J. Bobin, E. J. Candes, "NESTA: a fast and accurate first-order method for sparse
    recovery", SIAM Journal on Imaging Sciences 4 (2011).

    Departures
    ----------
    Iterates and stopping are those of the authors' version 1.1, which also counts the evaluation of the
    objective that ends a stage as an iteration; here only steps count, so that there are exactly two
    projections for each. A start of zeros, the driver's default, is replaced by the original's least-norm
    solution of ``A x = y`` (for an operator without one, by the projection of zero); any other start is
    used. The first smoothing is never below ``mu_final``. The projections need neither ``A A' = I`` nor a
    factorisation from the user. Weights are added here.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> ball = lopro.constraints.ResidualBall(np.array([[2.0, 1.0]]), np.array([2.0]), sigma=1.0)
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), ball)
    >>> method = lopro.baselines.NESTA(1e-6, variation=1e-9)
    >>> result = lopro.solve(problem, method=method, tol=1e-3)
    >>> result.success, round(result.fun, 2), result.counts.projections == 2 * result.iterations
    (True, 0.5, True)
    """

    card: ClassVar[Card] = Card(
        assumptions="l1 norm over a residual ball",
        oracles="gradients of the smoothed norm",
        rate="O(1/(mu T^2)) plus a bias of d mu / 2",
        projections="2 per iteration",
        reference="Becker, Bobin, Candes (SIAM J. Imaging Sci. 2011)",
    )

    mu_final: float = 1e-5
    stages: int = 5
    variation: float | None = 1e-7
    max_iter: int = 10_000
    report: int = 1000

    def __post_init__(self) -> None:
        check_fields(self, counts=("max_iter", "report"), positive=("mu_final",))
        check_count("stages", self.stages, minimum=0)
        if self.variation is not None:
            check_number("variation", self.variation, minimum=0.0)

    def check(self, problem: Problem) -> None:
        checked_parts(problem, "NESTA")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        reference = least_norm_solution(bench, x0)
        x = x0 if norm(x0) > 0.0 else reference
        coarsest = SETTINGS.first_smoothing * float(namespace(reference).max(abs(reference)))
        for mu, variation in self.continuation(coarsest):
            rule = SmallVariation(variation)
            state = NestaState(x, x, 0.0 * x)
            reported = 0
            while state.k < self.max_iter and not rule.met(smoothed(bench, state.x, mu)):
                state = step(bench, state, mu)
                if not bench.tick():
                    break
                if state.k % self.report == 0 and state.k < self.max_iter:
                    reported = state.k
                    yield candidate_at(bench, state)
            if state.k > reported:
                yield candidate_at(bench, state)
            x = state.x

    def continuation(self, coarsest: float) -> list[tuple[float, float | None]]:
        """Return smoothing and variation of each stage: both decrease geometrically."""
        count = max(1, self.stages)
        first = max(coarsest, self.mu_final)

        def stage(share: float) -> tuple[float, float | None]:
            mu = first * (self.mu_final / first) ** share
            if self.variation is None:
                return mu, None
            begin = SETTINGS.first_variation
            return mu, begin * (self.variation / begin) ** share

        return [stage(k / count) for k in range(1, count)] + [(self.mu_final, self.variation)]


@dataclass(frozen=True)
class NestaState:
    """State of a stage: the iterate, the centre of its prox function, the weighted sum of gradients."""

    x: Array
    centre: Array
    w: Array
    k: int = 0
    #: The two points of the last iteration that were projected, with their projections.
    projected: tuple[tuple[Array, Array], ...] = ()


def slope(bench: Workbench, x: Array, mu: float) -> Array:
    """Return the gradient of the smoothed norm: the element of the dual ball nearest to ``x / mu``."""
    _, u = bench.objective.minorant(x, x / mu)
    return u


def smoothed(bench: Workbench, x: Array, mu: float) -> float:
    """Return the smoothed norm, ``max <u, x> - mu / 2 |u|^2`` over the dual ball."""
    u = slope(bench, x, mu)
    return inner(u, x) - 0.5 * mu * inner(u, u)


def slope_weight(k: int) -> float:
    """Return the weight of the gradient of iteration ``k`` in the sum."""
    return (k + 1) / 2.0


def blend(k: int) -> float:
    """Return the weight of the point of the dual average in the next iterate."""
    return 2.0 / (k + 3)


def step(bench: Workbench, state: NestaState, mu: float) -> NestaState:
    """Make one iteration: two projections, and a convex combination of the points they give."""
    x, k = state.x, state.k
    u = slope(bench, x, mu)
    w = state.w + slope_weight(k) * u
    near, far = x - mu * u, state.centre - mu * w
    y, z = bench.project(near), bench.project(far)
    tau = blend(k)
    pairs = (near, y), (far, z)
    return NestaState(tau * z + (1.0 - tau) * y, state.centre, w, k + 1, pairs)


class SmallVariation:
    """The stopping rule: for the second time, the value is close to the mean of the last ten values."""

    def __init__(self, variation: float | None) -> None:
        self.variation = variation
        # The leading zero, as in the original, prevents a stop within the first ten values.
        self._values = deque([0.0], maxlen=SETTINGS.averaged_values)
        self._times = 0

    def met(self, value: float) -> bool:
        """Add a value; return whether the stage ends."""
        if self.variation is None:
            return False
        mean = sum(self._values) / len(self._values)
        self._values.append(value)
        self._times += abs(value - mean) <= self.variation * mean
        return self._times >= 2


def candidate_at(bench: Workbench, state: NestaState) -> Candidate:
    """Return the iterate, which is feasible as a convex combination of projections, with a multiplier."""
    with bench.observe():
        inequality = multiplier(bench, state)
    return Candidate(state.x, Multiplier(inequality))


def multiplier(bench: Workbench, state: NestaState) -> ValidInequality:
    """Return the multiplier of the last two projections with the higher lower bound.

    One belongs to the last gradient of the smoothed norm, the other to the average of all gradients.
    """
    fun = float(bench.objective.value(state.x))
    found = [_multiplier_of(bench, point, at) for point, at in state.projected]
    return max(found, key=lambda normal: lower_bound(bench.counted, state.x, normal, fun)[0])


def _multiplier_of(bench: Workbench, point: Array, projected: Array) -> ValidInequality:
    """Return the multiplier of a projection, scaled to at least the boundary of the dual ball.

    For a positive sigma it is a multiple of the residual. For sigma = 0 the step itself is ``A^H q`` for some
    ``q``, up to rounding errors that grow with the condition number of A.
    """
    problem, (f, c) = bench.counted, parts(bench.problem)
    if c.sigma > 0.0:
        normal = c.valid_inequality(projected, 1.0)
    else:
        q, size = preimage(c, point - projected)
        # The rounding error of A^H q, times the radius of the solutions, is added to the support.
        radius = solution_radius(problem, float(f.value(projected)))
        reach = norm(projected) if radius is None else radius.value
        noise = 8.0 * eps(point) * size * norm(q) * reach
        normal = ValidInequality(c.A.adjoint(q), c.support_image((q,)) + noise, (q,))
    return scaled_to_dual_ball(f, normal) if norm(normal.direction) > 0.0 else normal


def least_norm_solution(bench: Workbench, x0: Array) -> Array:
    """Return the least-norm (least-squares) solution of ``A x = y``."""
    _, c = parts(bench.problem)
    if c.A.explicit and c.tight_frame is None:
        s, U = c.A.left_spectrum
        x = c.A.adjoint(U @ (adjoint_product(U, c.y) / s))
        return 0.0 * x0 + from_numpy(to_numpy(x), x0)
    try:
        return project_residual_ball(0.0 * x0, c.A, c.y, 0.0, tight_frame=c.tight_frame)
    except InfeasibleError:
        return bench.project(0.0 * x0)
