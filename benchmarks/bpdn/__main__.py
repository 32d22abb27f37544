"""Entry point: fixes the number of threads before NumPy is imported, then runs the benchmark.

python -m benchmarks.bpdn [--quick] [--problem NAME ...] [--method NAME ...] [--threads N]
                          [--repeats N] [--cap SECONDS] [--no-curves] [--output FOLDER]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

THREAD_VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "RAYON_NUM_THREADS",
)


def asked_threads(arguments: list[str]) -> str:
    """Return the value of ``--threads``, read by hand: the real parser comes after NumPy."""
    for i, argument in enumerate(arguments):
        if argument == "--threads" and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith("--threads="):
            return argument.partition("=")[2]
    return "1"


if __name__ == "__main__":
    for variable in THREAD_VARIABLES:
        os.environ[variable] = asked_threads(sys.argv[1:])
    # The shared helpers are imported by name, as in the benchmarks that are plain scripts.
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from benchmarks.bpdn.cli import main

    sys.exit(main(sys.argv[1:]))
