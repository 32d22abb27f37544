"""``python -m fuzz``."""

import os
import sys

# Before NumPy is imported, here and in the worker processes: many small problems side by side.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

if __name__ == "__main__":
    from fuzz.command import main

    sys.exit(main())
