"""Runs of methods on a problem, with the same budget and the same counters."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import lopro
from benchmarks.compare.methods import Method, methods_for
from benchmarks.compare.problems import Instance
from lopro.core.deadline import using_clock
from lopro.errors import MissingCapabilityError

__all__ = ["FEASIBLE", "Curve", "Limits", "Point", "Reference", "measure", "refer", "run_all"]

#: Relative violation up to which a point counts as feasible, as for lopro itself in double precision.
FEASIBLE = 1e-9


@dataclass(frozen=True)
class Limits:
    """The budget of every run, and the numbers of iterations for methods that need them in advance."""

    seconds: float = 3.0
    max_iter: int | None = None
    tol: float = 1e-9
    first_horizon: int = 100
    growth: int = 4


@dataclass(frozen=True)
class Point:
    """The best feasible point up to some time; ``certified`` is the proved gap, not relative."""

    seconds: float
    iterations: int
    gradients: float  # of f, in units of a full gradient
    constraint_gradients: int
    proxes: int
    projections: int
    linear_minimizations: int
    fun: float
    certified: float

    @property
    def first_order(self) -> float:
        """Gradients of f and c, and proxes."""
        return self.gradients + self.constraint_gradients + self.proxes

    @property
    def projected(self) -> int:
        """Projections; for Frank-Wolfe methods the linear minimisations that replace them."""
        return self.projections + self.linear_minimizations


@dataclass(frozen=True)
class Curve:
    """The points of a method on a problem, or the reason why it does not apply."""

    method: str
    family: str
    horizon: bool = False
    points: list[Point] = field(default_factory=list)
    status: str = ""
    violation: float = math.nan
    lower_bound: float = -math.inf
    refused: str | None = None
    failed: str | None = None

    @property
    def best(self) -> Point:
        """The point with the least value, at the time it was found."""
        return min(self.points, key=lambda point: point.fun)

    @property
    def certified(self) -> float:
        """The least gap that was proved."""
        return min(point.certified for point in self.points)


@dataclass(frozen=True)
class Reference:
    """The least known value, the largest lower bound, and the methods that found them."""

    fun: float
    lower_bound: float
    found_by: str
    proved_by: str

    def gap(self, fun: float) -> float:
        """Return the relative difference of a value and the reference."""
        return self.relative(fun - self.fun)

    def relative(self, gap: float) -> float:
        """Return a gap relative to the reference value."""
        return gap / abs(self.fun)

    @property
    def certified(self) -> float:
        """The relative distance of value and bound."""
        return self.relative(self.fun - self.lower_bound)

    def improved_by(self, curves: Sequence[Curve]) -> Reference:
        """Return the reference improved by the values and bounds of the runs."""
        runs = [curve for curve in curves if curve.points and curve.violation <= FEASIBLE]
        values = [(self.fun, self.found_by), *((run.best.fun, run.method) for run in runs)]
        bounds = [(self.lower_bound, self.proved_by), *((r.lower_bound, r.method) for r in runs)]
        (fun, found_by), (lower, proved_by) = min(values), max(bounds)
        return Reference(fun, lower, found_by, proved_by)


def refer(instance: Instance, seconds: float) -> Reference:
    """Solve the problem by the default method, with more time and a smaller tolerance than in the runs."""
    with using_clock(time.process_time):  # other processes do not count
        found = lopro.solve(instance.problem, tol=1e-12, time_limit=seconds)
    lower = found.certificate.lower_bound
    return Reference(found.fun, lower, "Auto", "Auto")


def run_all(
    instance: Instance,
    limits: Limits,
    names: Sequence[str] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[Curve]:
    """Run every method that applies; for the others, record the reason why not."""
    curves = []
    for method in methods_for(instance):
        if names is None or method.name in names:
            say(f"{instance.name}: {method.name}")
            curves.append(measure(instance, method, limits))
    return curves


def measure(instance: Instance, method: Method, limits: Limits) -> Curve:
    """Return the curve of one method; a failure is recorded, so that the others still run."""
    blank = Curve(method.name, method.family, method.horizon)
    try:
        runs = _with_growing_horizons if method.horizon else _once
        with using_clock(time.process_time):  # other processes do not count
            return runs(instance, method, limits, blank)
    except MissingCapabilityError as error:
        return dataclasses.replace(blank, refused=str(error))
    except Exception as error:
        return dataclasses.replace(blank, failed=f"{type(error).__name__}: {error}")


def _once(instance: Instance, method: Method, limits: Limits, blank: Curve) -> Curve:
    return _watched(instance, method, method.make(limits.first_horizon), limits, blank)


def _with_growing_horizons(
    instance: Instance, method: Method, limits: Limits, blank: Curve
) -> Curve:
    """Run separately for each horizon, as long as the next run is expected to end in time."""
    T, curve = limits.first_horizon, blank
    points: list[Point] = []
    while True:
        curve = _watched(instance, method, method.make(T), limits, blank)
        points += curve.points
        too_long = limits.growth * curve.points[-1].seconds > limits.seconds
        if too_long or (limits.max_iter is not None and limits.max_iter <= T):
            return dataclasses.replace(curve, points=points)
        T *= limits.growth


def _watched(
    instance: Instance, method: Method, scheme: Any, limits: Limits, blank: Curve
) -> Curve:
    """Run a method, and record its counters after every epoch."""
    run = lopro.iterate(
        instance.problem,
        method=scheme,
        tol=limits.tol,
        max_iter=limits.max_iter,
        time_limit=limits.seconds,
        seed=0,
    )
    share = instance.sampled if method.stochastic and instance.sampled else 1.0
    points, least = [], math.inf
    for state in _before_work(run):
        least = min(least, state.fun)
        points.append(_point(run.counts, state, least, share))
    result = run.result()
    if not points:
        final = result.seconds, result.iterations, result.fun, result.certificate.gap
        points.append(_final(run.counts, *final, share))
    return dataclasses.replace(
        blank,
        points=points,
        status=result.status.name,
        violation=result.certificate.violation,
        lower_bound=result.certificate.lower_bound,
    )


def _before_work(run: Any) -> Any:
    """Yield from the run; a missing capability that is noticed after work has begun is an error."""
    try:
        yield from run
    except MissingCapabilityError as error:
        if run.counts.gradients + run.counts.projections > 0:
            raise RuntimeError(f"refused midway: {error}") from error
        raise


def _point(counts: Any, state: Any, least: float, share: float) -> Point:
    return _final(counts, state.seconds, state.iterations, least, state.gap, share)


def _final(
    counts: Any, seconds: float, iterations: int, fun: float, certified: float, share: float
) -> Point:
    return Point(
        seconds=seconds,
        iterations=iterations,
        gradients=share * counts.gradients,
        constraint_gradients=counts.constraint_gradients,
        proxes=counts.proxes,
        projections=counts.projections,
        linear_minimizations=counts.linear_minimizations,
        fun=float(fun),
        certified=float(certified),
    )
