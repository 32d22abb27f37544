"""NESTA: Nesterov's method on the smoothed l1 norm, with two projections in every iteration."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar, cast

from lopro.constraints import ResidualBall
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, from_numpy, inner, namespace, norm, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.validation import check_count, check_number
from lopro.errors import InfeasibleError, MissingCapabilityError
from lopro.maps import LinearMap, SparseMap
from lopro.objectives import L1Norm
from lopro.problem import Problem
from lopro.projections.residual_ball import adjoint_product, project_residual_ball
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench
from lopro.protocol.certificates import lower_bound, solution_radius

__all__ = ["NESTA"]

#: The first stage of a continuation stops at about this variation.
COARSEST_VARIATION = 0.1
#: How many values of the smoothed objective the stopping rule averages.
MEMORY = 10
#: Eigenvalues of ``A A^H`` below this share of the largest do not count for a multiplier; products for one.
SEEN, PRODUCTS = 1e-12, 50


@dataclass(frozen=True)
class NESTA:
    r"""NESTA, a baseline: accelerated steps on a smoothed l1 norm, every one of them feasible.

    Problem: min ``|x|_1`` (weights allowed) s.t. ``|A x - y| <= sigma``. Oracles: slopes of the smoothed
    norm, and two projections per iteration. Assumptions: none beyond feasibility, but the cost of a
    projection is what it stands and falls with. After T iterations the smoothed objective is within
    ``O(1 / (mu T^2))`` of its minimum, and the smoothing costs up to ``mu / 2 |w|^2`` (``d mu / 2`` without
    weights) on top, however long it runs.

    Parameters
    ----------
    mu_final : float
        The smoothing that decides the bias.
    stages : int
        Stages of continuation from a coarse smoothing down to ``mu_final``; 0 or 1 means none.
    variation : float or None
        Its own stopping rule: a stage ends when the smoothed objective is, for the second time, this
        close (relatively) to the mean of its last ten values. None makes every stage last ``max_iter``.
    max_iter : int
        Limit of the iterations of a stage.
    report : int
        A stage yields an epoch, which the driver certifies, every so many iterations and at its end.

    References
    ----------
    S. Becker, J. Bobin, E. J. Candes, "NESTA: a fast and accurate first-order method for sparse
    recovery", SIAM Journal on Imaging Sciences 4 (2011).

    Departures
    ----------
    Iterates and stopping are those of the authors' version 1.1, which also counts the look at the
    objective that ends a stage as an iteration; here only steps count, so that there are exactly two
    projections for each. A start of zeros, the driver's default, stands for the original's least-norm
    solution of ``A x = y`` (where an operator has none, for the projection of zero); any other start is
    taken as it is. The first smoothing is never below ``mu_final``. Projections come from lopro: they
    need neither ``A A' = I`` nor a factorisation from the user. Weights are new.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import NESTA
    >>> f = lopro.objectives.L1Norm()
    >>> ball = lopro.constraints.ResidualBall(np.array([[2.0, 1.0]]), np.array([2.0]), sigma=1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=NESTA(1e-6, variation=1e-9), tol=1e-3)
    >>> result.success, round(result.fun, 2), result.counts.projections == 2 * result.iterations
    (True, 0.5, True)
    """

    card: ClassVar[Card] = Card(
        assumptions="l1 norm over a residual ball",
        oracles="slopes of the smoothed norm",
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
        check_number("mu_final", self.mu_final, minimum=0.0, exclusive=True)
        check_count("stages", self.stages, minimum=0)
        if self.variation is not None:
            check_number("variation", self.variation, minimum=0.0)
        check_count("max_iter", self.max_iter)
        check_count("report", self.report)

    def check(self, problem: Problem) -> None:
        f, c = problem.objective, problem.constraint
        if not (isinstance(f, L1Norm) and isinstance(c, ResidualBall)):
            raise MissingCapabilityError(
                f"NESTA minimises an L1Norm over a ResidualBall, got {f!r} over {c!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        reference = least_norm_solution(bench, x0)
        x = x0 if norm(x0) > 0.0 else reference
        coarsest = 0.9 * float(namespace(reference).max(abs(reference)))
        for mu, variation in self.continuation(coarsest):
            rule = SmallVariation(variation)
            state = State(x, x, 0.0 * x)
            reported = 0
            while state.k < self.max_iter and not rule.met(smoothed(bench, state.x, mu)):
                state = step(bench, state, mu)
                if not bench.tick():
                    break
                if state.k % self.report == 0 and state.k < self.max_iter:
                    reported = state.k
                    yield look(bench, state)
            if state.k > reported:
                yield look(bench, state)
            x = state.x

    def continuation(self, coarsest: float) -> list[tuple[float, float | None]]:
        """Return smoothing and variation of each stage: both fall geometrically.

        Examples
        --------
        >>> from lopro.methods.baselines import NESTA
        >>> [
        ...     f"{mu:.0e}, {variation:.0e}"
        ...     for mu, variation in NESTA(1e-2, 2, 1e-3).continuation(1.0)
        ... ]
        ['1e-01, 1e-02', '1e-02, 1e-03']
        """
        count = max(1, self.stages)
        first = max(coarsest, self.mu_final)

        def stage(part: float) -> tuple[float, float | None]:
            mu = first * (self.mu_final / first) ** part
            if self.variation is None:
                return mu, None
            return mu, COARSEST_VARIATION * (self.variation / COARSEST_VARIATION) ** part

        return [stage(part / count) for part in range(1, count)] + [(self.mu_final, self.variation)]


@dataclass(frozen=True)
class State:
    """Where a stage stands: the iterate, the centre of its prox function, the sum of slopes."""

    x: Array
    centre: Array
    w: Array
    k: int = 0
    #: The two points that were projected to get here, with their projections.
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
    """How much the slope of iteration ``k`` counts in the sum."""
    return (k + 1) / 2.0


def blend(k: int) -> float:
    """How much the far-sighted point counts in the next iterate."""
    return 2.0 / (k + 3)


def step(bench: Workbench, state: State, mu: float) -> State:
    """Make one iteration: two projections, and a convex combination of the points they give."""
    x, k = state.x, state.k
    u = slope(bench, x, mu)
    w = state.w + slope_weight(k) * u
    near, far = x - mu * u, state.centre - mu * w
    y, z = bench.project(near), bench.project(far)
    tau = blend(k)
    pairs = (near, y), (far, z)
    return State(tau * z + (1.0 - tau) * y, state.centre, w, k + 1, pairs)


class SmallVariation:
    """The stopping rule: the value has come close to the mean of the last ten, twice."""

    def __init__(self, variation: float | None) -> None:
        self.variation = variation
        # The leading zero is the original's; it keeps the first ten values from stopping a stage early.
        self._values = deque([0.0], maxlen=MEMORY)
        self._times = 0

    def met(self, value: float) -> bool:
        """Take the next value; return whether the stage is over."""
        if self.variation is None:
            return False
        mean = sum(self._values) / len(self._values)
        self._values.append(value)
        self._times += abs(value - mean) <= self.variation * mean
        return self._times >= 2


def look(bench: Workbench, state: State) -> Candidate:
    """Return the state as an epoch: feasible already, as a convex combination of projections."""
    with bench.observe():
        inequality = multiplier(bench, state)
    return Candidate(state.x, Multiplier(inequality))


def multiplier(bench: Workbench, state: State) -> ValidInequality:
    """Return the better of the multipliers of the last two projections.

    One belongs to the last slope of the smoothed norm, the other to the average of all slopes of the
    stage. Either may prove more.
    """
    fun = float(bench.objective.value(state.x))
    found = [_multiplier_of(bench, point, at) for point, at in state.projected]
    return max(found, key=lambda normal: lower_bound(bench.counted, state.x, normal, fun)[0])


def _multiplier_of(bench: Workbench, point: Array, projected: Array) -> ValidInequality:
    """Return the multiplier of a projection, scaled to the edge of the dual ball or beyond.

    Where sigma is positive it is a multiple of the residual. Where it is 0 there is no residual; then
    the step itself is ``A^H q`` for some ``q``, up to what rounding and the condition of A have done to it.
    """
    problem, (f, c) = bench.counted, _parts(bench)
    if c.sigma > 0.0:
        normal = c.valid_inequality(projected, 1.0)
    else:
        q, size = _behind(c, point - projected)
        # The rounding of the product, seen from the farthest point that matters, could flatter the bound.
        radius = solution_radius(problem, float(f.value(projected)))
        reach = norm(projected) if radius is None else radius.value
        noise = 8.0 * eps(point) * size * norm(q) * reach
        normal = ValidInequality(c.A.adjoint(q), c.support_image((q,)) + noise, (q,))
    length = norm(normal.direction)
    if length == 0.0:
        return normal
    # No element of the dual ball is longer than G, so at this length one of its bounds is touched.
    G = f.lipschitz()
    assert G is not None  # the problem has fixed the shape
    return normal.scaled(G.value / length)


def _behind(c: ResidualBall, step: Array) -> tuple[Array, float]:
    """Return ``q`` with ``A^H q`` near the step, and about the norm of A.

    Any ``q`` is a multiplier, so that none has to be exact; what A hardly sees of the step is left out, for a
    short ``q`` has less rounding in its product.
    """
    A, image = c.A, c.A.forward(step)
    if not A.explicit or isinstance(A, SparseMap) or c.tight_frame is not None:
        return _by_products(A, image)
    s, U = A.left_spectrum
    if s.shape[0] == 0:
        return 0.0 * image, 0.0
    seen = namespace(s).nonzero(s > SEEN * s[-1])[0]
    U, s = namespace(U).take(U, seen, axis=1), namespace(s).take(s, seen)
    return U @ (adjoint_product(U, image) / s), A.singular_range[0]


def _by_products(A: LinearMap, image: Array) -> tuple[Array, float]:
    """Return ``q`` with ``A A^H q`` near the image by some conjugate gradients, and about the norm of A."""
    q, r = 0.0 * image, image
    p, square, size = r, inner(r, r), 0.0
    for _ in range(PRODUCTS):
        if square <= SEEN * inner(image, image) or current_deadline().passed:
            break
        pulled = A.adjoint(p)
        along = inner(pulled, pulled)
        size = max(size, norm(pulled) / norm(p))
        if along == 0.0:
            break
        q, r = q + (square / along) * p, r - (square / along) * A.forward(pulled)
        square, before = inner(r, r), square
        p = r + (square / before) * p
    return q, size


def _parts(bench: Workbench) -> tuple[L1Norm, ResidualBall]:
    """Return objective and constraint as what `NESTA.check` has found them to be."""
    return cast(L1Norm, bench.problem.objective), cast(ResidualBall, bench.problem.constraint)


def least_norm_solution(bench: Workbench, x0: Array) -> Array:
    """Return the least-norm (least-squares) solution of ``A x = y``."""
    _, c = _parts(bench)
    if c.A.explicit and c.tight_frame is None:
        s, U = c.A.left_spectrum
        x = c.A.adjoint(U @ (adjoint_product(U, c.y) / s))
        return 0.0 * x0 + from_numpy(to_numpy(x), x0)
    try:
        return project_residual_ball(0.0 * x0, c.A, c.y, 0.0, tight_frame=c.tight_frame)
    except InfeasibleError:
        return bench.project(0.0 * x0)
