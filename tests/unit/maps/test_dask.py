"""dask arrays: a pass is one graph of known size with small results; lost workers do not change answers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.core.counting import Counts, counting
from lopro.maps import (
    Adjoint,
    Columns,
    DaskMap,
    Forward,
    Rows,
    linear_map,
)
from lopro.maps.requests import Norms

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array", reason="dask is not installed")

RNG = np.random.default_rng(0)
M = RNG.standard_normal((40, 60))
Y = RNG.standard_normal((40, 2))


def dask_map(chunks: Any) -> DaskMap:
    A = linear_map(da.from_array(M, chunks=chunks))
    assert isinstance(A, DaskMap)
    return A


class Computed:
    """Records the computations of dask: their number, their tasks, and the size of their results."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks: list[int] = []
        self.bytes: list[int] = []
        original = dask.compute

        def compute(*nodes: Any, **named: Any) -> Any:
            graph: dict[Any, Any] = {}
            for node in nodes:
                graph.update(node.dask)
            self.tasks.append(len(graph))
            results = original(*nodes, **named)
            self.bytes.append(sum(result.nbytes for result in results))
            return results

        monkeypatch.setattr(dask, "compute", compute)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Computed:
    return Computed(monkeypatch)


@pytest.mark.parametrize(
    ("chunks", "bands"), [((10, 60), (4, 1)), ((40, 12), (1, 5)), ((10, 12), (4, 5))], ids=str
)
def test_a_pass_is_one_small_graph(chunks: Any, bands: Any, computed: Computed) -> None:
    A = dask_map(chunks)
    blocks = bands[0] * bands[1]
    own = len(A.source.to_delayed()[0, 0].dask)  # the tasks that make the blocks, in one graph
    A.forward(np.ones(60))
    # A check, a visit for each block; a vector for each band of columns; sums; and the answer.
    sums = bands[0] if bands[1] > 1 else 0
    assert computed.tasks == [own + 2 * blocks + bands[1] + sums + 1]
    computed.tasks.clear()
    A.adjoint(Y)
    # No further check; dual points for each band of rows; a sum for each band of columns.
    sums = bands[1] if bands[0] > 1 else 0
    assert computed.tasks == [own + blocks + bands[0] + sums + 1]
    computed.tasks.clear()
    assert A.row_norms is A.row_norms
    # A visit for each block; the axis for each band of rows; a sum for each of them; and their roots.
    sums = bands[0] if bands[1] > 1 else 0
    assert computed.tasks == [own + blocks + bands[0] + sums + 1]


def test_results_are_the_requested_numbers(computed: Computed) -> None:
    A = dask_map((10, 12))
    A.read(Adjoint(Y), Columns([7]), Rows([39]), Norms(0))
    assert computed.bytes == [8 * (2 * 60 + 40 + 60 + 60)]


def test_nothing_is_rechunked_or_persisted(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: Any, **named: Any) -> Any:
        raise AssertionError("must not be called")

    made = []

    def block(place: Any) -> Any:
        made.append(place)
        return np.ones((10, 12))

    source = da.map_blocks(
        lambda block_info=None: block(block_info[None]["chunk-location"]),
        chunks=((10,) * 4, (12,) * 5),
        dtype=np.float64,
        meta=np.empty((0, 0)),
    )
    for name in ("rechunk", "persist", "compute"):
        monkeypatch.setattr(da.Array, name, forbidden)
    A = linear_map(source)
    assert made == [], "no block is made before a pass"
    requests = (Forward(np.ones(60)), Columns([5]), Adjoint(Y), Norms(0))
    with counting(Counts()) as counts:
        A.read(*requests)
    assert sorted(made) == [(i, j) for i in range(4) for j in range(5)], "each block is made once"
    assert (counts.passes, counts.bytes_read) == (1, 40 * 60 * 8)
    A.adjoint(Y)
    assert len(made) == 40
    A.columns([0, 59])
    assert len(made) == 48, "only the blocks that contain the requested columns"


def test_many_bands_are_summed_a_few_at_a_time() -> None:
    A = dask_map((1, 1))
    np.testing.assert_allclose(A.adjoint(Y), M.T @ Y, rtol=1e-12)
    np.testing.assert_allclose(A.forward(np.ones(60)), M.sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(A.column_norms, np.linalg.norm(M, axis=0), rtol=1e-12)


def test_requirements_on_dask_arrays() -> None:
    with pytest.raises(ValueError, match="Phi has chunks of unknown size: call compute_chunk"):
        unknown = da.from_array(M, chunks=(10, 60))
        linear_map(unknown[unknown[:, 0] > 0.0], "Phi")
    import scipy.sparse

    blocks = da.from_array(M, chunks=10).map_blocks(scipy.sparse.csr_array)
    with pytest.raises(TypeError, match="dask array of NumPy arrays, not of csr_array"):
        linear_map(blocks)
    with pytest.raises(ValueError, match=r"A must have 2 dimensions, got shape \(3,\)"):
        linear_map(da.ones(3))


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_bpdn_on_a_dask_array(scheduler: str) -> None:
    y = M[:, 3] - 2.0 * M[:, 50]
    expected = lopro.bpdn(M, y, 0.1, tol=1e-10)
    with dask.config.set(scheduler=scheduler):
        found = lopro.bpdn(da.from_array(M, chunks=(40, 10)), y, 0.1, tol=1e-10)
    assert found.success and type(found.x) is np.ndarray
    assert found.fun == pytest.approx(expected.fun, rel=1e-9)


def rows_in_blocks(rows: int) -> Any:
    return da.from_array(M.T, chunks=(rows, -1))


@pytest.mark.parametrize("loss", ["LeastSquares", "Logistic"])
def test_solve_with_data_in_a_dask_array(loss: str) -> None:
    """The same iterates as on NumPy, to rounding."""
    make = getattr(lopro.objectives, loss)
    labels = np.sign(M.T @ Y[:, 0])
    ball = lopro.constraints.ResidualBall(np.eye(40), np.zeros(40), 0.1)
    here = lopro.Problem(make(M.T, labels), ball)
    there = lopro.Problem(make(rows_in_blocks(25), da.from_array(labels, chunks=25)), ball)
    expected = lopro.solve(here, tol=1e-6)
    found = lopro.solve(there, tol=1e-6)
    assert found.success and expected.success and found.iterations == expected.iterations
    assert found.fun == pytest.approx(expected.fun, rel=1e-10)
    assert type(found.x) is np.ndarray
    np.testing.assert_allclose(found.x, expected.x, atol=1e-8)
    for counter in ("matvecs", "rmatvecs", "gradients", "values"):
        assert getattr(found.counts, counter) == getattr(expected.counts, counter)


@pytest.mark.parametrize("loss", ["LeastSquares", "Logistic"])
def test_a_stochastic_run_reads_the_blocks_of_the_rows_it_draws(loss: str) -> None:
    make = getattr(lopro.objectives, loss)
    labels = np.sign(M.T @ Y[:, 0])
    here, there = make(M.T, labels, batch_size=2), make(rows_in_blocks(6), labels, batch_size=2)
    drawn = np.random.default_rng(5).integers(60, size=2)
    x = np.linspace(-1.0, 1.0, 40)
    with counting(Counts()) as counts:
        found = there.stochastic_subgradient(x, np.random.default_rng(5))
    np.testing.assert_allclose(
        found, here.stochastic_subgradient(x, np.random.default_rng(5)), rtol=1e-12
    )
    blocks = len(set(drawn // 6))
    assert (counts.bytes_read, counts.passes) == (blocks * 6 * 40 * 8, 0)


def test_measurements_may_be_a_dask_array() -> None:
    y = M[:, 3] - 2.0 * M[:, 50]
    found = lopro.bpdn(da.from_array(M, chunks=(20, 30)), da.from_array(y, chunks=10), 0.1)
    assert found.success and type(found.x) is np.ndarray
    with pytest.raises(ValueError, match="y must be finite"):
        lopro.bpdn(M, da.from_array(np.full(40, np.nan), chunks=10), 0.1)


def fragile_block(marker: str, block_info: Any = None) -> Any:
    """Make a block; the first process that makes the block (0, 7) ends."""
    place = block_info[None]["chunk-location"]
    path = Path(marker)
    if place == (0, 7) and not path.exists():
        path.touch()
        os._exit(9)  # at once, as killed: nothing is cleaned up
    return np.random.default_rng(place[1]).standard_normal((64, 40))


@pytest.mark.slow
def test_a_worker_that_is_killed_in_a_pass_does_not_change_the_answer(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    marker = tmp_path / "died"
    source = da.map_blocks(
        fragile_block,
        str(marker),
        chunks=((64,), (40,) * 16),
        dtype=np.float64,
        meta=np.empty((0, 0)),
    )
    whole = np.hstack([np.random.default_rng(j).standard_normal((64, 40)) for j in range(16)])
    duals = np.random.default_rng(1).standard_normal((64, 3))
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
        counting(Counts()) as counts,
    ):
        found = linear_map(source).adjoint(duals)
    assert marker.exists()
    assert (counts.passes, counts.bytes_read) == (1, whole.nbytes)
    np.testing.assert_allclose(found, whole.T @ duals, rtol=1e-11)
