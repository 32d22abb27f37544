"""ADMM on terms: exact optima, other solvers and libraries, units, and valid bounds."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.fft
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

import lopro
from lopro import ADMM, Problem
from lopro.constraints import Box, Intersection, L1Ball, ResidualBall
from lopro.core.arrays import to_numpy
from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import L1, GroupNorm, Huber, LInf, Nuclear
from lopro.methods.second_order.interior_point import InteriorPoint
from lopro.methods.splitting.bound import bound_from
from lopro.methods.splitting.parts import SplitTerms
from lopro.methods.splitting.steps import advance, balanced, first_state, softened
from lopro.objectives import GroupNorm as Groups
from lopro.objectives import (
    L1Norm,
    LeastSquares,
    Linear,
    LInfNorm,
    Quadratic,
    SquaredDistance,
    TotalVariation,
)

STEP = np.array([0.0, 0.0, 3.0, 3.0])


def as_operator(A: np.ndarray) -> LinearOperator:
    return LinearOperator(A.shape, matvec=lambda x: A @ x, rmatvec=lambda v: A.T @ v, dtype=A.dtype)


def blur(n: int) -> np.ndarray:
    """The matrix of a periodic blur of an n x n image."""
    kernel = np.exp(-0.5 * (np.minimum(np.arange(n), n - np.arange(n)) / 0.8) ** 2)
    once = np.array([np.roll(kernel, i) for i in range(n)]) / kernel.sum()
    return np.kron(once, once)


def picture(n: int) -> np.ndarray:
    image = np.zeros((n, n))
    image[n // 4 : n // 2, n // 4 : 3 * n // 4] = 0.75
    return image.ravel()


# Optima known in closed form.


@pytest.mark.parametrize("tol", [1e-4, 1e-7])
def test_least_variation_near_a_step(tol: float) -> None:
    # Both levels move towards each other until the residual is 1: by 1/2 each.
    ball = ResidualBall(as_operator(np.eye(4)), STEP, 1.0)
    result = lopro.solve(Problem(TotalVariation(4), ball), method=ADMM(), tol=tol)
    assert result.success and result.fun == pytest.approx(2.0, rel=2 * tol)
    assert result.certificate.lower_bound <= 2.0 * (1.0 + 1e-12)
    assert result.x == pytest.approx([0.5, 0.5, 2.5, 2.5], abs=3 * tol)


def test_penalised_variation_of_a_step() -> None:
    f = LeastSquares(as_operator(np.eye(4)), STEP) + 1.0 * TotalVariation(4)
    result = lopro.solve(Problem(f), method=ADMM(), tol=1e-7)
    assert result.success and result.fun == pytest.approx(2.5, rel=1e-6)
    assert result.certificate.lower_bound <= 2.5 * (1.0 + 1e-12)


def test_squared_distances_enter_the_linear_system() -> None:
    f = SquaredDistance(STEP) + 1.0 * TotalVariation(4)
    assert len(SplitTerms.of(Problem(f), (4,)).quadratic) == 1
    result = lopro.solve(Problem(f), method=ADMM(), tol=1e-8)
    assert result.success and result.fun == pytest.approx(2.5, rel=1e-7)


def test_a_box_absorbs_the_residual() -> None:
    # Every level must be at least 1: the residual of the lower one is fixed, and the upper one moves by 1.
    f = LeastSquares(as_operator(np.eye(4)), STEP) + 2.0 * TotalVariation(4)
    result = lopro.solve(Problem(f, Box(np.ones(4), np.full(4, 9.0))), method=ADMM(), tol=1e-7)
    # 1/2 (1 + 1) + 1/2 (1 + 1) + 2 (2 - 1)
    assert result.success and result.fun == pytest.approx(4.0, rel=1e-6)
    assert math.isinf(result.certificate.radius)
    assert result.certificate.lower_bound <= 4.0 * (1.0 + 1e-12)


def test_the_largest_deviation() -> None:
    # Chebyshev's centre of a few numbers.
    f = LInfNorm(as_operator(np.ones((3, 1))))
    away = lopro.objectives.OfAtom(
        LInf(), as_operator(np.ones((3, 1))), b=np.array([1.0, 2.0, 7.0])
    )
    assert lopro.solve(Problem(away), method=ADMM(), tol=1e-7).fun == pytest.approx(3.0, rel=1e-6)
    assert f.value(np.array([2.0])) == 2.0


def test_an_optimum_of_zero() -> None:
    ball = ResidualBall(as_operator(np.eye(4)), np.full(4, 5.0) + 0.1 * STEP, 1.0)
    result = lopro.solve(Problem(TotalVariation(4), ball), method=ADMM())
    assert result.success and result.fun == pytest.approx(0.0, abs=1e-7)


def test_linear_and_quadratic_terms_are_not_scaled() -> None:
    P, q = np.diag([2.0, 1.0, 1.0, 2.0]), np.array([-1.0, 0.0, -3.0, -1.0])
    f = Quadratic(P, q) + 0.25 * TotalVariation(4)
    ours = lopro.solve(Problem(f), method=ADMM(), tol=1e-6)
    other = lopro.solve(Problem(f), method=InteriorPoint())
    assert ours.success and ours.fun == pytest.approx(other.fun, rel=2e-6)
    assert ours.certificate.lower_bound <= other.fun + 1e-9
    g = Linear(np.array([1.0, 1.0, -1.0, -1.0])) + 2.0 * TotalVariation(4)
    box = Box(np.zeros(4), np.ones(4))
    # Raising the last two entries decreases the linear term by 2 and adds a jump of weight 2: 0 is optimal.
    result = lopro.solve(Problem(g, box), method=ADMM(), tol=1e-6)
    assert abs(result.fun) <= 1e-6 and result.certificate.lower_bound >= -1e-5


# Against an interior point method.


@pytest.mark.parametrize("form", ["ball", "penalised", "penalised in a box", "ball in a box"])
def test_deblurring_agrees_with_an_interior_point_method(form: str) -> None:
    n, rng = 8, np.random.default_rng(0)
    A = blur(n)
    y = A @ picture(n) + 0.02 * rng.standard_normal(n * n)
    box = Box(np.zeros(n * n), np.full(n * n, 0.6))

    def make_problems(A: object) -> Problem:
        ball, squares = ResidualBall(A, y, 0.2), LeastSquares(A, y) + 0.01 * TotalVariation((n, n))
        return {
            "ball": Problem(TotalVariation((n, n)), ball),
            "penalised": Problem(squares),
            "penalised in a box": Problem(squares, box),
            "ball in a box": Problem(
                TotalVariation((n, n)), Intersection(ResidualBall(A, y, 0.6), box)
            ),
        }[form]

    ours = lopro.solve(make_problems(as_operator(A)), method=ADMM(), tol=1e-5)
    other = lopro.solve(make_problems(A), method=InteriorPoint(), tol=1e-8)
    assert ours.success and ours.certificate.violation <= 1e-9
    assert other.fun * (1 - 1e-8) <= ours.fun <= other.fun * (1.0 + 1.1e-5)
    assert ours.certificate.lower_bound <= other.fun * (1.0 + 1e-9)
    assert ours.certificate.lower_bound >= other.fun * (1.0 - 1.1e-5)


def test_volumes_and_groups() -> None:
    shape, rng = (5, 4, 3), np.random.default_rng(1)
    y = rng.standard_normal(60)
    f = SquaredDistance(y) + 0.3 * TotalVariation(shape)
    ours = lopro.solve(Problem(f), method=ADMM(), tol=1e-6)
    other = lopro.solve(Problem(f), method=lopro.NewtonMultipliers(), tol=1e-9)
    assert ours.success and ours.fun == pytest.approx(other.fun, rel=2e-6)
    D = rng.standard_normal((40, 60))
    g = SquaredDistance(y) + 0.3 * Groups(as_operator(D), 4)
    h = SquaredDistance(y) + 0.3 * Groups(D, 4)
    ours = lopro.solve(Problem(g, L1Ball(60, 9.0)), method=ADMM(), tol=1e-6)
    other = lopro.solve(Problem(h, Intersection(L1Ball(60, 9.0))), method=ADMM(), tol=1e-8)
    assert ours.success and ours.fun == pytest.approx(other.fun, rel=2e-6)


# Units, libraries, precision.


@pytest.mark.parametrize(("of_x", "of_f"), [(1e9, 1.0), (1e-9, 1e6), (1.0, 1e-12)])
def test_units_do_not_matter(of_x: float, of_f: float) -> None:
    A, rng = blur(6), np.random.default_rng(2)
    y = A @ picture(6) + 0.02 * rng.standard_normal(36)

    def run(of_x: float, of_f: float) -> lopro.Result:
        ball = ResidualBall(as_operator(A), of_x * y, of_x * 0.15)
        return lopro.solve(Problem(of_f * TotalVariation((6, 6)), ball), method=ADMM(), tol=1e-4)

    one, other = run(1.0, 1.0), run(of_x, of_f)
    assert one.success and other.success
    assert other.fun / (of_x * of_f) == pytest.approx(one.fun, rel=2e-4)


def test_single_precision() -> None:
    A, rng = blur(6).astype(np.float32), np.random.default_rng(3)
    y = (A @ picture(6) + 0.02 * rng.standard_normal(36)).astype(np.float32)
    f = LeastSquares(as_operator(A), y) + 0.01 * TotalVariation((6, 6))
    result = lopro.solve(Problem(f), method=ADMM(), tol=1e-3)
    exact = LeastSquares(A.astype(float), y.astype(float)) + 0.01 * TotalVariation((6, 6))
    best = lopro.solve(Problem(exact), method=lopro.NewtonMultipliers(), tol=1e-9)
    assert result.success and result.x.dtype == np.float32
    assert result.fun == pytest.approx(best.fun, rel=2e-3)
    assert result.certificate.lower_bound <= best.fun * (1 + 1e-6)


# The bound.


def problems() -> list[tuple[Problem, float]]:
    """Problems with their optima."""
    ball = ResidualBall(as_operator(np.eye(4)), STEP, 1.0)
    f = LeastSquares(as_operator(np.eye(4)), STEP) + 1.0 * TotalVariation(4)
    g = LeastSquares(as_operator(np.eye(4)), STEP) + 2.0 * TotalVariation(4)
    return [
        (Problem(TotalVariation(4), ball), 2.0),
        (Problem(f), 2.5),
        (Problem(g, Box(np.ones(4), np.full(4, 9.0))), 4.0),
        (Problem(SquaredDistance(STEP) + 1.0 * TotalVariation(4)), 2.5),
    ]


#: Their solutions.
SOLUTIONS = [
    np.array([0.5, 0.5, 2.5, 2.5]),
    np.array([0.5, 0.5, 2.5, 2.5]),
    np.array([1.0, 1.0, 2.0, 2.0]),
    np.array([0.5, 0.5, 2.5, 2.5]),
]


@pytest.mark.parametrize("gap", [1e-6, 1e9])
@pytest.mark.parametrize("which", range(4))
def test_no_multipliers_prove_more_than_the_optimum(which: int, gap: float) -> None:
    # A gap that allows any residual: it is subtracted from the bound instead of reduced.
    problem, optimum = problems()[which]
    parts, rng = SplitTerms.of(problem, (4,)), np.random.default_rng(which)
    state = first_state(parts, np.zeros(4), 1.0)
    best = -math.inf
    for _ in range(60):
        state = advance(parts, state, 1.7)
    for trial in range(40):
        noise = 0.0 if trial == 0 else 10.0 ** rng.uniform(-6, 1)
        u = tuple(v + noise * rng.standard_normal(v.shape) for v in state.u)
        x = state.x + noise * rng.standard_normal(4)
        moved = dataclasses.replace(state, x=x, images=parts.images(x), u=u)
        found = bound_from(parts, moved, gap, (100.0, math.inf), problem.constraint)
        assert found is not None and found.value <= optimum * (1.0 + 1e-13)
        best = max(best, found.value)
        below = bound_from(parts, moved, gap, (100.0, found.value - 1.0), problem.constraint)
        assert below.value == found.value - 1.0  # points farther out may have values as low
        around = bound_from(parts, moved, gap, (math.inf, math.inf), problem.constraint)
        assert around is not None
        local = around.bound(x)
        away = float(np.linalg.norm(local.centre - SOLUTIONS[which]))
        assert local.within(away) <= optimum * (1.0 + 1e-13)
    if gap == 1e-6:
        assert best >= optimum * (1.0 - 1e-5)


def test_multipliers_are_those_of_the_problem_as_posed() -> None:
    ball = ResidualBall(as_operator(np.eye(4)), STEP, 1.0)
    result = lopro.solve(Problem(TotalVariation(4), ball), method=ADMM(), tol=1e-8)
    assert result.multipliers is not None
    # The optimum falls by the norm of the multiplier as the radius grows: 2 is its derivative.
    assert np.linalg.norm(result.multipliers[0]) == pytest.approx(1.0, abs=1e-4)


def test_penalties_do_not_change_the_multipliers() -> None:
    problem, _ = problems()[0]
    parts = SplitTerms.of(problem, (4,))
    state = first_state(parts, np.zeros(4), 1.0)
    for _ in range(5):
        state = advance(parts, state, 1.7)
    for changed in (softened(state), balanced(parts, state)):
        for a, b in zip(state.multipliers, changed.multipliers, strict=True):
            assert a == pytest.approx(b, rel=1e-12)
    assert softened(state).rho == tuple(0.01 * r for r in state.rho)


@pytest.mark.parametrize(
    "atom",
    [L1(0.5), L1(np.array([1.0, 2.0, 3.0, 4.0])), L1(0.25, negative=0.75), GroupNorm(2, 3.0), LInf(),
     Huber(0.3), Nuclear((2, 2))],
    ids=lambda atom: type(atom).__name__,
)  # fmt: skip
def test_gauges_scale_to_the_boundary_of_the_domain(atom: object) -> None:
    v = np.random.default_rng(4).standard_normal(4)
    size = atom.gauge(v)
    assert math.isfinite(atom.conjugate(v * ((1.0 - 1e-12) / size)))
    assert math.isinf(atom.conjugate(v * (1.001 / size)))
    assert atom.gauge(3.0 * v) == pytest.approx(3.0 * size)


def test_gauges_are_infinite_where_no_multiple_is_in_the_domain() -> None:
    assert math.isinf(L1(1.0, negative=0.0).gauge(np.array([0.5, -0.1])))
    assert math.isinf(L1(np.array([1.0, 0.0])).gauge(np.array([0.5, 0.1])))
    assert L1(np.array([1.0, 0.0])).gauge(np.array([0.5, 0.0])) == 0.5


# Choice and refusals.


def test_auto_uses_admm_for_operators_and_reports_it() -> None:
    problem = Problem(TotalVariation((8, 8)), ResidualBall(as_operator(blur(8)), picture(8), 0.1))
    result = lopro.solve(problem, tol=1e-3)
    assert result.success and "-> ADMM" in result.method
    assert "ADMM" in lopro.explain(problem) and "products and proxes" in lopro.explain(problem)


def test_small_operators_are_solved_by_newton_where_possible() -> None:
    A = as_operator(blur(3))
    squares = LeastSquares(A, picture(3)) + 0.1 * TotalVariation((3, 3))
    assert isinstance(lopro.Auto().choose(Problem(squares)), lopro.NewtonMultipliers)
    ball = Problem(TotalVariation((3, 3)), ResidualBall(A, picture(3), 0.1))
    assert isinstance(lopro.Auto().choose(ball), ADMM)


def test_small_or_sparse_matrices_are_solved_by_other_methods() -> None:
    problem = Problem(TotalVariation((8, 8)), ResidualBall(blur(8), picture(8), 0.1))
    assert not isinstance(lopro.Auto().choose(problem), ADMM)
    sparse = scipy.sparse.eye_array(48 * 48, format="csr")
    # An interior point method takes 0.15 s for it, ADMM 1.3 s.
    banded = Problem(TotalVariation((48, 48)), ResidualBall(sparse, picture(48), 0.1))
    assert isinstance(lopro.Auto().choose(banded), lopro.baselines.InteriorPoint)
    operator = scipy.sparse.linalg.aslinearoperator(sparse)
    by_products = Problem(TotalVariation((48, 48)), ResidualBall(operator, picture(48), 0.1))
    assert isinstance(lopro.Auto().choose(by_products), ADMM)


def test_unsupported_problems_are_refused() -> None:
    smooth = lopro.objectives.Logistic(np.eye(2), np.array([1.0, -1.0]))
    with pytest.raises(MissingCapabilityError, match="prox"):
        ADMM().check(Problem(smooth + lopro.objectives.L1Norm(shape=(2,))))
    with pytest.raises(MissingCapabilityError, match="norm or a set"):
        ADMM().check(Problem(SquaredDistance(np.ones(2))))
    with pytest.raises(MissingCapabilityError, match="real"):
        ADMM().check(
            Problem(lopro.objectives.L1Norm(), ResidualBall(1j * np.eye(2), np.ones(2), 0.1))
        )
    with pytest.raises(ValueError, match="relaxation"):
        ADMM(relaxation=2.0)


def test_limits_end_the_run_with_a_point() -> None:
    n = 24
    ball = ResidualBall(as_operator(blur(n)), picture(n), 0.01)
    result = lopro.solve(Problem(TotalVariation((n, n)), ball), method=ADMM(), max_iter=15)
    assert result.status is lopro.Status.MAX_ITER
    assert result.certificate.violation <= 1e-9 and math.isfinite(result.fun)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_other_libraries_give_the_same_answer(library: str, dtype: str) -> None:
    xp = pytest.importorskip(library)
    A, rng = blur(6), np.random.default_rng(3)
    y = A @ picture(6) + 0.02 * rng.standard_normal(36)
    there = [xp.asarray(a, dtype=getattr(xp, dtype)) for a in (A, y)]
    tol = 1e-5 if dtype == "float64" else 1e-3
    host = lopro.solve(
        Problem(LeastSquares(A, y) + 0.01 * TotalVariation((6, 6))), method=ADMM(), tol=tol
    )
    result = lopro.solve(
        Problem(LeastSquares(*there) + 0.01 * TotalVariation((6, 6))), method=ADMM(), tol=tol
    )
    assert result.success and result.x.dtype == there[0].dtype
    assert result.fun == pytest.approx(host.fun, rel=2 * tol)
    ball = Problem(TotalVariation((6, 6)), ResidualBall(*there, 0.15))
    assert lopro.solve(ball, method=ADMM(), tol=tol).success
    assert to_numpy(result.x).shape == (36,)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_trends_are_found_in_other_units(unit: float) -> None:
    """In large units the conic solver reports this objective unbounded: the next method solves it."""
    rng = np.random.default_rng(0)
    y = np.cumsum(np.repeat(rng.standard_normal(20), 100)) / 50 + 0.3 * rng.standard_normal(2000)
    D = scipy.sparse.diags_array([1.0, -2.0, 1.0], offsets=[0, 1, 2], shape=(1998, 2000)).tocsr()
    plain = lopro.solve(Problem(SquaredDistance(y) + 50.0 * L1Norm(D=D)))
    scaled = lopro.solve(Problem(SquaredDistance(unit * y) + 50.0 * unit * L1Norm(D=D)))
    assert plain.success and scaled.success
    assert scaled.fun == pytest.approx(unit**2 * plain.fun, rel=2e-6)
