"""A pass over a file holds a few blocks of it, never a second copy: measured in separate processes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lopro

#: Makes a file of 128 MB, passes over it, and prints the growth of the process apart from the file.
MEMORY = """
import sys
import numpy as np
from lopro.maps import Adjoint, Columns, MemmapMap, StoredMap

kind, dtype, path = sys.argv[1:]
rows, columns = 1024, 128 * 2**20 // np.dtype(dtype).itemsize // 1024

def filled(target):
    rng = np.random.default_rng(0)
    for start in range(0, rows, 32):
        target[start : start + 32] = rng.standard_normal((32, columns)).astype(dtype)

if kind.startswith("memmap"):
    order = kind[-1]
    made = np.memmap(path, dtype=dtype, mode="w+", shape=(rows, columns), order=order)
    filled(made)
    made.flush()
    source = np.memmap(path, dtype=dtype, mode="r", shape=(rows, columns), order=order)
elif kind == "zarr":
    import zarr
    made = zarr.open_array(path, mode="w", shape=(rows, columns), chunks=(128, 2048), dtype=dtype)
    filled(made)
    source = zarr.open_array(path, mode="r")
else:
    import h5py
    source = h5py.File(path, "w").create_dataset("A", (rows, columns), dtype, chunks=(rows, 512))
    filled(source)

def own_memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) * 1024

def peak_of(call):
    import threading
    peak, done = own_memory(), threading.Event()
    def watch():
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, own_memory())
    watcher = threading.Thread(target=watch)
    watcher.start()
    call()
    done.set()
    watcher.join()
    return peak

A = (MemmapMap if kind.startswith("memmap") else StoredMap)(source, block_bytes=2**21)
y = np.ones((rows, 2))
before = own_memory()
grown = peak_of(lambda: A.read(Adjoint(y), Columns(np.arange(9)))) - before
print(grown / A.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["memmap-C", "memmap-F", "zarr", "h5py"])
def test_there_is_never_a_second_copy(kind: str, dtype: str, tmp_path: Path) -> None:
    """A pass holds one or two blocks (2 of 128 MB here), buffers for their conversion, and the answers."""
    package = kind.partition("-")[0]
    if package != "memmap":
        pytest.importorskip(package, reason=f"{package} is not installed")
    command = [sys.executable, "-c", MEMORY, kind, dtype, str(tmp_path / "data")]
    here = {**os.environ, "PYTHONPATH": str(Path(lopro.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, env=here, check=False)
    assert done.returncode == 0, done.stderr
    share = float(done.stdout)
    print(kind, dtype, share)
    assert math.isfinite(share) and share < 0.35, f"{share:.0%} of the matrix beside it"
