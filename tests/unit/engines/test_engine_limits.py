"""Limits of engines: time, Ctrl-C, memory, packages that are missing, and silence on the console."""

import math
import signal
import sys
import threading
import time

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from support.engine_samples import assert_optimal, program

import lopro
from benchmarks.engine_memory import measured
from lopro.constraints import Polyhedron, PSDCone, ResidualBall
from lopro.core.deadline import Deadline, OutOfTime, using_clock
from lopro.engines import (
    AnswerStatus,
    ConeProgram,
    EngineUnavailable,
    QuadraticProgram,
    answer,
    solve_by_clarabel,
    solve_by_highs,
    solve_by_piqp,
    solve_cones,
)
from lopro.engines.cones import Nonnegative, PSDTriangle
from lopro.methods.baselines import InteriorPoint
from lopro.newton.programs import solve_program
from lopro.objectives import L1Norm, NuclearNorm, Quadratic
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.polyhedron import project_polyhedron

ALL = [solve_by_highs, solve_by_piqp, solve_by_clarabel]


def semidefinite(order: int) -> ConeProgram:
    """The nearest multiple of the identity: a dense cone."""
    t = order * (order + 1) // 2
    eye = scipy.sparse.eye_array(t, format="csc")
    return ConeProgram(eye, np.zeros(t), -eye, np.ones(t), [PSDTriangle(order)])


# The console.


def test_piqp_alone_prints(capfd):
    """The negative control: this is what the adapter keeps from the console."""
    import piqp

    solver = piqp.DenseSolver()
    side = np.array([np.inf, 1.0])
    solver.setup(P=np.eye(2), c=np.ones(2), G=np.eye(2), h_l=-side, h_u=side)
    assert "infinity" in "".join(capfd.readouterr())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("side", [np.inf, 1e30, 1e40])
def test_engines_print_nothing(rng, capfd, side, sparse):
    p = program(rng, quadratic=False)
    A = np.vstack([p.A, rng.standard_normal((1, 8))])
    A = scipy.sparse.csr_array(A) if sparse else A
    lower, upper = np.append(p.lower, -side), np.append(p.upper, side)
    free = QuadraticProgram.of(None, p.q, A, lower, upper, p.least, p.most)
    for engine in ALL:
        assert engine(free).status is not None
    P = scipy.sparse.csc_array(-np.eye(8)) if sparse else -np.eye(8)
    concave = QuadraticProgram.of(P, p.q, A, lower, upper, p.least, p.most)
    only_free = QuadraticProgram.of(-P, p.q, A[-1:], [-side], [side])
    for engine in (solve_by_piqp, solve_by_clarabel):
        engine(concave)
        assert_optimal(only_free, engine(only_free))
    empty = QuadraticProgram.of(None, p.q, A, upper, lower, p.most, p.least)
    solve_by_piqp(empty)
    assert "".join(capfd.readouterr()) == ""


# Time.


@pytest.mark.parametrize("engine", [solve_by_piqp, solve_by_clarabel])
def test_without_time_for_a_factorisation_no_engine_is_started(rng, engine):
    p = program(rng, n=60, m=200)
    answer = engine(p, seconds=1e-9)
    assert (answer.status, answer.iterations) == (AnswerStatus.TIME, 0)
    assert not answer.finite and "longer than" in answer.message


@pytest.mark.parametrize("engine", ALL)
def test_an_outer_deadline_is_a_limit(rng, engine):
    now = 0.0
    with using_clock(lambda: now), Deadline(1.0).active():
        now = 2.0
        answer = engine(program(rng, quadratic=False))
        assert answer.status is AnswerStatus.TIME


def test_the_work_of_dense_cones_is_estimated(monkeypatch):
    """Clarabel factors a dense matrix of order t for a cone of t rows: 2/3 t^3 operations."""
    monkeypatch.setattr("lopro.core.deadline.operations_per_second", lambda: 1.0)
    t = 10.0
    pairs, blocks = t, 2.0 / 3.0 * t**3
    p, now = semidefinite(4), 0.0
    with using_clock(lambda: now):
        for share, started in ((0.99, False), (1.01, True)):
            limited = solve_cones(p, 1e-9, share * (pairs + blocks))
            assert (limited.iterations > 0) == started
            with Deadline(share * (200.0 * pairs + 5.0 * blocks)).active():
                if started:
                    assert solve_cones(p, 1e-9).status is AnswerStatus.SOLVED
                else:
                    with pytest.raises(OutOfTime, match="first steps"):
                        solve_cones(p, 1e-9)


def test_the_result_gives_the_reason_of_the_time_limit(monkeypatch):
    monkeypatch.setattr("lopro.core.deadline.operations_per_second", lambda: 1.0)
    ball = ResidualBall(np.eye(3), np.ones(3), sigma=0.1)
    result = lopro.solve(lopro.Problem(L1Norm(), ball), method=InteriorPoint(), time_limit=30.0)
    assert result.status.name == "TIME_LIMIT"
    assert any("first steps" in warning for warning in result.warnings)


def interrupting_clock(at: int):
    """A clock that stands still, and sends the signal of Ctrl-C at its ``at``-th reading."""
    reads = 0

    def clock() -> float:
        nonlocal reads
        reads += 1
        if reads == at:
            signal.raise_signal(signal.SIGINT)
        return 0.0

    return clock


def test_ctrl_c_ends_clarabel_between_two_iterations(capfd):
    p = semidefinite(5)
    full = solve_cones(p, 1e-10).iterations
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for at in (5, 6):
            with using_clock(interrupting_clock(at)), Deadline(1e9).active() as deadline:
                answer = solve_cones(p, 1e-10, 1e8)
                assert answer.status is AnswerStatus.TIME and answer.iterations < full
                assert deadline.stopped_by_user
        with (
            using_clock(interrupting_clock(8)),
            Deadline(1e9).active(),
            pytest.raises(OutOfTime),
        ):
            solve_cones(p, 1e-10)
    finally:
        signal.signal(signal.SIGINT, before)
    assert "".join(capfd.readouterr()) == ""


def assignment(size: int) -> QuadraticProgram:
    """An assignment problem, which takes HiGHS seconds."""
    eye, ones = scipy.sparse.eye_array(size), np.ones((1, size))
    rows = [scipy.sparse.kron(eye, ones), scipy.sparse.kron(ones, eye)]
    cost = np.random.default_rng(0).random(size * size)
    A = scipy.sparse.vstack(rows, format="csr")
    return QuadraticProgram.of(None, cost, A, np.ones(2 * size), np.ones(2 * size), least=0.0)


def test_ctrl_c_ends_highs(monkeypatch):
    """HiGHS ignores signals: the call returns while HiGHS still works, here until it is ended."""
    started, ended, pressed = threading.Event(), threading.Event(), []

    def deaf(*arguments, **options):
        started.set()
        ended.wait(60.0)

    def press():
        started.wait(60.0)
        pressed.append(time.perf_counter())
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(scipy.optimize, "linprog", deaf)
    thread = threading.Thread(target=press)
    thread.start()
    try:
        with Deadline().active():
            found = solve_by_highs(assignment(3))
            elapsed = time.perf_counter() - pressed[0]
    finally:
        ended.set()
        thread.join()
    assert found.status is AnswerStatus.TIME and not found.finite
    assert found.message == "left at the deadline"
    assert elapsed < 10.0


def test_exceptions_inside_highs_are_raised(monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError("inside")

    monkeypatch.setattr(scipy.optimize, "linprog", broken)
    with pytest.raises(ZeroDivisionError, match="inside"):
        solve_by_highs(assignment(3))


def test_an_exception_in_the_callback_is_raised_and_not_printed(monkeypatch, capfd):
    class Pressed(Deadline):
        @property
        def passed(self) -> bool:
            raise KeyboardInterrupt

    monkeypatch.setattr("lopro.engines.clarabel.current_deadline", Pressed)
    with pytest.raises(KeyboardInterrupt):
        solve_cones(semidefinite(3), 1e-9, math.inf)
    assert "".join(capfd.readouterr()) == ""


# Memory.


def test_memory_that_is_available():
    assert 1e6 < answer.available_memory() < 1e15


def test_memory_is_limited_by_the_address_space(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda which: (2**40, resource.RLIM_INFINITY))
    monkeypatch.setattr(answer, "_lines", lambda path: ["1000 2"] if "statm" in path else [])
    assert answer._of_address_space() == 2.0**40 - 1000.0 * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (-1, -1))
    assert answer._of_address_space() == math.inf


def test_memory_is_limited_by_the_control_group(monkeypatch):
    monkeypatch.setattr(answer, "_lines", lambda path: ["12345"] if "cgroup" in path else [])
    assert answer.available_memory() == 12345.0
    monkeypatch.setattr(answer, "_lines", lambda path: ["max"] if "cgroup" in path else [])
    assert answer.available_memory() > 12345.0


def test_entries_of_cones_are_a_lower_bound():
    t = 180_300.0
    assert answer.cone_entries(PSDTriangle(600)) == t * (t + 1.0) / 2.0
    # A chain of 1000 vertices has cliques of two: Clarabel splits its cone.
    assert answer.cone_entries(PSDTriangle(1000), 1000 + 999) == 6.0
    # 30 of 100 vertices joined with all others: the degeneracy is 30, and the estimate is lower.
    edges = 30 * 29 // 2 + 30 * 70
    clique = 1.0 + math.ceil(edges / 100)
    assert clique <= 31.0
    rows = clique * (clique + 1.0) / 2.0
    assert answer.cone_entries(PSDTriangle(100), 100 + edges) == rows * (rows + 1.0) / 2.0


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize(
    ("case", "size", "estimate"),
    [
        ("clarabel-semidefinite", 60, answer.BYTES_OF_CLARABEL),
        ("clarabel-dense", 500, answer.BYTES_OF_CLARABEL),
        ("piqp-dense", 1000, answer.BYTES_OF_PIQP),
    ],
)
def test_engines_use_at_least_the_estimated_memory(case, size, estimate):
    """The estimate is a lower bound, so that only programs that do not fit are refused."""
    assert estimate <= measured(case, size) <= 2.0 * estimate


def test_programs_that_exceed_the_memory_are_refused(rng, monkeypatch):
    monkeypatch.setattr(answer, "_SMALL", 0.0)
    monkeypatch.setattr(answer, "available_memory", lambda: 1000.0)
    for engine in ALL:
        with pytest.raises(EngineUnavailable, match=r"8 variables and 12 rows would take .* GB"):
            engine(program(rng, quadratic=False))
        with pytest.raises(EngineUnavailable, match="8 variables"):
            engine(program(rng, quadratic=False, sparse=True))
    with pytest.raises(EngineUnavailable, match="10 variables and 10 rows"):
        solve_cones(semidefinite(4), 1e-9)
    with pytest.raises(EngineUnavailable, match="variables"):
        solve_program(program(rng))
    with pytest.raises(EngineUnavailable, match=r"PSDTriangle\(order=5\)"):
        PSDCone(5).conic_form()


def test_a_nuclear_norm_that_exceeds_the_memory_is_refused_before_its_form_is_built():
    """Its cone form, with a matrix of 260 GB, once aborted the process."""
    f = NuclearNorm((300, 300), D=scipy.sparse.eye_array(90_000, format="csr"))
    A = scipy.sparse.csr_array(([1.0], ([0], [0])), shape=(1, 90_000))
    problem = lopro.Problem(f, ResidualBall(A, np.ones(1), sigma=0.1))
    with pytest.raises(lopro.errors.MissingCapabilityError, match=r"order=600.* GB are available"):
        InteriorPoint().check(problem)
    assert not any(isinstance(c.method, InteriorPoint) for c in lopro.Auto().choices(problem))


# Packages.


@pytest.fixture
def missing(monkeypatch):
    """Return a function that makes a package appear not to be installed."""
    return lambda name: monkeypatch.setitem(sys.modules, name, None)


def quadratic(rng):
    M, A = rng.standard_normal((6, 6)), rng.standard_normal((20, 6))
    return lopro.Problem(Quadratic(M @ M.T, np.ones(6)), Polyhedron(A, np.ones(20)))


def test_other_engines_are_used_if_a_package_is_missing(rng, missing):
    p, linear = program(rng), program(rng, quadratic=False)
    missing("piqp")
    chosen = [repr(fit.method) for fit in lopro.Auto().choices(quadratic(rng))]
    assert {"NewtonMultipliers()", "ProgramEngines()"} == set(chosen[:2])
    assert solve_program(p).status.name == solve_program(linear).status.name == "CONVERGED"
    assert lopro.solve(quadratic(rng)).success
    missing("clarabel")
    assert solve_program(linear).status.name == "CONVERGED"  # by HiGHS
    assert lopro.solve(quadratic(rng)).success  # by Newton's method


def test_the_message_names_the_package_to_install(rng, missing):
    missing("piqp")
    with pytest.raises(lopro.errors.MissingCapabilityError, match="pip install piqp"):
        solve_by_piqp(program(rng))
    only = lopro.ProgramEngines(engines=("piqp",))
    with pytest.raises(lopro.errors.MissingCapabilityError, match="pip install piqp"):
        lopro.solve(quadratic(rng), method=only)
    missing("clarabel")
    with pytest.raises(EngineUnavailable, match="pip install piqp"):
        solve_program(program(rng))
    with pytest.raises(EngineUnavailable, match="pip install clarabel"):
        solve_cones(semidefinite(2), 1e-9)
    ball = ResidualBall(np.eye(2), np.ones(2), sigma=0.1)
    with pytest.raises(lopro.errors.MissingCapabilityError, match="pip install clarabel"):
        lopro.solve(lopro.Problem(L1Norm(), ball), method=InteriorPoint())


def test_projections_and_applications_do_not_require_clarabel(rng, missing):
    N = rng.standard_normal((30, 5))
    H = HalfSpaces.from_system(N, rng.uniform(0.5, 1.5, 30))
    x = 4.0 * rng.standard_normal(5)
    ball = ResidualBall(rng.standard_normal((3, 5)), np.zeros(3), sigma=1.0)
    both = lopro.constraints.Intersection(Polyhedron(N, np.ones(30)), ball)
    A, y = rng.standard_normal((6, 14)), rng.standard_normal(6)
    C = rng.standard_normal((4, 4))
    linear = lopro.objectives.Linear(C + C.T)
    spectral = lopro.Problem(linear, lopro.constraints.Spectrahedron(4))

    def everything():
        return (
            project_polyhedron(x, H),
            both.project(x),
            lopro.bpdn(A, y, 0.1).x,
            lopro.solve(spectral).x,
        )

    expected = everything()
    missing("clarabel")
    missing("piqp")
    for one, two in zip(expected, everything(), strict=True):
        np.testing.assert_allclose(two, one, atol=1e-5)


def test_a_cone_program_is_solved_without_piqp(missing):
    missing("piqp")
    eye = scipy.sparse.eye_array(2, format="csc")
    p = ConeProgram(eye, -np.ones(2), eye, np.array([0.5, 2.0]), [Nonnegative(2)])
    np.testing.assert_allclose(solve_cones(p, 1e-9).x, [0.5, 1.0], atol=1e-6)
