"""Entry point: fixes the number of threads before NumPy is imported, then runs the comparison.

python -m benchmarks.compare [--problem NAME ...] [--method NAME ...] [--time-limit SECONDS]
                             [--quick] [--output FOLDER] [--docs] [--redraw]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

if __name__ == "__main__":
    for variable in THREAD_VARIABLES:
        os.environ[variable] = "1"
    os.environ.setdefault("MPLBACKEND", "Agg")
    # The shared helpers are imported by name, as in the benchmarks that are plain scripts.
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from benchmarks.compare.cli import main

    sys.exit(main(sys.argv[1:]))
