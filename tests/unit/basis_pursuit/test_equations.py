"""Equations (sigma = 0): sparse vertices, few products, degenerate ones included."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import lopro
from lopro.basis_pursuit.application import bpdn_problem
from lopro.basis_pursuit.columns.column_set import ColumnSet
from lopro.basis_pursuit.columns.support_newton import SupportNewton
from lopro.basis_pursuit.levels import Radius
from lopro.basis_pursuit.problem import SparseProblem
from lopro.basis_pursuit.programs import fits_program, optimal_pair


def planted(m: int, d: int, k: int, seed: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((m, d)) / np.sqrt(m), np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    return A, x, A @ x


def optimum(A: Any, y: Any, w: Any, nonneg: bool) -> float:
    both, cost = (A, w) if nonneg else (np.hstack([A, -A]), np.concatenate([w, w]))
    return float(scipy.optimize.linprog(cost, A_eq=both, b_eq=y).fun)


@pytest.mark.parametrize("rounding", [0.0, 2.0**-52, -(2.0**-52)])
def test_a_residual_that_is_rounding_does_not_determine_the_multiplier(rounding: float) -> None:
    """The dual point requires the third column in the support, with a coefficient of zero.

    ``|y - A p|^2`` is computed as a difference: zero to the last digit here, a little more or less elsewhere.
    """
    A, y = np.array([[1.0, 0.0, 0.8], [0.0, 1.0, 0.8], [0.0, 0.0, 0.1]]), np.array([1.0, 2.0, 0.0])
    columns = ColumnSet(y, np.ones(3))
    columns.extend(np.arange(3), lambda at: A[:, at], A.T @ y + rounding * np.array([1.0, 0, 0]))
    found = SupportNewton(columns, Radius(0.0)).solve(np.array([1.0, 1.0, 0.0]), 0.0, steps=10)
    assert found.settled and found.reached and found.alpha == 0.0
    np.testing.assert_allclose(found.x, [1.0, 2.0, 0.0], atol=1e-12)
    # The first two columns alone give the dual point (1, 1, 0), with which the third correlates by 1.6.
    np.testing.assert_allclose(found.dual, [1.0, 1.0, -6.0], rtol=1e-9)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_the_constructed_solution_is_found_with_its_zeros(unit: float) -> None:
    A, x, y = planted(128, 512, 16, 0)
    result = lopro.bpdn(unit * A, y, 0.0)
    assert result.success
    assert set(result.support) == set(np.flatnonzero(x))
    np.testing.assert_allclose(unit * result.x, x, atol=1e-12)
    assert result.counts.matvecs + result.counts.rmatvecs <= 20
    assert result.counts.factorizations == 0  # no spectrum is computed


def test_sparse_matrices_and_single_precision() -> None:
    A, x, y = planted(100, 400, 10, 1)
    A[np.abs(A) < 0.1] = 0.0
    y = A @ x
    result = lopro.bpdn(scipy.sparse.csc_array(A), y, 0.0)
    assert result.success and set(result.support) == set(np.flatnonzero(x))
    single = lopro.bpdn(A.astype(np.float32), y.astype(np.float32), 0.0, tol=1e-3, time_limit=20.0)
    assert single.success and single.x.dtype == np.float32


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m, d", [(20, 25), (40, 50), (60, 90)])
def test_near_the_phase_transition(m: int, d: int, weighted: bool, nonneg: bool) -> None:
    """As many nonzeros as equations determine: many vertices are degenerate, and all are certified."""
    for seed in range(3):
        A, x, y = planted(m, d, m // 2, seed)
        if nonneg:
            y = A @ np.abs(x)
        w = np.random.default_rng(seed).uniform(0.5, 2.0, d) if weighted else np.ones(d)
        result = lopro.bpdn(A, y, 0.0, weights=w, nonneg=nonneg, tol=1e-8, time_limit=20.0)
        assert result.success
        assert np.count_nonzero(result.x) <= m
        assert result.fun == pytest.approx(optimum(A, y, w, nonneg), rel=1e-7)
        assert not nonneg or result.x.min() >= 0.0


def test_the_program_returns_the_active_columns_and_rows() -> None:
    A, _, y = planted(12, 20, 12, 3)
    w = np.random.default_rng(0).uniform(0.5, 2.0, 20)
    sparse = SparseProblem.of(bpdn_problem(1e6 * A, 1e-3 * y, 0.0, weights=w), np.zeros(20))
    assert fits_program(sparse)
    found = optimal_pair(sparse, 1e6 * A)
    assert found is not None
    np.testing.assert_allclose(1e6 * A @ found.x, 1e-3 * y, atol=1e-12)
    S = np.flatnonzero(found.signs)
    assert len(S) == 12
    # The dual point that the signs determine is feasible: the vertex is optimal.
    nu = np.linalg.solve(1e6 * A[:, S].T, (w * found.signs)[S])
    assert np.max(np.abs(1e6 * A.T @ nu) / w) <= 1.0 + 1e-9
    assert nu @ (1e-3 * y) == pytest.approx(w @ np.abs(found.x), rel=1e-9)
    np.testing.assert_allclose(found.dual, nu, rtol=1e-6, atol=1e-6 * np.abs(nu).max())


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_a_degenerate_vertex_is_proved_by_the_centre_of_its_dual_points(unit: float) -> None:
    """18 nonzeros of 40 equations: there are many dual points; that from the signs alone is infeasible."""
    rng = np.random.default_rng(3)
    A, x = unit * rng.choice([-1.0, 1.0], (40, 50)), np.zeros(50)
    x[rng.choice(50, 18, replace=False)] = rng.choice([-1.0, 1.0], 18)
    sparse = SparseProblem.of(bpdn_problem(A, A @ x, 0.0), np.zeros(50))
    pair = optimal_pair(sparse, A)
    np.testing.assert_array_equal(pair.signs, np.sign(x))
    S = np.flatnonzero(x)
    shortest = np.linalg.lstsq(A[:, S].T, pair.signs[S])[0]
    assert np.max(np.abs(A.T @ shortest)) > 1.01
    candidate = pair.candidate(sparse, A, x)
    assert candidate is not None
    np.testing.assert_allclose(candidate.x, x, atol=1e-12)
    assert np.count_nonzero(candidate.x) == 18
    inequality = candidate.evidence.inequality
    assert -inequality.support == pytest.approx(18.0, rel=1e-12) and -inequality.support <= 18.0
    result = lopro.bpdn(A, A @ x, 0.0, tol=1e-10)
    assert result.success and np.count_nonzero(result.x) == 18


def test_signs_that_determine_no_solution_make_no_candidate() -> None:
    A, _, y = planted(12, 20, 4, 3)
    sparse = SparseProblem.of(bpdn_problem(A, y, 0.0), np.zeros(20))
    pair = optimal_pair(sparse, A)
    assert pair.candidate(sparse, A, y) is not None
    for signs in (np.zeros(20), np.ones(20), -pair.signs, np.where(np.arange(20) < 3, 1.0, 0.0)):
        assert dataclasses.replace(pair, signs=signs).candidate(sparse, A, y) is None
    twin = A.copy()
    twin[:, 1] = twin[:, 0]
    both = dataclasses.replace(pair, signs=np.where(np.arange(20) < 2, 1.0, 0.0))
    assert both.candidate(sparse, twin, y) is None


def test_no_program_is_solved_where_the_solution_is_determined() -> None:
    for shape, fits in (
        ((30, 20), False),
        ((20, 20), False),
        ((20, 30), True),
        ((1000, 5000), True),
        ((1100, 9000), False),
    ):
        problem = bpdn_problem(np.ones(shape), np.ones(shape[0]), 0.0)
        assert fits_program(SparseProblem.of(problem, np.zeros(shape[1]))) is fits


def test_which_programs_are_faster_than_a_path() -> None:
    for shape, quick in (((250, 400), True), ((300, 1000), False), ((30, 20), False)):
        problem = bpdn_problem(np.ones(shape), np.ones(shape[0]), 0.0)
        assert fits_program(SparseProblem.of(problem, np.zeros(shape[1])), 5e7) is quick


def test_tiny_radii_start_at_the_vertex() -> None:
    """The support fills the rows: the path is long from the largest alpha, and short from the vertex."""
    rng = np.random.default_rng(5)
    A, _, y = planted(60, 200, 6, 5)
    y = y + 0.02 * rng.standard_normal(60)
    result = lopro.bpdn(A, y, 1e-5 * float(np.linalg.norm(y)), time_limit=30.0)
    assert result.success
    assert result.iterations <= 40
    assert np.linalg.norm(A @ result.x - y) <= 1e-5 * np.linalg.norm(y) * (1.0 + 1e-9)
