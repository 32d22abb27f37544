"""Five checks of projections onto 1000 random intersections: Dykstra's method and the outer approximation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from support.projection_judges import (
    assert_agrees_with_outside,
    assert_optimal,
    assert_stands_still,
    farthest_feasible,
    size,
)

from lopro.constraints import (
    Affine,
    Box,
    FunctionConstraint,
    Intersection,
    L1Ball,
    Polyhedron,
    PSDCone,
    ResidualBall,
    Simplex,
)
from lopro.constraints.nearest_of_all import NearestOfAll
from lopro.errors import InfeasibleError, ProjectionError
from lopro.projections.dykstra import dykstra

CASES = 1000


@dataclass(frozen=True)
class Case:
    """A ball around ``y`` and one half-space ``a.z <= beta`` that cuts it."""

    y: Any
    sigma: float
    a: Any
    beta: float
    x: Any

    @property
    def constraint(self) -> Intersection:
        ball = ResidualBall(np.eye(len(self.y)), self.y, self.sigma)
        return Intersection(ball, Polyhedron(self.a[None, :], np.array([self.beta])))

    @property
    def inside(self) -> Any:
        """Return the point of the ball farthest inside the half-space."""
        return self.y - 0.999 * self.sigma * self.a / np.linalg.norm(self.a)

    def holds(self, z: Any) -> bool:
        return bool(np.linalg.norm(z - self.y) <= self.sigma and self.a @ z <= self.beta)


def make(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 31))
    y, a, sigma = rng.standard_normal(d), rng.standard_normal(d), 0.1 + rng.exponential()
    # From a small part of the ball to nearly all of it.
    depth = float(rng.uniform(-0.95, 0.95))
    beta = float(a @ y) + depth * sigma * float(np.linalg.norm(a))
    return Case(y, sigma, a, beta, y + rng.standard_normal(d) * 10.0 ** rng.uniform(-1, 1.5))


def reference(case: Case) -> Any:
    """Three cases by hand: the ball alone, the half-space alone, or the sphere where they meet."""
    a, unit = case.a, case.a / np.linalg.norm(case.a)
    away = case.x - case.y
    on_ball = case.y + away * min(1.0, case.sigma / float(np.linalg.norm(away)))
    if a @ on_ball <= case.beta:
        return on_ball
    on_plane = case.x - max(0.0, float(a @ case.x) - case.beta) / float(a @ a) * a
    if np.linalg.norm(on_plane - case.y) <= case.sigma:
        return on_plane
    height = (case.beta - float(a @ case.y)) / float(np.linalg.norm(a))
    centre, radius = case.y + height * unit, np.sqrt(case.sigma**2 - height**2)
    within = (case.x - centre) - unit * float(unit @ (case.x - centre))
    return centre + within * (radius / np.linalg.norm(within))


@pytest.mark.parametrize("block", range(5))
def test_feasibility_optimality_and_a_reference(block: int) -> None:
    for seed in range(block, CASES, 5):
        case, rng = make(seed), np.random.default_rng(50_000 + seed)
        constraint = case.constraint
        p = constraint.project(case.x)
        assert np.linalg.norm(p - case.y) <= case.sigma * (1.0 + 1e-10), seed
        assert case.a @ p - case.beta <= 1e-11 * size(p) * np.linalg.norm(case.a), seed
        u = rng.standard_normal(len(case.x))
        edge = farthest_feasible(case.holds, case.inside, u)
        assert edge is not None
        assert_optimal(case.x, p, [case.inside, edge])
        assert_stands_still(constraint.project, case.inside, 0.0)
        assert_stands_still(constraint.project, edge, 1e-12)
        gap = np.linalg.norm(p - reference(case))
        assert gap <= 1e-11 * size(case.x), (seed, gap)


def several(seed: int) -> tuple[Intersection, Any, Any, list[Any], Any]:
    """A polyhedron, an ellipsoid and a thin ellipsoid with a common interior point."""
    rng = np.random.default_rng(seed)
    d, m = int(rng.integers(2, 10)), int(rng.integers(1, 6))
    z = rng.standard_normal(d)
    C = rng.standard_normal((m, d))
    b = C @ z + 0.1 + rng.exponential(size=m)
    A, B = rng.standard_normal((d + 1, d)), rng.standard_normal((max(1, d - 1), d))
    noise = rng.standard_normal(d + 1)
    y, s = A @ z + 0.5 * noise / np.linalg.norm(noise), 1.0
    v, t = B @ z, 0.5
    members = [Polyhedron(C, b), ResidualBall(A, y, s), ResidualBall(B, v, t)]
    variable = cp.Variable(d)
    limits = [C @ variable <= b, cp.norm(A @ variable - y) <= s, cp.norm(B @ variable - v) <= t]
    return Intersection(*members), z, z + 5.0 * rng.standard_normal(d), limits, variable


@pytest.mark.parametrize("seed", range(30))
def test_another_solver(seed: int) -> None:
    constraint, inside, x, limits, variable = several(seed)
    p = constraint.project(x)
    assert constraint.violation(p) <= 1e-10
    assert_agrees_with_outside(x, p, variable, limits)
    assert_optimal(x, p, [inside])


@pytest.mark.parametrize("seed", range(30))
def test_dykstra_and_cuts_agree(seed: int) -> None:
    constraint, _, x, _, _ = several(seed)
    cuts = NearestOfAll(constraint.members(), symmetric=False).by_cuts
    p, q = constraint.project(x), cuts(x)
    assert np.linalg.norm(p - q) <= 1e-5 * size(x)
    assert abs(np.linalg.norm(x - p) - np.linalg.norm(x - q)) <= 1e-9 * size(x)


@pytest.mark.parametrize("seed", range(20))
def test_cone_with_a_trace_bound(seed: int) -> None:
    """The psd matrices of trace at most 1, against thresholding of the eigenvalues."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 8))
    X = rng.standard_normal((d, d))
    X = X + X.T
    trace = FunctionConstraint(
        lambda Z: float(np.trace(Z)) - 1.0,
        lambda Z: np.eye(d),
        project=lambda Z: Z - max(0.0, float(np.trace(Z)) - 1.0) / d * np.eye(d),
    )
    P = Intersection(PSDCone(d), trace).project(X)
    values, vectors = np.linalg.eigh(X)
    low, high = 0.0, float(values.max())
    for _ in range(100):
        t = 0.5 * (low + high)
        low, high = (t, high) if np.maximum(values - t, 0.0).sum() > 1.0 else (low, t)
    by_hand = (vectors * np.maximum(values - low, 0.0)) @ vectors.T
    assert np.linalg.norm(P - by_hand) <= 1e-9 * size(X)


def test_polyhedra_are_stacked(rng: Any) -> None:
    C, D, z = rng.standard_normal((4, 6)), rng.standard_normal((3, 6)), rng.standard_normal(6)
    first, second = Polyhedron(C, C @ z + 0.1), Polyhedron(D, D @ z)
    both = Polyhedron(np.vstack([C, D]), np.concatenate([C @ z + 0.1, D @ z]))
    x = 5.0 * rng.standard_normal(6)
    gap = np.linalg.norm(Intersection(first, second).project(x) - both.project(x))
    assert gap <= 1e-11 * size(x)


def alternate(x: Any, projectors: list[Any]) -> Any:
    """Project on each member in turn until no point moves: a point of the intersection, not the nearest."""
    for _ in range(100):
        for project in projectors:
            x = project(x)
    return x


def test_dykstra_stays_constant_and_then_moves() -> None:
    """A triangle as a box and a half-space, its corner (1, 1) nearest to the point.

    Alternating projections end at (0.6, 0.8). Dykstra's method stays there, too, for 26 cycles,
    and then moves on: a stopping rule for constant iterates would return the wrong point.
    """
    box = Polyhedron.box(np.zeros(2), np.ones(2))
    half = Polyhedron(np.array([[1.0, -2.0]]), np.array([-1.0]))
    members, x = [box.project, half.project], np.array([50.0, -20.0])
    np.testing.assert_allclose(alternate(x, members), [0.6, 0.8], atol=1e-14)
    np.testing.assert_allclose(dykstra(x, members), [1.0, 1.0], atol=1e-11)
    with pytest.raises(ProjectionError, match="apart after 26 cycles"):
        dykstra(x, members, max_cycles=26)
    np.testing.assert_allclose(Intersection(box, half).project(x), [1.0, 1.0], atol=1e-12)


def test_an_intersection_of_one_set_is_this_set() -> None:
    x = np.array([3.0, -4.0])
    np.testing.assert_allclose(
        Intersection(ResidualBall(np.eye(2), 0.0 * x, 1.0)).project(x), x / 5.0, rtol=1e-11
    )


def test_alternating_projections_would_end_at_a_wrong_point() -> None:
    """The l1 ball and ``z_1 <= 1/4``: ``x - p = 5/4 (1, 1) + 3/2 (1, 0)`` proves that p is nearest."""
    half, ball = Polyhedron(np.array([[1.0, 0.0]]), np.array([0.25])), L1Ball(2)
    x, nearest = np.array([3.0, 2.0]), np.array([0.25, 0.75])
    np.testing.assert_allclose(alternate(x, [half.project, ball.project]), [0.0, 1.0], atol=1e-15)
    for both in (Intersection(half, ball), Intersection(ball, half)):
        np.testing.assert_allclose(both.project(x), nearest, atol=1e-11)


def test_members_that_do_not_meet() -> None:
    left = ResidualBall(np.eye(2), np.array([-2.0, 0.0]), 1.0)
    right = ResidualBall(np.eye(2), np.array([2.0, 0.0]), 1.0)
    with pytest.raises((InfeasibleError, ProjectionError)):
        Intersection(left, right).project(np.array([0.0, 5.0]))
    with pytest.raises(ProjectionError, match="apart"):
        dykstra(np.array([0.0, 5.0]), [left.project, right.project], max_cycles=50)


@pytest.mark.parametrize("seed", range(6))
def test_single_precision_is_as_accurate_as_double(seed: int) -> None:
    """Rounding must not add up over cycles: with sets that need no matrix the work is done in double."""
    rng = np.random.default_rng(seed)
    inside = np.float32(1e-3 * rng.dirichlet(np.ones(14)))
    C = rng.standard_normal((32, 14)).astype(np.float32)
    b = np.float32(C @ inside + 2e-5 * rng.random(32))
    total = float(inside.sum())
    single = Intersection(Polyhedron(C, b), Simplex(14, total, equality=True))
    double = Intersection(
        Polyhedron(C.astype(float), b.astype(float)), Simplex(14, total, equality=True)
    )
    z, exact = single.project(np.zeros(14, np.float32)), double.project(np.zeros(14))
    assert z.dtype == np.float32 and single.violation(z) <= 2e-5
    assert np.linalg.norm(z - exact) <= 1e-6 * np.linalg.norm(exact)


def test_a_kinked_callable_and_a_polyhedron_take_one_outer_approximation() -> None:
    """Not one in every cycle of Dykstra's method, which took a thousand times the work far away."""
    rng = np.random.default_rng(3)
    A, y = rng.standard_normal((20, 12)), rng.standard_normal(20)
    calls = 0

    def value(x: Any) -> float:
        nonlocal calls
        calls += 1
        return float(np.linalg.norm(A @ x - y)) / sigma - 1.0

    def slope(x: Any) -> Any:
        r = A @ x - y
        return A.T @ r / np.linalg.norm(r) / sigma

    sigma = 1.1 * float(np.linalg.norm(A @ np.linalg.lstsq(A, y)[0] - y))
    inside = np.linalg.lstsq(A, y)[0]
    C = rng.standard_normal((5, 12))
    rows = Polyhedron(C, C @ inside + 0.01)
    x = 1e4 * rng.standard_normal(12)
    z = Intersection(FunctionConstraint(value, slope, shape=(12,)), rows).project(x)
    exact = Intersection(ResidualBall(A, y, sigma), rows).project(x)
    # From far away tangential errors have little effect: those of size t change the distance 3e4 by t^2 / 2.
    away = float(np.linalg.norm(exact - x))
    assert np.linalg.norm(z - x) == pytest.approx(away, rel=1e-12)
    assert np.linalg.norm(z - exact) <= 1e-7 * away
    assert value(z) <= 1e-9 and calls <= 2000


def test_cuts_from_nearby_hold_on_the_whole_set() -> None:
    """The difference to the projection is rounding there, and so would be its direction."""
    rng = np.random.default_rng(0)
    total = 0.0786
    simplex, corners = Simplex(6, total, equality=True), total * np.eye(6)
    seen = 0
    for _ in range(200):
        inside = total * rng.dirichlet(np.ones(6))
        v = inside * (1.0 + 1e-15 * rng.standard_normal(6))
        for cut in simplex.cuts(v, v):
            seen += 1
            assert max(cut.depth(corner) for corner in corners) <= 1e-12
    assert seen > 50


def test_a_ball_that_rounding_to_single_precision_makes_empty_is_not_called_empty() -> None:
    A, tenth = np.ones((3, 1), np.float32), np.float32(0.1)
    y = np.array([tenth, tenth, np.nextafter(tenth, np.float32(1.0))])
    box, x = Polyhedron.box(np.float32([-5.0]), np.float32([5.0])), np.array([3.0], np.float32)
    found = Intersection(ResidualBall(A, y, 0.0), box).project(x)
    assert found.dtype == np.float32 and found[0] == pytest.approx(0.1, rel=1e-6)
    with pytest.raises(ProjectionError):
        Intersection(ResidualBall(A, y, 1e-12), box).project(x)
    beyond = Polyhedron.box(np.float32([1.0]), np.float32([5.0]))
    with pytest.raises(InfeasibleError):
        Intersection(ResidualBall(A, y, 1e-3), beyond).project(x)


def test_equations_and_signs_are_rows_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alternating between nearly dependent equations and signs would take thousands of cycles."""
    rng = np.random.default_rng(2)
    U, V = (np.linalg.qr(rng.standard_normal((n, 8)))[0] for n in (8, 20))
    A = U @ np.diag(np.geomspace(1.0, 1e-6, 8)) @ V.T
    y, x = A @ np.maximum(rng.standard_normal(20), 0.0), rng.standard_normal(20)
    signs = Box(np.zeros(20), np.full(20, np.inf))
    expected = Intersection(Affine(A, y, y), signs).project(x)
    monkeypatch.setattr("lopro.constraints.nearest_of_all.dykstra", None)
    z = Intersection(ResidualBall(A, y, 0.0), signs).project(x)
    assert np.linalg.norm(z - x) == pytest.approx(np.linalg.norm(expected - x), rel=1e-9)
    assert z.min() >= -1e-12 and np.linalg.norm(A @ z - y) <= 1e-9 * np.linalg.norm(y)


@pytest.mark.parametrize("y", [np.ones(1), np.array([-5066.8])])
def test_rows_without_coefficients_are_no_rows_of_a_program(y: np.ndarray) -> None:
    """A polyhedron that excludes nothing, beside a ball: its largest entry was used."""
    ball = ResidualBall(np.array([[-0.857]]), y, 0.1 * abs(y[0]))
    nothing = Polyhedron(np.zeros((1, 1)), np.array([23678.9]))
    z = Intersection(ball, nothing).project(np.zeros(1))
    assert z == pytest.approx(-0.9 * y / 0.857, rel=1e-9)
