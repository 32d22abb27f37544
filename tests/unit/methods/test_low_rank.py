"""Linear costs over matrices with a given diagonal: low-rank factors, and proofs by their slacks."""

from __future__ import annotations

import math
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy.sparse

import lopro
from benchmarks.general import maxcut
from lopro import LowRankFactors, Problem, SemidefiniteEngines, Status
from lopro.constraints import Affine, Intersection, PSDCone
from lopro.core.arrays import to_numpy
from lopro.errors import MissingCapabilityError
from lopro.linalg.sparse_definite import SparseCholesky
from lopro.methods.semidefinite import low_rank
from lopro.methods.semidefinite.factor_problem import FactorCost
from lopro.newton.sdp.factors import LinearCost, UnitRowsProblem, WeightedDistance
from lopro.objectives import Linear

DATA = Path(os.environ.get("LOPRO_DATA", Path(__file__).parents[4] / "shared" / "data"))


def cycle(n: int) -> Any:
    i = np.arange(n)
    W = scipy.sparse.coo_array((np.ones(n), (i, (i + 1) % n)), (n, n))
    return scipy.sparse.csr_array(W + W.T)


def make_problem(C: Any, diagonal: Any = 1.0) -> Problem:
    at = np.arange(C.shape[0])
    fixed = Affine.entries((at, at), diagonal, diagonal, shape=C.shape)
    return Problem(Linear(np.asarray(C)), Intersection(PSDCone(len(at)), fixed))


def random_cost(n: int, seed: int = 0) -> Any:
    C = np.random.default_rng(seed).standard_normal((n, n))
    return C + C.T


def test_the_benchmark_runs_on_a_small_graph() -> None:
    (row,) = maxcut.measured(small=True)
    assert row["status"] == "CONVERGED" and row["gap"] <= 1e-4 and row["nodes"] == 100


def read_gset(name: str) -> Any:
    """Return minus a quarter of the Laplacian of a graph of the collection."""
    path = DATA / "gset" / f"{name}.txt"
    if not path.exists():
        pytest.skip(f"needs {path.name} of the collection Gset in {DATA}")
    return maxcut.read_graph(path)


@pytest.mark.parametrize("n", [3, 5, 11, 51])
@pytest.mark.parametrize(
    ("s", "t"), [(1.0, 1.0), (1e-9, 1.0), (1e9, 1.0), (1.0, 1e-12), (1.0, 1e12)]
)
def test_odd_cycles_in_any_units(n: int, s: float, t: float) -> None:
    """Neighbours at the angle ``pi (n - 1) / n``: ``<C, X> = 2 n cos(pi (n - 1) / n)``."""
    exact = 2.0 * n * math.cos(math.pi * (n - 1) / n) * t
    result = lopro.fixed_diagonal(cycle(n) * (t / s), s)
    assert result.status is Status.CONVERGED
    assert result.certificate.lower_bound <= exact * (1.0 - 1e-13) <= result.fun + 4e-13 * t * n
    assert result.fun - result.certificate.lower_bound <= 1e-6 * abs(exact)
    assert result.fun == pytest.approx(exact, rel=1e-6)
    np.testing.assert_allclose(np.sum(result.x**2, axis=1), s, rtol=1e-13)
    # Multipliers have the sign of upper sides: C + Diag(v) is semidefinite, and -s sum(v) is the bound.
    assert result.multipliers is not None
    (v,) = result.multipliers
    assert np.linalg.eigvalsh(cycle(n).toarray() * (t / s) + np.diag(v))[0] >= 0.0
    assert -s * v.sum() == pytest.approx(result.certificate.lower_bound, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_any_positive_diagonal_agrees_with_the_engines(seed: int) -> None:
    n, rng = 12, np.random.default_rng(seed)
    C, d = random_cost(n, seed), rng.uniform(0.1, 10.0, n)
    ours = lopro.solve(make_problem(C, d), tol=1e-8)
    assert "LowRankFactors" in ours.method and "Engines" not in ours.method
    theirs = lopro.solve(make_problem(C, d), method=SemidefiniteEngines(("clarabel",)), tol=1e-7)
    assert ours.status is theirs.status is Status.CONVERGED
    assert ours.certificate.lower_bound <= theirs.fun and theirs.certificate.lower_bound <= ours.fun
    factor = lopro.fixed_diagonal(C, d, tol=1e-8)
    assert factor.fun == pytest.approx(ours.fun, rel=1e-7)
    np.testing.assert_allclose(ours.x.diagonal(), d, rtol=1e-15)
    assert ours.multipliers is not None
    slack, v = ours.multipliers
    np.testing.assert_allclose(-slack, C + np.diag(v), atol=1e-12)
    assert np.linalg.eigvalsh(-slack)[0] >= 0.0
    assert -d @ v == pytest.approx(ours.certificate.lower_bound, rel=1e-12)


def test_the_gap_is_the_shift_times_the_trace() -> None:
    """The proof uses half the allowed gap: ``n`` times the shift, and no other term."""
    n = 40
    result = lopro.fixed_diagonal(cycle(n + 1), tol=1e-3)
    exact = 2.0 * (n + 1) * math.cos(math.pi * n / (n + 1))
    assert result.certificate.gap == pytest.approx(0.5e-3 * abs(result.fun), rel=1e-6)
    assert result.certificate.lower_bound < exact <= result.fun + 1e-12


def test_an_initial_rank_that_is_too_small_is_increased() -> None:
    """With one column V is a vector of signs, a local minimum with an indefinite slack: columns are added."""
    C = random_cost(30, 3)
    result = lopro.fixed_diagonal(C, rank=1)
    assert result.status is Status.CONVERGED
    assert result.x.shape[1] > 1
    assert result.fun == pytest.approx(lopro.fixed_diagonal(C, rank=8).fun, rel=2e-6)


def test_a_time_limit_of_a_millisecond_leaves_a_point_and_a_bound() -> None:
    C = cycle(4001)
    exact = 2.0 * 4001 * math.cos(math.pi * 4000 / 4001)
    result = lopro.fixed_diagonal(C, time_limit=1e-3)
    assert result.status is Status.TIME_LIMIT
    assert result.certificate.violation <= 1e-12
    assert -math.inf < result.certificate.lower_bound <= exact <= result.fun
    # Absolute row sums are 2, which bounds the least eigenvalue without a factorisation.
    assert result.certificate.lower_bound >= -2.0 * 4001 * (1.0 + 1e-10)


@pytest.mark.parametrize("C", [np.zeros((4, 4)), np.diag([1.0, -2.0, 3.0]), np.array([[5.0]])])
def test_costs_without_entries_off_the_diagonal(C: Any) -> None:
    result = lopro.fixed_diagonal(C)
    assert result.status is Status.CONVERGED
    assert result.fun == pytest.approx(C.trace(), abs=1e-12)


def test_other_rows_are_left_to_the_engines() -> None:
    n = 4
    set_ = Intersection(PSDCone(n), Affine.entries(([0, 1, 2], [0, 1, 2]), 1.0, 1.0, shape=(n, n)))
    with pytest.raises(MissingCapabilityError, match="entries of the diagonal"):
        LowRankFactors().check(Problem(Linear(np.eye(n)), set_))
    at = np.arange(n)
    for lower, upper in ((0.0, 1.0), (0.0, 0.0)):
        sides = Affine.entries((at, at), lower, upper, shape=(n, n))
        with pytest.raises(MissingCapabilityError, match="entries of the diagonal"):
            LowRankFactors().check(Problem(Linear(np.eye(n)), Intersection(PSDCone(n), sides)))


def test_bounded_diagonals_go_to_the_engines() -> None:
    at, n = np.arange(3), 3
    sides = Affine.entries((at, at), 0.0, 1.0, shape=(n, n))
    problem = Problem(Linear(np.ones((n, n)) - 2.0 * np.eye(n)), Intersection(PSDCone(n), sides))
    result = lopro.solve(problem)
    assert result.success and "SemidefiniteEngines" in result.method


@pytest.mark.parametrize("C", [np.ones((2, 3)), np.array([[0.0, 1.0], [2.0, 0.0]])])
def test_costs_that_are_not_symmetric_are_refused(C: Any) -> None:
    with pytest.raises(ValueError, match="C must be"):
        lopro.fixed_diagonal(C)
    with pytest.raises(ValueError, match="diagonal must be positive"):
        lopro.fixed_diagonal(np.eye(2), [1.0, 0.0])


def test_the_terms_of_a_cost_in_factors_are_those_of_the_matrix(rng: Any) -> None:
    C, V = random_cost(6), rng.standard_normal((6, 2))
    for cost in (C, scipy.sparse.csr_array(C)):
        f = FactorCost(cost, 2)
        assert f.value(V) == pytest.approx(np.sum(C * (V @ V.T)), rel=1e-13)
        assert f.magnitude(V, 0.0) == pytest.approx(np.abs(C * (V @ V.T)).sum(), rel=1e-13)


@pytest.mark.parametrize("kind", ["linear", "weighted"])
def test_hessian_and_gradient_are_those_of_the_value(rng: Any, kind: str) -> None:
    W = np.abs(random_cost(7, 1))
    cost = LinearCost(random_cost(7)) if kind == "linear" else WeightedDistance(W, random_cost(7))
    problem = UnitRowsProblem(cost)
    point = problem.point(rng.standard_normal((7, 3)))
    U = rng.standard_normal((7, 3))
    U -= np.sum(U * point.V, axis=1)[:, None] * point.V
    h = 1e-4
    up, down = problem.point(point.V + h * U), problem.point(point.V - h * U)
    assert (up.fun - down.fun) / (2.0 * h) == pytest.approx(
        2.0 * np.vdot(point.gradient(), U), rel=1e-6
    )
    H = problem._hessian(point, U)
    np.testing.assert_allclose(
        np.sum(H * point.V, axis=1), 0.0, atol=1e-12
    )  # tangent to the spheres
    # The retraction is of second order, so that the second difference is the Hessian's.
    second = (up.fun - 2.0 * point.fun + down.fun) / h**2
    assert second == pytest.approx(2.0 * np.vdot(U, H), rel=1e-5)


@pytest.mark.parametrize("banded", [True, False])
def test_the_proof_bounds_the_least_eigenvalue_to_rounding(banded: bool) -> None:
    """The second difference has the least eigenvalue ``2 - 2 cos(pi / (n + 1))``."""
    n = 300
    S = scipy.sparse.diags_array(
        [-np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1]
    )
    order = np.random.default_rng(0).permutation(n)
    S = scipy.sparse.csr_array(scipy.sparse.csr_array(S)[order][:, order])
    proofs = SparseCholesky.of(S) if banded else SparseCholesky(np.arange(n), n - 1)
    assert proofs.banded is banded
    assert proofs.bandwidth == (1 if banded else n - 1)
    least = 2.0 - 2.0 * math.cos(math.pi / (n + 1))
    allowed = 3e-13 if banded else 3e-11  # 1.01 gamma_k trace for k = 4 and 302
    assert proofs.is_above(S, least - allowed) and not proofs.is_above(S, least + 1e-15)
    shifted = S - scipy.sparse.diags_array(np.full(n, 1.0))
    assert proofs.semidefinite_shift(shifted, 0.3, 3) == pytest.approx(1.2)
    assert math.isinf(proofs.semidefinite_shift(shifted, 0.01, 3))


@pytest.mark.parametrize(
    ("name", "value"), [("G1", -12083.1976), ("G14", -3191.5668), ("G32", -1567.6396)]
)
def test_graphs_of_the_collection(name: str, value: float) -> None:
    """The values of the relaxation that the literature gives (12083.2, 3191.6 and 1567.6)."""
    result = lopro.fixed_diagonal(read_gset(name), tol=1e-4)
    assert result.status is Status.CONVERGED
    assert result.certificate.lower_bound <= value + 5e-5
    assert result.fun == pytest.approx(value, rel=1e-4)
    assert result.fun >= value - 1e-4


def test_sparse_costs_stay_sparse() -> None:
    """A dense matrix of this size would take 80 GB."""
    n = 100_000
    cost = LinearCost(cycle(n) + scipy.sparse.diags_array(np.ones(n)))
    assert scipy.sparse.issparse(cost.without_diagonal) and cost.without_diagonal.nnz == 2 * n
    assert cost.constant.value == n


def test_shift_and_rounding_of_the_cost_are_subtracted_from_the_bound() -> None:
    found = SimpleNamespace(
        proofs=SimpleNamespace(semidefinite_shift=lambda slack, shift, tries: shift),
        _blur=lambda point: 0.125,
        _value=lambda point, y: float(y.sum()),
    )
    point = SimpleNamespace(y=np.array([1.0, 2.0]), slack=lambda: None)
    y, value = low_rank._LowRankSearch._bound(found, point, 0.25, 1)
    assert y.tolist() == [0.625, 1.625] and value == 2.25


def test_the_factor_is_on_the_device_of_the_matrix(rng):
    """The method runs on the host: the copy of the matrix is counted, the factor returns to the device."""
    C = rng.standard_normal((12, 12))
    C = C + C.T
    there = array_api_strict.asarray(C, device=array_api_strict.Device("device1"))
    expected, found = lopro.fixed_diagonal(C), lopro.fixed_diagonal(there)
    assert found.success and found.x.device == there.device
    assert np.array_equal(to_numpy(found.x), expected.x)
    assert found.counts.transfers == 1 and found.counts.bytes_transferred == C.nbytes
    assert expected.counts.transfers == 0


def test_the_bound_of_a_distance_includes_constants_of_fixed_and_asymmetric_targets(
    rng: Any,
) -> None:
    n, at = 12, np.arange(12)
    i, j = np.triu_indices(n, 1)
    cone, ones = PSDCone(n), Affine.entries((at, at), 1.0, 1.0, shape=(n, n))
    fixed = Affine.entries((i[::5], j[::5]), 0.1, 0.1, shape=(n, n))
    for Z, W in (
        ((S := 0.5 * rng.standard_normal((n, n))) + S.T, np.full((n, n), 0.7)),
        (rng.standard_normal((n, n)), 0.1 + rng.random((n, n))),
    ):
        f = lopro.objectives.SquaredDistance(Z, weights=W)
        for members in ((cone, ones), (cone, ones, fixed)):
            problem = Problem(f, Intersection(*members))
            result = lopro.solve(problem, method=LowRankFactors(), tol=1e-7)
            assert result.success
            value = 0.5 * float((W * (result.x - Z) ** 2).sum())
            assert result.fun == pytest.approx(value, rel=1e-12)
            assert value - 1e-7 * max(1.0, value) <= result.certificate.lower_bound <= value
