"""NESTA: its bounds and the driver's rules, on data of the paper's recipe."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator
from support.nesta_runs import bpdn_problem, huber, iterates

import lopro
from lopro import Problem, Status
from lopro.constraints import Polyhedron, ResidualBall
from lopro.methods.baselines import NESTA, nesta
from lopro.objectives import L1Norm, Linear


def small(rng, *, m=20, d=60, sigma=None, dtype=np.float64, weights=None) -> Problem:
    A = rng.uniform(-1, 1, (m, d)).astype(dtype)
    if np.iscomplexobj(A):
        A = A + 1j * rng.uniform(-1, 1, (m, d))
    x = np.zeros(d, dtype=A.dtype)
    x[rng.choice(d, 4, replace=False)] = rng.uniform(-1, 1, 4)
    noise = rng.uniform(-0.01, 0.01, m)
    sigma = float(np.linalg.norm(noise)) if sigma is None else sigma
    return Problem(L1Norm(weights), ResidualBall(A, A @ x + (noise if sigma > 0 else 0.0), sigma))


def naive(A, y, sigma, mu, count) -> np.ndarray:
    """Return the iterates of a plain implementation: no cache, a root finder for each projection."""
    G = A @ A.T

    def project(v):
        r = A @ v - y
        if np.linalg.norm(r) <= sigma:
            return v

        def excess(eta):
            return np.linalg.norm(np.linalg.solve(np.eye(len(y)) + eta * G, r)) - sigma

        eta = scipy.optimize.brentq(excess, 0.0, 1e6, xtol=1e-15, rtol=1e-14)
        return v - eta * A.T @ np.linalg.solve(np.eye(len(y)) + eta * G, r)

    x = centre = A.T @ np.linalg.solve(G, y)
    total, seen = np.zeros_like(x), []
    for k in range(count):
        gradient = x / np.maximum(mu, np.abs(x))
        total = total + 0.5 * (k + 1) * gradient
        near, far = project(x - mu * gradient), project(centre - mu * total)
        x = 2 / (k + 3) * far + (k + 1) / (k + 3) * near
        seen.append(x)
    return np.array(seen)


def test_iterates_are_those_of_a_plain_implementation_and_broken_ones_are_not(rng, monkeypatch):
    problem = small(rng)
    c = problem.constraint
    expected = naive(c.A.matrix, c.y, c.sigma, 1e-2, 40)
    assert np.abs(iterates(problem, 1e-2, 40) - expected).max() <= 1e-9
    monkeypatch.setattr(nesta, "blend", lambda k: 2.0 / (k + 2))
    assert np.abs(iterates(problem, 1e-2, 40) - expected).max() > 1e-3


def test_two_projections_per_iteration_exactly(rng):
    problem = small(rng)
    for stages in (0, 1, 3):
        method = NESTA(1e-3, stages=stages, variation=None, max_iter=25, report=10)
        result = lopro.solve(problem, method=method, tol=0.0)
        assert result.iterations == 25 * max(1, stages)
        assert result.counts.projections == 2 * result.iterations
        # Checks after 10, 20 and 25 iterations of each stage.
        assert len(result.history) == 3 * max(1, stages)


def test_the_error_tends_to_zero_with_the_smoothing(rng):
    problem = small(rng)
    best = lopro.solve(problem, tol=1e-10).fun
    errors = []
    for mu in (1e-2, 1e-3, 1e-4, 1e-5):
        result = lopro.solve(problem, method=NESTA(mu, variation=1e-10), tol=0.0)
        errors.append(result.fun - best)
        # The smoothed norm is below the norm by at most d mu / 2, which bounds the error.
        assert -1e-9 <= errors[-1] <= 60 * mu / 2 + 1e-6
    assert errors[-1] < 1e-2 * errors[0]


def test_smoothing_bias(rng):
    f, mu = L1Norm(), 0.1

    class Bench:
        objective = small(rng).objective

    for scale in (1e-3, 0.1, 1.0):
        x = scale * rng.standard_normal(60)
        value = nesta.smoothed(Bench(), x, mu)
        assert value == pytest.approx(huber(x, mu), rel=1e-12)
        assert f.value(x) - 60 * mu / 2 <= value <= f.value(x)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sigma", [None, 0.0])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_its_certificates_are_valid_and_close(sigma, dtype, weighted, rng):
    weights = rng.uniform(0.5, 2.0, 60) if weighted else None
    problem = small(rng, m=30, sigma=sigma, dtype=dtype, weights=weights)
    best = lopro.solve(problem, tol=1e-9)
    assert best.success
    result = lopro.solve(problem, method=NESTA(1e-5, variation=1e-12, report=20), tol=0.0)
    # No bound of any iteration may exceed the optimum.
    assert max(result.history["lower_bound"]) <= best.fun + 1e-9
    assert result.certificate.relative_gap <= 1e-3
    assert result.fun == pytest.approx(best.fun, rel=1e-3)


def test_a_start_is_used(rng):
    problem = small(rng)
    solution = lopro.solve(problem, tol=1e-9).x
    method = NESTA(1e-6, stages=1, variation=None, max_iter=1)
    near = lopro.solve(problem, solution, method, tol=0.0)
    far = lopro.solve(problem, method=method, tol=0.0)
    best = np.abs(solution).sum()
    assert near.fun < best + 1e-3 < best + 0.5 < far.fun


def test_operators_and_sparse_matrices_take_the_same_steps(rng):
    problem = small(rng)
    A, y, sigma = problem.constraint.A.matrix, problem.constraint.y, problem.constraint.sigma
    expected = iterates(problem, 1e-3, 20)
    for other in (scipy.sparse.csr_array(A), aslinearoperator(A)):
        points = iterates(bpdn_problem(other, y, sigma), 1e-3, 20)
        np.testing.assert_allclose(points, expected, rtol=0, atol=1e-9)


def test_an_operator_that_cannot_reach_y(rng):
    A = rng.standard_normal((8, 3)) @ rng.standard_normal((3, 20))
    y = A @ rng.standard_normal(20) + 0.1 * rng.standard_normal(8)
    sigma = 1.5 * float(np.linalg.norm(y - A @ np.linalg.lstsq(A, y, rcond=None)[0]))
    values = []
    for matrix in (A, aslinearoperator(A)):
        result = lopro.solve(bpdn_problem(matrix, y, sigma), method=NESTA(1e-6, variation=1e-10))
        assert result.status is not Status.INFEASIBLE and result.certificate.violation <= 1e-9
        values.append(result.fun)
    assert values[0] == pytest.approx(values[1], abs=20 * 1e-6)


def test_library_and_precision_are_kept(rng):
    problem = small(rng)
    A, y = problem.constraint.A.matrix, problem.constraint.y
    sigma = problem.constraint.sigma
    method = NESTA(1e-3, variation=None, max_iter=20)
    expected = lopro.solve(problem, method=method, tol=0.0).x
    strict = bpdn_problem(array_api_strict.asarray(A), array_api_strict.asarray(y), sigma)
    result = lopro.solve(strict, method=method, tol=0.0)
    assert isinstance(result.x, type(array_api_strict.asarray(A)))
    np.testing.assert_allclose(np.from_dlpack(result.x), expected, atol=1e-10)
    single = lopro.solve(
        bpdn_problem(A.astype(np.float32), y.astype(np.float32), sigma), method=method, tol=0.0
    )
    assert single.x.dtype == np.float32
    np.testing.assert_allclose(single.x, expected, atol=1e-3)


def test_zero_is_found_where_it_is_the_solution():
    problem = bpdn_problem(np.eye(2, 3), np.array([0.3, 0.4]), 1.0)
    result = lopro.solve(problem, method=NESTA(1e-4, variation=1e-8))
    assert result.fun <= 3 * 1e-4 and result.certificate.violation == 0.0
    nothing = lopro.solve(bpdn_problem(np.eye(2, 3), np.zeros(2), 0.0), method=NESTA())
    assert nothing.fun == 0.0


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array, aslinearoperator])
def test_equations_have_bounds_from_the_step_of_a_projection(rng, kind):
    """The residual is zero, so the multiplier of the step is computed from the spectrum or by products."""
    problem = small(rng, sigma=0.0)
    A, y = problem.constraint.A.matrix, problem.constraint.y
    split = np.hstack([A, -A])
    found = scipy.optimize.linprog(np.ones(120), A_eq=split, b_eq=y, bounds=(0, None))
    result = lopro.solve(bpdn_problem(kind(A), y, 0.0), method=NESTA(1e-5, variation=1e-9))
    assert 0.99 * found.fun <= result.certificate.lower_bound <= found.fun * (1.0 + 1e-12)
    q = result.multiplier.dual[0]
    np.testing.assert_allclose(A.T @ q, result.multiplier.direction, atol=1e-12)
    # The rounding error of that product is charged, at the largest norm of a solution.
    charged = result.multiplier.support - problem.constraint.support_image((q,))
    reference = 8.0 * np.finfo(float).eps * np.linalg.norm(A, 2) * np.linalg.norm(q) * result.fun
    assert (
        0.5 * reference <= charged <= 1.2 * reference
    )  # products estimate no more than the norm of A


def test_budgets_end_the_run_with_a_feasible_point(rng):
    problem = small(rng)
    method = NESTA(1e-4, variation=None, max_iter=100)
    result = lopro.solve(problem, method=method, tol=0.0, max_iter=37)
    assert (result.status, result.iterations) == (Status.MAX_ITER, 37)
    assert len(result.history) == 1 and result.certificate.violation <= 1e-9
    for limit in (40, 41):
        result = lopro.solve(problem, method=method, tol=0.0, max_projections=limit)
        assert (result.status, result.counts.projections) == (Status.MAX_PROJECTIONS, limit)
        assert result.certificate.violation <= 1e-9
    assert lopro.solve(problem, method=method, tol=0.0, time_limit=1e-9).iterations == 1


def test_other_problems_are_refused(rng):
    ball = small(rng).constraint
    box = Polyhedron.box(-np.ones(60), np.ones(60))
    for problem in (Problem(Linear(np.ones(60)), ball), Problem(L1Norm(), box)):
        with pytest.raises(lopro.MissingCapabilityError, match="L1Norm over a ResidualBall"):
            lopro.solve(problem, method=NESTA())


@pytest.mark.parametrize(
    "arguments",
    [
        {"mu_final": 0.0},
        {"mu_final": np.nan},
        {"stages": -1},
        {"stages": 1.5},
        {"variation": -1.0},
        {"max_iter": 0},
        {"report": 0},
    ],
)
def test_bad_parameters(arguments):
    with pytest.raises((TypeError, ValueError), match=next(iter(arguments))):
        NESTA(**arguments)
