"""Problems with a known optimum for the driver's tests, and independent counters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro import Problem
from lopro.constraints import Polyhedron, PSDCone, ResidualBall, ResidualNorm
from lopro.constraints.base import Constraint
from lopro.objectives import L1Norm, Linear, SquaredDistance
from lopro.objectives.base import Objective


@dataclass(frozen=True)
class Known:
    """A problem, its optimal value and a solution."""

    name: str
    problem: Problem
    optimum: float
    solution: Any

    def __str__(self) -> str:
        return self.name


def line(rng: np.random.Generator) -> Known:
    """T1: min -x s.t. x <= 0."""
    problem = Problem(Linear(np.array([-1.0])), Polyhedron([[1.0]], [0.0]), solution_norm=0.5)
    return Known("T1-line", problem, 0.0, np.zeros(1))


def box(rng: np.random.Generator) -> Known:
    """T2: a linear function over a box."""
    a = rng.standard_normal(4)
    problem = Problem(Linear(a), Polyhedron.box(-np.ones(4), np.ones(4)))
    return Known("T2-box", problem, -float(np.abs(a).sum()), -np.sign(a))


def l1_halfspace(rng: np.random.Generator) -> Known:
    """T3: the smallest l1 norm in a half-space."""
    a, b = rng.uniform(0.2, 1.0, 5), rng.uniform(0.5, 2.0)
    a[rng.integers(5)] = 2.0
    x = np.where(a == 2.0, b / 2.0, 0.0)
    return Known("T3-halfspace", Problem(L1Norm(), Polyhedron(-a[None, :], [-b])), b / 2.0, x)


def ellipsoid(rng: np.random.Generator) -> Known:
    """T4: a linear function over an ellipsoid with a spread spectrum."""
    A = np.linalg.qr(rng.standard_normal((4, 4)))[0] * np.array([1.0, 1.5, 2.5, 4.0])
    a = rng.standard_normal(4)
    inverse = np.linalg.solve(A.T @ A, a)
    w = float(np.sqrt(a @ inverse))
    problem = Problem(Linear(a), ResidualBall(A, np.zeros(4), 1.0))
    return Known("T4-ellipsoid", problem, -w, -inverse / w)


def ball(rng: np.random.Generator) -> Known:
    """T5: a linear function over the unit ball, in the form of a norm."""
    a = rng.standard_normal(3)
    problem = Problem(Linear(a), ResidualBall(np.eye(3), np.zeros(3), 1.0, ResidualNorm()))
    length = float(np.linalg.norm(a))
    return Known("T5-ball", problem, -length, -a / length)


def nearest_in_box(rng: np.random.Generator) -> Known:
    """T6: a projection on a box."""
    z = 2.0 * rng.standard_normal(4)
    x = np.clip(z, -1.0, 1.0)
    problem = Problem(SquaredDistance(z), Polyhedron.box(-np.ones(4), np.ones(4)))
    return Known("T6-nearest", problem, 0.5 * float(np.sum((z - x) ** 2)), x)


def denoising(rng: np.random.Generator) -> Known:
    """T7: basis pursuit denoising with A = I; the solution is a soft threshold."""
    y, s = 2.0 * rng.standard_normal(6), 0.7
    x = np.sign(y) * np.maximum(np.abs(y) - s, 0.0)
    sigma = float(np.linalg.norm(np.minimum(np.abs(y), s)))
    problem = Problem(L1Norm(), ResidualBall(np.eye(6), y, sigma))
    return Known("T7-denoising", problem, float(np.abs(x).sum()), x)


def nearest_psd(rng: np.random.Generator) -> Known:
    """T9: the nearest positive semidefinite matrix."""
    M = rng.standard_normal((3, 3))
    M = M + M.T
    values, vectors = np.linalg.eigh(M)
    X = (vectors * np.maximum(values, 0.0)) @ vectors.T
    optimum = 0.5 * float(np.sum(np.minimum(values, 0.0) ** 2))
    return Known("T9-psd", Problem(SquaredDistance(M), PSDCone(3)), optimum, X)


BUILDERS: list[Callable[[np.random.Generator], Known]] = [
    line,
    box,
    l1_halfspace,
    ellipsoid,
    ball,
    nearest_in_box,
    denoising,
    nearest_psd,
]


FLAGS = (
    "shape",
    "like",
    "image_length",
    "smooth",
    "proximable",
    "stochastic",
    "has_image_set",
    "real_only",
)


class Watcher:
    """Wraps a function, forwards everything and counts calls from outside.

    Calls that the function makes to itself do not pass here and are not counted.
    ``before`` runs before every call, with the name of the oracle.
    """

    def _watch(self, target: Any, before: Callable[[str], None] | None = None) -> None:
        self.target, self.before = target, before
        self.calls: dict[str, int] = {}
        for name in FLAGS:
            if hasattr(target, name):
                setattr(self, name, getattr(target, name))

    def count(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1
        if self.before is not None:
            self.before(name)

    def linearize_at(self, image: Any) -> Any:
        self.count("value")
        value, slope = self.target.linearize_at(image)

        def counted_slope() -> Any:
            self.count("subgradient")
            return slope()

        return value, counted_slope


def _forwarded(name: str, *, counted: bool) -> Callable[..., Any]:
    def method(self: Any, *args: Any) -> Any:
        if counted:
            self.count(name)
        return getattr(self.target, name)(*args)

    method.__name__ = name
    return method


def _forwarding(base: type, counted: str, silent: str) -> type:
    names = {name: _forwarded(name, counted=True) for name in counted.split()}
    names |= {name: _forwarded(name, counted=False) for name in silent.split()}
    names["__init__"] = Watcher._watch
    return type(f"Watched{base.__name__}", (Watcher, base), names)


WatchedObjective = _forwarding(
    Objective,
    "value subgradient prox stochastic_subgradient",
    "image minorant scale_into_domain lipschitz smoothness strong_convexity infimum sublevel_radius "
    "typical_size magnitude dual_bound",
)
WatchedConstraint = _forwarding(
    Constraint,
    "value subgradient project project_image pullback",
    "image violation violation_at typical_size infeasibility regularity infimum radius valid_inequality "
    "support_image lipschitz smoothness",
)


def watched(
    problem: Problem, before: Callable[[str], None] | None = None
) -> tuple[Problem, Any, Any]:
    """Return the problem with watchers in front of both parts, and the watchers."""
    f, c = (
        WatchedObjective(problem.objective, before),
        WatchedConstraint(problem.constraint, before),
    )
    return Problem(f, c, problem.solution_norm), f, c
