"""`lopro.bpdn` on matrices other than NumPy arrays in memory: on devices, in files, in blocks, on a cluster.

Answers agree with NumPy's; passes and bytes are counted exactly; nothing is read that is not needed.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.bpdn_constructed import check, constructed
from support.map_kinds import KINDS, Kind, Sliced, dask_array

import lopro
from lopro.core.arrays import namespace, to_numpy
from lopro.maps import StoredMap, called_between_blocks, linear_map

ROWS, COLUMNS = 80, 600


def sensing(rows: int, columns: int, nonzeros: int, noise: float, seed: int) -> Any:
    """Return a matrix, measurements of a sparse vector, and the length of their noise."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns)) / rows**0.5
    x = np.zeros(columns)
    x[rng.choice(columns, nonzeros, replace=False)] = rng.uniform(1.0, 2.0, nonzeros)
    e = noise * rng.standard_normal(rows)
    return A, A @ x + e, float(np.linalg.norm(e))


A, Y, SIGMA = sensing(ROWS, COLUMNS, 8, 0.02, 0)
#: Chunks of a few entries, made for small matrices, would be thousands here.
STREAMED = [kind for kind in KINDS if kind.shares and "tile" not in kind.name]
STREAMED += [Kind("dask-tiles", dask_array((30, 250)), ("dask.array",))]
DEVICES = [k for k in KINDS if k.name in ("strict", "torch", "torch-cuda", "jax", "cupy")]


def ready(kind: Kind) -> Kind:
    """Return a kind whose library is installed, or skip the test."""
    for package in kind.needs:
        pytest.importorskip(package, reason=f"{package} is not installed")
    kind.prepare()
    return kind


@pytest.fixture(scope="module")
def in_numpy() -> Any:
    return lopro.bpdn(A, Y, SIGMA, tol=1e-9)


# Data outside memory: files, blocks, clusters.


@pytest.mark.parametrize("kind", STREAMED, ids=str)
def test_the_answer_is_that_of_numpy_in_a_dozen_passes(
    kind: Kind, tmp_path: Path, in_numpy: Any
) -> None:
    found = lopro.bpdn(kind.map(A, tmp_path), Y, SIGMA, tol=1e-9)
    assert found.success and found.certificate.relative_gap <= 1e-9
    assert found.fun == pytest.approx(in_numpy.fun, rel=1e-12)
    assert type(found.x) is np.ndarray and found.x.dtype == np.float64
    np.testing.assert_array_equal(found.support, in_numpy.support)
    c, k = found.counts, found.certificate_counts
    # A product with y, four rounds; nothing is multiplied with A itself, and the certificate reads nothing.
    assert (c.rmatvecs, found.iterations, c.matvecs, c.projections) == (5, 4, 0, 0)
    assert (k.passes, k.bytes_read, k.matvecs, k.rmatvecs) == (0, 0, 0, 0)
    assert 5 <= c.passes <= 9 and c.bytes_read <= 9 * A.nbytes


@pytest.mark.parametrize("order", ["C", "F"])
def test_bytes_are_those_of_passes_and_columns(order: str) -> None:
    found = lopro.bpdn(StoredMap(np.asarray(A, order=order)), Y, SIGMA, tol=1e-9)
    c = found.counts
    if order == "C":
        # Stored by rows, columns take a pass: four requests for columns do not share one.
        assert (c.passes, c.bytes_read) == (9, 9 * A.nbytes)
    else:
        assert (c.passes, c.bytes_read) == (5, 5 * A.nbytes + c.columns * ROWS * 8)
    assert c.columns < COLUMNS // 3


def test_passes_do_not_grow_with_the_number_of_columns() -> None:
    passes = {}
    for columns in (500, 5_000, 50_000):
        matrix, y, sigma = sensing(100, columns, 5, 0.02, 1)
        found = lopro.bpdn(StoredMap(np.asfortranarray(matrix)), y, sigma, tol=1e-8)
        assert found.success
        passes[columns] = found.counts.passes
    assert passes == {500: 6, 5_000: 4, 50_000: 6}


def test_single_precision_in_a_file_is_summed_in_double(tmp_path: Path) -> None:
    single = A.astype(np.float32)
    found = lopro.bpdn(StoredMap(single), Y, SIGMA, tol=1e-10)
    expected = lopro.bpdn(single.astype(np.float64), Y, SIGMA, tol=1e-10)
    assert found.success and found.x.dtype == np.float64
    assert found.fun == pytest.approx(expected.fun, rel=1e-11)
    assert found.fun != pytest.approx(lopro.bpdn(A, Y, SIGMA, tol=1e-10).fun, rel=1e-11)


@pytest.mark.parametrize(
    "options",
    [
        {"weights": np.linspace(0.5, 2.0, COLUMNS)},
        {"nonneg": True},
        {"x0": np.where(np.arange(COLUMNS) < 4, 0.1, 0.0)},
    ],
    ids=["weights", "nonneg", "x0"],
)
def test_options_mean_the_same(options: dict[str, Any]) -> None:
    expected = lopro.bpdn(A, Y, SIGMA, tol=1e-9, **options)
    found = lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9, **options)
    assert found.success and found.fun == pytest.approx(expected.fun, rel=1e-10)
    assert found.counts.passes <= 13


def test_a_good_start_takes_three_passes(in_numpy: Any) -> None:
    found = lopro.bpdn(StoredMap(A), Y, SIGMA, x0=in_numpy.x, tol=1e-9)
    assert found.success and found.counts.passes == 3 and found.iterations == 1


def test_an_equation_and_a_zero_solution() -> None:
    exact = A[:, 3] - 2.0 * A[:, 70]
    found = lopro.bpdn(StoredMap(A), exact, 0.0, tol=1e-9)
    assert found.success and found.fun == pytest.approx(3.0, rel=1e-9)
    assert found.certificate.violation <= 1e-12
    zero = lopro.bpdn(StoredMap(A), Y, 100.0)
    assert zero.success and zero.fun == 0.0
    assert zero.counts.bytes_read == 0, "a zero solution requires no data"


def test_nearly_as_many_nonzeros_as_rows() -> None:
    """The path is followed: where NumPy takes many products, a dozen passes suffice."""
    matrix, y, sigma = sensing(150, 900, 30, 0.05, 2)
    expected = lopro.bpdn(matrix, y, 0.05 * sigma, tol=1e-8)
    found = lopro.bpdn(StoredMap(np.asfortranarray(matrix)), y, 0.05 * sigma, tol=1e-8)
    assert found.success and found.fun == pytest.approx(expected.fun, rel=1e-8)
    assert np.count_nonzero(found.x) > 130
    assert found.counts.passes <= 12


@pytest.mark.parametrize("kind", ["dense", "weighted", "nonneg"])
def test_coefficients_of_very_different_size(kind: str) -> None:
    """Optima over six decades: the path is long, and its end is checked before other methods are tried."""
    for seed in range(8):
        known = constructed(seed, kind=kind, decades=6.0)
        weights = known.weights if kind == "weighted" else None
        far = StoredMap(np.asfortranarray(known.A))
        found = lopro.bpdn(
            far, known.y, known.sigma, weights=weights, nonneg=known.nonneg, tol=1e-9
        )
        check(known, found, 1e-8)
        assert found.counts.passes <= 16


def test_an_unreachable_radius_is_infeasible() -> None:
    tall = np.random.default_rng(4).standard_normal((60, 20))
    found = lopro.bpdn(StoredMap(tall), np.random.default_rng(5).standard_normal(60), 0.1)
    assert found.status is lopro.Status.INFEASIBLE


def test_the_limit_of_rounds_holds() -> None:
    found = lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9, max_iter=2)
    assert found.status is lopro.Status.MAX_ITER and found.iterations == 2
    assert found.certificate.violation <= 1e-9, "the best point is made feasible"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_entry_that_is_not_finite_is_found_in_the_first_pass(value: float) -> None:
    broken = A.copy()
    broken[3, 4] = value
    source = Sliced(broken)
    with pytest.raises(ValueError, match="A must be finite, but it contains NaN or inf"):
        lopro.bpdn(StoredMap(source), Y, SIGMA)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [StoredMap, linear_map])
def test_the_image_used_for_feasibility_is_that_of_the_point(
    make: Any, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no product checks a point, its known image has to be accurate to rounding."""
    from lopro.driver.incumbent import Incumbent

    seen: list[Any] = []
    original = Incumbent.judge

    def judge(self: Incumbent, x: Any, image: Any = None, *more: Any) -> Any:
        seen.append((x, image))
        return original(self, x, image, *more)

    monkeypatch.setattr(Incumbent, "judge", judge)
    matrix = A.astype(dtype)
    lopro.bpdn(make(matrix), Y.astype(dtype), SIGMA, tol=1e-6)
    known = [(x, image[0]) for x, image in seen if image is not None]
    assert known
    for x, image in known:
        exact = matrix.astype(np.float64) @ x.astype(np.float64)
        np.testing.assert_allclose(image, exact, rtol=0.51 * np.finfo(dtype).eps, atol=1e-13)


def test_complex_data_are_solved_by_the_method_that_supports_them() -> None:
    found = lopro.bpdn(StoredMap(A + 0j), Y + 0j, SIGMA, tol=1e-5)
    assert found.success and "MatrixFree" in found.method


def test_an_operator_that_offers_columns_gets_a_working_set(in_numpy: Any) -> None:
    (kind,) = [kind for kind in KINDS if kind.name == "dictionary"]
    found = lopro.bpdn(kind.make(A, Path()), Y, SIGMA, tol=1e-9)
    assert found.success and found.fun == pytest.approx(in_numpy.fun, rel=1e-12)
    assert found.counts.rmatvecs == 5 and found.counts.matvecs == 0


def test_the_pool_of_columns_is_bounded(monkeypatch: pytest.MonkeyPatch, in_numpy: Any) -> None:
    """Columns are dropped where memory is limited, with the same answer; without the limit more are held."""
    from lopro.basis_pursuit.columns.pool import Pool

    held: list[int] = []
    original = Pool.room_for

    def watched(self: Pool, count: int, in_use: Any) -> None:
        original(self, count, in_use)
        held.append(len(self) + count)

    monkeypatch.setattr(Pool, "room_for", watched)
    lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9)
    free = max(held)
    held.clear()
    monkeypatch.setattr(Pool.__init__, "__defaults__", (50 * ROWS * 8,))
    found = lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9)
    assert found.success and found.fun == pytest.approx(in_numpy.fun, rel=1e-11)
    nonzeros = np.count_nonzero(found.x)
    assert max(held) < free and max(held) <= 4 * nonzeros + 10


def test_few_columns_are_held_of_a_matrix_with_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where columns are long, a quarter of the number of rows would be too many columns to start with."""
    from lopro.basis_pursuit.columns.pool import Pool

    monkeypatch.setattr(Pool.__init__, "__defaults__", (12 * ROWS * 8,))
    found = lopro.bpdn(StoredMap(np.asfortranarray(A)), A[:, 3] - A[:, 9], 0.01, tol=1e-8)
    assert found.success and found.counts.columns <= 2 * 12


@pytest.mark.parametrize(("columns", "products"), [(2450, 8), (2500, 6)])
def test_a_wide_matrix_in_memory_takes_fewer_products(columns: int, products: int) -> None:
    matrix, y, sigma = sensing(50, columns, 5, 0.02, 3)
    found = lopro.bpdn(matrix, y, sigma, tol=1e-8)
    assert found.success and found.counts.projections == 0
    assert found.counts.rmatvecs == products


def test_progress_shows_passes_and_bytes(capfd: pytest.CaptureFixture[str]) -> None:
    found = lopro.bpdn(StoredMap(A), Y, SIGMA, tol=1e-9, progress=True)
    shown = " ".join(capfd.readouterr().err.split())
    # The last round of four: before it there were eight passes over 384 kB.
    assert "iteration 4 passes 8 read 3.07 MB" in shown
    assert f"gap {found.certificate.relative_gap:.1e}" in shown


# On a device.


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("kind", DEVICES, ids=str)
def test_a_device_takes_the_rounds_of_numpy(kind: Kind, nonneg: bool) -> None:
    of = ready(kind).of
    expected = lopro.bpdn(A, Y, SIGMA, tol=1e-9, nonneg=nonneg)
    found = lopro.bpdn(of(A), of(Y), SIGMA, tol=1e-9, nonneg=nonneg)
    assert found.success and found.fun == pytest.approx(expected.fun, rel=1e-12)
    assert namespace(found.x) is namespace(found.dual) is namespace(of(Y))
    np.testing.assert_array_equal(np.flatnonzero(to_numpy(found.x)), expected.support)
    c, k = found.counts, found.certificate_counts
    # The same rounds, and no product with A itself: its image is known.
    assert (c.rmatvecs, c.passes, c.matvecs) == (expected.counts.rmatvecs,) * 2 + (0,)
    assert c.bytes_read == c.passes * A.nbytes + c.columns * ROWS * 8
    assert (k.rmatvecs, k.bytes_read if not nonneg else 0) == (0, 0)


@pytest.mark.parametrize("kind", [KINDS[0], *DEVICES], ids=str)
def test_single_precision_has_a_certificate_in_double(kind: Kind) -> None:
    of = ready(kind).of
    single, y = A.astype(np.float32), Y.astype(np.float32)
    found = lopro.bpdn(of(single), of(y), SIGMA, tol=1e-6)
    expected = lopro.bpdn(single.astype(np.float64), y.astype(np.float64), SIGMA, tol=1e-12)
    assert found.success and to_numpy(found.x).dtype == np.float32
    assert found.fun == pytest.approx(expected.fun, rel=1e-6)
    # The bound is valid: above the optimum by no more than rounding in single precision.
    assert found.certificate.lower_bound <= expected.fun * (1.0 + 1e-7)
    assert found.certificate.lower_bound >= expected.fun * (1.0 - 1e-6)
    assert found.counts.rmatvecs <= 10


def test_single_precision_is_summed_in_double_only_where_it_matters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sums in double precision take several times as long on a device: only the last product uses them."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from lopro.maps import ArrayMap

    dtypes: list[Any] = []
    original = ArrayMap.multiply_adjoint_exactly
    monkeypatch.setattr(
        ArrayMap,
        "multiply_adjoint_exactly",
        lambda self, y: dtypes.append(y.dtype) or original(self, y),
    )
    single = (torch.asarray(A.astype(np.float32)), torch.asarray(Y.astype(np.float32)))
    found = lopro.bpdn(*single, SIGMA, tol=1e-6)
    assert found.success and len(found.history) == 1, (
        "points known only to single precision are not proposed"
    )
    assert dtypes == [torch.float64] and found.counts.rmatvecs > 4


@pytest.mark.parametrize("kind", [KINDS[0], *DEVICES], ids=str)
def test_a_small_radius_in_single_precision(kind: Kind) -> None:
    """Rounding the point moves its residual by some millionths of y: it must be that far inside."""
    of = ready(kind).of
    y = A[:, [5, 60, 300]] @ [1.0, -2.0, 3.0] + 1e-5 * A[:, 7]
    size = float(np.linalg.norm(y))
    for radius in (1e-4, 1e-5, 1e-6):
        single = (of(A.astype(np.float32)), of(y.astype(np.float32)))
        found = lopro.bpdn(*single, radius * size, tol=1e-4)
        assert found.success and found.counts.projections == 0
        residual = A.astype(np.float32).astype(float) @ to_numpy(found.x) - y.astype(np.float32)
        assert np.linalg.norm(residual) <= radius * size


@pytest.mark.parametrize("kind", [KINDS[0], *DEVICES], ids=str)
def test_weights_in_double_precision_keep_single_precision_data(kind: Kind) -> None:
    of = ready(kind).of
    weights = np.linspace(0.5, 2.0, COLUMNS)
    single, y = A.astype(np.float32), Y.astype(np.float32)
    found = lopro.bpdn(of(single), of(y), SIGMA, weights=weights, tol=1e-5)
    assert found.success and to_numpy(found.x).dtype == np.float32
    expected = lopro.bpdn(A, Y, SIGMA, weights=weights, tol=1e-8)
    assert found.fun == pytest.approx(expected.fun, rel=1e-4)


@pytest.mark.parametrize("kind", DEVICES, ids=str)
def test_dependent_columns_on_a_device(kind: Kind) -> None:
    of = ready(kind).of
    doubled = np.hstack([A, A, np.zeros((ROWS, 3))])
    found = lopro.bpdn(of(doubled), of(Y), SIGMA, tol=1e-8)
    assert found.success
    assert found.fun == pytest.approx(lopro.bpdn(A, Y, SIGMA, tol=1e-8).fun, rel=1e-8)


# On a cluster.


@pytest.mark.slow
def test_a_worker_that_is_killed_in_a_run_does_not_change_the_answer(
    in_numpy: Any,
) -> None:
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    killed: list[int] = []
    passes = 0
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        data = client.persist(da.from_array(A, chunks=(40, 150)))
        distributed.wait(data)

        def between_passes() -> None:
            nonlocal passes
            passes += 1
            if passes == 3:
                pid = next(iter(client.run(os.getpid).values()))
                os.kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))  # Windows: it ends at once
                killed.append(pid)

        with called_between_blocks(between_passes):
            found = lopro.bpdn(data, Y, SIGMA, tol=1e-9)
    assert len(killed) == 1 and passes > 3
    assert found.success and found.fun == pytest.approx(in_numpy.fun, rel=1e-9)
    undisturbed = lopro.bpdn(linear_map(da.from_array(A, chunks=(40, 150))), Y, SIGMA, tol=1e-9)
    assert found.counts == undisturbed.counts, (
        "what was lost and made again is the cluster's business"
    )
