"""Steps of a length of its own for each entry: the same as equal steps in other variables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro.basis_pursuit import matrix_free
from lopro.basis_pursuit.column_lengths import step_lengths
from lopro.basis_pursuit.mixing import Blend, Point
from lopro.basis_pursuit.shrinkage import MixedShrinkage, Steps, _at_rank
from lopro.constraints import ResidualBall
from lopro.objectives import L1Norm


def instance(dtype: Any) -> tuple[Any, Any, float, Any]:
    """Return a matrix, measurements with noise, its length, and numbers to scale columns by."""
    rng = np.random.default_rng(3)
    A, noise = rng.standard_normal((60, 150)).astype(dtype), rng.standard_normal(60).astype(dtype)
    x = np.zeros(150, dtype=dtype)
    x[:8] = 1.0
    if dtype is np.complex128:
        A, noise = A + 1j * rng.standard_normal((60, 150)), noise + 1j * rng.standard_normal(60)
    noise *= 0.05 * np.linalg.norm(A @ x) / np.linalg.norm(noise)
    return A, A @ x + noise, float(np.linalg.norm(noise)), np.exp(rng.uniform(-1.0, 1.0, 150))


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_steps_are_those_of_scaled_columns(dtype: Any, nonneg: bool) -> None:
    """With x = root u the columns are those of A times root, and so are the weights."""
    if nonneg and dtype is np.complex128:
        pytest.skip("complex numbers have no signs")
    A, y, sigma, root = instance(dtype)
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 150)

    def sizes(w: Any) -> Any:
        return lambda g: (np.maximum(g, 0.0) if nonneg else np.abs(g)) / w

    f, scaled = L1Norm(weights), L1Norm(weights * root)
    ours = MixedShrinkage(ResidualBall(A, y, sigma), sizes(weights), nonneg)
    theirs = MixedShrinkage(ResidualBall(A * root, y, sigma), sizes(weights * root), nonneg)
    zero, rng = np.zeros(150, dtype=dtype), np.random.default_rng(0)
    a, b = ours.init(f, zero, rng), theirs.init(scaled, zero, rng)
    a.length = b.length
    ours.with_steps(a, Steps.of(root * root, weights))
    for _ in range(25):
        a, b = ours.step(f, a), theirs.step(scaled, b)
    assert a.last.nonzeros == b.last.nonzeros > 8
    assert len(a.points) == len(b.points) >= 5
    assert a.length == pytest.approx(b.length, rel=1e-5)
    assert a.last.alpha == pytest.approx(b.last.alpha, rel=1e-8)
    np.testing.assert_allclose(a.last.x, root * b.last.x, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(a.last.rho, b.last.rho, atol=1e-5 * b.last.alpha)


def test_steps_that_change_on_the_way_leave_point_and_length_alone() -> None:
    A, y, sigma, root = instance(np.float64)
    f = L1Norm()
    algorithm = MixedShrinkage(ResidualBall(A, y, sigma), np.abs)
    state = algorithm.init(f, np.zeros(150), np.random.default_rng(0))
    for _ in range(12):
        state = algorithm.step(f, state)
    x, rho, length = state.last.x, state.last.rho, state.length
    algorithm.with_steps(state, Steps.of(root * root, np.ones(150)))
    np.testing.assert_array_equal(state.last.x, x)
    np.testing.assert_allclose(state.last.rho, root * rho, rtol=1e-14)
    # The mean step of the nonzeros is as long as it was.
    assert state.length * np.mean(root[x != 0.0] ** 2) == pytest.approx(length, rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_lengths_of_columns_from_random_products(dtype: Any) -> None:
    """Sixteen products tell each to a third, and their mean over many columns exactly."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((400, 6000)) + (
        1j * rng.standard_normal((400, 6000)) if dtype is np.complex128 else 0.0
    )
    A /= np.linalg.norm(A, axis=0)
    calls: list[int] = []

    def adjoint(w: Any) -> Any:
        calls.append(w.size)
        return A.conj().T @ w

    assert step_lengths(adjoint, np.zeros(400, dtype=dtype)) is None
    assert len(calls) == 1
    A[:, :3000] *= 0.5
    found = step_lengths(adjoint, np.zeros(400, dtype=dtype))
    assert len(calls) == 17
    # Their inverses are squared lengths over the mean of those, 5/8, with two equal ones mixed in.
    for part, square in ((slice(0, 3000), 0.25 / 0.625), (slice(3000, None), 1.0 / 0.625)):
        expected = (16.0 * square + 2.0) / 18.0
        assert np.mean(1.0 / found[part]) == pytest.approx(expected, rel=0.03)


def with_columns_of_many_lengths(seed: int) -> lopro.Problem:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((200, 600)) * np.exp(rng.uniform(-1.0, 1.0, 600))
    x = np.zeros(600)
    x[rng.choice(600, 15, replace=False)] = rng.standard_normal(15)
    noise = rng.standard_normal(200)
    noise *= 0.02 * np.linalg.norm(A @ x) / np.linalg.norm(noise)
    ball = ResidualBall(aslinearoperator(A), A @ x + noise, float(np.linalg.norm(noise)))
    return lopro.Problem(L1Norm(), ball)


def test_columns_of_many_lengths_cost_fewer_products(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [with_columns_of_many_lengths(seed) for seed in range(4)]

    def solved() -> tuple[list[float], int]:
        results = [lopro.solve(p, method=lopro.MatrixFree(), tol=1e-6) for p in problems]
        assert all(r.success for r in results)
        products = sum(r.counts.matvecs + r.counts.rmatvecs for r in results)
        return [r.fun for r in results], products

    values, products = solved()
    monkeypatch.setattr(matrix_free, "_LONG", -1)
    plain, more = solved()
    np.testing.assert_allclose(values, plain, rtol=2e-6)
    assert products <= 0.75 * more


def test_the_number_that_so_many_are_not_below() -> None:
    sizes = np.array([3.0, 1.0, 4.0, 1.5, 5.0])
    assert [_at_rank(sizes, rank) for rank in (1, 2, 4)] == [5.0, 4.0, 1.5]
    assert _at_rank(sizes, 5) == 0.0


def test_a_mixture_of_large_points_is_the_sum(rng: np.random.Generator) -> None:
    """Vectors beyond a few thousand entries are mixed in other ways: on their nonzeros, and term by term."""
    d = 20_000
    points = []
    for j in range(4):
        x = np.zeros(d)
        x[: 50 + 10 * j] = rng.standard_normal(50 + 10 * j)
        r, g, rho = rng.standard_normal(30), rng.standard_normal(d), rng.standard_normal(d)
        points.append(Point(x, r, g, rho, 1.0 + 0.1 * j, 0.0))
    blend = Blend(points)
    mixture = blend.at(1.2)
    X, R, G = (np.stack([getattr(p, name) for p in points]) for name in ("x", "r", "g"))
    # Four weights from thirty numbers, then everything else with them.
    theta = np.linalg.lstsq(R.T, mixture.r, rcond=None)[0]
    assert theta.sum() == pytest.approx(1.0, rel=1e-12)
    assert theta @ [p.alpha for p in points] == pytest.approx(1.2, rel=1e-12)
    np.testing.assert_allclose(mixture.x, theta @ X, atol=1e-12)
    np.testing.assert_allclose(mixture.g, theta @ G, atol=1e-12)
    np.testing.assert_allclose(blend.gradient(1.2), theta @ G, atol=1e-12)
