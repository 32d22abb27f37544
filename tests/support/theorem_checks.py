"""Statements of the theory as functions: each returns the largest ratio of left to right side found.

A positive test asserts that the ratio is at most 1, a negative control that the same function
exceeds 1 for a broken variant. So a check that cannot fail is detected.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from support.known_problem import Known, Vector

import lopro
from lopro.methods.inner import AcceleratedGradient
from lopro.objectives import Linear
from lopro.penalties.penalised import Penalised
from lopro.protocol import (
    Candidate,
    Candidates,
    Claim,
    Multiplier,
    PenalisedMinimum,
    Verdict,
    next_candidate,
)

#: What rounding may add to a ratio.
SLACK = 1.0 + 1e-9
SCALES = tuple(10.0**k for k in range(-3, 4))


def size(x: Vector) -> float:
    """Return the Euclidean (Frobenius) norm."""
    return float(np.linalg.norm(x))


def noise(known: Known, rng: np.random.Generator) -> Vector:
    """Return a random unit point of the problem's space (symmetric where points are matrices)."""
    z = rng.standard_normal(known.x0.shape)
    z = z + z.T if z.ndim == 2 else z
    return z / size(z)


def samples(
    known: Known, rng: np.random.Generator, count: int = 30, scales: Sequence[float] = SCALES
) -> Iterator[Vector]:
    """Yield points around the boundary and around the solution, at every scale.

    Some go along the directions in which the regularity constant is attained.
    """
    project = known.constraint.project
    for scale in scales:
        for i in range(count):
            base = known.solution if i % 3 == 0 else project(10.0 * noise(known, rng))
            yield base + scale * noise(known, rng)
        for direction in known.directions:
            for sign in (-1.0, 1.0):
                yield project(known.solution + 1e3 * sign * direction) + scale * sign * direction


# Assumptions.


def regularity_ratio(known: Known, rho: float, points: Iterator[Vector]) -> float:
    """Eq. (3): the worst ``rho dist(x, Omega) / c(x)`` outside of the set."""
    worst, outside = 0.0, 0
    for x in points:
        c = known.constraint.value(x)
        if c > 1e-12 * (1.0 + size(x)):
            outside += 1
            # Projections stop a hair inside the set, to be feasible in floating point.
            distance = size(x - known.constraint.project(x)) - 1e-11 * (1.0 + size(x))
            worst = max(worst, rho * distance / c)
    assert outside >= 10, "too few points outside to say anything"
    return worst


def constraint_ratio(constraint: Any, rho: float, points: Sequence[Vector]) -> float:
    """Eq. (3) for a constraint that belongs to no problem."""
    nothing = Linear(np.zeros_like(points[0]))
    alone = Known(
        name="",
        objective=nothing,
        constraint=constraint,
        x0=points[0],
        solution=points[0],
        optimum=0.0,
        zeta=0.0,
        G=0.0,
        Gc=math.inf,
        rho=rho,
    )
    return regularity_ratio(alone, rho, iter(points))


def lipschitz_ratio(
    value: Callable[[Vector], float], bound: float, points: Sequence[Vector]
) -> float:
    """The worst ``|v(x) - v(y)| / (bound |x - y|)`` over near and far pairs."""
    pairs = [(x, y) for x, y in pairwise(points) if size(x - y) > 1e-8]
    return max(abs(value(x) - value(y)) / (bound * size(x - y)) for x, y in pairs)


def error_bound_ratio(
    known: Known, sigma: float, theta: float, eps: float, rng: np.random.Generator
) -> float:
    """A2 (iii): the worst ``dist(x, x*) / (sigma (f(x) - f_*)^theta)`` on ``S_eps``."""
    worst, used = 0.0, 0
    for scale in np.geomspace(1e-4, 10.0, 11):
        for i in range(60):
            step = known.directions[i % 2] if i < 2 and len(known.directions) > i else None
            step = noise(known, rng) if step is None else step
            x = known.constraint.project(known.solution + scale * step)
            gap = known.gap(x) + 1e-15 * (1.0 + abs(known.optimum))  # rounding error
            if 1e-12 < gap <= eps:
                used += 1
                worst = max(worst, size(x - known.solution) / (sigma * gap**theta))
    assert used >= 50, "too few points in S_eps to say anything"
    return worst


# Penalised objectives.


def penalised(known: Known, penalty: Any) -> Penalised:
    """Return ``F = f + h`` without counters."""
    return Penalised(known.objective, known.constraint, penalty, known.x0)


def exactness_ratio(known: Known, penalty: Any, points: Iterator[Vector]) -> float:
    """R1: ``f(P x) - F(x)`` in units of rounding error; above 1 it is no rounding error."""
    F = penalised(known, penalty)
    worst = -math.inf
    for x in points:
        f, value = known.objective.value(known.constraint.project(x)), F.value(x)
        unit = 1e-11 * (1.0 + abs(f) + abs(value) + known.G * size(x))
        worst = max(worst, (f - value) / unit)
    return worst


def theorem_1_ratio(known: Known, penalty: Any, p: float, points: Iterator[Vector]) -> float:
    """Thm 1: the worst ``(f(x~) - f_*) / (p (C gamma + B))``, ``B = F(x^) - F(x*)`` for each ``x^``.

    A right side that is not positive although the left one is counts as infinite.
    """
    F = penalised(known, penalty)
    at_solution, worst = F.value(known.solution), 0.0
    for x in points:
        # Projections stop a hair inside the set: what that costs is not the theorem's.
        rounding = 1e-11 * (1.0 + abs(known.optimum) + known.G * size(x))
        left = known.gap(known.constraint.project(x)) - rounding
        right = p * (penalty.above + F.value(x) - at_solution)
        if left > 0.0:
            worst = max(worst, left / right if right > 0.0 else math.inf)
    return worst


def gradient_lipschitz_ratio(
    gradient: Callable[[Vector], Vector], L: float, pairs: Iterator[tuple[Vector, Vector]]
) -> float:
    """The worst ``|g(x) - g(y)| / (L |x - y|)``."""
    return max(size(gradient(x) - gradient(y)) / (L * size(x - y)) for x, y in pairs)


def finite_difference_ratio(
    value: Callable[[Vector], float],
    gradient: Callable[[Vector], Vector],
    points: Iterator[Vector],
    step: float,
    rng: np.random.Generator,
) -> float:
    """The error of the gradient against central differences, over 1e-5 of its size."""
    worst = 0.0
    for x in points:
        u = rng.standard_normal(x.shape)
        u /= size(u)
        difference = (value(x + step * u) - value(x - step * u)) / (2.0 * step)
        slope = float(np.vdot(gradient(x), u))
        worst = max(worst, abs(difference - slope) / (1e-5 * (1e-3 + abs(difference))))
    return worst


# Inner algorithms.


class PrintedAlgorithm2(AcceleratedGradient):
    """Algorithm 2 as printed: the gradient is taken at ``x_s`` instead of ``y_s`` (broken)."""

    def step(self, F: Any, state: Any) -> Any:
        _, gradient = F.linearize_at(state.image_x)
        x = F.prox(state.y - gradient() / state.L, 1.0 / state.L)
        self._extrapolate(state, x, F.image(x))
        return state


def iterates(inner: Any, F: Any, x0: Vector, steps: int) -> Iterator[tuple[int, Vector]]:
    """Yield ``(T, output after T steps)``."""
    state = inner.init(F, x0, np.random.default_rng(0))
    for T in range(1, steps + 1):
        state = inner.step(F, state)
        yield T, inner.output(state)


def inner_ratio(
    inner: Any,
    F: Any,
    x0: Vector,
    steps: int,
    comparators: Sequence[Vector],
    bound: Callable[[int, Vector], float],
) -> float:
    """The worst ``(F(x_T) - F(z)) / bound(T, z)`` over all T up to ``steps`` and all comparators.

    Differences below the rounding error of F are not checked.
    """
    values = [F.value(z) for z in comparators]
    worst = 0.0
    for T, x in iterates(inner, F, x0, steps):
        reached = F.value(x)
        for z, value in zip(comparators, values, strict=True):
            excess = reached - value
            if excess > 1e-12 * (1.0 + abs(value)):
                worst = max(worst, excess / bound(T, z))
    return worst


def accelerated_bound(L: float, x0: Vector) -> Callable[[int, Vector], float]:
    """Prop 2: ``2 L |y_0 - z|^2 / (T + 1)^2``."""
    return lambda T, z: 2.0 * L * size(x0 - z) ** 2 / (T + 1) ** 2


# Whole runs.


@dataclass
class Minimised:
    """One run of an inner algorithm: its arguments, and the state it has reached."""

    inner: Any
    F: Any
    start: Vector
    steps: int
    state: Any


@dataclass
class Seen:
    """A candidate that a method submitted, with its verdict and the inner run that produced it."""

    candidate: Candidate
    last: Minimised | None
    verdict: Verdict | None = None

    @property
    def x(self) -> Vector:
        return self.candidate.x

    @property
    def x_hat(self) -> Vector:
        """The point at which the evidence was taken: before the projection, if there was one."""
        return self.candidate.taken_at

    @property
    def claim(self) -> Claim | None:
        return self.candidate.claim

    @property
    def plan(self) -> Minimised:
        """The plan of the inner algorithm."""
        assert self.last is not None
        return self.last

    @property
    def state(self) -> Any:
        return self.plan.state

    @property
    def penalised(self) -> float:
        """``F(x_hat)``, computed here: the last candidate of a run gets no verdict."""
        return float(self.F.value(self.x_hat))

    @property
    def F(self) -> Any:
        assert isinstance(self.candidate.evidence, PenalisedMinimum)
        return self.candidate.evidence.F

    @property
    def inequality(self) -> Any:
        assert isinstance(self.candidate.evidence, Multiplier)
        return self.candidate.evidence.inequality


class Spy:
    """A workbench that keeps the last inner run."""

    def __init__(self, bench: Any) -> None:
        self._bench, self.last = bench, None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bench, name)

    def minimize(self, inner: Any, F: Any, x: Vector, steps: int) -> Any:
        state = self._bench.minimize(inner, F, x, steps)
        self.last = Minimised(inner, F, x, steps, state)
        return state

    def advance(self, inner: Any, F: Any, state: Any, steps: int) -> Any:
        state = self._bench.advance(inner, F, state, steps)
        if self.last is not None:
            self.last.state = state
        return state


@dataclass
class Recorded:
    """A method that keeps the candidates it submits, so that tests have the points before projection."""

    method: Any
    seen: list[Seen] = field(default_factory=list)

    def check(self, problem: Any) -> None:
        self.method.check(problem)

    def run(self, bench: Any, x0: Vector) -> Candidates:
        spy = Spy(bench)
        candidates, verdict = self.method.run(spy, x0), None
        while (candidate := next_candidate(candidates, verdict)) is not None:
            self.seen.append(Seen(candidate, spy.last))
            verdict = yield candidate
            self.seen[-1].verdict = verdict


def count_projections(constraint: Any) -> Callable[[], int]:
    """Wrap ``constraint.project`` of this object, and return a function that returns the calls."""
    project, calls = constraint.project, [0]

    def counting(x: Vector) -> Vector:
        calls[0] += 1
        return project(x)

    constraint.project = counting
    return lambda: calls[0]


@dataclass
class Run:
    """The outcome of a run: its worst epoch against the invariant, and its end against 2 eps."""

    invariant: float
    end: float
    projections: int
    counted: int
    iterations: int
    epochs: list[Seen]

    @property
    def worst(self) -> float:
        """The ratio that a test asserts: invariants and end bound alike."""
        return max(self.invariant, self.end)


def run_schedule(known: Known, scheme: Any, eps0: float, eps: float) -> Run:
    """Run a whole schedule and compare every epoch with ``f(x_k) - f_* <= eps0 / 2^k + eps``.

    An epoch that ends outside the set counts as infinitely bad, however low its value is.
    """
    calls = count_projections(known.constraint)
    recorded = Recorded(scheme)
    result = lopro.solve(known.problem, known.x0, recorded, tol=0)
    invariant = 0.0
    for k, epoch in enumerate(recorded.seen, start=1):
        # Feasible up to rounding, judged by c itself and not by the projection.
        outside = known.constraint.value(epoch.x) > 1e-12 * (1.0 + size(epoch.x))
        ratio = math.inf if outside else known.gap(epoch.x) / (eps0 / 2.0**k + eps)
        invariant = max(invariant, ratio)
    return Run(
        invariant=invariant,
        end=known.gap(recorded.seen[-1].x) / (2.0 * eps),
        projections=calls(),
        counted=result.counts.projections,
        iterations=result.iterations,
        epochs=recorded.seen,
    )
