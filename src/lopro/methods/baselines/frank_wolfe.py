"""Frank-Wolfe methods: no projections, and a dual gap in every iteration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_fields, check_offers
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines.frank_wolfe_steps import (
    ActiveSet,
    LineSearch,
    OpenLoop,
    PointWithImage,
    ShortStep,
    iterate,
)
from lopro.methods.setting import is_feasible
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["AwayStepFrankWolfe", "FrankWolfe", "PairwiseFrankWolfe"]


class _FrankWolfe:
    """Base of the three methods: their checks, and the iteration from a first point."""

    step: LineSearch | ShortStep | OpenLoop
    report: int

    def __post_init__(self) -> None:
        check_offers("step", self.step, "check", "size")
        check_fields(self, counts=("report",))

    def check(self, problem: Problem) -> None:
        need_linear_minimizer(problem)
        self.step.check(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        yield from iterate(bench, self.start(bench, x0), self.step, self.report)

    def start(self, bench: Workbench, x0: Array) -> PointWithImage:
        """Return the first point."""
        raise NotImplementedError


@dataclass(frozen=True)
class FrankWolfe(_FrankWolfe):
    """The Frank-Wolfe (conditional gradient) method.

    Problem: min f over a bounded set, f smooth. Oracles: one gradient and one linear minimisation over
    the set per iteration, ``s = argmin <grad f(x), z>``, then ``x + gamma (s - x)``; no projection.
    Theorem: with the curvature ``C_f <= L diam^2`` and any of the step rules,
    ``f(x_t) - f_* <= 2 C_f / (t + 2)`` for t >= 1, and the least dual gap ``<grad f(x), x - s>`` of the
    first t iterates is at most ``6.75 C_f / (t + 2)``. The gap bounds ``f(x) - f_*`` at every point: it is
    the certificate. After t steps from a vertex the iterate is a convex combination of at most t + 1
    vertices.

    Parameters
    ----------
    step : LineSearch, ShortStep or OpenLoop
        The minimiser along the segment, the minimiser of the quadratic bound, or ``2 / (t + 2)``.
    report : int
        Number of iterations between two points that the driver certifies; a point with a small gap is
        certified immediately.

    References
    ----------
    M. Frank, P. Wolfe, "An algorithm for quadratic programming", Naval Research Logistics Quarterly 3
    (1956); M. Jaggi, "Revisiting Frank-Wolfe: projection-free sparse convex optimization", ICML 2013.

    Departures
    ----------
    An infeasible start is replaced by the vertex that minimises the linear function of the gradient there.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.SquaredDistance(np.array([0.6, 0.8, -1.0]))
    >>> problem = lopro.Problem(f, lopro.constraints.Simplex(3))
    >>> result = lopro.solve(problem, method=lopro.baselines.FrankWolfe(), tol=1e-6)
    >>> result.success, result.x.round(3), result.counts.projections
    (True, array([0.4, 0.6, 0. ]), 0)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth, set bounded with easy linear minimisation",
        oracles="gradient and linear minimisation over the set",
        rate="2 C_f / (T + 2), C_f <= L diam^2",
        projections="none; 1 linear minimisation per iteration",
        reference="Frank, Wolfe (1956); Jaggi (ICML 2013)",
    )

    step: LineSearch | ShortStep | OpenLoop = LineSearch()
    report: int = 100

    def start(self, bench: Workbench, x0: Array) -> PointWithImage:
        return PointWithImage(bench.objective, feasible_or_vertex(bench, x0))


@dataclass(frozen=True)
class AwayStepFrankWolfe(_FrankWolfe):
    """Frank-Wolfe with away steps, which remove weight from a vertex: linear convergence on polytopes.

    Problem: min f over a polytope, f smooth. Oracles: one gradient and one linear minimisation per
    iteration; the iterate is kept as a convex combination of vertices. The step goes towards the best vertex
    or away from the worst one in the combination, whichever descends more steeply. Theorem: for a
    mu-strongly convex f on a polytope of diameter M and pyramidal width delta, every step that does
    not drop a vertex multiplies ``f(x) - f_*`` by at most ``1 - rho``, ``rho = mu delta^2 / (4 L M^2)``, and
    at most half of the steps drop one.

    Parameters
    ----------
    step : LineSearch or ShortStep
        The step size rule.
    report : int
        As for `FrankWolfe`.

    References
    ----------
    J. Guelat, P. Marcotte, "Some comments on Wolfe's away step", Mathematical Programming 35 (1986);
    S. Lacoste-Julien, M. Jaggi, "On the global linear convergence of Frank-Wolfe optimization
    variants", NIPS 2015.

    Departures
    ----------
    The start is the vertex that minimises ``<grad f(x0), .>``, because the vertices of another point are not
    known. Vertices that agree in nine digits are treated as equal.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.SquaredDistance(np.array([0.6, 0.8, -1.0]))
    >>> problem = lopro.Problem(f, lopro.constraints.L1Ball(3))
    >>> result = lopro.solve(problem, method=lopro.baselines.AwayStepFrankWolfe(), tol=1e-9)
    >>> result.success, result.x.round(6), result.counts.projections
    (True, array([ 0.133333,  0.333333, -0.533333]), 0)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth, polytope with easy linear minimisation",
        oracles="gradient and linear minimisation over the set",
        rate="linear for strongly convex f, else O(1/T)",
        projections="none; 1 linear minimisation per iteration, 1 to start",
        reference="Guelat, Marcotte (1986); Lacoste-Julien, Jaggi (NIPS 2015)",
    )

    step: LineSearch | ShortStep = LineSearch()
    report: int = 100

    #: Whether each step moves weight from the worst vertex to the best one.
    _pairwise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.step, OpenLoop):
            raise TypeError(
                "step must be LineSearch() or ShortStep(): away steps need a descent step"
            )

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if not problem.constraint.has_vertices:
            raise MissingCapabilityError(
                f"{type(self).__name__} needs a polytope, and {problem.constraint!r} has infinitely many "
                "extreme points; use lopro.baselines.FrankWolfe()"
            )

    def start(self, bench: Workbench, x0: Array) -> PointWithImage:
        return ActiveSet(bench.objective, first_vertex(bench, x0), pairwise=self._pairwise)


@dataclass(frozen=True)
class PairwiseFrankWolfe(AwayStepFrankWolfe):
    """Pairwise Frank-Wolfe: each step moves weight from the worst active vertex to the best vertex.

    Problem, oracles and parameters are those of `AwayStepFrankWolfe`. Theorem: every step that is not
    truncated at the weight of the worst vertex multiplies ``f(x) - f_*`` by at most ``1 - rho``,
    ``rho = min(1/2, mu delta^2 / (L M^2))``; the number of truncated steps in between is bounded, but only by
    ``3 |A|!`` for ``|A|`` vertices. In practice it is the fastest of the three.
    """

    card: ClassVar[Card] = replace(
        AwayStepFrankWolfe.card,
        rate="linear for strongly convex f (up to swap steps), else O(1/T)",
        reference="Lacoste-Julien, Jaggi (NIPS 2015)",
    )

    _pairwise: ClassVar[bool] = True


def need_linear_minimizer(problem: Problem) -> None:
    """Raise unless the objective is smooth and the set has a linear minimiser."""
    f, c = problem.objective, problem.constraint
    if not f.smooth:
        raise MissingCapabilityError(
            f"Frank-Wolfe methods need a smooth objective, and {type(f).__name__} is not; smooth it, or "
            "use a method for subgradients such as lopro.LoPGD()"
        )
    if not c.has_linear_minimizer:
        raise MissingCapabilityError(
            f"Frank-Wolfe methods need a bounded set with a linear_minimizer (L1Ball, Simplex, "
            f"Spectrahedron, bounded boxes and polyhedra), got {c!r}; for an l1 norm over a residual ball "
            "use lopro.baselines.LevelSetFrankWolfe(), otherwise lopro.Auto()"
        )


def feasible_or_vertex(bench: Workbench, x: Array) -> Array:
    """Return ``x`` if it is feasible, else the vertex of `first_vertex`, without a projection."""
    return x if is_feasible(bench, x) else first_vertex(bench, x)


def first_vertex(bench: Workbench, x: Array) -> Array:
    """Return the minimiser of ``<grad f(x), .>`` over the set: one gradient, one linear minimisation."""
    return bench.constraint.linear_minimizer(bench.objective.subgradient(x))
