"""One experiment per rate: runs on problems with a known optimum, each beside its bound.

Corollaries and theorems are the paper's; C1', P3 and P4 are the sharper results of docs/theory.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import lopro
from lopro.core.arrays import Array
from lopro.driver.result import Result
from lopro.functions import Ball
from lopro.methods import LoPGD, LoPNAG, OneProjection
from lopro.methods.paper.theorems import Theorem2, Theorem3
from lopro.methods.theory import ProblemConstants, constants_of
from lopro.penalties import Softplus
from lopro.solving import solve
from paper.experiments.known import Known, distance_to_ellipsoid, half_space, linear_on_ellipsoid

__all__ = ["Curve", "Rates", "measure_rates", "slope"]


@dataclass
class Curve:
    """Measured errors ``f(x) - f_*`` against iterations, with what the theorem promises."""

    label: str
    iterations: list[int] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    bound: list[float] = field(default_factory=list)
    projections: list[int] = field(default_factory=list)
    #: The required accuracy, where the schedule takes one, and the error of the start.
    eps: list[float] = field(default_factory=list)
    eps0: float = math.nan

    def add(self, known: Known, result: Result, bound: float) -> None:
        """Add the outcome of a run; a bound that is exceeded ends the experiment."""
        error = known.error(result)
        if error > bound:
            raise AssertionError(f"{self.label}: error {error:g} exceeds the bound {bound:g}")
        self.iterations.append(result.iterations)
        self.error.append(error)
        self.bound.append(bound)
        self.projections.append(result.counts.projections)


@dataclass(frozen=True)
class Rates:
    """The curves of all rates."""

    corollary_1: list[Curve]
    corollary_2a: list[Curve]
    corollary_2b: list[Curve]
    #: One run, recorded after every epoch; and one run for each accuracy.
    theorem_2_sharp: Curve
    theorem_2_counts: Curve
    theorem_2_curved: Curve
    theorem_3_curved: Curve
    #: Projections of `Auto` for certified gaps, given in halvings of the first error.
    auto: tuple[list[float], list[int]]

    @property
    def curves(self) -> list[Curve]:
        """All curves that have a bound."""
        one = [*self.corollary_1, *self.corollary_2a, *self.corollary_2b]
        several = [self.theorem_2_sharp, self.theorem_2_counts]
        return [*one, *several, self.theorem_2_curved, self.theorem_3_curved]


def measure_rates(quick: bool = False, say: Callable[[str], Any] | None = None) -> Rates:
    """Measure all rates; an error above its bound ends the run.

    Parameters
    ----------
    quick : bool
        Shorter curves.
    say : callable, optional
        Called with the name of what runs next.

    Examples
    --------
    >>> from paper.experiments.rates import measure_rates
    >>> rates = measure_rates(quick=True)
    >>> all(e <= b for c in rates.curves for e, b in zip(c.error, c.bound, strict=True))
    True
    """
    tell = say or (lambda line: None)
    last, deep = (1000, 4) if quick else (10000, 8)
    tell("one projection")
    one = corollary_1(last), corollary_2a(last), corollary_2b(3 * last)
    tell("Theorem 2, sharp minimum")
    sharp = theorem_2_sharp(1e-3 if quick else 1e-9)
    counts = theorem_2_sharp_runs(range(3, 13 if quick else 28, 3))
    tell("Theorems 2 and 3, curved minimum")
    curved, smooth = theorem_2_curved(range(1, deep)), theorem_3_curved(range(1, 2 * deep))
    tell("Auto, by certified gap")
    auto = auto_projections(range(2, 31, 2))
    return Rates(*one, sharp, counts, curved, smooth, auto)


def slope(iterations: Sequence[int], error: Sequence[float]) -> float:
    """Return the slope on logarithmic axes over the second half.

    Examples
    --------
    >>> from paper.experiments.rates import slope
    >>> round(slope([1, 10, 100, 1000], [1.0, 1e-2, 1e-4, 1e-6]), 6)
    -2.0
    """
    half = len(error) // 2
    x, y = np.log(iterations[half:]), np.log(np.maximum(error[half:], 1e-300))
    return float(np.polyfit(x, y, 1)[0])


def horizons(first: int, last: int, count: int) -> list[int]:
    """Return iteration numbers that are even on a logarithmic axis."""
    return [round(t) for t in np.geomspace(first, last, count)]


def one_projection(
    label: str, known: Known, horizons: Iterable[int], method: Callable[[int], OneProjection]
) -> Curve:
    """Run a one-projection method for several horizons, each with parameters of its own."""
    curve = Curve(label)
    for T in horizons:
        chosen = method(T)
        result = solve(known.problem, known.x0, chosen, tol=0)
        bound = chosen.claim.gap if chosen.claim else linear_rate_bound(known, chosen)
        curve.add(known, result, bound)
    return curve


def linear_rate_bound(known: Known, method: OneProjection) -> float:
    """Return ``C gamma + B_T`` with the linear rate of Prop 2, for ``z = x_*``."""
    h: Any = method.penalty
    inner: Any = method.inner
    assert isinstance(h, Softplus)
    f, c = known.problem.objective, known.problem.constraint

    def F(x: Array) -> float:
        return float(f.value(x) + h.phi(c.value(x)))

    mu, L = inner.momentum.mu, inner.step_rule.L
    start = F(known.x0) - F(known.x_star) + 0.5 * mu * known.distance**2
    return float(h.above + (1.0 - math.sqrt(mu / L)) ** method.iterations * start)


def corollary_1(last: int) -> list[Curve]:
    """Strongly convex f, hinge: the error falls like 1/T."""
    known = distance_to_ellipsoid(squared=False)
    ball = lopro.theorems.solution_ball(known.problem, known.x0)
    constants = constants_of(known.problem, ball)
    Ts = horizons(10, last, 13)
    return [
        one_projection(
            "Cor 1, suffix average",
            known,
            Ts,
            lambda T: lopro.theorems.corollary_1(constants, T, ball=ball),
        ),
        one_projection(
            "C1', weights t",
            known,
            Ts,
            lambda T: lopro.theorems.weighted_average(constants, T, ball),
        ),
    ]


def corollary_2a(last: int) -> list[Curve]:
    """Smooth f and c: the error falls like 1/T."""
    known = linear_on_ellipsoid()
    constants = constants_of(known.problem)
    Ts = horizons(10, last, 13)

    def method(T: int, quadratic: bool) -> OneProjection:
        return lopro.theorems.corollary_2a(constants, T, known.distance, quadratic=quadratic)

    return [
        one_projection("softplus", known, Ts, lambda T: method(T, False)),
        one_projection("quadratic hinge (P3)", known, Ts, lambda T: method(T, True)),
    ]


def corollary_2b(last: int) -> list[Curve]:
    """Smooth, strongly convex f: printed smoothing against the balanced one of P4."""
    known = distance_to_ellipsoid()
    # G is needed on the set only, which is in the unit ball; c is not Lipschitz, so P2 applies.
    on_set = constants_of(known.problem, Ball(np.zeros(len(known.x0)), 1.0))
    constants = replace(on_set, Gc=math.inf)

    def printed(alpha: float) -> Curve:
        return one_projection(
            f"Cor 2b, α = {alpha}",
            known,
            horizons(100, last, 11),
            lambda T: lopro.theorems.corollary_2b(constants, T, alpha),
        )

    balanced = one_projection(
        "P4",
        known,
        horizons(_first_horizon(constants), last, 9),
        lambda T: lopro.theorems.balanced(constants, T),
    )
    return [*map(printed, (0.9, 0.75, 0.6)), balanced]


def _first_horizon(constants: ProblemConstants) -> int:
    """Return a horizon from which on P4 applies with a margin."""
    base, T = 2.0 * constants.base_smoothness(constants.weight), 10
    while constants.mu * T**2 / (16.0 * math.log(T) ** 2) < base:
        T += 10
    return T


def theorem_2_sharp(eps: float) -> Curve:
    """LoPGD on a sharp problem: every epoch halves the error at the same cost."""
    known = half_space()
    schedule = Theorem2(constants_of(known.problem), known.eps0, eps, known.sigma, 1.0)
    result = solve(known.problem, known.x0, LoPGD(schedule), tol=0)
    curve = Curve("LoPGD, epochs")
    for row in result.history:
        k = row["epoch"]
        curve.iterations.append(row["iterations"])
        curve.error.append(row["fun"] - known.f_star)
        curve.bound.append(known.eps0 / 2.0**k + eps)
        curve.projections.append(row["projections"])
        assert curve.error[-1] <= curve.bound[-1], f"the invariant of Theorem 2 fails at k = {k}"
    return curve


def theorem_2_sharp_runs(halvings: Iterable[int]) -> Curve:
    """LoPGD on the same problem, one run for each accuracy: the number of projections."""
    known = half_space()
    constants = constants_of(known.problem)
    return error_bound_runs(
        "LoPGD, θ = 1",
        known,
        halvings,
        lambda e: LoPGD(Theorem2(constants, known.eps0, e, known.sigma, 1.0)),
    )


def error_bound_runs(
    label: str, known: Known, halvings: Iterable[int], method: Callable[[float], LoPGD | LoPNAG]
) -> Curve:
    """Run a theorem's schedule for several accuracies ``eps0 / 2^k``."""
    curve = Curve(label, eps0=known.eps0)
    for k in halvings:
        target = known.eps0 / 2.0**k
        result = solve(known.problem, known.x0, method(target), tol=0)
        curve.add(known, result, 2.0 * target)
        curve.eps.append(target)
    return curve


def theorem_2_curved(halvings: Iterable[int]) -> Curve:
    """LoPGD with theta = 1/2: epochs grow like 1/eps."""
    known = linear_on_ellipsoid(squared=False)
    constants = constants_of(known.problem)
    return error_bound_runs(
        "LoPGD, θ = 1/2",
        known,
        halvings,
        lambda e: LoPGD(Theorem2(constants, known.eps0, e, known.sigma, 0.5)),
    )


def theorem_3_curved(halvings: Iterable[int]) -> Curve:
    """LoPNAG with theta = 1/2: epochs grow like 1/sqrt(eps)."""
    known = linear_on_ellipsoid()
    constants = constants_of(known.problem)
    return error_bound_runs(
        "LoPNAG, θ = 1/2",
        known,
        halvings,
        lambda e: LoPNAG(Theorem3(constants, known.eps0, e, known.sigma, 0.5)),
    )


def auto_projections(halvings: Iterable[int]) -> tuple[list[float], list[int]]:
    """Return certified gaps, as halvings of eps0, and the projections that Auto needs for them."""
    known = linear_on_ellipsoid()
    asked, counts = [], []
    for k in halvings:
        # |f| is below 1 here, so relative and absolute gaps are the same.
        result = solve(known.problem, known.x0, tol=known.eps0 / 2.0**k)
        if not result.success:
            raise AssertionError(f"Auto did not certify 2^-{k} eps0: {result.message}")
        asked.append(float(k))
        counts.append(result.counts.projections)
    return asked, counts
