"""Peak memory of `lopro.bpdn` in addition to the matrix, stored by rows and by columns.

python -m benchmarks.bpdn.memory [--rows 4000] [--columns 20000] [--nonzeros 400]
"""

from __future__ import annotations

import argparse
import tracemalloc

import numpy as np

import lopro
from benchmarks.bpdn.problems import uniform_recipe


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--columns", type=int, default=20000)
    parser.add_argument("--nonzeros", type=int, default=400)
    options = parser.parse_args()
    instance = uniform_recipe("", options.rows, options.columns, options.nonzeros, seed=1)
    lopro.bpdn(np.eye(3), np.ones(3), 0.1)  # imports are not part of it
    for order in "CF":
        A = np.asarray(instance.A, order=order)
        tracemalloc.start()
        result = lopro.bpdn(A, instance.y, instance.sigma, tol=1e-8)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(
            f"{order} order: {result.status.name}, {len(result.support)} nonzeros, peak "
            f"{peak / 2**20:.0f} MiB = {100.0 * peak / A.nbytes:.1f} % of A"
        )


if __name__ == "__main__":
    main()
