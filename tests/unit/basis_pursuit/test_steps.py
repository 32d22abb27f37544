"""Different step lengths for each entry are equal steps in scaled variables."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro.basis_pursuit.columns.pieces import at_rank
from lopro.basis_pursuit.operators import search as operator_search
from lopro.basis_pursuit.operators.history import Point
from lopro.basis_pursuit.operators.mixing import _summing_to_one
from lopro.basis_pursuit.operators.shrinkage import MixedShrinkage
from lopro.basis_pursuit.operators.step_lengths import Steps, line_search, step_lengths
from lopro.constraints import ResidualBall
from lopro.objectives import L1Norm


def instance(dtype: Any) -> tuple[Any, Any, float, Any]:
    """Return a matrix, measurements with noise, the noise's length, and factors that scale the columns."""
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
    # The residual of the equations is measured in the variables whose columns are equally long.
    np.testing.assert_allclose(
        a.history.gram(a.steps.root), b.history.gram(), rtol=1e-4, atol=1e-9 * b.last.alpha**2
    )


def test_changed_steps_keep_the_point_and_the_mean_length() -> None:
    A, y, sigma, root = instance(np.float64)
    f = L1Norm()
    algorithm = MixedShrinkage(ResidualBall(A, y, sigma), np.abs)
    state = algorithm.init(f, np.zeros(150), np.random.default_rng(0))
    for _ in range(12):
        state = algorithm.step(f, state)
    x, length = state.last.x, state.length
    algorithm.with_steps(state, Steps.of(root * root, np.ones(150)))
    np.testing.assert_array_equal(state.last.x, x)
    # The mean step of the nonzeros is unchanged.
    assert state.length * np.mean(root[x != 0.0] ** 2) == pytest.approx(length, rel=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_lengths_of_columns_from_random_products(dtype: Any) -> None:
    """Sixteen products estimate each to a third, and their mean over many columns exactly."""
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
    settings = dataclasses.replace(operator_search.SETTINGS, estimate_lengths=-1)
    monkeypatch.setattr(operator_search, "SETTINGS", settings)
    plain, more = solved()
    np.testing.assert_allclose(values, plain, rtol=2e-6)
    assert products <= 0.75 * more


def test_at_rank_is_the_kth_largest_number() -> None:
    sizes = np.array([3.0, 1.0, 4.0, 1.5, 5.0])
    assert [at_rank(sizes, rank) for rank in (1, 2, 4)] == [5.0, 4.0, 1.5]
    assert at_rank(sizes, 5) == 0.0


@pytest.mark.parametrize("furthest", [1.0, 1e9])
@pytest.mark.parametrize("start", ["zero", "near", "far"])
def test_a_line_search_finds_the_least_value(start: str, furthest: float) -> None:
    """Along ``x + tau move``, with the corresponding residual; in closed form where x is zero."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A, y, weights = rng.standard_normal((8, 5)), rng.standard_normal(8), rng.uniform(0.5, 2, 5)
        x = {"zero": 0.0, "near": 0.1, "far": 3.0}[start] * rng.standard_normal(5)
        f, alpha, r = L1Norm(weights), 0.3, y - A @ x
        g = A.T @ r
        move = f.prox(x + 0.05 * g, 0.05 * alpha) - x
        tau = line_search(f, Point(x, r, g, alpha, f.value(x)), move, -A @ move, alpha, furthest)

        def value(at: float, x: Any = x, move: Any = move, r: Any = r) -> float:
            rest = r - at * (A @ move)  # noqa: B023
            return float(alpha * f.value(x + at * move) + 0.5 * rest @ rest)  # noqa: B023

        grid = np.linspace(0.0, min(furthest, 100.0), 100001)
        assert 0.0 < tau <= furthest
        assert value(tau) <= min(value(at) for at in grid[::100]) + 1e-12
        assert value(tau) <= min(value(tau * scale) for scale in (0.999, 1.0)) + 1e-12


def test_images_of_candidates_are_those_of_their_points(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The driver uses them to check feasibility, without a product of its own."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 120))
    e = 0.1 * rng.standard_normal(40)
    y, sigma, known = A[:, :5].sum(axis=1) + e, float(np.linalg.norm(e)), []
    original = operator_search.OperatorSearch.candidate

    def watched(self: Any) -> Any:
        candidate = original(self)
        if candidate.image is not None:
            known.append((candidate.x, candidate.image[0]))
        return candidate

    monkeypatch.setattr(operator_search.OperatorSearch, "candidate", watched)
    found = lopro.bpdn(aslinearoperator(A), y, sigma, method=lopro.MatrixFree(), tol=1e-8)
    assert found.success and known
    for x, image in known:
        np.testing.assert_allclose(image, A @ x, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("weights", [[1.0, -1.0], [np.inf, 1.0], [np.nan, 2.0]])
def test_weights_that_cannot_be_normalised_select_the_last_point(weights: list[float]) -> None:
    assert _summing_to_one(np.array(weights)).tolist() == [0.0, 1.0]
    assert _summing_to_one(np.array([1.0, 3.0])).tolist() == [0.25, 0.75]
