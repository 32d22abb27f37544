"""Memory of engines per entry of the matrix that they factorise (Linux).

    python -m benchmarks.engine_memory

``lopro.engines.answer`` has the results.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse

__all__ = ["measured"]

CASES = {
    "clarabel-semidefinite": (60, 80, 100),
    "clarabel-dense": (500, 1000),
    "clarabel-sparse": (300_000,),
    "piqp-dense": (1000, 2000),
}


def measured(case: str, size: int) -> float:
    """Return the bytes for each entry, measured in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.engine_memory", case, str(size)]
    # Every further thread of the linear algebra reserves a buffer.
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=one_thread)
    return float(done.stdout)


def _clarabel(case: str, n: int) -> tuple[Callable[[], object], float]:
    """Return a function that runs the solver, and the entries of one triangle of its matrix."""
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads, settings.max_iter = False, 1, 3
    if case == "clarabel-semidefinite":
        t = n * (n + 1) // 2
        A, cones = -scipy.sparse.eye_array(t), [clarabel.PSDTriangleConeT(n)]
        entries = t * (t + 1) / 2
    elif case == "clarabel-dense":
        A = np.random.default_rng(0).standard_normal((2 * n, n))
        cones, entries = [clarabel.NonnegativeConeT(2 * n)], 2 * n * n + 4 * n
    else:
        A, cones = scipy.sparse.eye_array(n), [clarabel.NonnegativeConeT(n)]
        entries = 4 * n
    A = scipy.sparse.csc_matrix(A)
    m, n = A.shape
    P = scipy.sparse.csc_matrix(scipy.sparse.eye_array(n))
    q, b = np.linspace(-1.0, 1.0, n), np.ones(m)
    return lambda: clarabel.DefaultSolver(P, q, A, b, cones, settings).solve(), entries


def _piqp(n: int) -> tuple[Callable[[], object], float]:
    import piqp

    P, G, side = np.eye(n), np.random.default_rng(0).standard_normal((n, n)), np.ones(n)

    def run() -> None:
        solver = piqp.DenseSolver()
        solver.settings.max_iter = 2
        solver.setup(P=P, c=side, G=G, h_l=-side, h_u=side)
        solver.solve()

    return run, 2 * n * n


def _one(case: str, size: int) -> None:
    run, entries = _piqp(size) if case == "piqp-dense" else _clarabel(case, size)
    before = _address_space("VmSize")
    run()
    print((_address_space("VmPeak") - before) / entries)


def _address_space(which: str) -> float:
    """Return the address space of this process in bytes, now (``VmSize``) or at most so far (``VmPeak``).

    The resident size misses pages that the system reclaims; ``ru_maxrss`` includes that of the parent.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024.0 * float(next(line for line in status if line.startswith(which)).split()[1])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        _one(sys.argv[1], int(sys.argv[2]))
    else:
        for name, sizes in CASES.items():
            print(name, ", ".join(f"{n}: {measured(name, n):.0f} bytes" for n in sizes))
