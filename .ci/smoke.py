"""The installed package, without optional dependencies: every entry point gives a proved answer.

    python .ci/smoke.py

It must not import lopro from a checkout: run it by path, from any folder.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import lopro


def check(name: str, passed: bool) -> None:
    """Print one line; end with an error if the check fails."""
    print(f"{'ok' if passed else 'FAILED'}  {name}")
    if not passed:
        sys.exit(1)


def library() -> None:
    """One call of each kind."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 10)), rng.standard_normal(30)
    rows = lopro.constraints.Polyhedron(rng.standard_normal((15, 10)), np.full(15, 0.1))
    f = lopro.objectives.LeastSquares(A, b)
    check("solve", lopro.solve(lopro.Problem(f, rows)).success)
    check(
        "linear program", lopro.solve(lopro.Problem(lopro.objectives.Linear(b @ A), rows)).success
    )
    check("penalised", lopro.solve(lopro.Problem(f + 2.0 * lopro.objectives.L1Norm())).success)
    y = 3.0 * A.T[:, 3] - 2.0 * A.T[:, 7]
    check("bpdn", lopro.bpdn(A.T, y, sigma=0.1).success)
    G = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    check("nearest_correlation", lopro.nearest_correlation(G).success)
    labels = np.repeat([0, 1], 15)
    check("learn_metric", lopro.learn_metric(A, labels, l1=0.01, tol=0.01).success)
    empty = lopro.constraints.Affine([[1.0], [1.0]], [2.0, -np.inf], [np.inf, 1.0])
    answer = lopro.solve(lopro.Problem(lopro.objectives.L1Norm(), empty))
    check("infeasible", answer.status is lopro.Status.INFEASIBLE)


def command(name: str, *words: str) -> None:
    """Run ``lopro`` as a user does."""
    call = [sys.executable, "-m", "lopro", *words]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    check(f"lopro {name}", done.returncode == 0)


def commands() -> None:
    """The command line on small files."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 40))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "A.npy"), A)
        np.save(Path(folder, "y.npy"), A[:, 3])
        files = (str(Path(folder, "A.npy")), str(Path(folder, "y.npy")))
        command("bpdn", "bpdn", *files, "--sigma", "0.1")
    command("info", "info")
    command("methods", "methods")


def main() -> None:
    """Run all checks."""
    version = importlib.metadata.version("lopro")
    place = Path(lopro.__file__).parent
    print(f"lopro {version} from {place}, Python {sys.version.split()[0]}")
    check("version", version == lopro.__version__)
    check("py.typed is installed", (place / "py.typed").exists())
    library()
    commands()


if __name__ == "__main__":
    main()
