"""Bounds of conic programs: attained for optimal multipliers, never above the optimum."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from lopro.certificates.certificate import Status
from lopro.core.deadline import OutOfTime, using_clock
from lopro.engines import Answer, AnswerStatus, ConeProgram, cone_bound, proved_cones, solve_cones
from lopro.engines.cone_bound import ConicData, conic_bound, repaired
from lopro.engines.cone_points import made_feasible, violation, violation_charge
from lopro.engines.cones import Nonnegative, PSDTriangle, SecondOrder, Zero, triangle
from lopro.engines.proved_cones import solve_conic

DATA = Path(os.environ.get("LOPRO_DATA", Path(__file__).parents[4] / "shared" / "data"))


def sparse(rows: Any) -> Any:
    return scipy.sparse.csr_array(np.atleast_2d(np.asarray(rows, dtype=float)))


def disc(unit: float = 1.0) -> ConicData:
    """Min 3x + 4y over the disc of radius ``unit``: -5 unit, with multipliers (5, -3, -4)."""
    A = sparse([[0, 0], [-1, 0], [0, -1]])
    return ConicData(
        sparse(np.zeros((2, 2))),
        np.array([3.0, 4.0]),
        A,
        np.array([unit, 0, 0]),
        [(SecondOrder(3), 3)],
    )


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_bound_is_attained_and_not_exceeded(unit: float) -> None:
    data = disc(unit)
    z = data.inside(np.array([5.0, 3.0, 4.0]))
    bound = conic_bound(data, np.array([-0.6, -0.8]) * unit, z)
    assert -5.0 * unit * (1.0 + 1e-14) <= bound.value <= -5.0 * unit
    assert bound.slope <= 1e-14


def test_the_remaining_slope_is_reported() -> None:
    # z = (4, 3, 0) leaves the slope (0, 4): the bound holds at the centre only, and loses 4 for each unit.
    bound = conic_bound(disc(), np.zeros(2), np.array([4.0, 3.0, 0.0]))
    assert bound.slope == pytest.approx(4.0, rel=1e-13)
    assert bound.value == pytest.approx(-4.0, rel=1e-13)
    assert bound.within(1.0) <= -5.0


def test_a_quadratic_program_by_hand() -> None:
    # min x^2/2 - 2x over x <= 1: -1.5 at x = 1 with multiplier 1.
    data = ConicData(
        sparse([[1]]), np.array([-2.0]), sparse([[1]]), np.ones(1), [(Nonnegative(1), 1)]
    )
    bound = conic_bound(data, np.ones(1), np.ones(1))
    assert -1.5 * (1 + 1e-14) <= bound.value <= -1.5
    # With the multiplier 0 the best centre is 2, and the bound is that over the whole line.
    assert conic_bound(data, np.array([2.0]), np.zeros(1)).value == pytest.approx(-2.0, rel=1e-13)


def test_corrections_refine_inaccurate_factors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors that are 1 % off leave 1e-4 of the slope after one step of refinement."""
    exact = cone_bound.sparse_factors

    def rough(K: Any, **options: Any) -> Any:
        factors = exact(K, **options)
        return SimpleNamespace(solve=lambda v: 1.01 * factors.solve(v))

    monkeypatch.setattr(cone_bound, "sparse_factors", rough)
    rng = np.random.default_rng(0)
    A, slope = rng.standard_normal((12, 6)), rng.standard_normal(6)
    data = ConicData(
        sparse(np.zeros((6, 6))), np.ones(6), sparse(A), np.ones(12), [(Nonnegative(12), 12)]
    )
    _, change = cone_bound._corrector(data, np.ones(12))(slope)
    np.testing.assert_allclose(A.T @ change, (1.0 - 1e-4) * slope, rtol=1e-6)


@pytest.mark.parametrize("noise", [1e-9, 1e-6, 1e-3])
def test_repairing_leaves_rounding_of_the_slope(noise: float) -> None:
    rng = np.random.default_rng(0)
    data = disc()
    z = np.array([5.0, 3.0, 4.0]) + noise * rng.standard_normal(3)
    v, inside = repaired(data, np.array([-0.6, -0.8]), z, np.array([1.0, -0.6, -0.8]))
    bound = conic_bound(data, v, inside)
    assert bound.slope <= 1e-13
    assert -5.0 - 10.0 * noise <= bound.value <= -5.0 + 1e-15


@pytest.mark.parametrize(
    ("cone", "point"),
    [
        (Nonnegative(3), [-1.0, 2.0, -0.0]),
        (SecondOrder(3), [1.0, 3.0, 4.0]),
        (SecondOrder(3), [9.0, 3.0, 4.0]),
        (SecondOrder(3, 2), [1.0, 3.0, 4.0, 9.0, 3.0, 4.0]),
        (PSDTriangle(2), [1.0, 3.0, -1.0]),
    ],
)
def test_multipliers_are_moved_inside_in_spite_of_rounding(cone: Any, point: list[float]) -> None:
    inside = cone.into_dual(np.array(point))
    if isinstance(cone, Nonnegative):
        assert inside.min() >= 0.0
    elif isinstance(cone, PSDTriangle):
        i, j = triangle(cone.order)
        X = np.zeros((2, 2))
        X[i, j] = X[j, i] = inside / np.where(i == j, 1.0, math.sqrt(2.0))
        assert X[0, 0] * X[1, 1] >= X[0, 1] ** 2
    else:
        for t, *u in inside.reshape(-1, 3):
            assert t * t >= math.fsum(a * a for a in u)
    # Multipliers inside the cone are unchanged, up to rounding.
    np.testing.assert_allclose(cone.into_dual(inside), inside, rtol=1e-13, atol=1e-13)


def random_program(rng: np.random.Generator, kind: str) -> ConicData:
    n = 6
    x = rng.standard_normal(n)
    cone: Any = {"soc": SecondOrder(5), "psd": PSDTriangle(3), "rows": Nonnegative(9)}[kind]
    m = {"soc": 5, "psd": 6, "rows": 9}[kind]
    A, E = rng.standard_normal((m, n)), rng.standard_normal((2, n))
    inside = {"soc": [9.0, 1, 1, 1, 1], "psd": [3.0, 0, 3, 0, 0, 3], "rows": np.ones(9)}[kind]
    root = rng.standard_normal((n, n))
    P = sparse(root @ root.T)
    b = np.concatenate([E @ x, A @ x + np.asarray(inside)])
    return ConicData(
        P, rng.standard_normal(n), sparse(np.vstack([E, A])), b, [(Zero(2), 2), (cone, m)]
    )


@pytest.mark.parametrize("kind", ["soc", "psd", "rows"])
@pytest.mark.parametrize("seed", range(5))
def test_random_programs_are_proved_and_agree_with_clarabel(kind: str, seed: int) -> None:
    data = random_program(np.random.default_rng(seed), kind)
    outcome = solve_conic(data, 1e-7)
    assert outcome.status is Status.CONVERGED
    assert violation(data, outcome.x).relative <= 1e-9
    cones = [cone for cone, _ in data.cones]
    found = solve_cones(ConeProgram(data.P, data.q, data.A, data.b, cones), 1e-11, scaled=False)
    best = float(found.x @ (0.5 * (data.P @ found.x) + data.q))
    assert outcome.lower_bound <= best + 1e-9 * max(1.0, abs(best))
    assert outcome.fun == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_infeasibility_and_unboundedness_are_proved() -> None:
    # |x| <= 1 and x_1 >= 2.
    A = sparse([[-1, 0], [0, 0], [-1, 0], [0, -1]])
    b = np.array([-2.0, 1.0, 0.0, 0.0])
    cones = [(Nonnegative(1), 1), (SecondOrder(3), 3)]
    none = sparse(np.zeros((2, 2)))
    empty = solve_conic(ConicData(none, np.ones(2), A, b, cones))
    assert empty.status is Status.INFEASIBLE
    # min x over |y| <= x + t is unbounded along (-1, 0) if t may grow with it: drop the lower side.
    free = ConicData(
        none,
        np.array([1.0, 0.0]),
        sparse([[1, 0], [0, 0], [0, -1]]),
        np.zeros(3),
        [(SecondOrder(3), 3)],
    )
    assert solve_conic(free).status is Status.UNBOUNDED


def test_the_point_is_kept_if_the_time_runs_out_in_the_proof(monkeypatch):
    """The engine has solved the program; there is no time to repair its multipliers."""

    def late(*arguments):
        raise OutOfTime

    monkeypatch.setattr("lopro.engines.proved_cones.repaired", late)
    outcome = solve_conic(disc(), 1e-15)
    assert outcome.fun == pytest.approx(-5.0, abs=1e-6)
    assert outcome.lower_bound <= -5.0
    np.testing.assert_allclose(outcome.x, [-0.6, -0.8], atol=1e-6)


def test_without_a_point_nothing_is_claimed():
    with using_clock(iter([0.0, *[1e9] * 1000]).__next__):
        outcome = solve_conic(disc(), seconds=1.0)
    assert outcome.status is Status.STOPPED and math.isnan(outcome.fun)
    assert outcome.lower_bound == -math.inf and outcome.violation == math.inf


def _of_norms(rng, count=6, size=3, n=8):
    """Return ``min q'x`` over ``|B_i x| <= 1`` with multipliers on the boundary of their cones."""
    blocks, z = [], []
    for _ in range(count):
        blocks += [np.zeros((1, n)), rng.standard_normal((size - 1, n))]
        u = rng.standard_normal(size - 1)
        z += [[np.linalg.norm(u)], u]
    A, z = scipy.sparse.csr_array(np.vstack(blocks)), np.concatenate(z)
    cones = [(SecondOrder(size), size) for _ in range(count)]
    b = np.tile([1.0, *np.zeros(size - 1)], count)
    return ConicData(scipy.sparse.csr_array((n, n)), -A.T @ z, A, b, cones), z


def test_multipliers_on_the_boundary_of_their_cones_are_repaired(rng):
    """Errors of 1e-7 are corrected up to rounding, at a loss of the bound of about that size."""
    for _ in range(5):
        data, z = _of_norms(rng)
        noisy = data.inside(z + 1e-7 * rng.standard_normal(len(z)))
        v, found = repaired(data, np.zeros(8), noisy, np.ones(len(z)))
        slope = data.q + data.A.T @ found
        assert np.abs(slope).max() < 1e-13
        for part in data.blocks(found):
            assert part[0] >= np.linalg.norm(part[1:])
        assert conic_bound(data, v, found).value == pytest.approx(-(data.b @ z), abs=1e-5)


def test_violations_of_cones_and_equations_are_charged():
    """|x_2| <= x_1 is violated by 2 at (1, 3), with a multiplier of norm 5; x_1 = 2 by 1, with 7."""
    A = scipy.sparse.csr_array(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, -1.0]]))
    cones = [(Zero(1), 1), (SecondOrder(2), 2)]
    data = ConicData(scipy.sparse.csr_array((2, 2)), np.ones(2), A, np.array([2.0, 0, 0]), cones)
    charge = violation_charge(data, np.array([1.0, 3.0]), np.array([-7.0, 5.0, -5.0]))
    assert charge == pytest.approx(7.0 + 10.0)


def test_a_cone_restricted_by_an_equation_is_corrected_along_its_tangent():
    """``w^2 <= t - u`` as ``|(u, w)| <= t`` with ``t + u = 1``: t cannot increase while u is unchanged."""
    rows = np.array([[-1.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]])
    cones = [(Zero(1), 1), (SecondOrder(3), 3)]
    data = ConicData(
        scipy.sparse.csr_array((3, 3)), np.ones(3), scipy.sparse.csr_array(rows),
        np.array([-1.0, 0.0, 0.0, 0.0]), cones,
    )  # fmt: skip
    x = np.array([13337.0, -13336.0, np.sqrt(26673.0) + 0.1])
    assert violation(data, x).relative > 1e-9
    found, outside = made_feasible(data, x)
    assert outside == violation(data, found) and outside.relative <= 1e-11
    assert np.linalg.norm(found - x) <= 1e-3 * np.linalg.norm(x)
    assert violation_charge(data, found, np.array([1.0, 1.0, 1.0, 0.0])) <= 1e-6


def test_multipliers_are_repaired_only_where_they_prove_too_little(monkeypatch):
    calls = []

    def counted(*given):
        calls.append(given)
        return repaired(*given)

    monkeypatch.setattr("lopro.engines.proved_cones.repaired", counted)
    rough, sharp = solve_conic(disc(), 1e-3), solve_conic(disc(), 1e-15)
    assert rough.status is Status.CONVERGED and rough.gap <= 1e-3 * 5.0
    assert len(calls) == 1 and sharp.gap <= rough.gap


def test_multipliers_well_inside_a_matrix_cone_are_not_changed() -> None:
    """A shift of all eigenvalues would add more to the residual of a contradiction than rounding."""
    cone, r = PSDTriangle(2), np.sqrt(2.0)
    inside = np.array([0.3, 0.1 * r, 0.7])
    assert cone.into_dual(inside).tolist() == inside.tolist()
    edge = cone.matrix(cone.into_dual(np.array([0.1, 0.3 * r, 0.9])))  # up to rounding, of rank one
    assert Fraction(edge[0, 0]) * Fraction(edge[1, 1]) > Fraction(edge[0, 1]) ** 2


@pytest.mark.parametrize("off", [1e-4, 1e6, 0.0])
def test_an_answer_off_its_slacks_is_corrected_by_its_residuals(
    off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Min x over x >= 2 and x >= -5, by an engine whose point is below 2, without the repair of points."""
    right_hand_sides: list[Any] = []

    def engine(program: ConeProgram, *_: Any) -> Answer:
        right_hand_sides.append(program.b.tolist())
        x = -program.b[:1]
        slacks = np.array([0.0, program.b[1] + x[0]])
        z = np.array([1.0, 0.0])
        return Answer(AnswerStatus.INACCURATE, x - off, z, np.zeros(0), 10, 0.0, slacks)

    monkeypatch.setattr(proved_cones, "solve_cones", engine)
    monkeypatch.setattr(proved_cones, "made_feasible", lambda data, x: (x, violation(data, x)))
    A, b = sparse([[-1.0], [-1.0]]), np.array([-2.0, 5.0])
    data = ConicData(sparse([[0.0]]), np.ones(1), A, b, [(Nonnegative(2), 2)])
    outcome = solve_conic(data)
    assert outcome.status is Status.CONVERGED and outcome.x == pytest.approx([2.0], rel=1e-9)
    assert right_hand_sides[0] == [-2.0, 5.0] and len(right_hand_sides) == (1 if off == 0.0 else 2)
    assert right_hand_sides[-1] == pytest.approx([-2.0 - off, 5.0 - off])
    assert outcome.steps == 10 * len(right_hand_sides)


def test_corrections_end_and_the_closest_answer_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine whose answers become worse: three corrections, and the first answer is returned."""
    offs = iter([1e-3, 1e-2, 1e-1, 1.0])

    def engine(program: ConeProgram, *_: Any) -> Answer:
        x, one = 2.0 * np.ones(1) - next(offs), np.ones(1)
        return Answer(AnswerStatus.INACCURATE, x, one, np.zeros(0), 10, 0.0, 0.0 * one)

    monkeypatch.setattr(proved_cones, "solve_cones", engine)
    monkeypatch.setattr(proved_cones, "made_feasible", lambda data, x: (x, violation(data, x)))
    data = ConicData(
        sparse([[0.0]]), np.ones(1), sparse([[-1.0]]), -2.0 * np.ones(1), [(Nonnegative(1), 1)]
    )
    outcome = solve_conic(data)
    assert outcome.status is Status.STALLED and outcome.x == pytest.approx([1.999])
    assert next(offs, None) is None and outcome.steps == 40


def test_the_schedule_of_cblib_is_proved() -> None:
    """Clarabel ends early on it, 2e-8 outside; the repair of that point costs as much as two gaps of 1e-6."""
    path = DATA / "cblib" / "sched_50_50_orig.cbf.gz"
    if not path.exists():
        pytest.skip(f"needs {path.name} of the collection CBLIB in {DATA}")
    read_cbf = pytest.importorskip("benchmarks.general.cblib").read_cbf
    outcome = solve_conic(read_cbf(path)[0])
    assert outcome.status is Status.CONVERGED
    assert 26673.0008 <= outcome.lower_bound <= outcome.fun <= 26673.03
