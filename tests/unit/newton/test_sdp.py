"""Semidefinite programs: known answers, independently checked bounds, programs without solution."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from support.sdp_programs import CYCLE, max_cut, random_program, theta, unit

from lopro.core.deadline import using_clock
from lopro.linalg.eigenvalues import is_above, semidefinite_shift
from lopro.newton.sdp import Judge, SemidefiniteBlock, SemidefiniteProgram, Status, solve
from lopro.newton.sdp.faces import reduced
from lopro.newton.sdp.onto_rows import onto_rows
from lopro.newton.sdp.program import ScaledProgram
from lopro.newton.sdp.search import SemidefiniteSearch
from lopro.newton.sdp.solve import cliques, order_of_engines, work_of_a_step

ENGINES = ["newton", "clarabel"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("program", "value"),
    [
        (theta(5, CYCLE), -math.sqrt(5.0)),  # Lovasz 1979
        (max_cut(5, CYCLE), -5.0 * (5.0 + math.sqrt(5.0)) / 8.0),
        (max_cut(3, [(0, 1), (1, 2), (0, 2)]), -9.0 / 4.0),
        (SemidefiniteProgram.dense(np.diag([3.0, 1.0, 2.0]), [np.eye(3)], [2.0]), 2.0),
    ],
    ids=["theta of a pentagon", "cut of a pentagon", "cut of a triangle", "least eigenvalue"],
)
def test_known_values(engine, program, value):
    found = solve(program, 1e-7, engines=(engine,))
    assert found.status is Status.CONVERGED and found.engine == engine
    assert found.fun == pytest.approx(value, abs=3e-7)
    assert found.lower_bound <= value <= found.fun + found.charge
    assert 0.0 <= found.gap <= 1e-7 * max(1.0, abs(value))
    assert found.violation <= 1e-9 and found.radius == math.inf


@pytest.mark.parametrize("engine", ENGINES)
def test_both_kinds_of_blocks(rng, engine):
    cp = pytest.importorskip("cvxpy")
    program, _, _ = random_program(rng)
    found = solve(program, 1e-6, engines=(engine,))
    assert found.status is Status.CONVERGED
    X, x = cp.Variable((6, 6), PSD=True), cp.Variable(3, nonneg=True)
    matrix, numbers = program.blocks
    value = cp.sum(cp.multiply(matrix.C, X)) + numbers.C @ x
    rows = matrix.A.toarray() @ cp.vec(X, order="C") + numbers.A.toarray() @ x == program.b
    cp.Problem(cp.Minimize(value), [rows]).solve(solver="CLARABEL")
    assert found.fun == pytest.approx(value.value, rel=2e-6)


def test_bound_holds_for_any_multipliers_and_is_sharp(rng):
    """Weak duality for arbitrary multipliers; the bound is attained, so it is not too loose either."""
    program, (X, x), y = random_program(rng)
    judge = Judge(program)
    for size in (0.0, 0.1, 1.0, 10.0):
        bound = judge.dual(y + size * rng.standard_normal(4))
        trace = X.trace() + x.sum()
        assert bound.at(trace) <= program.value([X, x])
        slack = program.slack(bound.y)
        least = min(np.linalg.eigvalsh(slack[0])[0], slack[1].min())
        assert bound.slope == pytest.approx(max(0.0, -least), rel=1e-9, abs=1e-13)
        assert bound.value == pytest.approx(program.b @ bound.y, rel=1e-12)
    # A feasible y has no slope: the bound is for all X.
    assert judge.dual(y).slope == 0.0
    assert judge.dual(y).at(math.inf) == judge.dual(y).value


def test_trace_bounds(rng):
    assert Judge(max_cut(5, CYCLE)).trace_bound == pytest.approx(5.0, rel=1e-9)
    assert Judge(max_cut(5, CYCLE)).trace_bound >= 5.0
    assert Judge(theta(5, CYCLE)).trace_bound == pytest.approx(1.0, rel=1e-9)
    # X_11 = 1 does not bound X_22.
    free = SemidefiniteProgram.dense(np.eye(2), [unit(2, 0, 0)], [1.0])
    assert Judge(free).trace_bound == math.inf
    # <diag(1, 3), X> = 6: the trace is at most 6, which A*z >= I proves with z = 1.
    weighted = SemidefiniteProgram.dense(np.eye(2), [np.diag([1.0, 3.0])], [6.0])
    assert 6.0 <= Judge(weighted).trace_bound < 7.0 or Judge(weighted).trace_bound == math.inf


def test_violations_are_measured_and_charged():
    """X_11 = 1.1 instead of 1 with a multiplier of 1.5, an eigenvalue of -0.01 with a slack of trace 3.5."""
    program = SemidefiniteProgram.dense(np.diag([2.0, 3.0]), [unit(2, 0, 0)], [1.0])
    judge = Judge(program)
    point = judge.primal([np.diag([1.1, -0.01])])
    assert point.residuals == pytest.approx([0.1], rel=1e-9)
    assert point.negative == pytest.approx(0.01, rel=1e-9)
    assert point.fun == pytest.approx(2.17, rel=1e-12)
    # The second index is compared with itself alone, whatever the first one is.
    assert point.violation == pytest.approx(1.0, rel=1e-9)
    bound = judge.dual(np.array([1.5]))
    assert point.charge(bound) == pytest.approx(0.1 * 1.5 + 0.01 * 3.5, rel=1e-9)
    assert bound.at(math.inf) == pytest.approx(1.5, rel=1e-12)


def test_a_bound_without_trace_bound_states_its_radius():
    """The cost has an eigenvalue of -1e-9 that no multiplier raises: the bound is for limited traces only."""
    program = SemidefiniteProgram.dense(np.diag([1.0, -1e-9]), [unit(2, 0, 0)], [1.0])
    bound = Judge(program).dual(np.array([1.0]))
    assert bound.slope == pytest.approx(1e-9, rel=1e-5)
    assert bound.at(math.inf) == -math.inf
    assert bound.at(1e6) == pytest.approx(1.0 - 1e-3, rel=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_infeasible_program(engine):
    """X_11 = -1: the multipliers returned have b'y > 0 with A*y not positive."""
    program = SemidefiniteProgram.dense(np.eye(2), [unit(2, 0, 0), unit(2, 0, 1)], [-1.0, 0.5])
    found = solve(program, engines=(engine,))
    assert found.status is Status.INFEASIBLE
    assert program.b @ found.multipliers > 0.0
    largest = np.linalg.eigvalsh(program.adjoint(found.multipliers)[0])[-1]
    assert largest <= 1e-14 and found.radius == math.inf


@pytest.mark.parametrize("engine", ENGINES)
def test_an_unbounded_program(engine):
    """X_22 is not bounded by any row, and its cost is -1."""
    program = SemidefiniteProgram.dense(np.diag([1.0, -1.0]), [unit(2, 0, 0)], [1.0])
    found = solve(program, engines=(engine,))
    assert found.status is Status.UNBOUNDED
    (ray,) = found.x
    assert np.sum(program.blocks[0].C * ray) < 0.0
    assert np.linalg.eigvalsh(ray)[0] >= -1e-12
    assert abs(ray[0, 0]) <= 1e-6


def test_wrong_rays_prove_nothing():
    program = SemidefiniteProgram.dense(np.diag([1.0, -1.0]), [unit(2, 0, 0)], [1.0])
    judge = Judge(program)
    assert judge.unbounded([np.diag([1.0, 0.0])]) == 0.0  # the cost increases along it
    assert judge.unbounded([np.diag([0.5, 1.0])]) == pytest.approx(1.0, rel=1e-6)  # 0.5 / 0.5
    assert judge.unbounded([np.diag([0.0, 1.0])]) >= 1e10
    assert judge.empty(np.array([-1.0])).radius == 0.0
    wide = judge.empty(np.array([1.0]))
    assert wide.radius == pytest.approx(1.0, rel=1e-6) and not wide.proved  # X_11 = 1 needs trace 1


def test_faces_are_reduced_and_the_bound_is_for_the_original(rng):
    """Rows of sums zero have no interior point; the multipliers are checked with the original rows."""
    n = 5
    B = rng.standard_normal((n, n))
    rows = [np.ones((n, n))] + [unit(n, i, i) for i in range(n)]
    program = SemidefiniteProgram.dense(B + B.T, rows, [0.0] + [1.0] * n)
    assert reduced(program).program.blocks[0].size == n - 1
    # The multiplier of the row is as large as the coupling requires, and the rounding of the row is charged
    # with it: much less than 1e-6 cannot be proved this way.
    found = solve(program, 1e-5, engines=("newton",))
    assert found.status is Status.CONVERGED
    (X,) = found.x
    assert abs(X.sum()) <= 1e-8
    slack = program.slack(found.multipliers)[0]
    assert np.linalg.eigvalsh(slack)[0] >= -1e-5
    assert program.b @ found.multipliers == pytest.approx(found.fun, rel=1e-4)
    assert (
        program.b @ found.multipliers - 5.0 * max(0.0, -np.linalg.eigvalsh(slack)[0]) <= found.fun
    )


def test_an_interior_point_of_the_dual_removes_the_slope():
    """The dual requires y <= 1: 1 + 1e-6 is moved towards the interior point 0.5, no farther than needed."""
    program = SemidefiniteProgram.dense(np.eye(2), [unit(2, 0, 0)], [1.0])
    search = SemidefiniteSearch(program, 1e-6, 1.0, lambda: False)
    X = (np.diag([1.0, 0.0]),)
    assert search.judge.trace_bound == math.inf
    assert not search.consider(X, np.array([1.0 + 1e-6]))
    assert search.outcome(Status.STALLED).radius < math.inf
    assert search.consider(X, np.array([0.5]))
    found = search.outcome(Status.CONVERGED)
    assert found.radius == math.inf
    # 1.1 times the share 1e-6 / 0.5 of the way to 0.5 was taken.
    assert found.lower_bound == pytest.approx(1.0 - 1e-7, abs=1e-9) and found.lower_bound < 1.0


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_only_semidefinite_rows_define_faces(rng, sign):
    """X_12 = 0 defines no face, and neither does a row with eigenvalues of both signs."""
    Q, _ = np.linalg.qr(rng.standard_normal((4, 4)))
    mixed = (Q * [1.0, 1.0, -1.0, 0.0]) @ Q.T
    rows = [unit(4, 0, 1), sign * 0.5 * (mixed + mixed.T), np.eye(4)]
    program = SemidefiniteProgram.dense(np.eye(4), rows, [0.0, 0.0, 1.0])
    assert reduced(program).program.blocks[0].size == 4
    semidefinite = sign * np.outer(Q[0], Q[0])
    program = SemidefiniteProgram.dense(np.eye(4), [*rows, semidefinite], [0.0, 0.0, 1.0, 0.0])
    face = reduced(program)
    assert face.program.blocks[0].size == 3 and face.dropped == ((3, 0, sign),)


def test_a_run_that_cannot_succeed_ends():
    """An accuracy below rounding and no time limit: the run has to end by itself."""
    found = solve(theta(5, CYCLE), 1e-17, scale=0.0)
    assert found.status is Status.STALLED
    assert found.fun == pytest.approx(-math.sqrt(5.0), rel=1e-6)
    assert 0.0 <= found.gap <= 1e-6


def test_onto_rows_stays_in_the_cone(rng):
    program, (X, x), _ = random_program(rng)
    values, vectors = np.linalg.eigh(X)
    values[:2] = 1e-9  # nearly on the boundary
    X = (vectors * values) @ vectors.T
    near = X, x
    b = program.rows(near) + 1e-3 * rng.standard_normal(4)
    moved = onto_rows(SemidefiniteProgram(b, program.blocks), near, lambda: False)
    assert np.abs(SemidefiniteProgram(b, program.blocks).rows(moved) - b).max() <= 1e-12
    assert np.linalg.eigvalsh(moved[0])[0] > 0.0 and moved[1].min() > 0.0


def test_scaled_programs_are_the_same_program(rng):
    program, X, y = random_program(rng)
    scaled = ScaledProgram.of(program)
    unit_of_value = scaled.x * scaled.cost
    inner = tuple(block / scaled.x for block in X)
    assert scaled.program.value(inner) * unit_of_value == pytest.approx(program.value(X), rel=1e-12)
    np.testing.assert_allclose(scaled.program.rows(inner), scaled.program.b, rtol=1e-10)
    ours = y * scaled.rows / scaled.cost
    np.testing.assert_allclose(scaled.multipliers(ours), y, rtol=1e-12)


@pytest.mark.parametrize(("cost", "size"), [(1e9, 1e-9), (1e-9, 1e9), (1e9, 1e9)])
def test_units(cost, size):
    plain = theta(5, CYCLE)
    (block,) = plain.blocks
    blocks = (SemidefiniteBlock(5, False, cost * block.C, block.A),)
    found = solve(SemidefiniteProgram(size * plain.b, blocks), 1e-6, scale=0.0)
    assert found.status is Status.CONVERGED
    assert found.fun == pytest.approx(-math.sqrt(5.0) * cost * size, rel=2e-6)


def test_time_limits():
    ticks = iter(np.arange(0.0, 1e6, 0.05))
    with using_clock(lambda: next(ticks)):
        found = solve(theta(5, CYCLE), 1e-12, seconds=1.0, engines=("newton",))
    assert found.status is Status.STOPPED
    assert found.gap >= 0.0
    with using_clock(iter(np.arange(0.0, 1e6, 5.0)).__next__):
        nothing = solve(theta(5, CYCLE), seconds=1.0)
    assert nothing.status is Status.STOPPED and nothing.lower_bound == -math.inf


def test_rule_and_cliques():
    path = max_cut(40, [(i, i + 1) for i in range(39)])
    assert max(cliques(path.blocks[0])) == 2
    assert cliques(theta(5, CYCLE).blocks[0]) == [5]
    # A Cholesky factorisation of each clique: of 3 variables for two entries, of 15 for five.
    assert work_of_a_step(path) == pytest.approx(39 * 3.0**3 / 3.0)
    assert work_of_a_step(theta(5, CYCLE)) == pytest.approx(15.0**3 / 3.0)
    assert order_of_engines(path)[0][0] == "clarabel"
    assert order_of_engines(theta(60, [(i, i + 1) for i in range(59)]))[0][0] == "newton"


def test_semidefinite_shifts(rng):
    Q, _ = np.linalg.qr(rng.standard_normal((20, 20)))
    M = (Q * np.linspace(-0.5, 1.0, 20)) @ Q.T
    M = 0.5 * (M + M.T)
    assert (
        semidefinite_shift(M) == pytest.approx(0.5, rel=1e-10)
        and semidefinite_shift(M) >= 0.5 - 1e-15
    )
    assert semidefinite_shift(M, 0.1) == pytest.approx(0.6, rel=1e-10)
    assert semidefinite_shift(np.zeros((3, 3))) <= 1e-300 and not is_above(np.zeros((3, 3)), 0.0)
    assert (
        semidefinite_shift(np.array([1.0, -2.0])) == 2.0
        and semidefinite_shift(np.zeros((0, 0))) == 0.0
    )


def test_bad_input():
    with pytest.raises(ValueError, match="tol"):
        solve(theta(5, CYCLE), 0.0)
    with pytest.raises(ValueError, match=r"engines.*'magic'"):
        solve(theta(5, CYCLE), engines=("magic",))


def test_rows_that_x_cannot_change_are_left_out():
    """Where X vanishes, or is indefinite after a correction, rows have no norm to be divided by."""
    rows = [np.diag([1.0, 0.0]), np.diag([0.0, 1.0])]
    program = SemidefiniteProgram.dense(np.eye(2), rows, [1.0, 1.0])
    (X,) = onto_rows(program, [np.diag([0.9, 0.0])], lambda: False)
    np.testing.assert_allclose(X, np.diag([1.0, 0.0]), atol=1e-12)
    across = 100.0 * np.array([[0.0, 1.0], [1.0, 0.0]])
    program = SemidefiniteProgram.dense(np.eye(2), [across, across + rows[0]], [1.0, 1.0])
    assert np.all(np.isfinite(onto_rows(program, [np.diag([1.0, -1.0])], lambda: False)[0]))


def test_the_largest_radius_without_a_point_is_kept():
    found = SimpleNamespace(proved=False, radius=5.0)
    search = SimpleNamespace(
        face=SimpleNamespace(multipliers=lambda program, y, margin: y, matrices=lambda X: X),
        units=SimpleNamespace(multipliers=lambda y: y, matrices=lambda X: X),
        judge=SimpleNamespace(contradiction=lambda y: (y, found)),
        original=None,
        empty_within=2.0,
    )
    for radius, largest in ((5.0, 5.0), (3.0, 5.0)):
        found.radius = radius
        assert not SemidefiniteSearch.check_rays(search, (np.zeros((1, 1)),), np.ones(1))
        assert search.empty_within == largest
