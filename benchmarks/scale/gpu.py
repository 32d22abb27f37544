"""Basis pursuit denoising on a GPU: seconds, products, memory, and the share of the products alone.

python -m benchmarks.scale.gpu [--sizes 4000x20000 16000x80000 32000x400000] [--dtypes float64 float32]
                               [--library torch] [--many 8] [--tol 1e-8] [--repeats 3]
                               [--matrix-free]

Everything but the making of A is inside the clock. ``products`` is the time of as many products with A' as
the call made, measured by themselves; ``extra`` is the largest device memory beside A, as a share of it.
Sizes that do not fit into the free memory (with a fifth of it to spare) are left out, and that is said. For
float32 the number of columns is doubled, so that the bytes are the same, and tol is at least 1e-6.
"""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

import numpy as np

import lopro
from benchmarks._report import write_json


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["4000x20000", "16000x80000", "32000x400000"])
    parser.add_argument("--dtypes", nargs="+", default=["float64", "float32"])
    parser.add_argument("--library", choices=("torch", "cupy"), default="torch")
    parser.add_argument("--many", type=int, default=8)
    parser.add_argument("--tol", type=float, default=1e-8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--matrix-free", action="store_true", help="products only, no columns")
    options = parser.parse_args()
    device = Torch() if options.library == "torch" else CuPy()
    records = []
    for size in options.sizes:
        for dtype in options.dtypes:
            rows, columns = (int(n) for n in size.split("x"))
            columns *= 2 if dtype == "float32" else 1
            needed = rows * columns * (4 if dtype == "float32" else 8)
            if 1.2 * needed > device.free():
                print(f"{rows} x {columns} {dtype}: {needed / 1e9:.0f} GB do not fit")
                continue
            for many in sorted({1, options.many if needed < 2e10 else 1}):
                records.append(measure(device, rows, columns, dtype, many, options))
    print(write_json("scale_gpu", {"device": device.name(), "runs": records}))


def measure(
    device: Any, rows: int, columns: int, dtype: str, many: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Solve some times; return medians beside the products alone."""
    A = device.normal(rows, columns, dtype)
    rng = np.random.default_rng(0)
    nonzeros = rows // 100
    Y = np.zeros((rows, many))
    for j in range(many):
        places = rng.choice(columns, nonzeros, replace=False)
        Y[:, j] = device.columns(A, places) @ rng.uniform(-1, 1, nonzeros)
    noise = 0.05 * rng.standard_normal((rows, many))
    y, radii = device.asarray(Y + noise, dtype), np.linalg.norm(noise, axis=0)
    tol = max(options.tol, 1e-6) if dtype == "float32" else options.tol
    method = lopro.MatrixFree() if options.matrix_free else None
    seconds = []
    for _ in range(options.repeats):
        device.forget_peak()
        start = time.perf_counter()
        if many == 1:
            results = [lopro.bpdn(A, y[:, 0], float(radii[0]), tol=tol, method=method)]
        else:
            results = lopro.bpdn(A, y, radii, tol=tol, method=method)
        device.wait()
        seconds.append(time.perf_counter() - start)
    nbytes = rows * columns * (4 if dtype == "float32" else 8)
    passes = max(r.counts.passes for r in results)
    products = passes * device.product_seconds(A, y)
    record = {
        "size": [rows, columns],
        "dtype": dtype,
        "right_hand_sides": many,
        "gigabytes": nbytes / 1e9,
        "status": sorted({r.status.name for r in results}),
        "gap": max(r.certificate.relative_gap for r in results),
        "nonzeros": int((results[0].x != 0).sum()),
        "passes": passes,
        "seconds": median(seconds),
        "products": products,
        "share": products / median(seconds),
        "extra": device.peak() / nbytes,
    }
    print({k: round(v, 4) if isinstance(v, float) and v > 1e-3 else v for k, v in record.items()})
    return record


class Torch:
    """PyTorch on its current CUDA device."""

    def __init__(self) -> None:
        import torch

        self.torch, self.base = torch, 0

    def name(self) -> str:
        return str(self.torch.cuda.get_device_name())

    def free(self) -> int:
        self.torch.cuda.empty_cache()
        return int(self.torch.cuda.mem_get_info()[0])

    def normal(self, rows: int, columns: int, dtype: str) -> Any:
        self.torch.manual_seed(0)
        A = self.torch.empty((rows, columns), dtype=getattr(self.torch, dtype), device="cuda")
        for start in range(0, rows, 1000):
            A[start : start + 1000].normal_()
        return A

    def columns(self, A: Any, places: Any) -> Any:
        return A[:, self.torch.asarray(places, device="cuda")].double().cpu().numpy()

    def asarray(self, values: Any, dtype: str) -> Any:
        return self.torch.asarray(values, dtype=getattr(self.torch, dtype), device="cuda")

    def forget_peak(self) -> None:
        self.torch.cuda.empty_cache()
        self.torch.cuda.reset_peak_memory_stats()
        self.base = int(self.torch.cuda.memory_allocated())

    def peak(self) -> int:
        return int(self.torch.cuda.max_memory_allocated()) - self.base

    def wait(self) -> None:
        self.torch.cuda.synchronize()

    def product_seconds(self, A: Any, y: Any) -> float:
        y = y[:, 0] if y.shape[1] == 1 else y
        return timed_products(lambda: A.T @ y, self.wait)


class CuPy:
    """CuPy on its current device."""

    def __init__(self) -> None:
        import cupy

        self.cupy, self.base = cupy, 0
        self.pool = cupy.get_default_memory_pool()

    def name(self) -> str:
        return str(self.cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())

    def free(self) -> int:
        self.pool.free_all_blocks()
        return int(self.cupy.cuda.runtime.memGetInfo()[0])

    def normal(self, rows: int, columns: int, dtype: str) -> Any:
        generator = self.cupy.random.default_rng(0)
        A = self.cupy.empty((rows, columns), dtype=dtype)
        for start in range(0, rows, 1000):
            part = A[start : start + 1000]
            part[:] = generator.standard_normal(part.shape, dtype=dtype)
        return A

    def columns(self, A: Any, places: Any) -> Any:
        return A[:, self.cupy.asarray(places)].astype(np.float64).get()

    def asarray(self, values: Any, dtype: str) -> Any:
        return self.cupy.asarray(values, dtype=dtype)

    def forget_peak(self) -> None:
        self.pool.free_all_blocks()
        self.base = int(self.pool.used_bytes())

    def peak(self) -> int:
        # What the pool has taken and not given back: the most that was needed at a time.
        return int(self.pool.total_bytes()) - self.base

    def wait(self) -> None:
        self.cupy.cuda.Device().synchronize()

    def product_seconds(self, A: Any, y: Any) -> float:
        y = y[:, 0] if y.shape[1] == 1 else y
        return timed_products(lambda: A.T @ y, self.wait)


def timed_products(product: Any, wait: Any) -> float:
    """Return the time of one product, the median of several."""
    product()
    wait()
    times = []
    for _ in range(7):
        start = time.perf_counter()
        product()
        wait()
        times.append(time.perf_counter() - start)
    return median(times)


if __name__ == "__main__":
    main()
