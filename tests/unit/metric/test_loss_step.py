"""The exact loss step: every implementation gives the minimiser."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
from support.metric_known import all_pairs, classes, packed

from lopro.metric.loss import PairLoss
from lopro.metric.loss_step import ByEntries, ByPairs, Iterative, _is_complete, loss_step

Matrix = Any


def some_pairs(seed: int, N: int, d: int, n: int) -> PairLoss:
    """Pairs at random: in either order, some of them twice, one of a sample with itself."""
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, N, (2, n))
    first[-1], second[-1] = first[0], second[0]
    return PairLoss(rng.standard_normal((N, d)), (first, second), rng.uniform(0.0, 2.0, n))


CASES = {
    "complete, wide": all_pairs(*classes(0, 6, 9)),
    "complete, narrow": all_pairs(*classes(1, 20, 4)),
    "complete, one feature": all_pairs(*classes(2, 6, 1)),
    "some, wide": some_pairs(3, 8, 10, 12),
    "some, narrow": some_pairs(4, 30, 3, 80),
    "differences": PairLoss.from_differences(
        np.random.default_rng(5).standard_normal((7, 4)), np.arange(7.0)
    ),
}


def dense_step(loss: PairLoss, V: Matrix, beta: float) -> Matrix:
    """Solve the normal equations in the entries, from the definition."""
    i, j, unit = packed(len(V))
    Z = loss.X[loss.pairs[0]] - loss.X[loss.pairs[1]]
    rows = Z[:, i] * Z[:, j] * unit
    n = len(rows)
    hessian = rows.T @ rows / n + 2.0 * beta * np.eye(len(i))
    a = np.linalg.solve(hessian, rows.T @ loss.targets / n + 2.0 * beta * V[i, j] * unit)
    A = np.zeros_like(V)
    A[i, j] = A[j, i] = a / unit
    return A


def symmetric(rng: np.random.Generator, d: int) -> Matrix:
    G = rng.standard_normal((d, d))
    return G + G.T


@pytest.mark.parametrize("beta", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize("way", [ByPairs, ByEntries, Iterative])
@pytest.mark.parametrize("case", CASES)
def test_every_implementation_makes_the_same_step(
    case: str, way: Any, beta: float, rng: np.random.Generator
) -> None:
    loss = CASES[case]
    step = way(loss)
    for _ in range(3):  # the iterative one starts where it ended
        V = symmetric(rng, loss.X.shape[1])
        wished = dense_step(loss, V, beta)
        np.testing.assert_allclose(step(V, beta), wished, rtol=0.0, atol=1e-7 * abs(V).max())


@pytest.mark.parametrize("way", [ByPairs, ByEntries])
def test_a_factor_is_reused_while_the_shift_is_the_same(way: Any, rng: np.random.Generator) -> None:
    loss = CASES["complete, wide"]
    step, factors = way(loss), []
    for beta in (1e-13, 0.1, 0.2, 0.1):
        for _ in range(2):
            V = symmetric(rng, loss.X.shape[1])
            found = step(V, beta)
            factors.append(step._system._factor)
            slope = loss.subgradient(found) + 2.0 * beta * (found - V)
            assert abs(slope).max() <= 1e-11 * abs(loss.subgradient(V)).max()
    assert all(first is second for first, second in zip(factors[::2], factors[1::2], strict=True))


@pytest.mark.parametrize("case", CASES)
def test_the_unit_of_beta_is_the_norm_of_the_hessian(case: str) -> None:
    """Its nonzero eigenvalues are those of the matrix over the pairs, so that both steps have one unit."""
    loss = CASES[case]
    Z = loss.X[loss.pairs[0]] - loss.X[loss.pairs[1]]
    exact = np.linalg.norm(np.square(Z @ Z.T)) / len(Z)
    assert ByPairs(loss).curvature == pytest.approx(exact, rel=1e-12)
    assert ByEntries(loss).curvature == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_step_is_a_minimiser(case: str, rng: np.random.Generator) -> None:
    """Straight from the definition: nothing near is better, and the slope vanishes."""
    loss, beta = CASES[case], 0.05
    V = symmetric(rng, loss.X.shape[1])
    A = loss_step(loss)(V, beta)

    def total(B: Matrix) -> float:
        return float(loss.value(B)) + beta * float(np.square(B - V).sum())

    for size in (1e-3, 0.1):
        for _ in range(10):
            assert total(A + size * symmetric(rng, len(V))) > total(A)
    slope = loss.subgradient(A) + 2.0 * beta * (A - V)
    assert abs(slope).max() <= 1e-9 * max(1.0, abs(loss.subgradient(V)).max())


def test_complete_graphs_are_distinguished_from_others() -> None:
    i, j = np.triu_indices(5, 1)
    X, t = np.eye(5), np.ones(10)
    assert _is_complete(PairLoss(X, (i, j), t))
    assert _is_complete(PairLoss(X, (j[::-1], i[::-1]), t))
    assert not _is_complete(PairLoss(X, (i[:-1], j[:-1]), t[:-1]))
    # The number of pairs of a complete graph, but one twice, in different order; or one with itself.
    i[1], j[1] = j[0], i[0]
    assert not _is_complete(PairLoss(X, (i, j), t))
    i[1] = j[1] = 0
    assert not _is_complete(PairLoss(X, (i, j), t))


def test_the_hessian_of_all_pairs_needs_no_pairs() -> None:
    loss = CASES["complete, narrow"]
    step = ByEntries(loss)
    np.testing.assert_allclose(step._of_all_pairs(loss.X), step._of_pairs(loss.X), rtol=1e-10)


def test_differences_come_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = CASES["some, narrow"]
    whole = ByEntries(loss)._of_pairs(loss.X)
    monkeypatch.setattr("lopro.metric.loss_step._BLOCK", 7)
    np.testing.assert_allclose(ByEntries(loss)._of_pairs(loss.X), whole, rtol=1e-12)


@pytest.mark.parametrize(
    ("loss", "way"),
    [
        (CASES["complete, wide"], ByPairs),
        (CASES["complete, narrow"], ByEntries),
        (some_pairs(6, 60, 100, 4100), Iterative),
        (some_pairs(7, 60, 80, 2000), ByPairs),
    ],
)
def test_the_smaller_space_is_chosen(loss: PairLoss, way: type) -> None:
    assert type(loss_step(loss)) is way


def test_the_laplacian_is_the_sum_of_the_pairs(rng: np.random.Generator) -> None:
    """``X' Lap(w) X = sum w_e z_e z_e'``, and its adjoint gives the distances."""
    for loss in CASES.values():
        Z = loss.X[loss.pairs[0]] - loss.X[loss.pairs[1]]
        w = rng.standard_normal(len(Z))
        M = loss.adjoint(w)
        np.testing.assert_allclose(M, np.einsum("e,ei,ej->ij", w, Z, Z), atol=1e-10)
        np.testing.assert_array_equal(M, M.T)
        A = symmetric(rng, len(M))
        np.testing.assert_allclose(loss.distances(A), np.einsum("ei,ij,ej->e", Z, A, Z), atol=1e-10)
        assert float(w @ loss.distances(A)) == pytest.approx(float((M * A).sum()))


def test_other_libraries(rng: np.random.Generator) -> None:
    loss = CASES["complete, narrow"]
    V = symmetric(rng, 4)
    strict = PairLoss(
        array_api_strict.asarray(loss.X), loss.pairs, array_api_strict.asarray(loss.targets)
    )
    for way in (ByPairs, Iterative):
        A = way(strict)(array_api_strict.asarray(V), 0.1)
        np.testing.assert_allclose(np.from_dlpack(A), dense_step(loss, V, 0.1), atol=1e-7)
    # Entries are gathered by index, which the standard does not offer.
    assert not isinstance(loss_step(strict), ByEntries)
