"""Five checks of projections onto 1000 random polyhedra, some degenerate, and the errors of empty ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from support.projection_judges import (
    assert_agrees_with_outside,
    assert_optimal,
    assert_stands_still,
    size,
)

from lopro.constraints import Box, Polyhedron
from lopro.errors import InfeasibleError, ProjectionError
from lopro.projections import polyhedron as module
from lopro.projections.active_set import Face, shortest_vector
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.polyhedron import RepeatedProjection, project_polyhedron

CASES = 1000


@dataclass(frozen=True)
class Case:
    C: Any
    b: Any
    #: A feasible point.
    inside: Any
    x: Any

    @property
    def halfspaces(self) -> HalfSpaces:
        return HalfSpaces.from_system(self.C, self.b)

    def excess(self, z: Any) -> float:
        """The largest violation as a distance, relative to the magnitudes of the terms."""
        lengths = np.linalg.norm(self.C, axis=1)
        rows = lengths > 0
        away = (self.C[rows] @ z - self.b[rows]) / lengths[rows]
        offsets = np.abs(self.b[rows]) / lengths[rows]
        return float(away.max(initial=0.0)) / (size(z, self.x) + float(offsets.max(initial=0.0)))

    def feasible(self, rng: np.random.Generator, number: int = 4) -> list[Any]:
        """Points on rays from the feasible one: up to the boundary, or halfway."""
        points = [self.inside]
        for i in range(number):
            u = rng.standard_normal(len(self.inside))
            slope, slack = self.C @ u, np.maximum(self.b - self.C @ self.inside, 0.0)
            rising = slope > 1e-12
            reach = float((slack[rising] / slope[rising]).min(initial=1e3))
            points.append(self.inside + (1.0 if i % 2 else 0.5) * reach * u)
        return points


def make(seed: int, d: int | None = None, m: int | None = None) -> Case:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 31)) if d is None else d
    m = int(rng.integers(1, 41)) if m is None else m
    C, z = rng.standard_normal((m, d)), rng.standard_normal(d)
    b = C @ z + rng.exponential(size=m) * (rng.random(m) < 0.7)
    kind = seed % 6
    if kind == 1:  # repeated rows
        again = rng.integers(0, m, 3)
        C, b = np.vstack([C, 2.0 * C[again]]), np.concatenate([b, 2.0 * b[again]])
    if kind == 2:  # an equation as two rows: no interior
        b[0] = C[0] @ z
        C, b = np.vstack([C, -C[:1]]), np.append(b, -b[0])
    if kind == 3:  # a row of zeros
        C, b = np.vstack([C, np.zeros((1, d))]), np.append(b, 0.0)
    if kind == 4:  # all rows meet in one point
        b = C @ z
    if kind == 5:  # thin, and in bad units
        C = C * 10.0 ** rng.uniform(-3, 3, (m, 1))
        b = C @ z + 1e-6 * rng.random(m)
    return Case(C, b, z, z + rng.standard_normal(d) * 10.0 ** rng.uniform(-2, 3))


def reference(case: Case) -> Any:
    """Try every set of at most d rows as equations; the nearest feasible point is the projection."""
    if case.excess(case.x) <= 0.0:
        return case.x
    best, nearest = np.inf, None
    lengths = np.linalg.norm(case.C, axis=1)
    N, h = (
        case.C[lengths > 0] / lengths[lengths > 0, None],
        case.b[lengths > 0] / lengths[lengths > 0],
    )
    for k in range(1, len(case.x) + 1):
        for rows in combinations(range(len(h)), k):
            w = np.linalg.lstsq(N[list(rows)], (h - N @ case.x)[list(rows)], rcond=1e-10)[0]
            distance = float(np.linalg.norm(w))
            if distance < best and case.excess(case.x + w) <= 1e-11:
                best, nearest = distance, case.x + w
    return nearest


@pytest.mark.parametrize("block", range(5))
def test_feasibility_and_optimality(block: int) -> None:
    for seed in range(block, CASES, 5):
        case, rng = make(seed), np.random.default_rng(30_000 + seed)
        H = case.halfspaces
        p = project_polyhedron(case.x, H)
        assert case.excess(p) <= 2e-12, seed
        points = case.feasible(rng)
        assert_optimal(case.x, p, points)
        for z in points:
            inside = bool((H.normals @ z <= H.bounds).all())
            assert_stands_still(
                lambda v, H=H: project_polyhedron(v, H), z, 0.0 if inside else 1e-11
            )


@pytest.mark.parametrize("block", range(5))
def test_the_step_is_a_combination_of_active_rows(block: int) -> None:
    """Optimality at every size, by non-negative least squares on the rows that hold."""
    for seed in range(block, CASES, 5):
        case = make(seed)
        H = case.halfspaces
        p = project_polyhedron(case.x, H)
        step = case.x - p
        if (step == 0.0).all():
            assert case.excess(case.x) <= 0.0
            continue
        scale = size(case.x) + float(np.abs(H.bounds).max())
        active = H.normals[H.bounds - H.normals @ p <= 1e-11 * scale]
        _, rest = scipy.optimize.nnls(active.T, step / np.linalg.norm(step), maxiter=10_000)
        assert rest * np.linalg.norm(step) <= 1e-11 * scale, seed


@pytest.mark.parametrize("block", range(5))
def test_slow_reference(block: int) -> None:
    for seed in range(block, CASES, 5):
        rng = np.random.default_rng(seed)
        case = make(seed, d=int(rng.integers(2, 4)), m=int(rng.integers(1, 6)))
        p, q = project_polyhedron(case.x, case.halfspaces), reference(case)
        assert np.linalg.norm(p - q) <= 1e-8 * size(case.x), seed


@pytest.mark.parametrize("seed", range(30))
def test_another_solver(seed: int) -> None:
    case = make(seed)
    # The other solver gets rows of unit size: only lopro has to accept the scaling of kind 5.
    H = case.halfspaces
    z = cp.Variable(len(case.x))
    p = project_polyhedron(case.x, H)
    assert_agrees_with_outside(case.x, p, z, [H.normals @ z <= H.bounds])


def test_a_point_on_the_wrong_face_is_rejected() -> None:
    C, b, x = np.eye(2), np.zeros(2), np.array([2.0, 1.0])
    with pytest.raises(AssertionError):
        assert_optimal(x, np.array([-1.0, 0.0]), [np.zeros(2), -np.ones(2)])
    assert (project_polyhedron(x, HalfSpaces.from_system(C, b)) == 0.0).all()


def test_box_agrees_with_general_rows(rng: Any) -> None:
    for _ in range(300):
        d = int(rng.integers(2, 20))
        low, high = np.sort(rng.standard_normal((2, d)), axis=0)
        low[rng.random(d) < 0.2], high[rng.random(d) < 0.2] = -np.inf, np.inf
        if not np.isfinite(np.concatenate([low, high])).any():
            continue
        box, x = Box(low, high), 3.0 * rng.standard_normal(d)
        assert np.linalg.norm(box.project(x) - np.minimum(np.maximum(x, low), high)) == 0.0
        general = Polyhedron(box.C, box.b).project(x)
        assert np.linalg.norm(general - box.project(x)) <= 1e-12 * size(x)


def test_single_half_space(rng: Any) -> None:
    for _ in range(300):
        c, x, beta = rng.standard_normal(5), 10.0 * rng.standard_normal(5), float(rng.normal())
        p = project_polyhedron(x, HalfSpaces.from_system(c[None, :], np.array([beta])))
        by_hand = x - max(0.0, float(c @ x) - beta) / float(c @ c) * c
        assert np.linalg.norm(p - by_hand) <= 1e-13 * size(x)


def test_repeated_projection_agrees_along_a_path(rng: Any) -> None:
    case = make(11)
    project, direction = RepeatedProjection(case.halfspaces), rng.standard_normal(len(case.x))
    for t in np.linspace(0.0, 3.0, 40):
        x = case.x + t * direction
        p = project_polyhedron(x, case.halfspaces)
        assert np.linalg.norm(project(x) - p) <= 1e-11 * size(x)


@pytest.mark.parametrize("seed", [0, 4, 129, 206, 213])
def test_repeated_projection_needs_the_active_set_alone(
    seed: int, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Degenerate rows hold to 1e-12 only: requiring them to rounding would restart the method each time."""
    case = make(seed)
    project, direction = RepeatedProjection(case.halfspaces), rng.standard_normal(len(case.x))
    monkeypatch.setattr(module, "project_polyhedron", None)
    for t in np.linspace(0.0, 3.0, 10):
        x = case.x + t * direction
        p = project_polyhedron(x, case.halfspaces)
        assert np.linalg.norm(project(x) - p) <= 1e-10 * size(x)


def test_sparse_rows(rng: Any) -> None:
    C = scipy.sparse.random_array((40, 60), density=0.1, rng=rng)
    z, x = rng.standard_normal(60), 5.0 * rng.standard_normal(60)
    b = C @ z + rng.random(40)
    p = project_polyhedron(x, HalfSpaces.from_system(C, b))
    q = project_polyhedron(x, HalfSpaces.from_system(C.toarray(), b))
    assert np.linalg.norm(p - q) <= 1e-11 * size(x)


@pytest.mark.parametrize("seed", range(20))
def test_the_active_set_does_not_need_the_interior_point(seed: int) -> None:
    """Started from an empty face it computes the same point in more steps."""
    case = make(seed)
    H = case.halfspaces
    slack = H.bounds - H.normals @ case.x
    if slack.min() >= 0.0:
        return
    scale = -float(slack.min())
    blur = max(1e-12, 1e-15 * size(case.x, H.bounds) / scale)
    w = scale * shortest_vector(H, slack / scale, Face.empty(len(case.x)), blur).w
    gap = np.linalg.norm(case.x + w - project_polyhedron(case.x, H))
    assert gap <= 1e-10 * size(case.x)


def test_a_useless_interior_point_does_not_change_the_result(monkeypatch: Any) -> None:
    case = make(8)
    p = project_polyhedron(case.x, case.halfspaces)
    monkeypatch.setattr(module, "_interior_point", lambda H, slack: Face.empty(H.dimension))
    assert np.linalg.norm(project_polyhedron(case.x, case.halfspaces) - p) <= 1e-11 * size(case.x)


@pytest.mark.parametrize(
    ("C", "b"),
    [
        ([[1.0, 0.0], [-1.0, 0.0]], [0.0, -1.0]),
        ([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [-1.0, 0.0, 0.0]),
        ([[0.0, 0.0], [1.0, 0.0]], [-1.0, 0.0]),
    ],
)
def test_empty_polyhedra(C: Any, b: Any) -> None:
    with pytest.raises(InfeasibleError):
        project_polyhedron(np.array([3.0, 3.0]), HalfSpaces.from_system(np.array(C), np.array(b)))


def test_contradiction_below_the_resolution_of_the_check_is_not_called_empty() -> None:
    """Walls 1e-10 of their distance from zero apart: neither a projection nor a proof of emptiness."""
    H = HalfSpaces.from_system(np.array([[1.0], [-1.0]]), np.array([1.0, -1.0 - 1e-10]))
    with pytest.raises(ProjectionError):
        project_polyhedron(np.array([1.0 + 1e-9]), H)
    # The same gap between walls around zero is as large as the data that it is compared with.
    around_zero = HalfSpaces.from_system(np.array([[1.0], [-1.0]]), np.array([0.0, -1e-10]))
    with pytest.raises(InfeasibleError):
        project_polyhedron(np.array([1e-9]), around_zero)


@pytest.mark.parametrize("sparse", [False, True])
def test_many_rows_are_projected_on_with_a_proof(rng: Any, sparse: bool) -> None:
    """By an engine for sparse rows and by Newton's method for others, without the active set."""
    C = rng.standard_normal((60, 12))
    x = 5.0 * rng.standard_normal(12)
    H = HalfSpaces.from_system(scipy.sparse.csr_array(C) if sparse else C, np.ones(60))
    slack = H.bounds - H.normals @ x
    found = module._large(H, slack / -slack.min(), 1e-12)
    assert found is not None
    assert x - slack.min() * found == pytest.approx(project_polyhedron(x, H), abs=1e-7)
