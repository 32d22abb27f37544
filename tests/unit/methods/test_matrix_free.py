"""`MatrixFree`: optima from products alone, valid certificates, and few products."""

from __future__ import annotations

from typing import Any

import array_api_strict
import cvxpy as cp
import numpy as np
import pytest
import scipy.fft
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from support.point_histories import history_of

import lopro
from lopro import MatrixFree, Status
from lopro.basis_pursuit.operators import matrix_free
from lopro.basis_pursuit.operators.history import Point
from lopro.basis_pursuit.operators.mixing import Blend
from lopro.constraints import Intersection, Polyhedron, ResidualBall
from lopro.objectives import L1Norm, SquaredDistance


class Products:
    """A partial unitary transform (real: cosine, complex: Fourier) that counts its products."""

    def __init__(self, d: int, m: int, rng: np.random.Generator, dtype: Any) -> None:
        self.count, self.dtype, self.shape = 0, np.dtype(dtype), (m, d)
        self.rows = np.sort(rng.choice(d, m, replace=False))
        real = self.dtype.kind == "f"
        self._to = scipy.fft.dct if real else scipy.fft.fft
        self._from = scipy.fft.idct if real else scipy.fft.ifft

    def matvec(self, x: Any) -> Any:
        self.count += 1
        return self._to(x, norm="ortho")[self.rows]

    def rmatvec(self, u: Any) -> Any:
        self.count += 1
        z = np.zeros(self.shape[1], dtype=self.dtype)
        z[self.rows] = u
        return self._from(z, norm="ortho")


def sparse_vector(d: int, k: int, rng: np.random.Generator, dtype: Any) -> Any:
    x = np.zeros(d, dtype=dtype)
    support = rng.choice(d, k, replace=False)
    x[support] = rng.standard_normal(k)
    if x.dtype.kind == "c":
        x[support] += 1j * rng.standard_normal(k)
    return x


def transform(seed: int, dtype: Any, d: int = 2**13) -> tuple[Products, Any, float]:
    """Return an operator, measurements of a sparse vector with 1 % noise, and the noise's norm."""
    rng = np.random.default_rng(seed)
    A = Products(d, d // 8, rng, dtype)
    y = A.matvec(sparse_vector(d, d // 80, rng, dtype))
    e = rng.standard_normal(len(y)).astype(dtype)
    if y.dtype.kind == "c":
        e += 1j * rng.standard_normal(len(y))
    e *= 0.01 * np.linalg.norm(y) / np.linalg.norm(e)
    A.count = 0
    return A, y + e, float(np.linalg.norm(e))


def small(seed: int, *, dtype: Any = None) -> tuple[Any, Any, float]:
    """Return a dense matrix, measurements and a radius."""
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(5, 40)), int(rng.integers(10, 90))
    dtype = dtype or (np.complex128 if seed % 3 == 0 else np.float64)
    A = rng.standard_normal((m, d)).astype(dtype)
    if A.dtype.kind == "c":
        A += 1j * rng.standard_normal((m, d))
    y = A @ sparse_vector(d, max(1, min(m, d) // 5), rng, dtype)
    e = rng.standard_normal(m) * float(rng.choice([0.01, 0.1])) * np.linalg.norm(y) / np.sqrt(m)
    return A, (y + e).astype(dtype), float(np.linalg.norm(e))


def problem_of(A: Any, y: Any, sigma: float, weights: Any = None, nonneg: bool = False) -> Any:
    ball: Any = ResidualBall(A, y, sigma)
    if nonneg:
        d = ball.shape[0]
        ball = Intersection(ball, Polyhedron.box(np.zeros(d), np.full(d, np.inf)))
    return lopro.Problem(L1Norm(weights), ball)


def reference(A: Any, y: Any, sigma: float, weights: Any = None, nonneg: bool = False) -> float:
    d = A.shape[1]
    x = cp.Variable(d, complex=A.dtype.kind == "c", nonneg=nonneg)
    w = np.ones(d) if weights is None else weights
    goal = cp.Problem(cp.Minimize(w @ cp.abs(x)), [cp.norm(A @ x - y, 2) <= sigma])
    goal.solve(solver=cp.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return float(goal.value)


def products(result: lopro.Result) -> int:
    """Return all products with A and its adjoint, those of the certificate included."""
    ledgers = (result.counts, result.certificate_counts)
    return sum(c.matvecs + c.rmatvecs for c in ledgers)


@pytest.fixture
def fallbacks(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows with each run of the fallback method."""
    calls: list[Any] = []

    class Spy(lopro.MultiplierMethod):
        def run(self, bench: Any, x0: Any) -> Any:
            calls.append(x0)
            return super().run(bench, x0)

    monkeypatch.setattr(matrix_free, "MultiplierMethod", Spy)
    return calls


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows whenever columns of the operator are computed to finish."""
    calls: list[Any] = []
    original = matrix_free._finish_by_columns

    def spy(bench: Any, x: Any) -> Any:
        calls.append(x)
        return original(bench, x)

    monkeypatch.setattr(matrix_free, "_finish_by_columns", spy)
    return calls


def check(result: lopro.Result, A: Any, y: Any, sigma: float, optimum: float, tol: float) -> None:
    """Assert feasibility, optimality and a valid lower bound, given an independent optimum."""
    assert result.status is Status.CONVERGED
    assert np.linalg.norm(A @ result.x - y) <= sigma * (1 + 1e-9)
    size = max(1.0, abs(optimum))
    assert abs(result.fun - optimum) <= tol * size
    assert result.certificate.lower_bound <= optimum + 1e-8 * size
    assert result.certificate.gap <= tol * max(1.0, abs(result.fun))


@pytest.mark.parametrize("seed", range(30))
def test_agrees_with_clarabel(seed: int, fallbacks: list[Any]) -> None:
    A, y, sigma = small(seed)
    weights = np.random.default_rng(seed).uniform(0.3, 3.0, A.shape[1]) if seed % 2 else None
    problem = problem_of(aslinearoperator(A), y, sigma, weights)
    result = lopro.solve(problem, method=MatrixFree())
    check(result, A, y, sigma, reference(A, y, sigma, weights), 1e-6)
    assert not fallbacks
    assert result.counts.projections <= 3


@pytest.mark.parametrize("seed", range(3))
def test_nonnegative(seed: int, fallbacks: list[Any]) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((20, 50))
    x = np.abs(sparse_vector(50, 5, rng, np.float64))
    e = 0.05 * rng.standard_normal(20)
    y, sigma = A @ x + e, float(np.linalg.norm(e))
    problem = problem_of(aslinearoperator(A), y, sigma, nonneg=True)
    result = lopro.solve(problem, method=MatrixFree())
    check(result, A, y, sigma, reference(A, y, sigma, nonneg=True), 1e-6)
    assert result.x.min() >= -1e-12
    assert not fallbacks


@pytest.mark.parametrize(("dtype", "most"), [(np.float64, 96), (np.complex128, 78)])
@pytest.mark.parametrize("seed", range(2))
def test_few_products_and_all_of_them_counted(seed: int, dtype: Any, most: int) -> None:
    A, y, sigma = transform(seed, dtype)
    result = lopro.solve(problem_of(A, y, sigma), method=MatrixFree(), tol=1e-6)
    assert result.success
    assert result.certificate.gap <= 1e-6 * result.fun
    assert products(result) == A.count <= most
    assert result.counts.projections == 0


def test_the_certificate_costs_no_product() -> None:
    """The certificate uses products that the steps have made."""
    A, y, sigma = transform(0, np.float64, d=2**10)
    result = lopro.solve(problem_of(A, y, sigma), method=MatrixFree())
    assert (result.certificate_counts.matvecs, result.certificate_counts.rmatvecs) == (0, 0)
    assert np.linalg.norm(A.matvec(result.x) - y) <= sigma


def test_a_warm_start_needs_fewer_products() -> None:
    A, y, sigma = transform(3, np.complex128, d=2**11)
    cold = lopro.solve(problem_of(A, y, sigma), method=MatrixFree())
    near = lopro.solve(problem_of(A, y, 1.05 * sigma), method=MatrixFree())
    warm = lopro.solve(problem_of(A, y, sigma), near.x, method=MatrixFree())
    assert warm.success
    assert warm.fun == pytest.approx(cold.fun, rel=2e-6)
    assert products(warm) <= 0.8 * products(cold)


@pytest.mark.parametrize(("dtype", "seed"), [(np.float64, 4), (np.complex128, 6)])
def test_stagnation_starts_another_method(
    dtype: Any,
    seed: int,
    fallbacks: list[Any],
    columns: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Real operators finish by columns of the support, large complex ones by the method of multipliers."""
    monkeypatch.setattr("lopro.basis_pursuit.rotated_program.FEW_COLUMNS", 0)
    A, y, sigma = small(seed, dtype=dtype)
    result = lopro.solve(problem_of(aslinearoperator(A), y, sigma), method=MatrixFree(patience=1))
    taken, idle = (columns, fallbacks) if dtype is np.float64 else (fallbacks, columns)
    assert len(taken) == 1 and idle == []
    assert np.any(taken[0] != 0.0)  # the point that has been reached is the start
    check(result, A, y, sigma, reference(A, y, sigma), 1e-6)


def test_small_complex_operators_use_interior_points(
    fallbacks: list[Any], columns: list[Any]
) -> None:
    A, y, sigma = small(3, dtype=np.complex128)
    result = lopro.solve(problem_of(aslinearoperator(A), y, sigma), method=MatrixFree(patience=1))
    assert fallbacks == columns == []  # the matrix is formed by one product
    check(result, A, y, sigma, reference(A, y, sigma), 1e-6)


def test_equations_are_finished_by_columns(fallbacks: list[Any], columns: list[Any]) -> None:
    A, y, _ = small(5)
    A, y = A[: len(A) // 2], y[: len(A) // 2]
    result = lopro.bpdn(aslinearoperator(A), y, 0.0, method=MatrixFree())
    assert len(columns) == 1 and fallbacks == []
    assert result.success and np.count_nonzero(result.x) <= len(y)
    assert result.fun == pytest.approx(reference(A, y, 0.0), rel=1e-5)


def test_a_weight_of_zero_takes_the_fallback_method(fallbacks: list[Any]) -> None:
    A, y, sigma = small(5)
    weights = np.ones(A.shape[1])
    weights[0] = 0.0
    problem = problem_of(aslinearoperator(A), y, sigma, weights)
    result = lopro.solve(problem, method=MatrixFree(), max_iter=4000)
    assert len(fallbacks) == 1
    assert result.fun == pytest.approx(reference(A, y, sigma, weights), rel=1e-5)


def test_iterates_may_have_more_nonzeros_than_rows(fallbacks: list[Any]) -> None:
    """Three rows: on many linear pieces there is no fixed point, and plain steps must set entries to zero.

    With mixtures alone half of these runs stall.
    """
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((3, 128))
        y = A @ sparse_vector(128, 2, rng, np.float64)
        e = 0.001 * rng.standard_normal(3)
        sigma = float(np.linalg.norm(e))
        result = lopro.solve(problem_of(aslinearoperator(A), y + e, sigma), method=MatrixFree())
        check(result, A, y + e, sigma, reference(A, y + e, sigma), 1e-6)
    assert len(fallbacks) <= 2


@pytest.mark.parametrize("scale", [1e-7, 1e7])
def test_the_scale_of_the_operator_does_not_matter(scale: float) -> None:
    A, y, sigma = small(7)
    plain = lopro.solve(problem_of(aslinearoperator(A), y, sigma), method=MatrixFree())
    scaled = lopro.solve(
        problem_of(aslinearoperator(scale * A), scale * y, scale * sigma), method=MatrixFree()
    )
    assert scaled.success
    assert scaled.fun == pytest.approx(plain.fun, rel=2e-6)
    assert products(scaled) <= products(plain) + 10


def test_zero_is_the_answer_where_it_is_feasible() -> None:
    A, y, _ = small(1)
    sigma = 1.5 * float(np.linalg.norm(y))
    result = lopro.solve(problem_of(aslinearoperator(A), y, sigma), method=MatrixFree())
    assert result.success
    assert result.fun == 0.0
    assert result.certificate.lower_bound == 0.0


def test_an_infeasible_radius_is_detected() -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 5))
    problem = problem_of(aslinearoperator(A), rng.standard_normal(20), 0.1)
    assert lopro.solve(problem, method=MatrixFree(patience=20)).status is Status.INFEASIBLE


def test_data_orthogonal_to_the_range_are_reported_infeasible() -> None:
    A = aslinearoperator(np.array([[1.0, 2.0], [0.0, 0.0]]))
    problem = problem_of(A, np.array([0.0, 1.0]), 0.5)
    assert lopro.solve(problem, method=MatrixFree()).status is Status.INFEASIBLE


@pytest.mark.parametrize("steps", [1, 2, 4, *range(6, 24)])
def test_a_budget_leaves_a_feasible_point(steps: int) -> None:
    """Whether or not the last iterate is known to be in the ball."""
    A, y, sigma = transform(0, np.float64, d=2**10)
    result = lopro.solve(problem_of(A, y, sigma), method=MatrixFree(), max_iter=steps)
    assert result.status is Status.MAX_ITER
    assert result.iterations == steps
    assert result.certificate.violation <= 1e-9
    assert np.linalg.norm(A.matvec(result.x) - y) <= sigma * (1.0 + 1e-9)
    assert 0.0 < result.certificate.lower_bound < result.fun


def test_a_start_is_used_and_not_touched() -> None:
    A, y, sigma = small(2)
    x0 = np.ones(A.shape[1], dtype=A.dtype)
    kept = x0.copy()
    problem = problem_of(aslinearoperator(A), y, sigma)
    result = lopro.solve(problem, x0, method=MatrixFree())
    check(result, A, y, sigma, reference(A, y, sigma), 1e-6)
    assert np.array_equal(x0, kept)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision_stays(dtype: Any) -> None:
    A, y, sigma = small(6, dtype=dtype)
    operator = LinearOperator(
        A.shape, matvec=lambda x: A @ x, rmatvec=lambda u: A.conj().T @ u, dtype=dtype
    )
    result = lopro.solve(problem_of(operator, y, sigma), method=MatrixFree(), tol=1e-3)
    assert result.success
    assert result.x.dtype == dtype
    wide = A.astype(np.complex128 if A.dtype.kind == "c" else np.float64)
    assert result.fun == pytest.approx(reference(wide, y, sigma), rel=2e-3)


def test_other_libraries_stay() -> None:
    A, y, sigma = small(8)
    problem = problem_of(array_api_strict.asarray(A), array_api_strict.asarray(y), sigma)
    result = lopro.solve(problem, method=MatrixFree())
    assert result.success
    assert type(result.x).__module__.startswith("array_api_strict")
    assert result.fun == pytest.approx(reference(A, y, sigma), rel=2e-6)


def test_unsupported_problems_and_options_are_refused() -> None:
    ball = ResidualBall(np.eye(2), np.ones(2), 0.5)
    box = Polyhedron.box(-np.ones(2), np.ones(2))
    for problem in (
        lopro.Problem(SquaredDistance(np.zeros(2)), ball),
        lopro.Problem(L1Norm(), box),
        lopro.Problem(L1Norm(), Intersection(ball, box)),
    ):
        with pytest.raises(lopro.MissingCapabilityError, match="MatrixFree needs"):
            lopro.solve(problem, method=MatrixFree())
    for name in ("memory", "patience"):
        with pytest.raises(ValueError, match=name):
            MatrixFree(**{name: 0})


def test_mixtures_are_affine_and_meet_the_radius(rng: np.random.Generator) -> None:
    """On one linear piece a mixture solves the linear system, for the parameter that gives the radius."""
    A, y, s = rng.standard_normal((12, 4)), rng.standard_normal(12), np.ones(4)
    points = []
    for alpha in (1.0, 0.9, 0.8, 0.75, 0.7, 0.65):
        x = rng.standard_normal(4)
        r = y - A @ x
        g = A.T @ r
        points.append((Point(x, r, g, alpha, float(abs(x).sum())), g - alpha * s))
    blend = Blend(history_of(points))
    length = 1.3 * float(np.linalg.norm(y - A @ np.linalg.lstsq(A, y)[0]))
    alpha = blend.root(length)
    assert alpha is not None
    mix = blend.at(alpha)
    assert mix.r == pytest.approx(y - A @ mix.x, abs=1e-9)
    assert np.linalg.norm(mix.r) == pytest.approx(length, rel=1e-9)
    assert mix.g == pytest.approx(alpha * s, abs=1e-6)


@pytest.mark.parametrize("rho", [(1e-4, 3e4), (0.0, 0.0), (1e-200, 1e3), (3e4, 1e-4)])
def test_mixtures_of_orthogonal_residuals(rho: tuple[float, float]) -> None:
    """Two points whose linear conditions coincide in double precision, and two without a residual."""
    points = [
        (Point(np.full(2, x), np.ones(2), np.ones(2), alpha, 2.0 * x), vector)
        for x, alpha, vector in zip((3.0, 5.0), (15625.0, 1.0), np.diag(rho), strict=True)
    ]
    # At the parameter of the last point the conditions admit only that point, or one near to it.
    assert Blend(history_of(points)).at(1.0).x == pytest.approx(5.0, abs=2.0)


def test_mixtures_in_single_precision_have_the_weights_of_double(rng: np.random.Generator) -> None:
    """Residuals of 1e25 have squares beyond the range of single precision."""
    A, y, s = rng.standard_normal((12, 4)), rng.standard_normal(12), np.ones(4)
    for unit in (1.0, 1e25, 1e-25):
        blends = []
        for dtype in (np.float32, np.float64):
            points = []
            for k, alpha in enumerate((1.0, 0.9, 0.8)):
                x = np.float32(np.random.default_rng(k).standard_normal(4)).astype(dtype)
                r = np.float32(y - A @ x)
                rho = np.float32(unit * (A.T @ r - alpha * s)).astype(dtype)
                points.append((Point(x, r.astype(dtype), rho, alpha, 0.0), rho))
            blends.append(Blend(history_of(points)).at(0.85).x)
        assert blends[0].dtype == np.float32
        assert blends[0] == pytest.approx(blends[1], rel=1e-3, abs=1e-3)
