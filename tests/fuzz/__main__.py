"""``python -m fuzz``."""

import os
import sys

# One thread each, set before NumPy is imported here and in the workers: many small problems in parallel.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

if __name__ == "__main__":
    from fuzz.command import main

    sys.exit(main())
