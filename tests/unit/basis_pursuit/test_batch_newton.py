"""Batches of complex right-hand sides give the solutions of separate calls, with shared work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lopro
from lopro.basis_pursuit.application import bpdn_problem
from lopro.basis_pursuit.batches.dense import BatchNewton
from lopro.basis_pursuit.problem import SparseProblem
from lopro.maps import linear_map


def several(m: int, d: int, count: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, d)) + 1j * rng.standard_normal((m, d))
    X = np.zeros((d, count), dtype=complex)
    for j in range(count):
        X[rng.choice(d, 3, replace=False), j] = np.exp(2j * np.pi * rng.random(3))
    return A, A @ X + 0.1 * rng.standard_normal((m, count))


def test_a_batch_gives_the_solutions_of_separate_calls() -> None:
    A, Y = several(40, 100, 12, 0)
    weights = np.random.default_rng(1).random(100) + 0.5
    sigma = np.linspace(0.5, 5.0, 12)
    together = lopro.bpdn(A, Y, sigma, weights=weights, tol=1e-8)
    assert sum(r.method == "BatchNewton" for r in together) >= 10
    for j, result in enumerate(together):
        alone = lopro.bpdn(A, Y[:, j], sigma[j], weights=weights, tol=1e-8)
        assert result.success and alone.success
        assert result.fun == pytest.approx(alone.fun, rel=2e-8)
        assert np.linalg.norm(A @ result.x - Y[:, j]) <= sigma[j]
        np.testing.assert_allclose(result.x, alone.x, atol=1e-3 * np.abs(alone.x).max())
        assert (np.abs(A.conj().T @ result.dual) <= weights * (1.0 + 1e-12)).all()


def test_problems_a_batch_does_not_support_are_solved_separately() -> None:
    """A batch with equations and with a radius above ``|y|`` among the other problems."""
    A, Y = several(20, 60, 4, 2)
    sigma = [
        0.0,
        2.0 * float(np.linalg.norm(Y[:, 1])),
        1.0,
        0.9999 * float(np.linalg.norm(Y[:, 3])),
    ]
    results = lopro.bpdn(A, Y, sigma)
    assert all(r.success for r in results)
    assert not results[1].x.any() and len(results[3].support) == 1
    assert np.linalg.norm(A @ results[0].x - Y[:, 0]) <= 1e-10 * np.linalg.norm(Y[:, 0])


def proposed(A: Any, Y: Any) -> tuple[Any, Any]:
    """Return problems with a radius of 1, and the solutions found for them."""
    problems = [bpdn_problem(linear_map(A), y, 1.0) for y in Y.T]
    form = SparseProblem.of(problems[0], np.zeros(A.shape[1]))
    search = BatchNewton(linear_map(A), 1e-7).search
    return problems, search(form, Y, np.ones(Y.shape[1]))


def test_a_proposal_is_proved() -> None:
    A, Y = several(30, 80, 3, 3)
    for problem, proposal in zip(*proposed(A, Y), strict=True):
        assert proposal is not None
        assert np.linalg.norm(A @ proposal.x - problem.constraint.y) <= 1.0
        fun, bound = float(np.abs(proposal.x).sum()), -proposal.inequality.support
        assert 0.0 <= fun - bound <= 0.5e-7 * fun
        assert problem.constraint.violation(proposal.x) == 0.0


def test_newtons_method_takes_few_steps() -> None:
    """An error in Newton's matrix, or in the next alpha, only increases the number of steps."""
    A, Y = several(60, 150, 20, 3)
    proposals = proposed(A, Y)[1]
    assert sum(99 if p is None else p.steps for p in proposals) <= 97


def test_real_measurements_of_a_complex_matrix() -> None:
    A, Y = several(30, 80, 5, 4)
    results = lopro.bpdn(A, Y.real, 1.0)
    for y, result in zip(Y.real.T, results, strict=True):
        assert result.success
        assert result.fun == pytest.approx(lopro.bpdn(A, y, 1.0).fun, rel=2e-6)


def test_batches_of_groups_are_solved_correctly() -> None:
    A, Y = several(30, 80, 4, 5)
    groups = np.arange(80) // 2
    results = lopro.bpdn(A, Y, 1.0, groups=groups)
    alone = lopro.bpdn(A, Y[:, 0], 1.0, groups=groups)
    assert all(r.success for r in results)
    assert results[0].fun == pytest.approx(alone.fun, rel=2e-6)


def test_weights_are_equivalent_to_scaled_columns() -> None:
    """Scaling by powers of two is exact: equal steps and values, and entries divided by their weights."""
    A, Y = several(40, 100, 6, 6)
    weights = 2.0 ** np.random.default_rng(6).integers(-12, 12, 100)

    def searched(A: Any, weights: Any) -> Any:
        problem = bpdn_problem(linear_map(A), Y[:, 0], 1.0, weights=weights)
        form = SparseProblem.of(problem, np.zeros(100))
        return BatchNewton(linear_map(A), 1e-7).search(form, Y, np.ones(6))

    for one, other in zip(searched(A, None), searched(A * weights, weights), strict=True):
        assert one is not None and other is not None
        assert one.steps == other.steps
        assert other.fun == pytest.approx(one.fun, rel=1e-12)
        assert weights * other.x == pytest.approx(one.x, abs=1e-9)
