"""Splitting for operators with orthogonal rows: identities of one step, and problems that require it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.fft
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import lopro
from lopro.basis_pursuit.operators import search as operator_search
from lopro.basis_pursuit.operators import splitting
from lopro.basis_pursuit.operators.history import Point
from lopro.basis_pursuit.operators.search import OperatorSearch
from lopro.basis_pursuit.operators.splitting import SplitState, Splitting, threshold_for
from lopro.constraints import ResidualBall
from lopro.objectives import L1Norm


def orthogonal_rows(m: int, d: int, length: float, dtype: Any) -> Any:
    rng = np.random.default_rng(7)
    A = rng.standard_normal((d, m)).astype(dtype)
    if np.iscomplexobj(A):
        A = A + 1j * rng.standard_normal((d, m))
    return length * np.linalg.qr(A)[0].conj().T


def measurements(A: Any, nonzeros: int, noise: float) -> tuple[Any, float]:
    rng = np.random.default_rng(8)
    x = np.zeros(A.shape[1], dtype=A.dtype)
    x[:nonzeros] = rng.standard_normal(nonzeros)
    e = rng.standard_normal(A.shape[0])
    e *= noise * np.linalg.norm(A @ x) / np.linalg.norm(e)
    return A @ x + e, float(np.linalg.norm(e))


def splitting_of(A: Any, y: Any, aim: float, frame: float, threshold: float) -> Splitting:
    return Splitting(y, frame, lambda x: A @ x, lambda r: A.conj().T @ r, lambda *_: aim, threshold)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_quantities_of_a_step_without_products_are_right(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every other step changes the threshold.
    settings = dataclasses.replace(splitting.SETTINGS, period=2, balance=1e9, bounds=1)
    monkeypatch.setattr(splitting, "SETTINGS", settings)
    A = orthogonal_rows(12, 30, 3.0, dtype)
    y, sigma = measurements(A, 4, 0.1)
    f, algorithm = L1Norm(), splitting_of(A, y, sigma, 9.0, 0.2)
    x = np.linspace(-1.0, 1.0, 30).astype(dtype)
    r = y - A @ x
    state = algorithm.start(Point(x, r, A.conj().T @ r, 0.7, 0.0))
    np.testing.assert_allclose(state.w, x + 0.2 * (A.conj().T @ r) / 0.7, rtol=1e-14)
    for step in range(6):
        np.testing.assert_allclose(state.rest, y - A @ state.w, rtol=1e-12, atol=1e-13)
        assert state.threshold == pytest.approx(0.2 * 1.5 ** (step // 2), rel=1e-14)
        z, w, before = f.prox(state.w, state.threshold), state.w, state.threshold
        state = algorithm.step(f, state)
        np.testing.assert_array_equal(state.shrunk.x, z)
        assert state.shrunk.length == pytest.approx(np.linalg.norm(y - A @ z), rel=1e-12)
        p = state.last
        # The projection of 2 z - w onto the ball, its residual and the correlations of the residual.
        nearest = ResidualBall(A, y, sigma).project(2.0 * z - w)
        np.testing.assert_allclose(p.x, nearest, rtol=1e-9, atol=1e-12)
        assert p.length == pytest.approx(sigma, rel=1e-12)
        np.testing.assert_allclose(p.r, y - A @ p.x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(p.g, A.conj().T @ p.r, rtol=1e-9, atol=1e-12)
        assert p.fun == pytest.approx(np.abs(p.x).sum(), rel=1e-14)
        # The multiplier, (w - z) / threshold, is kept.
        same = z + state.threshold / before * (w - z)
        np.testing.assert_allclose(state.w, same + 1.97 * (p.x - z), rtol=1e-12, atol=1e-13)


def test_a_solution_with_its_multiplier_is_a_fixed_point(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = dataclasses.replace(splitting.SETTINGS, bounds=1)
    monkeypatch.setattr(splitting, "SETTINGS", settings)
    A = orthogonal_rows(12, 30, 2.0, np.float64)
    y, sigma = measurements(A, 4, 0.1)
    solved = lopro.bpdn(A, y, sigma, tol=1e-12)
    r = y - A @ solved.x
    g = A.T @ r
    alpha = float(np.abs(g).max())
    f, algorithm = L1Norm(), splitting_of(A, y, sigma, 4.0, 0.3)
    state = algorithm.step(f, algorithm.start(Point(solved.x, r, g, alpha, solved.fun)))
    np.testing.assert_allclose(state.last.x, solved.x, atol=1e-9)
    np.testing.assert_allclose(state.shrunk.x, solved.x, atol=1e-9)
    assert state.last.alpha == pytest.approx(alpha, rel=1e-8)


def test_a_point_inside_the_ball_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = dataclasses.replace(splitting.SETTINGS, bounds=1)
    monkeypatch.setattr(splitting, "SETTINGS", settings)
    A = orthogonal_rows(12, 30, 1.0, np.float64)
    y, _ = measurements(A, 4, 0.1)
    algorithm = splitting_of(A, y, 1e3, 1.0, 0.1)
    state = algorithm.start(Point(np.zeros(30), y, A.T @ y, 2.0, 0.0))
    w = state.w
    state = algorithm.step(L1Norm(), state)
    np.testing.assert_allclose(state.last.x, 2.0 * state.shrunk.x - w, rtol=1e-14)
    assert state.last.alpha == 2.0


def test_every_eighth_point_is_evaluated() -> None:
    A = orthogonal_rows(12, 30, 2.0, np.float64)
    y, sigma = measurements(A, 4, 0.1)
    algorithm = splitting_of(A, y, sigma, 4.0, 0.3)
    state = algorithm.start(Point(np.zeros(30), y, A.T @ y, 2.0, 0.0))
    for step in range(1, 25):
        before, state = state.last, algorithm.step(L1Norm(), state)
        assert (state.last is not before) == (step % 8 == 0)
        assert state.proofs == ((state.last,) if step % 8 == 0 else ())


def test_thresholds_balance_points_and_multipliers() -> None:
    unit = np.ones(1)
    # (2 / 4) / (3 / 3) = 0.5 is balanced.
    assert splitting._better_threshold(2.0 * unit, 3.0 * unit, 4.0 * unit, 3.0 * unit) == 1.0
    assert splitting._better_threshold(1.6 * unit, 3.0 * unit, 4.0 * unit, 3.0 * unit) == 1.25
    assert splitting._better_threshold(1.0 * unit, 3.0 * unit, 4.0 * unit, 3.0 * unit) == 1.5
    assert splitting._better_threshold(4.0 * unit, 3.0 * unit, 4.0 * unit, 3.0 * unit) == 1 / 1.5
    assert splitting._better_threshold(0.0 * unit, unit, unit, unit) == 1.0


def test_the_threshold_is_one_and_a_half_times_the_mean() -> None:
    x = np.array([3.0, 0.0, -1.0])
    assert threshold_for(Point(x, x, x, 1.0, 4.0)) == 3.0


class Cosines:
    """Some rows of a cosine transform, times a number."""

    def __init__(self, d: int, m: int, size: float) -> None:
        rows = np.sort(np.random.default_rng(9).choice(d, m, replace=False))
        self.products = 0

        def forward(x: Any) -> Any:
            self.products += 1
            return size * scipy.fft.dct(x.ravel(), norm="ortho")[rows]

        def adjoint(r: Any) -> Any:
            self.products += 1
            z = np.zeros(d)
            z[rows] = size * r.ravel()
            return scipy.fft.idct(z, norm="ortho")

        self.A = LinearOperator((m, d), matvec=forward, rmatvec=adjoint, dtype=np.float64)


@pytest.fixture
def algorithms(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which the name of the algorithm is appended at each step."""
    made: list[str] = []
    judge = OperatorSearch.judge

    def watched(self: Any, state: Any) -> None:
        made.append("splitting" if isinstance(state, SplitState) else "shrinkage")
        judge(self, state)

    monkeypatch.setattr(OperatorSearch, "judge", watched)
    return made


def solved_by_products(A: Any, y: Any, sigma: float, tol: float = 1e-6, **options: Any) -> Any:
    problem = lopro.Problem(L1Norm(), ResidualBall(A, y, sigma))
    return lopro.solve(problem, method=lopro.MatrixFree(), tol=tol, **options)


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_solutions_with_many_nonzeros_are_found_by_splitting(
    size: float, algorithms: list[str]
) -> None:
    """Iterates of shrinkage have more nonzeros than measurements here, and it becomes slower and slower."""
    cosines = Cosines(4000, 1300, size)
    rng = np.random.default_rng(10)
    x = np.zeros(4000)
    x[rng.choice(4000, 500, replace=False)] = rng.standard_normal(500)
    y = cosines.A @ x
    noise = rng.standard_normal(1300)
    noise *= 0.005 * np.linalg.norm(y) / np.linalg.norm(noise)
    cosines.products = 0
    result = solved_by_products(cosines.A, y + noise, float(np.linalg.norm(noise)))
    assert result.success
    assert algorithms.count("shrinkage") == 64
    assert set(algorithms[64:]) == {"splitting"}
    counts = (result.counts, result.certificate_counts)
    assert sum(c.matvecs + c.rmatvecs for c in counts) == cosines.products <= 3700
    # The sparse point is proposed, not the projection onto the ball.
    assert np.count_nonzero(result.x) < 1300


def test_rows_that_are_not_orthogonal_are_not_split(algorithms: list[str]) -> None:
    rng = np.random.default_rng(11)
    A = rng.standard_normal((100, 300))
    y, sigma = measurements(A, 40, 0.005)
    solved_by_products(aslinearoperator(A), y, sigma, max_iter=120)
    assert set(algorithms) == {"shrinkage"}


def test_parallel_residuals_do_not_show_that_rows_are_orthogonal(
    algorithms: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ratio |A'r| / |r| is the same for all of them; a random vector has another one."""
    rng = np.random.default_rng(11)
    A = rng.standard_normal((100, 300))
    y, sigma = measurements(A, 40, 0.005)
    estimate = float(np.linalg.norm(A.T @ y) / np.linalg.norm(y)) ** 2
    monkeypatch.setattr(OperatorSearch, "_frame", property(lambda self: estimate))
    solved_by_products(aslinearoperator(A), y, sigma, max_iter=120)
    assert set(algorithms) == {"shrinkage"}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_a_random_vector_decides_whether_rows_are_orthogonal(dtype: Any) -> None:
    A = orthogonal_rows(12, 30, 3.0, dtype)
    of = (lambda x: A @ x), (lambda r: A.conj().T @ r), np.zeros(12, dtype=dtype)
    assert splitting.is_frame(9.0, *of)
    assert not splitting.is_frame(9.01, *of)
    A[3] *= 1.01
    assert not splitting.is_frame(9.0, *of)


def test_easy_problems_are_not_split(algorithms: list[str]) -> None:
    cosines = Cosines(4096, 1024, 1.0)
    rng = np.random.default_rng(12)
    x = np.zeros(4096)
    x[rng.choice(4096, 100, replace=False)] = rng.choice([-1.0, 1.0], 100)
    noise = 1e-3 * rng.standard_normal(1024)
    result = solved_by_products(cosines.A, cosines.A @ x + noise, float(np.linalg.norm(noise)))
    assert result.success
    assert set(algorithms) == {"shrinkage"}


def test_problems_with_signs_are_not_split(algorithms: list[str]) -> None:
    cosines = Cosines(1000, 300, 1.0)
    rng = np.random.default_rng(13)
    x = np.zeros(1000)
    x[:120] = np.abs(rng.standard_normal(120))
    y = cosines.A @ x
    noise = rng.standard_normal(300)
    noise *= 0.005 * np.linalg.norm(y) / np.linalg.norm(noise)
    ball = ResidualBall(cosines.A, y + noise, float(np.linalg.norm(noise)))
    signs = lopro.constraints.Polyhedron.box(np.zeros(1000), np.full(1000, np.inf))
    problem = lopro.Problem(L1Norm(), lopro.constraints.Intersection(ball, signs))
    lopro.solve(problem, method=lopro.MatrixFree(), tol=1e-9, max_iter=150)
    assert set(algorithms) == {"shrinkage"}


def test_no_tolerance_and_a_short_time_leave_a_feasible_point() -> None:
    cosines = Cosines(4000, 1300, 1.0)
    rng = np.random.default_rng(10)
    y = cosines.A @ rng.standard_normal(4000)
    result = solved_by_products(cosines.A, y, 0.01 * float(np.linalg.norm(y)), 0.0, max_iter=400)
    assert result.certificate.violation <= 1e-9
    assert 0.0 < result.certificate.lower_bound <= result.fun


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_other_libraries_do_the_same(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    xp = pytest.importorskip(library)
    # Every rate of convergence counts as too slow.
    settings = dataclasses.replace(operator_search.SETTINGS, slow=0, pace=5, first=6)
    monkeypatch.setattr(operator_search, "SETTINGS", settings)
    A = orthogonal_rows(40, 100, 2.0, np.float64)
    y, sigma = measurements(A, 15, 0.05)
    expected = solved_by_products(A, y, sigma, tol=1e-4)
    far = lopro.maps.linear_map(xp.asarray(A))
    result = lopro.bpdn(far, xp.asarray(y), sigma, tol=1e-4, method=lopro.MatrixFree())
    assert result.success
    assert result.fun == pytest.approx(expected.fun, rel=2e-4)
    assert type(result.x) is type(xp.asarray(y))
