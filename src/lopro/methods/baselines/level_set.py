"""Frank-Wolfe on residual balls: the level-set method turns the problem around and searches a root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from lopro.constraints import L1Ball, ResidualBall
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, eps, inner, is_complex, namespace, norm
from lopro.core.counting import count
from lopro.core.validation import check_number
from lopro.driver.counted import CountedConstraint
from lopro.errors import MissingCapabilityError
from lopro.functions import Image, Linearization, MappedFunction
from lopro.maps import LinearMap
from lopro.methods.baselines.frank_wolfe_steps import LineSearch
from lopro.methods.baselines.frank_wolfe_walk import (
    ActiveSet,
    Segment,
    Walker,
    look_around,
    take_step,
)
from lopro.objectives import L1Norm
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = ["LevelSetFrankWolfe", "NewtonStep", "newton_step"]


@dataclass(frozen=True)
class LevelSetFrankWolfe:
    r"""Root finding over l1 balls, each of them searched by pairwise Frank-Wolfe steps.

    Problem: min ``|x|_1`` s.t. ``|A x - y| <= sigma``. A linear function has no minimiser on this set
    (unless A has full column rank), but it has on ``|x|_1 <= R``; so Frank-Wolfe minimises the residual
    there, and Newton's method looks for the radius R at which ``phi(R) = min |A x - y|`` is sigma.
    Oracles: one product with A' per iteration, one column of A, a linear minimisation over the l1
    ball, and one projection for each radius. Theorem: with the residual's length ``u`` and the lower bound
    ``l = <nu, y> - R |A' nu|_inf`` of phi(R) that any unit vector ``nu`` proves, a radius is left when
    ``u - sigma <= alpha (l - sigma)``, to where the bound falls to sigma. Then all radii are lower bounds
    of the optimal value, they increase, and with slopes ``s = |A' nu|_inf`` consecutive radii obey
    ``(l+ - sigma) / (l - sigma) + s+ / s <= alpha``: the product of the two falls by ``(alpha / 2)^2`` or
    more each time, so that an accuracy eps takes ``O(log_(2 / alpha) 1 / eps)`` radii.

    Parameters
    ----------
    alpha : float
        How far, in the range from 1 to 2, the residual may be above its lower bound when a radius is
        left: near 1 there are fewer radii, near 2 fewer steps for each.

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
    Frank-Wolfe steps. A start is not used.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import LevelSetFrankWolfe
    >>> ball = lopro.constraints.ResidualBall(np.array([[2.0, 1.0]]), np.array([2.0]), sigma=1.0)
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), ball)
    >>> result = lopro.solve(problem, method=LevelSetFrankWolfe())
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
        f, c = problem.objective, problem.constraint
        if not (isinstance(f, L1Norm) and isinstance(c, ResidualBall)):
            raise MissingCapabilityError(
                f"LevelSetFrankWolfe minimises an L1Norm over a ResidualBall, got {f!r} over {c!r}; use "
                "lopro.baselines.FrankWolfe() for smooth objectives over bounded sets, or lopro.Auto()"
            )
        unit = problem.start(None) + 1.0
        w = f.weights_like(abs(unit))
        if norm(w - f.least_weight) > 0.0 or f.least_weight == 0.0:
            raise MissingCapabilityError(
                "LevelSetFrankWolfe needs an L1Norm whose weights are all the same and positive: divide "
                "the columns of A by the weights, or use lopro.WorkingSet()"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        c = cast(ResidualBall, bench.problem.constraint)
        y = c.y + 0.0 * c.A.forward(0.0 * x0)  # complex if A is
        if norm(y) <= c.sigma:
            yield candidate_at(bench, 0.0 * x0, 0.0 * x0)
            return
        f = Residual(c.A, y, 0.0)
        f.size = newton_step(c.A, -y, y, 0.0, c.sigma).following
        ball = CountedConstraint(L1Ball(c.A.shape[1]))
        z = ball.linear_minimizer(0.0 * x0 - c.A.adjoint(y))
        # Complex vectors have a circle of vertices for each axis: there is no set of them to keep.
        plain = is_complex(z)
        walker = Segment(f, z) if plain else ActiveSet(f, z, pairwise=True)
        yield from self._search(bench, f, ball, walker)

    def _search(
        self, bench: Workbench, f: Residual, ball: Constraint, walker: Walker
    ) -> Candidates:
        """Step on the present ball; enlarge it when its root bound is good enough."""
        sigma = cast(ResidualBall, bench.problem.constraint).sigma
        lower, witness, patience, t = f.size, 0.0 * walker.x, 1.0, 0
        while True:
            seen = look_around(f, ball, walker)
            newton = newton_from(seen.g, f, walker.image, sigma)
            if newton.following > lower:
                lower, witness = newton.following, f.size * walker.x
            # What the projection will have to add, and what the lower bound is short of.
            missing = (newton.u - sigma) / newton.slope + f.size - lower
            settled = newton.u - sigma <= 8.0 * eps(walker.x) * norm(f.y)
            enough = missing <= patience * bench.target.gap(f.size)
            leave = newton.good_enough(self.alpha)
            if settled or enough or leave:
                walker.gather()
                yield candidate_at(bench, f.size * walker.x, witness)
                # A subproblem solved to rounding ends the search, unless its radius has to grow.
                if settled or (seen.gap <= seen.resolution and not leave):
                    return
                patience *= 0.5 if enough else 1.0
            if leave:
                f.size = lower
            else:
                take_step(f, walker, seen, LineSearch(), t)
            t += 1
            if not bench.tick():
                walker.gather()
                yield candidate_at(bench, f.size * walker.x, witness)
                return


class Residual(MappedFunction):
    """``1/2 |size A z - y|^2`` on the unit ball: a larger ball leaves points and images as they are."""

    def __init__(self, A: LinearMap, y: Array, size: float) -> None:
        self.A, self.y, self.size = A, y, size

    def image(self, x: Array) -> Image:
        return (self.A.forward(x),)

    def linearize_at(self, image: Image) -> Linearization:
        # The residual is a part of the constraint, and its oracle calls count as such.
        count("constraint_values")
        r = self.size * image[0] - self.y

        def gradient() -> Array:
            count("constraint_gradients")
            return self.size * self.A.adjoint(r)

        return 0.5 * inner(r, r), gradient


@dataclass(frozen=True)
class NewtonStep:
    """What a residual proves: ``phi(R') >= lower - slope (R' - R)`` for every radius ``R'``."""

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


def newton_step(A: LinearMap, r: Array, y: Array, radius: float, sigma: float) -> NewtonStep:
    """Return the step that the residual ``r = A x - y`` of a point in the ball of this radius gives.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.methods.baselines.level_set import newton_step
    >>> from lopro.maps import linear_map
    >>> y = np.array([2.0])
    >>> newton_step(linear_map(np.array([[2.0, 1.0]])), -y, y, 0.0, sigma=1.0).following
    0.5
    """
    return _step(A.adjoint(r), r, y, radius, sigma)


def newton_from(g: Array, f: Residual, image: Image, sigma: float) -> NewtonStep:
    """Return the step from the gradient that Frank-Wolfe has computed already."""
    return _step(g / f.size, f.size * image[0] - f.y, f.y, f.size, sigma)


def _step(Ar: Array, r: Array, y: Array, radius: float, sigma: float) -> NewtonStep:
    xp, u = namespace(Ar), norm(r)
    slope = float(xp.max(xp.abs(Ar))) / u
    return NewtonStep(u, -inner(r, y) / u - radius * slope, slope, radius, sigma)


def candidate_at(bench: Workbench, x: Array, witness: Array) -> Candidate:
    """Project ``x``; the multiplier is the residual of the witness, long enough to be scaled down."""
    f, c = cast(L1Norm, bench.problem.objective), cast(ResidualBall, bench.problem.constraint)
    with bench.observe():
        normal = c.valid_inequality(witness, 1.0)
        length = norm(normal.direction)
        if norm(x) == 0.0 or length == 0.0:
            normal = ValidInequality.trivial(x)  # zero is feasible, and nothing is shorter
        else:
            G = f.lipschitz()
            assert G is not None  # the problem has fixed the shape
            normal = normal.scaled(G.value / length)
    return Candidate(bench.project(x), Multiplier(normal), before=x)
