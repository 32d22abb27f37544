"""Semidefinite programs and nearest matrices through `lopro.solve`, on problems that are solved by hand."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro import NearestSemidefinite, Problem, SemidefiniteEngines, Status
from lopro.constraints import Affine, Intersection, Polyhedron, PSDCone, ResidualBall, Spectrahedron
from lopro.errors import InfeasibleError, MissingCapabilityError, UnboundedError
from lopro.methods.baselines import InteriorPoint
from lopro.methods.semidefinite import engines, semidefinite_form
from lopro.newton.sdp import Outcome
from lopro.newton.sdp import Status as KernelStatus
from lopro.objectives import L1Norm, Linear, SquaredDistance

UNITS = [(1.0, 1.0), (1e-9, 1.0), (1e9, 1.0), (1.0, 1e-9), (1.0, 1e9)]
DATA = Path(os.environ.get("LOPRO_DATA", Path(__file__).parents[4] / "shared" / "data"))
#: Eigenvalues 1 and 3.
C2 = np.array([[2.0, 1.0], [1.0, 2.0]])


def trace_is(n: int, lower: float, upper: float) -> Affine:
    return Affine(scipy.sparse.csr_array(np.eye(n).reshape(1, -1)), lower, upper, shape=(n, n))


def diagonal_is(n: int, value: float) -> Affine:
    return Affine.entries((np.arange(n), np.arange(n)), value, value, shape=(n, n))


def program(C: Any, *rows: Any) -> Problem:
    return Problem(Linear(C), Intersection(PSDCone(len(C)), *rows))


def pulled_back(problem: Problem, dual: Any) -> Any:
    """Return the sum of the multipliers of all members."""
    total = np.zeros(problem.shape)
    for member, v in zip(problem.constraint.members(), dual, strict=True):
        total = total + member.pullback((v,))
    return total


def contradicts(problem: Problem, ray: Any, support: Any) -> None:
    """Assert that multipliers add up to zero with a negative right-hand side: 0 <= -1 on all of the set."""
    slack, row = ray
    size = float(np.abs(slack).max())
    assert support(row) < 0.0
    dual = ray
    np.testing.assert_allclose(pulled_back(problem, dual), 0.0, atol=1e-12 * size)
    assert np.linalg.eigvalsh(-slack)[0] >= -1e-9 * size


@pytest.mark.parametrize("engine", ["newton", "clarabel"])
@pytest.mark.parametrize(("s", "t"), UNITS)
def test_the_least_eigenvalue_in_any_units(s: float, t: float, engine: str) -> None:
    problem = program(t / s * C2, trace_is(2, 3.0 * s, 3.0 * s))
    result = lopro.solve(problem, method=SemidefiniteEngines((engine,)))
    assert result.status is Status.CONVERGED
    assert result.fun == pytest.approx(3.0 * t, rel=1e-6)
    assert result.certificate.lower_bound <= 3.0 * t * (1.0 + 1e-12)
    assert result.certificate.lower_bound == pytest.approx(3.0 * t, rel=3e-6)
    assert result.x == pytest.approx(1.5 * s * np.array([[1, -1], [-1, 1]]), abs=1e-2 * s)
    assert np.isinf(result.certificate.radius)  # the trace bounds the set
    multiplier = result.multiplier
    assert multiplier is not None and multiplier.dual is not None
    # <C, X> >= 1 trace: minus that is the multiplier of an upper side.
    assert result.multipliers is not None
    slack, row = result.multipliers
    assert row == pytest.approx([-t / s], rel=1e-5)
    assert slack == pytest.approx(-t / s * np.ones((2, 2)), abs=1e-5 * t / s)
    assert multiplier.support == pytest.approx(-3.0 * t, rel=1e-5)
    np.testing.assert_allclose(
        pulled_back(problem, multiplier.dual), multiplier.direction, atol=1e-12 * t / s
    )


def test_an_optimum_of_zero_by_cancellation_is_reached() -> None:
    """The all-ones matrix against three unit vectors at 120 degrees: they add up to zero."""
    result = lopro.solve(program(np.ones((3, 3)), diagonal_is(3, 1.0)))
    assert result.status is Status.CONVERGED
    assert abs(result.fun) <= 1e-5 and result.certificate.gap <= 1e-5


def test_inequalities_on_both_sides() -> None:
    """The trace goes to the entry of least cost up to its bound, and the rest to the next one."""
    C = np.diag([1.0, 2.0, 5.0])
    rows = trace_is(3, 2.0, np.inf), Affine.entries([0], 0.25, 0.5, shape=(3, 3))
    problem = program(C, *rows)
    result = lopro.solve(problem)
    assert result.status is Status.CONVERGED
    assert result.fun == pytest.approx(0.5 + 2.0 * 1.5, rel=1e-6)
    assert result.x.diagonal() == pytest.approx([0.5, 1.5, 0.0], abs=1e-5)
    assert result.multiplier is not None and result.multipliers is not None
    # The inequality is valid at all feasible matrices, near the solution or not.
    for d in ([0.25, 1.75, 0.0], [0.5, 1.5, 0.0], [0.5, 9.0, 4.0]):
        reached = float((result.multiplier.direction * np.diag(d)).sum())
        assert reached <= result.multiplier.support + 1e-9
    _, total, entry = result.multipliers
    assert total == pytest.approx([-2.0], abs=1e-4) and entry == pytest.approx([1.0], abs=1e-4)


def test_boxes_of_entries_are_supported() -> None:
    """Off-diagonal entries down to -0.25 of a correlation matrix."""
    n = 3
    low, high = np.full((n, n), -0.25), np.full((n, n), np.inf)
    problem = program(np.ones((n, n)), diagonal_is(n, 1.0), Polyhedron.box(low, high))
    result = lopro.solve(problem)
    assert result.status is Status.CONVERGED
    assert result.fun == pytest.approx(3.0 - 6.0 * 0.25, rel=1e-6)
    assert result.multipliers is not None
    assert result.multipliers[2].shape == (n, n)


def test_polyhedra_and_spectrahedra_are_supported() -> None:
    half = Polyhedron(np.array([[-1.0, 0.0, 0.0, 0.0]]), np.array([-0.5]), shape=(2, 2))
    problem = Problem(Linear(np.diag([3.0, 1.0])), Intersection(Spectrahedron(2, 1.0), half))
    result = lopro.solve(problem)
    assert result.method.endswith("SemidefiniteEngines(engines=None)")
    assert result.status is Status.CONVERGED and result.fun == pytest.approx(1.5, rel=1e-6)


def test_unconnected_variables_are_separate_blocks() -> None:
    C = np.zeros((6, 6))
    C[0, 3] = C[3, 0] = 1.0
    C[1, 1] = 2.0
    rows = Affine.entries((np.array([0, 3, 1, 4]), np.array([0, 3, 1, 5])), 1.0, 1.0, shape=(6, 6))
    form = semidefinite_form(program(C, rows))
    assert [(b.size, b.diagonal) for b in form.program.blocks] == [
        (2, False),
        (2, False),
        (1, True),
    ]
    assert [at.tolist() for at in form.indices] == [[0, 3], [4, 5], [1]]
    result = lopro.solve(program(C, rows))
    assert result.status is Status.CONVERGED and result.fun == pytest.approx(-2.0 + 2.0, abs=1e-5)
    assert result.x[2].tolist() == [0.0] * 6
    assert result.x[4, 5] == pytest.approx(1.0)


def test_an_empty_set_comes_with_multipliers() -> None:
    problem = program(np.eye(3), trace_is(3, -2.0, -1.0))
    result = lopro.solve(problem)
    assert result.status is Status.INFEASIBLE
    contradicts(problem, result.ray, lambda row: -1.0 * row[0])


def test_an_unbounded_objective_comes_with_a_ray() -> None:
    fixed = Affine.entries([0], 1.0, 1.0, shape=(2, 2))
    result = lopro.solve(program(-np.eye(2), fixed))
    assert result.status is Status.UNBOUNDED
    ray = result.ray / np.linalg.norm(result.ray)
    assert np.linalg.eigvalsh(ray)[0] >= -1e-9 and abs(ray[0, 0]) <= 1e-6
    assert -ray.trace() < -0.5


def test_an_objective_with_a_ray_over_an_empty_set_is_not_called_unbounded() -> None:
    empty = Affine.entries([0], -1.0, -1.0, shape=(2, 2))
    assert lopro.solve(program(-np.eye(2), empty)).status is Status.INFEASIBLE


def test_a_ray_alone_does_not_prove_that_the_objective_is_unbounded() -> None:
    """An engine that finds the ray first, over a set that is empty."""
    problem = program(-np.eye(2), Affine.entries([0], -1.0, -1.0, shape=(2, 2)))
    form = semidefinite_form(problem)
    ray = tuple(np.ones(b.shape) if b.diagonal else np.eye(b.size) for b in form.program.blocks)
    found = Outcome(KernelStatus.UNBOUNDED, ray, np.zeros(1))
    with pytest.raises(InfeasibleError):
        engines._raise_if_unsolvable(form, found, SimpleNamespace(problem=problem))
    filled = program(-np.eye(2), Affine.entries([0], 1.0, 1.0, shape=(2, 2)))
    with pytest.raises(UnboundedError):
        engines._raise_if_unsolvable(
            semidefinite_form(filled), found, SimpleNamespace(problem=filled)
        )


def test_unbounded_traces_have_a_radius_unless_the_norm_is_given() -> None:
    """The trace is unbounded, so the bound holds up to a radius; with the norm of a solution, everywhere."""
    C = np.array([[1.0, 0.3], [0.3, 1.0]])
    fixed = Affine.entries([0], 1.0, 1.0, shape=(2, 2))
    f, set_ = Linear(C), Intersection(PSDCone(2), fixed)
    # Schur: 1 + 0.6 b + b^2 is least at b = -0.3.
    free, given = lopro.solve(Problem(f, set_)), lopro.solve(Problem(f, set_, solution_norm=3.0))
    for result in (free, given):
        assert result.status is Status.CONVERGED and result.fun == pytest.approx(0.91, rel=1e-5)
        assert result.certificate.lower_bound <= 0.91
    assert np.isinf(given.certificate.radius)


def test_single_precision_is_kept() -> None:
    C = C2.astype(np.float32)
    fixed = Affine(np.eye(2, dtype=np.float32).reshape(1, 4), 1.0, 1.0, shape=(2, 2))
    result = lopro.solve(program(C, fixed), tol=1e-4)
    assert result.x.dtype == np.float32 and result.status is Status.CONVERGED


def test_explain_names_the_method_and_its_reason() -> None:
    small = lopro.explain(program(C2, trace_is(2, 1.0, 1.0)))
    assert (
        "1. SemidefiniteEngines(engines=None): it is a semidefinite program; a block of 2, 1 rows"
        in small
    )
    assert "Clarabel on the dual form, the cliques of the slack are small" in small
    C = np.random.default_rng(0).standard_normal((60, 60))
    large = lopro.explain(program(C + C.T, diagonal_is(60, 1.0)))
    assert "a block of 60, 60 rows: Newton's method of multipliers" in large
    assert "MultiplierMethod" in large  # what would be tried next
    distance = Problem(SquaredDistance(C2), Intersection(PSDCone(2), diagonal_is(2, 1.0)))
    assert "NearestSemidefinite(): a squared distance" in lopro.explain(distance)


def test_explain_agrees_with_solve() -> None:
    """The engine that is named first is the one that is used, where its proof suffices."""
    C = np.random.default_rng(0).standard_normal((60, 60))
    problem = program(C + C.T, diagonal_is(60, 1.0))
    newton = lopro.solve(problem, method=SemidefiniteEngines(), tol=1e-4)
    assert newton.counts.eigendecompositions > 0 and newton.counts.factorizations == 0
    clarabel = lopro.solve(program(C2, trace_is(2, 1.0, 1.0)))
    assert clarabel.counts.eigendecompositions == 0 and clarabel.counts.factorizations == 1


@pytest.mark.parametrize(
    "problem",
    [
        Problem(L1Norm(shape=(2, 2)), Intersection(PSDCone(2), trace_is(2, 1.0, 1.0))),
        Problem(Linear(C2), PSDCone(2)),
        Problem(Linear(C2), trace_is(2, 1.0, 1.0)),
        Problem(Linear(np.ones(4)), ResidualBall(np.eye(4), np.zeros(4), 1.0)),
    ],
    ids=["norm", "no rows", "no cone", "ball"],
)
def test_other_problems_are_refused(problem: Problem) -> None:
    for method in (SemidefiniteEngines(), NearestSemidefinite()):
        with pytest.raises(MissingCapabilityError):
            method.check(problem)


def test_engines_are_named() -> None:
    with pytest.raises(ValueError, match="'newton' and 'clarabel'"):
        SemidefiniteEngines(("simplex",))


# Nearest matrices.


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_nearest_agrees_with_nearest_correlation(unit: float, rng: Any) -> None:
    G = rng.standard_normal((20, 20))
    G = G + G.T
    set_ = Intersection(PSDCone(20), diagonal_is(20, unit))
    result = lopro.solve(Problem(SquaredDistance(unit * G), set_), tol=1e-9)
    expected = lopro.nearest_correlation(G, tol=1e-9)
    assert result.status is Status.CONVERGED and result.counts.projections == 1
    assert result.x / unit == pytest.approx(expected.x, abs=1e-7)
    assert result.fun == pytest.approx(unit**2 * expected.fun, rel=1e-8)
    assert result.certificate.lower_bound <= result.fun


def test_a_distance_with_a_linear_part(rng: Any) -> None:
    """Where the row is slack, the answer is the positive part of Z - C / w."""
    B = rng.standard_normal((2, 5, 5))
    Z, C = B[0] + B[0].T, B[1] + B[1].T
    set_ = Intersection(PSDCone(5), trace_is(5, -np.inf, 1e3))
    f = 2.0 * SquaredDistance(Z) + Linear(C)
    result = lopro.solve(Problem(f, set_), tol=1e-9)
    values, vectors = np.linalg.eigh(Z - 0.5 * C)
    X = (vectors * np.maximum(values, 0.0)) @ vectors.T
    assert result.status is Status.CONVERGED
    assert result.x == pytest.approx(X, abs=1e-10)
    assert result.certificate.lower_bound == pytest.approx(f.value(X), rel=1e-9)
    assert result.certificate.lower_bound <= f.value(X) + 1e-12 * abs(f.value(X))


def test_an_empty_set_has_no_nearest_matrix() -> None:
    set_ = Intersection(PSDCone(3), trace_is(3, -1.0, -1.0))
    problem = Problem(SquaredDistance(np.eye(3)), set_)
    result = lopro.solve(problem)
    assert result.status is Status.INFEASIBLE
    contradicts(problem, result.ray, lambda row: -1.0 * row[0])


def test_emptiness_that_newton_steps_do_not_detect_is_checked() -> None:
    """A combination of rows is minus the identity, at a positive level: steps end before they diverge."""
    rng = np.random.default_rng(1081)
    A = rng.standard_normal((2, 5, 5))
    A = A + A.transpose(0, 2, 1)
    A[0] = -np.eye(5) - 0.7 * A[1]  # A_0 + 0.7 A_1 = -I
    b = np.array([1.0 - 0.7 * 0.3, 0.3])
    problem = Problem(
        SquaredDistance(rng.standard_normal((5, 5))),
        Intersection(PSDCone(5), Affine(A.reshape(2, -1), b, b, shape=(5, 5))),
    )
    result = lopro.solve(problem)
    assert result.status is Status.INFEASIBLE
    contradicts(problem, result.ray, lambda row: float(row @ b))


@pytest.mark.parametrize("s", [1.0, 1e-9, 1e9])
def test_violations_of_entries_fixed_to_zero_are_relative_to_the_diagonal(s: float) -> None:
    """Lovász's number of the cycle of five is the root of 5; entries of its edges are 0 up to rounding."""
    i = np.arange(5)
    edges = Affine.entries((i, (i + 1) % 5), 0.0, 0.0, shape=(5, 5))
    result = lopro.solve(program(-np.ones((5, 5)), trace_is(5, s, s), edges), tol=1e-7)
    assert result.status is Status.CONVERGED
    assert result.fun == pytest.approx(-np.sqrt(5.0) * s, rel=1e-6)
    off = np.eye(5) * s / 5.0
    off[0, 1] = off[1, 0] = 1e-6 * s
    members = program(-np.ones((5, 5)), trace_is(5, s, s), edges).constraint
    assert members.violation(off) == pytest.approx(1e-6, rel=1e-9)


# SDPLIB.

#: Optimal values of the published tables, sign changed.
VALUES = {
    "mcp100": -226.1574, "theta1": -23.0, "qap5": 436.0, "truss1": 8.999996, "hinf1": -2.0326,
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_sdplib_through_solve(name: str) -> None:
    path = DATA / "sdplib" / f"{name}.dat-s"
    if not path.exists():
        pytest.skip(f"no {path}: set LOPRO_DATA to a folder with sdplib/*.dat-s")
    result = lopro.solve(lopro.read_sdpa(path), tol=1e-4)
    assert result.status is Status.CONVERGED
    assert result.fun == pytest.approx(VALUES[name], rel=1e-4)
    assert result.certificate.lower_bound <= VALUES[name] + 1e-4 * abs(VALUES[name])


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("mcp100", "Newton"), ("mcp250-1", "Clarabel"), ("theta1", "Newton"), ("theta3", "Newton"),
        ("gpp100", "Newton"), ("truss5", "Clarabel"), ("qap5", "Clarabel"),
    ],
)  # fmt: skip
def test_explain_on_sdplib(name: str, engine: str) -> None:
    path = DATA / "sdplib" / f"{name}.dat-s"
    if not path.exists():
        pytest.skip(f"no {path}: set LOPRO_DATA to a folder with sdplib/*.dat-s")
    said = lopro.explain(lopro.read_sdpa(path)).splitlines()[1:]
    assert name.startswith("mcp") == ("LowRankFactors" in said[0])
    (engines,) = [line for line in said if "it is a semidefinite program" in line]
    assert f"rows: {engine}" in engines


@pytest.mark.parametrize(("name", "status"), [("infd1", "INFEASIBLE"), ("infp1", "UNBOUNDED")])
def test_sdplib_without_solution(name: str, status: str) -> None:
    path = DATA / "sdplib" / f"{name}.dat-s"
    if not path.exists():
        pytest.skip(f"no {path}: set LOPRO_DATA to a folder with sdplib/*.dat-s")
    result = lopro.solve(lopro.read_sdpa(path))
    assert result.status.name == status and result.ray is not None


# Random programs, against Clarabel's conic form of the same.


def random_problem(seed: int) -> Problem:
    """Rows of all kinds around a matrix of random rank, a linear cost or a distance, in random units."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 8))
    A = rng.standard_normal((m, n, n)) * (rng.random((m, n, n)) < rng.choice([0.3, 1.0]))
    B = rng.standard_normal((n, int(rng.integers(1, n + 1))))
    inside = B @ B.T
    level, kind = A.reshape(m, -1) @ inside.ravel(), rng.integers(0, 4, m)
    room = rng.random((2, m))
    lower = np.where(kind == 0, level, np.where(kind == 1, -np.inf, level - room[0]))
    upper = np.where(kind == 0, level, np.where(kind == 2, np.inf, level + room[1]))
    sets = [PSDCone(n), Affine(A.reshape(m, -1), lower, upper, shape=(n, n))]
    sets.append(trace_is(n, -np.inf, 2.0 * float(inside.trace()) + 1.0))
    unit, C = 10.0 ** rng.integers(-6, 7), rng.standard_normal((n, n))
    f = Linear(unit * C) if seed % 3 else unit * SquaredDistance(C)
    return Problem(f, Intersection(*sets))


@pytest.mark.parametrize("seed", range(15))
def test_random_programs_agree_with_clarabel(seed: int) -> None:
    problem = random_problem(seed)
    ours, peer = lopro.solve(problem), lopro.solve(problem, method=InteriorPoint())
    assert ours.status is Status.CONVERGED
    assert ours.method.endswith(("SemidefiniteEngines(engines=None)", "NearestSemidefinite()"))
    size = problem.objective.magnitude(ours.x, ours.fun)
    assert ours.fun == pytest.approx(peer.fun, abs=5e-6 * size)
    assert ours.certificate.lower_bound <= peer.fun + 1e-7 * size
