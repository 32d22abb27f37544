"""Many right-hand sides together against as many separate calls, interleaved in one process.

    python -m benchmarks.bpdn.many [--threads 1] [--count 100] [--rounds 5] [--order C] [--complex]
    python -m benchmarks.bpdn.many --count 256 --shape 2000 10000 60

Times are processor time: all threads together.
"""

from __future__ import annotations

import argparse
import os
import time
from statistics import median
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--order", choices="CF", default="C")
    parser.add_argument(
        "--shape", type=int, nargs=3, default=(1000, 5000, 100), help="rows, columns, nonzeros"
    )
    parser.add_argument("--complex", action="store_true", help="complex numbers, 120 x 400")
    options = parser.parse_args()
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ[variable] = str(options.threads)
    # Imported here, since the number of threads is read when NumPy is loaded.
    from benchmarks.bpdn.classes import several

    if options.complex:
        compare(several(120, 400, 12, options.count, 0, rows=False, iscomplex=True), options.rounds)
    else:
        compare(like_the_paper(*options.shape, options.count, options.order), options.rounds)


def like_the_paper(m: int, d: int, k: int, count: int, order: str) -> tuple[Any, Any, Any]:
    """Return a matrix, of the paper's kind, right-hand sides with k nonzeros, and their radii."""
    import numpy as np

    from benchmarks.bpdn.problems import sparse_signal

    rng = np.random.default_rng(0)
    A = np.asarray(rng.uniform(-1, 1, (m, d)), order=order)
    noise = rng.uniform(-0.01, 0.01, (m, count))
    Y = A @ np.stack([sparse_signal(rng, d, k) for _ in range(count)], axis=1) + noise
    return A, Y, np.linalg.norm(noise, axis=0)


def compare(instance: tuple[Any, Any, Any], rounds: int) -> None:
    """Print times per right-hand side, and how far the answers differ."""
    import numpy as np

    import lopro

    A, Y, radii = instance
    count = Y.shape[1]
    separate: list[float] = []
    together: list[float] = []
    differences: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        results = lopro.bpdn(A, Y, radii, tol=1e-8)
        together.append((time.process_time() - start) / count)
        assert all(r.success for r in results)
        for j in range(0, count, max(5, count // 16)):
            start = time.process_time()
            alone = lopro.bpdn(A, Y[:, j], float(radii[j]), tol=1e-8)
            separate.append(time.process_time() - start)
            differences.append(float(np.abs(results[j].x - alone.x).max()))
    for name, times in (("separate", separate), ("together", together)):
        print(f"{name}: median {1e3 * median(times):.1f} ms, least {1e3 * min(times):.1f} ms each")
    print(
        f"together / separate: {median(together) / median(separate):.3f} (medians), "
        f"{min(together) / min(separate):.3f} (least); answers differ by {max(differences):.1e}; "
        f"load {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()
