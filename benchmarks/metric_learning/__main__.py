"""Entry point: fixes the number of threads before NumPy is imported, then runs the benchmark.

python -m benchmarks.metric_learning [--quick] [--problem NAME ...] [--method NAME ...] [--threads N]
                                     [--time-limit SECONDS] [--colon FILE] [--output FOLDER] [--docs]
python -m benchmarks.metric_learning --knn [--splits N] [--neighbors K] [--environment FOLDER] ...
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks.bpdn.__main__ import THREAD_VARIABLES, asked_threads

if __name__ == "__main__":
    for variable in THREAD_VARIABLES:
        os.environ[variable] = asked_threads(sys.argv[1:])
    os.environ.setdefault("MPLBACKEND", "Agg")
    # The shared helpers are imported by name, as in the benchmarks that are plain scripts.
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from benchmarks.metric_learning.cli import main

    sys.exit(main(sys.argv[1:]))
