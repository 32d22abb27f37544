"""Basis pursuit denoising on data in files or on a cluster: passes, bytes and seconds beside plain reads.

python -m benchmarks.scale.solve [--rows 4000] [--columns 50000] [--dtype float32] [--nonzeros 100]
                                 [--kinds memmap-rows memmap-columns zarr hdf5 dask cluster]
                                 [--tol 1e-6] [--many 1] [--threads 1] [--folder DIR]

The matrix has normal entries, the signal uniform ones, and sigma is the length of the noise. A plain read
is a read of the files from beginning to end; ``ratio`` is the time of the call over that of as many plain
reads as it made passes, and ``passing`` the share of it that was spent in passes. ``cpu`` is processor
time, which depends less on the load. Memory is the peak of RssAnon (memory of the process without the
cache of files) less its value before the call.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--columns", type=int, default=50_000)
    parser.add_argument("--nonzeros", type=int, default=100)
    parser.add_argument("--noise", type=float, default=0.05)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--kinds", nargs="+", default=["memmap-rows", "memmap-columns"])
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--many", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    records = []
    for kind in options.kinds:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            records.append(measure(kind, Path(folder), options))
    # Imported here, since the number of threads is read when NumPy is loaded.
    from benchmarks._report import write_json

    print(write_json("scale_solve", {"options": vars(options) | {"folder": None}, "runs": records}))


def measure(kind: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Make the data, solve, and return the measurements."""
    from benchmarks.scale.storage import Stored

    file, Y, radii = made(folder, kind, options)
    with opened(kind, file, options) as source:
        plain = Stored(kind, source, tuple(sorted(p for p in folder.rglob("*") if p.is_file())))
        reads = [timed(plain.read_plainly)[0] for _ in range(2)]
        with watched_memory() as memory, watched_passes() as passing:
            cpu = time.process_time()
            seconds, results = timed(lambda: solved(source, Y, radii, options))
            cpu = time.process_time() - cpu
        reads += [timed(plain.read_plainly)[0] for _ in range(2)]
    nbytes = options.rows * options.columns * (4 if options.dtype == "float32" else 8)
    last = max(results, key=lambda r: r.counts.passes)
    read = sorted(reads)[1]
    record = {
        "kind": kind,
        "gigabytes": nbytes / 1e9,
        "status": [r.status.name for r in results],
        "gap": max(r.certificate.relative_gap for r in results),
        "nonzeros": int((last.x != 0).sum()),
        "passes": last.counts.passes,
        "matrices_read": last.counts.bytes_read / nbytes,
        "seconds": seconds,
        "passing": passing[0] / seconds,
        "cpu": cpu,
        "plain_read_seconds": read,
        "ratio": seconds / (read * last.counts.bytes_read / nbytes),
        "rss_anon_mb": memory[0],
        "load": os.getloadavg()[0],
    }
    print({k: round(v, 4) if isinstance(v, float) and v > 1e-3 else v for k, v in record.items()})
    return record


def solved(source: Any, Y: Any, radii: Any, options: argparse.Namespace) -> list[Any]:
    """Return the results, one for each right-hand side."""
    import lopro

    if options.many == 1:
        return [lopro.bpdn(source, Y[:, 0], float(radii[0]), tol=options.tol)]
    results: list[Any] = lopro.bpdn(source, Y, radii, tol=options.tol)
    return results


def made(folder: Path, kind: str, options: argparse.Namespace) -> tuple[Path, Any, Any]:
    """Write the matrix a few rows (or columns) at a time; return its file, measurements and radii."""
    import numpy as np

    rng = np.random.default_rng(0)
    m, d, k = options.rows, options.columns, options.many
    X = np.zeros((d, k))
    for j in range(k):
        places = rng.choice(d, options.nonzeros, replace=False)
        X[places, j] = rng.uniform(-1, 1, options.nonzeros)
    used = np.flatnonzero(X.any(axis=1))
    Y = np.zeros((m, k))
    by_columns = kind.endswith("columns")
    path = folder / "matrix.raw"
    matrix = np.memmap(path, options.dtype, "w+", shape=(m, d), order="F" if by_columns else "C")
    step = max(1, 2**25 // (m if by_columns else d))
    for start in range(0, d if by_columns else m, step):
        at = slice(start, min(start + step, d if by_columns else m))
        if by_columns:
            block = rng.standard_normal((at.stop - at.start, m), dtype=np.float32).T
            matrix[:, at] = block
            own = used[(used >= at.start) & (used < at.stop)]
            Y += block[:, own - at.start].astype(float) @ X[own]
        else:
            block = rng.standard_normal((at.stop - at.start, d), dtype=np.float32)
            matrix[at] = block
            Y[at] = block[:, used].astype(float) @ X[used]
    matrix.flush()
    noise = options.noise * rng.standard_normal((m, k))
    return stored_as(kind, matrix, path, options), Y + noise, np.linalg.norm(noise, axis=0)


def stored_as(kind: str, matrix: Any, path: Path, options: argparse.Namespace) -> Path:
    """Copy the matrix into the chosen format; memmaps and dask arrays use the file as it is."""
    if kind not in ("zarr", "hdf5"):
        return path
    if kind == "zarr":
        import zarr

        target = path.parent / "matrix.zarr"
        array = zarr.create_array(
            str(target),
            shape=matrix.shape,
            chunks=(options.rows, max(1, 2**22 // (4 * options.rows))),
            dtype=options.dtype,
            compressors=None,
        )
    else:
        import h5py

        target = path.parent / "matrix.h5"
        file = h5py.File(target, "w")
        array = file.create_dataset("A", matrix.shape, options.dtype)
    step = max(1, 2**25 // options.columns)
    for start in range(0, options.rows, step):
        array[start : start + step] = matrix[start : start + step]
    if kind == "hdf5":
        file.close()
    path.unlink()
    return target


@contextmanager
def opened(kind: str, path: Path, options: argparse.Namespace) -> Iterator[Any]:
    """Open a matrix read-only; for a cluster, persist it on two workers."""
    import numpy as np

    shape, order = (options.rows, options.columns), "F" if kind.endswith("columns") else "C"
    if kind == "zarr":
        import zarr

        yield zarr.open_array(str(path), mode="r")
    elif kind == "hdf5":
        import h5py

        with h5py.File(path, "r") as file:
            yield file["A"]
    elif kind in ("dask", "cluster"):
        import dask.array

        step = max(1, 2**25 // (options.columns * 4))
        heights = [min(step, options.rows - at) for at in range(0, options.rows, step)]
        source = dask.array.map_blocks(
            read_rows,
            str(path),
            options.dtype,
            shape,
            chunks=(tuple(heights), (options.columns,)),
            dtype=options.dtype,
            meta=np.empty((0, 0), options.dtype),
        )
        if kind == "dask":
            yield source
            return
        import distributed

        with distributed.Client(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as client:
            source = client.persist(source)
            distributed.wait(source)
            yield source
    else:
        yield np.memmap(path, options.dtype, "r", shape=shape, order=order)


def read_rows(path: str, dtype: str, shape: tuple[int, int], block_info: Any = None) -> Any:
    """Return a block of rows; workers map the file themselves."""
    import numpy as np

    (first, last), _ = block_info[None]["array-location"]
    return np.array(np.memmap(path, dtype, "r", shape=shape)[first:last])


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds and the result of a call."""
    start = time.perf_counter()
    found = action()
    return time.perf_counter() - start, found


@contextmanager
def watched_passes() -> Iterator[list[float]]:
    """Yield a list that finally holds the seconds spent in passes."""
    from lopro.maps import LinearMap
    from lopro.maps.streamed import StreamedMap

    spent, original = [0.0], StreamedMap.read

    def read(self: LinearMap, *requests: Any) -> Any:
        seconds, found = timed(lambda: original(self, *requests))
        spent[0] += seconds
        return found

    StreamedMap.read = read  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        StreamedMap.read = original  # type: ignore[method-assign]


@contextmanager
def watched_memory() -> Iterator[list[float]]:
    """Yield a list that finally holds the peak of additional memory in megabytes."""
    before, peak, over = rss_anon(), [0.0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            peak[0] = max(peak[0], rss_anon() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        over.set()
        thread.join()


def rss_anon() -> float:
    """Return the memory that belongs to the process alone, in megabytes."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = [line for line in lines if line.startswith("RssAnon")]
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
