"""Cost of a pass over a matrix relative to reading it, for every kind of storage, in turns.

python -m benchmarks.scale.passes [--gigabytes 1] [--dtype float32] [--rows 4096] [--duals 1 4]
                                  [--kinds numpy memmap zarr hdf5 dask torch] [--rounds 5] [--cold]
                                  [--folder DIR] [--threads 1]

A pass computes the correlations of all columns with some dual points, in double precision. Its share of the
bandwidth is the time of plain sequential reads of the same files (for arrays in memory: of a sum) over its
own time. For zarr and HDF5 the time to fetch the blocks is shown separately. With
``--cold`` the files are dropped from the cache of the operating system before every measurement.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--duals", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--kinds", nargs="+", default=["numpy", "memmap", "zarr", "hdf5", "dask"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        compare(Path(folder), options)


def compare(folder: Path, options: argparse.Namespace) -> None:
    """Measure all kinds, print a table, and write it to a file."""
    # Imported here, since the number of threads is read when NumPy is loaded.
    import numpy as np

    from benchmarks._report import write_json
    from benchmarks.scale.storage import KINDS

    itemsize = np.dtype(options.dtype).itemsize
    shape = (options.rows, int(options.gigabytes * 1e9) // (options.rows * itemsize))
    print(f"{shape[0]} x {shape[1]}, {options.dtype}, load {os.getloadavg()[0]:.1f}")
    records = []
    for kind in options.kinds:
        for stored in KINDS[kind](folder, shape, options.dtype):
            records += measure(stored, options)
    path = write_json("scale_passes", {"shape": shape, "dtype": options.dtype, "passes": records})
    print(f"{path}; load {os.getloadavg()[0]:.1f}")


def measure(stored: Any, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return plain reads against passes, medians of interleaved rounds."""
    import numpy as np

    from lopro.core.arrays import from_numpy
    from lopro.core.counting import Counts, counting
    from lopro.maps import StoredMap, linear_map

    A = linear_map(stored.source)
    rng = np.random.default_rng(1)
    duals = {k: from_numpy(rng.standard_normal((A.shape[0], k)), A.like) for k in options.duals}
    with counting(Counts()) as counts:
        correlations(A, duals[options.duals[0]])  # the first pass also checks for NaN
    assert (counts.passes, counts.bytes_read) == (1, A.nbytes)
    reads: list[float] = []
    fetches: list[float] = []
    passes: dict[int, list[float]] = {k: [] for k in options.duals}
    for _ in range(options.rounds):
        reads.append(seconds(stored, stored.read_plainly, options.cold))
        if type(A) is StoredMap:
            fetches.append(seconds(stored, lambda: fetch_all(A), options.cold))
        for k, y in duals.items():
            passes[k].append(seconds(stored, lambda y=y: correlations(A, y), options.cold))
    records = []
    for k, times in passes.items():
        record = {
            "kind": stored.name,
            "duals": k,
            "read_gb_per_s": A.nbytes / 1e9 / median(reads),
            "pass_gb_per_s": A.nbytes / 1e9 / median(times),
            "fetch_gb_per_s": A.nbytes / 1e9 / median(fetches) if fetches else None,
            "share": median(r / t for r, t in zip(reads, times, strict=True)),
        }
        records.append(record)
        own = f"its library {record['fetch_gb_per_s']:5.2f} GB/s, " if fetches else ""
        print(
            f"{stored.name:>16}, {k} dual points: reads {record['read_gb_per_s']:5.2f} GB/s, {own}"
            f"a pass {record['pass_gb_per_s']:5.2f} GB/s, share {record['share']:.2f}",
            flush=True,
        )
    return records


def fetch_all(A: Any) -> None:
    """Fetch all blocks without using them."""
    for columns in A.grid.columns.all():
        for rows in A.grid.rows.all():
            A.fetch((rows, columns))


def correlations(A: Any, duals: Any) -> None:
    """Compute ``A^H Y`` in double precision, and transfer it to the host."""
    from lopro.core.arrays import to_numpy

    to_numpy(A.adjoint_exactly(duals))


def seconds(stored: Any, action: Callable[[], Any], cold: bool) -> float:
    """Return how long an action takes."""
    if cold:
        stored.forget()
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
