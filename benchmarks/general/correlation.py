"""The nearest correlation matrix: Newton's method on the dual against SCS, judged alike.

python -m benchmarks.general.correlation [--small]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

import lopro
from benchmarks._report import write_json
from benchmarks.general.measure import interleaved

SECONDS = 60.0  # the limit of SCS


def instance(n: int, kind: str) -> Any:
    """Uniform entries, or a correlation matrix of low rank with noise."""
    rng = np.random.default_rng(0)
    G = rng.uniform(-1.0, 1.0, (n, n))
    if kind == "noisy":
        B = rng.standard_normal((n, n // 5))
        B /= np.linalg.norm(B, axis=1)[:, None]
        G = B @ B.T + 0.3 * G
    G = 0.5 * (G + G.T)
    np.fill_diagonal(G, 1.0)
    return G


def entry_weights(n: int) -> Any:
    """Return symmetric weights between 0.1 and 1 for each entry."""
    W = np.random.default_rng(1).uniform(0.1, 1.0, (n, n))
    return 0.5 * (W + W.T)


def by_scs(G: Any, W: Any) -> Any:
    """Minimise ``1/2 sum W (X - G)^2`` over the lower triangle, scaled so that the norm is Frobenius'."""
    import scs

    n = len(G)
    rows, columns = np.tril_indices(n)
    order = np.lexsort((rows, columns))
    rows, columns = rows[order], columns[order]
    scale = np.where(rows == columns, 1.0, np.sqrt(2.0))
    size = len(rows)
    on_diagonal = np.flatnonzero(rows == columns)
    pick = scipy.sparse.csc_matrix((np.ones(n), (np.arange(n), on_diagonal)), shape=(n, size))
    A = scipy.sparse.vstack([pick, -scipy.sparse.eye_array(size)], format="csc")
    data = {
        "P": scipy.sparse.csc_matrix(scipy.sparse.diags_array(W[rows, columns])),
        "A": scipy.sparse.csc_matrix(A),
        "b": np.concatenate([np.ones(n), np.zeros(size)]),
        "c": -scale * W[rows, columns] * G[rows, columns],
    }
    options = {"eps_abs": 1e-7, "eps_rel": 1e-7, "time_limit_secs": SECONDS, "verbose": False}
    solution = scs.solve(data, {"z": n, "s": [n]}, **options)
    X = np.zeros((n, n))
    X[rows, columns] = solution["x"] / scale
    return X + np.tril(X, -1).T


def judged(answer: Any, G: Any, W: Any, bound: float) -> dict[str, Any]:
    """Return value, feasibility, and gap to a proved lower bound of an answer."""
    own = isinstance(answer, lopro.Result)
    X = answer.x if own else answer
    fun = 0.5 * float(np.sum(W * (X - G) ** 2))
    found = {
        "fun": fun,
        "diagonal": float(np.abs(X.diagonal() - 1.0).max()),
        "least_eigenvalue": float(np.linalg.eigvalsh(X)[0]),
        "gap": (fun - bound) / fun,
    }
    if own:
        found["gap"] = answer.certificate.relative_gap
        found["decompositions"] = answer.counts.eigendecompositions
    return found


def line(row: dict[str, Any]) -> str:
    """Return a row of the table."""
    counted = f"{row['decompositions']} eigh" if "decompositions" in row else ""
    return (
        f"{row['n']:5d} {row['kind']:8s}{row['peer']:8s}{row['seconds']:9.3f}{row['fun']:16.8g}"
        f"{row['diagonal']:10.1e}{row['least_eigenvalue']:10.1e}{row.get('gap', np.nan):9.1e} {counted}"
    )


def main(arguments: list[str]) -> None:
    """Run the benchmark and print its table."""
    small = "--small" in arguments
    runs: list[dict[str, Any]] = []
    names = ("seconds", 9), ("value", 16), ("diagonal", 10), ("least", 10), ("gap", 9)
    print(f"{'n':>5s} {'kind':8s}{'peer':8s}" + "".join(f"{name:>{k}s}" for name, k in names))
    for n in (50,) if small else (50, 200, 500, 1000):
        for kind in ("uniform", "noisy", "entries"):
            if kind == "entries" and n > 200:
                continue
            G = instance(n, "noisy" if kind == "entries" else kind)
            weights = entry_weights(n) if kind == "entries" else None
            W = np.ones((n, n)) if weights is None else weights
            peers: dict[str, Callable[[], Any]] = {
                "lopro": partial(lopro.nearest_correlation, G, weights),
                "scs": partial(by_scs, G, W),
            }
            answers = interleaved(peers, 2)
            bound = answers["lopro"][1].certificate.lower_bound
            for peer, (seconds, answer, note) in answers.items():
                row: dict[str, Any] = {"n": n, "kind": kind, "peer": peer, "seconds": seconds}
                if answer is None:
                    print(f"{n:5d} {kind:8s}{peer:8s} {note}")
                else:
                    row |= judged(answer, G, W, bound)
                    print(line(row))
                runs.append(row | {"note": note})
    if not small:
        write_json("general_correlation", {"runs": runs})


if __name__ == "__main__":
    main(sys.argv[1:])
