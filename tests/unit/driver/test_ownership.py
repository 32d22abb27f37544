"""Inputs are not changed, outputs share no memory with the library, and dtypes are kept."""

from __future__ import annotations

import numpy as np
import pytest

import lopro
from lopro import Problem
from lopro.constraints import Polyhedron, PSDCone, ResidualBall, ResidualNorm
from lopro.methods.inner import (
    LBFGSB,
    AcceleratedGradient,
    ConstantStep,
    StochasticSubgradient,
    SubgradientDescent,
)
from lopro.objectives import L1Norm, LeastSquares, Linear, SquaredDistance
from lopro.penalties import Hinge, Softplus

METHODS = {
    "auto": lopro.Auto(),
    "lopgd": lopro.LoPGD(),
    "one": lopro.OneProjection(SubgradientDescent(ConstantStep(1e-2)), Hinge(2.0), 30),
    "accelerated": lopro.OneProjection(AcceleratedGradient(), Softplus(2.0, 0.1), 30),
    "stochastic": lopro.OneProjection(StochasticSubgradient(ConstantStep(1e-3)), Hinge(2.0), 30),
    "lbfgsb": lopro.OneProjection(LBFGSB(), Softplus(2.0, 0.1), 1),
}


def frozen(array: np.ndarray) -> np.ndarray:
    """Make an array read-only, so that writing to it is an error."""
    array.flags.writeable = False
    return array


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
@pytest.mark.parametrize("inside", [True, False], ids=["feasible-start", "infeasible-start"])
def test_inputs_are_neither_overwritten_nor_returned(rng, method, inside):
    A, b = frozen(rng.standard_normal((6, 3))), frozen(rng.standard_normal(6))
    C, d = frozen(rng.standard_normal((4, 3))), frozen(np.ones(4))
    x0 = frozen(np.zeros(3) if inside else 5.0 * rng.standard_normal(3))
    result = lopro.solve(
        Problem(LeastSquares(A, b), Polyhedron(C, d)), x0, method, max_iter=300, seed=0
    )
    assert np.isfinite(result.fun)
    for array in (A, b, C, d, x0):
        assert not np.shares_memory(result.x, array)
    assert result.x.flags.writeable


def test_a_start_at_the_solution_is_returned_as_a_copy():
    x0 = np.zeros(2)
    half = Polyhedron([[1.0, 1.0]], [1.0])
    result = lopro.solve(Problem(L1Norm(), half), x0)
    np.testing.assert_array_equal(result.x, 0.0)
    result.x[:] = 7.0
    np.testing.assert_array_equal(x0, 0.0)


def test_two_results_of_one_run_share_nothing(rng):
    ball = ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    run = lopro.iterate(Problem(Linear(np.array([1.0, 2.0])), ball))
    seen = list(run)
    a, b = run.result(), run.result()
    assert not np.shares_memory(a.x, b.x)
    assert not any(np.shares_memory(a.x, it.x) for it in seen)


@pytest.mark.parametrize(
    ("make", "start"),
    [
        (lambda v: ResidualBall(np.eye(2), v, 1.0), np.zeros(2)),
        (lambda v: Polyhedron(np.eye(2), v), np.zeros(2)),
        (lambda v: Polyhedron.box(v - 2.0, v), np.zeros(2)),
    ],
    ids=["residual-ball", "polyhedron", "box"],
)
def test_a_constraint_keeps_its_own_right_hand_side(make, start):
    v = np.ones(2)
    constraint = make(v)
    before = constraint.value(start)
    v[:] = 100.0
    assert constraint.value(start) == before


REAL = [np.float32, np.float64]


@pytest.mark.parametrize("dtype", REAL)
@pytest.mark.parametrize("name", ["auto", "lopgd", "one", "accelerated"])
def test_real_dtypes_are_kept(rng, name, dtype):
    A, b = rng.standard_normal((6, 3)).astype(dtype), rng.standard_normal(6).astype(dtype)
    box = Polyhedron.box(-0.1 * np.ones(3, dtype), 0.1 * np.ones(3, dtype))
    for x0 in (None, np.zeros(3, dtype)):
        seen = []
        result = lopro.solve(
            Problem(LeastSquares(A, b), box), x0, METHODS[name], callback=seen.append, max_iter=500
        )
        assert result.x.dtype == dtype and {it.x.dtype for it in seen} == {np.dtype(dtype)}
        assert isinstance(result.fun, float)
        assert np.all(np.abs(result.x) <= 0.1 * (1.0 + 1e-5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("method", [lopro.Auto(), lopro.LoPNAG()], ids=["auto", "lopnag"])
def test_denoising_in_every_dtype(rng, dtype, method):
    """A = I has the soft threshold as its solution, of the modulus where points are complex."""
    y = 2.0 * rng.standard_normal(5)
    if np.dtype(dtype).kind == "c":
        y = y + 1j * rng.standard_normal(5)
    s = 0.7
    modulus = np.abs(y)
    expected = y * np.maximum(1.0 - s / modulus, 0.0)
    sigma = float(np.linalg.norm(np.minimum(modulus, s)))
    problem = Problem(L1Norm(), ResidualBall(np.eye(5, dtype=dtype), y.astype(dtype), sigma))
    single = np.dtype(dtype).char in "fF"
    tol = 1e-3 if single else 1e-7
    result = lopro.solve(problem, method=method, tol=tol, max_iter=20_000)
    assert result.success and result.x.dtype == dtype
    assert result.fun == pytest.approx(np.abs(expected).sum(), rel=2.0 * tol)
    np.testing.assert_allclose(result.x, expected, atol=0.1 if single else 2e-3)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_subgradients_and_complex_matrices(rng, dtype):
    M = rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))
    M = (M + M.conj().T).astype(dtype)
    result = lopro.solve(Problem(SquaredDistance(M), PSDCone(3)), tol=1e-4)
    values = np.linalg.eigvalsh(M)
    assert result.success and result.x.dtype == dtype
    assert result.fun == pytest.approx(0.5 * np.sum(np.minimum(values, 0.0) ** 2), abs=2e-3)

    a = (rng.standard_normal(3) + 1j * rng.standard_normal(3)).astype(dtype)
    ball = ResidualBall(np.eye(3, dtype=dtype), np.zeros(3, dtype), 1.0, ResidualNorm())
    result = lopro.solve(Problem(Linear(a), ball), method=lopro.LoPGD(), max_iter=5000, tol=1e-3)
    assert result.x.dtype == dtype
    assert result.fun == pytest.approx(-np.linalg.norm(a), rel=5e-3)


def test_integer_starts_are_converted_to_floating_point(rng):
    box = Polyhedron.box(-np.ones(2), np.ones(2))
    result = lopro.solve(Problem(SquaredDistance(np.array([3.0, 0.5])), box), [0, 0])
    np.testing.assert_allclose(result.x, [1.0, 0.5], atol=1e-3)
