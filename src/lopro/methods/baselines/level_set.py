"""Frank-Wolfe on residual balls: the level-set method finds the root of the value function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopro.constraints import L1Ball
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, eps, inner, is_complex, namespace, norm
from lopro.core.counting import count
from lopro.core.validation import check_number
from lopro.driver.counted import CountedConstraint
from lopro.errors import MissingCapabilityError
from lopro.functions import Image, Linearization, MappedFunction
from lopro.maps import LinearMap
from lopro.methods.baselines.frank_wolfe_steps import (
    ActiveSet,
    LineSearch,
    PointWithImage,
    dual_gap,
    take_step,
)
from lopro.methods.baselines.l1_residual_ball import checked_parts, parts, scaled_to_dual_ball
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = ["LevelSetFrankWolfe", "NewtonStep", "newton_step"]


@dataclass(frozen=True)
class LevelSetFrankWolfe:
    r"""Root finding over the radius of an l1 ball; pairwise Frank-Wolfe steps on each ball.

    Problem: min ``|x|_1`` s.t. ``|A x - y| <= sigma``. A linear function has no minimiser on this set
    (unless A has full column rank), but it has on ``|x|_1 <= R``; so Frank-Wolfe minimises the residual
    there, and Newton's method finds the radius R at which ``phi(R) = min |A x - y|`` is sigma. Oracles: one
    product with A' per iteration, one column of A, a linear minimisation over the l1 ball, and one
    projection for each radius. Theorem: with the residual's length ``u`` and the lower bound
    ``l = <nu, y> - R |A' nu|_inf`` of phi(R) that any unit vector ``nu`` proves, a radius is replaced when
    ``u - sigma <= alpha (l - sigma)``, by the one at which the bound falls to sigma. Then all radii are
    lower bounds of the optimal value, they increase, and with slopes ``s = |A' nu|_inf`` consecutive radii
    obey ``(l+ - sigma) / (l - sigma) + s+ / s <= alpha``: the product of the two falls by ``(alpha / 2)^2``
    or more each time, so that an accuracy eps takes ``O(log_(2 / alpha) 1 / eps)`` radii.

    Parameters
    ----------
    alpha : float
        Ratio between 1 and 2 of the residual to its lower bound, both minus sigma, at which a radius is
        replaced: near 1 there are fewer radii, near 2 fewer steps for each. Four random problems of 40 x 100
        to 1e-5 take 559, 670 and 734 iterations and 23, 38 and 47 projections with 1.05, 1.5 and 1.95.

    References
    ----------
    E. van den Berg, M. P. Friedlander, "Probing the Pareto frontier for basis pursuit solutions", SIAM
    J. Scientific Computing 31 (2008); A. Y. Aravkin, J. V. Burke, D. Drusvyatskiy, M. P. Friedlander,
    S. Roy, "Level-set methods for convex optimization", Mathematical Programming 174 (2019).

    Departures
    ----------
    The subproblems are solved by pairwise Frank-Wolfe instead of spectral projected gradients. The
    points of a level-set method are only nearly feasible; here each radius ends with a projection on the
    residual ball, so that every point that is reported is feasible. Complex points take plain
    Frank-Wolfe steps. The start is not used.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> ball = lopro.constraints.ResidualBall(np.array([[2.0, 1.0]]), np.array([2.0]), sigma=1.0)
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), ball)
    >>> result = lopro.solve(problem, method=lopro.baselines.LevelSetFrankWolfe())
    >>> result.success, round(result.fun, 6)
    (True, 0.5)
    """

    card: ClassVar[Card] = Card(
        assumptions="l1 norm over a residual ball",
        oracles="products with A' and columns of A, linear minimisation over l1 balls",
        rate="O(log 1/eps) radii; linear or O(1/T) for each",
        projections="1 per radius",
        reference="van den Berg, Friedlander (2008); Aravkin et al. (Math. Prog. 2019)",
    )

    alpha: float = 1.5

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, minimum=1.0, maximum=2.0, exclusive=True)

    def check(self, problem: Problem) -> None:
        advice = "; use lopro.baselines.FrankWolfe() for smooth objectives over bounded sets, or lopro.Auto()"
        f, _ = checked_parts(problem, "LevelSetFrankWolfe", advice)
        unit = problem.start(None) + 1.0
        w = f.weights_like(abs(unit))
        if norm(w - f.least_weight) > 0.0 or f.least_weight == 0.0:
            raise MissingCapabilityError(
                "LevelSetFrankWolfe needs an L1Norm whose weights are all the same and positive: divide "
                "the columns of A by the weights, or use lopro.WorkingSet()"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        _, c = parts(bench.problem)
        y = c.y + 0.0 * c.A.forward(0.0 * x0)  # complex if A is
        if norm(y) <= c.sigma:
            yield candidate_at(bench, 0.0 * x0, 0.0 * x0)
            return
        f = Residual(c.A, y, 0.0)
        f.size = newton_step(c.A.adjoint(-y), -y, y, 0.0, c.sigma).following
        ball = CountedConstraint(L1Ball(c.A.shape[1]))
        z = ball.linear_minimizer(0.0 * x0 - c.A.adjoint(y))
        # The l1 ball of complex vectors has infinitely many extreme points: no active set.
        plain = is_complex(z)
        point = PointWithImage(f, z) if plain else ActiveSet(f, z, pairwise=True)
        yield from self._search(bench, f, ball, point)

    def _search(
        self, bench: Workbench, f: Residual, ball: Constraint, point: PointWithImage
    ) -> Candidates:
        """Step on the current ball; enlarge it when the lower bound is accurate enough."""
        sigma = parts(bench.problem)[1].sigma
        lower, witness, share, t = f.size, 0.0 * point.x, 1.0, 0
        while True:
            seen = dual_gap(f, ball, point)
            r = f.size * point.image[0] - f.y
            newton = newton_step(seen.g / f.size, r, f.y, f.size, sigma)
            if newton.following > lower:
                lower, witness = newton.following, f.size * point.x
            # The increase of the norm by the projection plus the distance to the lower bound estimates the
            # gap.
            missing = (newton.u - sigma) / newton.slope + f.size - lower
            settled = newton.u - sigma <= 8.0 * eps(point.x) * norm(f.y)
            enough = missing <= share * bench.target.gap(f.size)
            leave = newton.good_enough(self.alpha)
            if settled or enough or leave:
                point.recompute()
                yield candidate_at(bench, f.size * point.x, witness)
                # A subproblem solved to rounding error ends the search, unless its radius has to increase.
                if settled or (seen.gap <= seen.resolution and not leave):
                    return
                share *= 0.5 if enough else 1.0
            if leave:
                f.size = lower
            else:
                take_step(f, point, seen, LineSearch(), t)
            t += 1
            if not bench.tick():
                point.recompute()
                yield candidate_at(bench, f.size * point.x, witness)
                return


class Residual(MappedFunction):
    """``1/2 |size A z - y|^2`` on the unit ball: a larger radius leaves points and images unchanged."""

    def __init__(self, A: LinearMap, y: Array, size: float) -> None:
        self.A, self.y, self.size = A, y, size

    def image(self, x: Array) -> Image:
        return (self.A.forward(x),)

    def linearize_at(self, image: Image) -> Linearization:
        # The residual is the constraint's, and its oracle calls are counted as such.
        count("constraint_values")
        r = self.size * image[0] - self.y

        def gradient() -> Array:
            count("constraint_gradients")
            return self.size * self.A.adjoint(r)

        return 0.5 * inner(r, r), gradient


@dataclass(frozen=True)
class NewtonStep:
    """The bound of a residual: ``phi(R') >= lower - slope (R' - R)`` for every radius ``R'``."""

    u: float  # |A x - y|, at least phi(R)
    lower: float
    slope: float
    radius: float
    sigma: float

    @property
    def following(self) -> float:
        """The radius at which the bound falls to sigma; no feasible point has a smaller norm."""
        return self.radius + (self.lower - self.sigma) / self.slope

    def good_enough(self, alpha: float) -> bool:
        """Whether the bound is above sigma and within the factor of the residual."""
        return 0.0 < self.u - self.sigma <= alpha * (self.lower - self.sigma)


def newton_step(Ar: Array, r: Array, y: Array, radius: float, sigma: float) -> NewtonStep:
    """Return the Newton step for the residual ``r = A x - y`` of a point in the ball, and ``Ar = A' r``."""
    xp, u = namespace(Ar), norm(r)
    slope = float(xp.max(xp.abs(Ar))) / u
    return NewtonStep(u, -inner(r, y) / u - radius * slope, slope, radius, sigma)


def candidate_at(bench: Workbench, x: Array, witness: Array) -> Candidate:
    """Project ``x``; the multiplier is the residual of ``witness``, scaled to the norm G of the dual ball."""
    f, c = parts(bench.problem)
    with bench.observe():
        normal = c.valid_inequality(witness, 1.0)
        if norm(x) == 0.0 or norm(normal.direction) == 0.0:
            normal = ValidInequality.trivial(x)  # x = 0 is feasible, hence optimal
        else:
            normal = scaled_to_dual_ball(f, normal)
    return Candidate(bench.project(x), Multiplier(normal), before=x)
