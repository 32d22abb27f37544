"""Many right-hand sides: batches give the answers of separate calls, certified and counted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.basis_pursuit.application import bpdn_problem
from lopro.basis_pursuit.batches.dense import BatchNewton
from lopro.basis_pursuit.batches.newton import Searches
from lopro.basis_pursuit.batches.padded_rows import HostColumns
from lopro.basis_pursuit.problem import SparseProblem
from lopro.core.arrays import to_numpy
from lopro.maps import linear_map


def instance(
    seed: int, k: int, *, m: int = 120, d: int = 400, nonneg: bool = False
) -> tuple[Any, Any, Any]:
    """Return a matrix, k measurements of sparse vectors with noise, and the norms of the noise."""
    rng = np.random.default_rng(seed)
    A = rng.uniform(-1, 1, (m, d))
    Y, radii = np.empty((m, k)), np.empty(k)
    for j in range(k):
        x = np.zeros(d)
        x[rng.choice(d, 10, replace=False)] = rng.uniform(0.0 if nonneg else -1.0, 1.0, 10)
        e = rng.uniform(-0.05, 0.05, m)
        Y[:, j], radii[j] = A @ x + e, np.linalg.norm(e)
    return A, Y, radii


def alone(A: Any, Y: Any, radii: Any, **options: Any) -> list[lopro.BPDNResult]:
    return [lopro.bpdn(A, y, float(sigma), **options) for y, sigma in zip(Y.T, radii, strict=True)]


def agree(together: list[lopro.BPDNResult], separate: list[lopro.BPDNResult]) -> None:
    assert len(together) == len(separate)
    for a, b in zip(together, separate, strict=True):
        assert a.success and b.success, f"{a}\n{b}"
        assert a.fun == pytest.approx(b.fun, rel=1e-8)
        assert np.abs(a.x - b.x).max() <= 1e-8 * np.abs(b.x).max()
        assert a.certificate.violation <= 1e-9


def test_steps_solve_exactly_for_their_signs() -> None:
    """On ``A = I`` by hand: all three columns are in the support first, of which one has to leave again.

    For signs s the solution is ``y - alpha s`` with ``alpha = sigma / sqrt 3``, which is above the third
    entry; without it ``alpha^2 = (sigma^2 - y_3^2) / 2``.
    """
    y, sigma, eye = np.zeros(24), 1.0, np.eye(24)
    y[:3] = [3.0, -2.0, 0.5]
    sparse = SparseProblem.of(bpdn_problem(eye, y, sigma), np.zeros(24))
    searches = Searches(eye, HostColumns(eye), sparse, y[None, :], [sigma], 1e-12)
    searches._price(0)
    searches._step_all()
    alpha = sigma / np.sqrt(3.0)
    assert searches.z[0, :3] == pytest.approx([3.0 - alpha, -2.0 + alpha, 0.0], rel=1e-6)
    searches._price(1)
    searches._step_all()
    alpha = np.sqrt((sigma**2 - 0.25) / 2.0)
    assert searches.z[0, :3] == pytest.approx([3.0 - alpha, -2.0 + alpha, 0.0], rel=1e-6)
    assert searches.alpha[0] == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("kind", ["plain", "Fortran", "weighted", "nonneg", "read-only"])
def test_a_batch_agrees_with_separate_calls(kind: str) -> None:
    A, Y, radii = instance(0, 12, nonneg=kind == "nonneg")
    options: dict[str, Any] = {"tol": 1e-10}
    if kind == "Fortran":
        A = np.asfortranarray(A)
    if kind == "weighted":
        options["weights"] = np.random.default_rng(1).uniform(0.5, 2.0, A.shape[1])
    if kind == "nonneg":
        options["nonneg"] = True
    if kind == "read-only":
        A.setflags(write=False)
        Y.setflags(write=False)
    together = lopro.bpdn(A, Y, radii, **options)
    assert all(r.method == "BatchNewton" for r in together)
    if kind == "nonneg":
        for result in together:
            of_ball, of_signs = result.multipliers
            assert of_signs.max() <= 1e-8 and of_signs.min() < -0.1
            np.testing.assert_allclose(1.0 + A.T @ of_ball + of_signs, 0.0, atol=1e-12)
    agree(together, alone(A, Y, radii, **options))


def test_products_are_counted_for_each_right_hand_side() -> None:
    """Every step took a product with A and one with A', after that for A'y; there were no others."""
    A, Y, radii = instance(1, 8)
    products: list[int] = []
    original = Searches._price

    def counting(self: Searches, steps: int) -> None:
        products.append(len(self.places))
        original(self, steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Searches, "_price", counting)
        results = lopro.bpdn(A, Y, radii, tol=1e-8)
    for r in results:
        assert r.counts.matvecs == r.iterations > 0
        assert r.counts.rmatvecs == r.iterations + 1
        # The proposal is feasible without a projection.
        assert r.counts.projections == 0 and r.counts.factorizations == 1
        assert r.certificate_counts.matvecs == r.certificate_counts.rmatvecs == 0
        assert r.seconds > 0.0
    # At x = 0 no product with A is needed.
    assert sum(r.counts.matvecs + r.counts.rmatvecs for r in results) == 2 * sum(products) - 8


def test_problems_a_batch_does_not_support_are_solved_separately() -> None:
    """Zero solutions, equations, radii below what single precision can resolve, dependent columns."""
    A, Y, radii = instance(2, 8)
    A = np.hstack([A, A[:, :50], np.zeros((120, 3))])
    radii[0] = 2.0 * np.linalg.norm(Y[:, 0])
    radii[1] = 0.0
    radii[2] *= 1e-3
    together = lopro.bpdn(A, Y, radii, tol=1e-8)
    assert together[0].fun == 0.0
    for a, b in zip(together, alone(A, Y, radii, tol=1e-8), strict=True):
        assert a.success and b.success
        assert a.fun == pytest.approx(b.fun, rel=2e-8)
        assert a.certificate.lower_bound <= b.fun * (1.0 + 1e-10)


def test_infeasible_columns_are_reported() -> None:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((60, 20))
    Y = np.column_stack([A[:, 0], rng.standard_normal(60)])
    good, bad = lopro.bpdn(A, Y, 0.1)
    assert good.success
    assert bad.status is lopro.Status.INFEASIBLE


def test_no_spectrum_is_computed_where_there_is_a_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    A, Y, radii = instance(4, 5)
    calls = [count_calls(monkeypatch, name) for name in ("eigh", "svd")]
    results = lopro.bpdn(A, Y, radii, method=lopro.WorkingSet())
    assert all(r.success for r in results)
    assert calls == [[], []]


def test_the_spectrum_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    A, Y = rng.standard_normal((60, 20)), rng.standard_normal((60, 3))
    calls = count_calls(monkeypatch, "svd")
    results = lopro.bpdn(A, Y, 0.1, method=lopro.WorkingSet())
    assert all(r.status is lopro.Status.INFEASIBLE for r in results)
    assert len(calls) == 1


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[int]:
    """Return a list to which every call of a function of `numpy.linalg` appends an entry."""
    calls: list[int] = []
    original = getattr(np.linalg, name)

    def counting(*args: Any, **options: Any) -> Any:
        calls.append(1)
        return original(*args, **options)

    monkeypatch.setattr(np.linalg, name, counting)
    return calls


def test_when_sharing_pays() -> None:
    def pays(m: int, d: int, k: int, matrix: Any) -> bool:
        A = linear_map(matrix)
        A.shape = (m, d)
        return BatchNewton.pays(A, k)

    host = np.ones((1, 1))
    assert pays(1000, 50000, 2, host)
    assert not pays(1000, 5000, 1, host)
    assert not pays(1000, 5000, 100, host.astype(np.float32))
    assert pays(1000, 5000, 100, host.astype(np.complex128))
    tensor = there("array_api_strict", host)
    assert pays(1000, 5000, 100, tensor)
    assert not pays(1000, 5000, 2, tensor)  # too few to pay for the Gram matrix
    assert not pays(1000, 20000, 1000, tensor)  # it would be ten times as large as A


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_reused_products_of_columns_agree_with_new_ones(dtype: Any) -> None:
    """From one support to the next: more, fewer and other columns, for two runs in alternation."""
    rng = np.random.default_rng(5)
    A = (rng.standard_normal((9, 40)) * (1.0 if dtype is np.float64 else 1.0 + 2j)).astype(dtype)
    columns = HostColumns(A)
    supports = [[1, 4, 7, 20], [1, 4, 7, 9], [9, 4, 30, 1], [4, 9, 1, 30], [5, 6, 7, 8]]
    for support in supports:
        places = np.array([support, [39 - j for j in support]])
        found = columns.gram_matrices(places, np.array([3, 11]))
        expected = np.stack([A[:, row].conj().T @ A[:, row] for row in places])
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-4)
        found *= np.nan  # the returned array is the caller's: it may be overwritten
    z = np.zeros((2, 40), dtype=dtype)
    z[0, [3, 17]] = 1.0, -2.0
    assert columns.images(z) == pytest.approx(z @ A.T)
    assert columns.squares == pytest.approx((np.abs(A) ** 2).sum(axis=0))


def test_limits_are_those_of_separate_calls() -> None:
    A, Y, radii = instance(5, 4)
    for r in lopro.bpdn(A, Y, radii, max_iter=1):
        assert r.iterations == 1 and "Batch" not in r.method
    with pytest.raises(ValueError, match="tol"):
        lopro.bpdn(A, Y, radii, tol=-1.0)


@pytest.mark.parametrize("scale", [1e20, 1e39])
def test_units_beyond_single_precision(scale: float) -> None:
    """Batches overflow there: without a warning, and each column is then solved separately."""
    rng = np.random.default_rng(16)
    A, Y = rng.standard_normal((20, 40)), rng.standard_normal((20, 5))
    near, far = lopro.bpdn(A, Y, 1.0), lopro.bpdn(scale * A, scale * Y, scale)
    assert all(result.success for result in far)
    for one, other in zip(near, far, strict=True):
        assert other.fun == pytest.approx(one.fun, rel=2e-6)


LIBRARIES = ["torch", "array_api_strict"]


def there(library: str, values: Any) -> Any:
    """Return values of another library; of array-api-strict on its second device, which stands for a GPU."""
    xp = pytest.importorskip(library)
    values = np.ascontiguousarray(values)
    if library == "torch":
        return xp.asarray(values)
    return xp.asarray(values, device=xp.Device("device1"))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("nonneg", [False, True])
def test_tensors_are_solved_as_a_batch_on_their_device(library: str, nonneg: bool) -> None:
    A, Y, radii = instance(7, 10, nonneg=nonneg)
    expected = lopro.bpdn(A, Y, radii, nonneg=nonneg, tol=1e-9)
    found = lopro.bpdn(there(library, A), there(library, Y), radii, nonneg=nonneg, tol=1e-9)
    for one, other in zip(found, expected, strict=True):
        assert one.method == other.method == "BatchNewton"
        assert one.success and type(one.x) is type(there(library, A))
        x, dual = to_numpy(one.x), to_numpy(one.dual)
        assert one.fun == pytest.approx(other.fun, rel=2e-9)
        assert np.abs(x).sum() == pytest.approx(one.fun, rel=1e-12)
        correlations = A.T @ dual if nonneg else np.abs(A.T @ dual)
        assert correlations.max() <= 1.0
        assert to_numpy(one.multipliers[0]) == pytest.approx(-dual)


def test_one_transfer_for_each_step_and_not_for_each_right_hand_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The data a step copies from the device do not grow with the number of right-hand sides."""
    calls: list[int] = []
    from lopro.basis_pursuit.batches import newton as batch_newton

    def counting(x: Any) -> Any:
        calls.append(math.prod(x.shape))
        return to_numpy(x)

    monkeypatch.setattr(batch_newton, "to_numpy", counting)
    seen = []
    for k in (6, 24):
        A, Y, radii = instance(8, k)
        calls.clear()
        results = lopro.bpdn(there("array_api_strict", A), there("array_api_strict", Y), radii)
        assert {r.method for r in results} == {"BatchNewton"}
        assert max(calls) <= 5 * k
        seen.append(len(calls) / max(r.iterations for r in results))
    assert max(seen) <= 7.0


def test_a_right_hand_side_that_is_not_finite_is_refused_by_name() -> None:
    A, Y, radii = instance(9, 4)
    Y[3, 2] = np.nan
    with pytest.raises(ValueError, match="y must be finite"):
        lopro.bpdn(A, Y, radii)


def test_a_callback_is_called_for_each_right_hand_side() -> None:
    A, Y, radii = instance(10, 4)
    seen: list[float] = []
    lopro.bpdn(A, Y, radii, callback=lambda iterate: seen.append(iterate.fun))
    assert len(seen) >= 4
