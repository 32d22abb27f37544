"""The nearest correlation matrix: our dual Newton method against SCS, judged alike.

python -m benchmarks.general.correlation [--small]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks._report import write_json
from benchmarks.general.measure import interleaved
from lopro.newton.correlation import NearestCorrelation, nearest_correlation


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


def by_scs(G: Any) -> Any:
    """Minimise ``1/2 |X - G|^2`` over the lower triangle, scaled so that the norm is Frobenius'."""
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
        "P": scipy.sparse.eye_array(size, format="csc"),
        "A": scipy.sparse.csc_matrix(A),
        "b": np.concatenate([np.ones(n), np.zeros(size)]),
        "c": -scale * G[rows, columns],
    }
    solution = scs.solve(data, {"z": n, "s": [n]}, eps_abs=1e-7, eps_rel=1e-7, verbose=False)
    X = np.zeros((n, n))
    X[rows, columns] = solution["x"] / scale
    return X + np.tril(X, -1).T


def main(arguments: list[str]) -> None:
    small = "--small" in arguments
    runs: list[dict[str, Any]] = []
    print(
        f"{'n':>5s} {'kind':8s}{'peer':8s}{'seconds':>9s}{'value':>16s}{'diagonal':>10s}{'least':>10s}{'gap':>9s}"
    )
    for n in (50,) if small else (50, 200, 500, 1000):
        for kind in ("uniform", "noisy"):
            G = instance(n, kind)
            peers: dict[str, Callable[[], Any]] = {"newton": partial(nearest_correlation, G)}
            if n <= 200:
                peers["scs"] = partial(by_scs, G)
            for peer, (seconds, answer, note) in interleaved(peers, 2).items():
                X = answer.X if isinstance(answer, NearestCorrelation) else answer
                off = float(np.abs(X.diagonal() - 1.0).max())
                fun = 0.5 * float(np.sum((X - G) ** 2))
                least = float(np.linalg.eigvalsh(X)[0])
                row: dict[str, Any] = {"n": n, "kind": kind, "peer": peer, "seconds": seconds}
                row |= {"fun": fun, "diagonal": off, "least_eigenvalue": least, "note": note}
                if isinstance(answer, NearestCorrelation):
                    row |= {"gap": answer.gap / fun, "decompositions": answer.decompositions}
                    row |= {"products": answer.products}
                runs.append(row)
                counted = (
                    f"{row['decompositions']} eigh, {row['products']} products"
                    if "gap" in row
                    else ""
                )
                print(
                    f"{n:5d} {kind:8s}{peer:8s}{seconds:9.3f}{fun:16.8g}{off:10.1e}{least:10.1e}"
                    f"{row.get('gap', np.nan):9.1e} {counted}"
                )
    if not small:
        write_json("general_correlation", {"runs": runs})


if __name__ == "__main__":
    main(sys.argv[1:])
