"""Relaxations of max-cut: `lopro.fixed_diagonal` on graphs of Gset and on tori, proved to 1e-4.

python -m benchmarks.general.maxcut [--small]

Reads ``gset/G1.txt``, ``G14.txt`` and ``G32.txt`` in the folder that LOPRO_DATA names; tori are made here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

import lopro
from benchmarks._report import write_json
from benchmarks.general.collections import folder_of

TOL = 1e-4


def cost(i: Any, j: Any, weights: Any, n: int) -> Any:
    """Return minus a quarter of the Laplacian: ``-<C, X>`` bounds the largest cut."""
    W = scipy.sparse.csr_array((weights, (i, j)), (n, n))
    W = W + W.T
    return scipy.sparse.csr_array(W - scipy.sparse.diags_array(W.sum(axis=1))) / 4.0


def read_graph(path: Path) -> Any:
    """Read a graph of Gset; some files of the collection are in UTF-16."""
    raw = path.read_bytes()
    text = raw.decode("utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    n, edges = (int(number) for number in text.split()[:2])
    numbers = np.array(text.split()[2 : 2 + 3 * edges], dtype=np.float64).reshape(-1, 3)
    return cost(numbers[:, 0].astype(int) - 1, numbers[:, 1].astype(int) - 1, numbers[:, 2], n)


def torus(side: int) -> Any:
    """Return a square grid with wrapped ends and weights of 1 and -1, as G32 and G81 are."""
    at = np.arange(side * side).reshape(side, side)
    i = np.tile(at.ravel(), 2)
    j = np.concatenate([np.roll(at, 1, axis=axis).ravel() for axis in (0, 1)])
    return cost(i, j, np.random.default_rng(0).choice([-1.0, 1.0], len(i)), side * side)


def random_graph(n: int, degree: float) -> Any:
    """Return a random graph of a given mean degree; its slack has no narrow band."""
    i, j = np.random.default_rng(0).integers(0, n, (2, int(n * degree / 2)))
    return cost(i[i != j], j[i != j], np.ones(int((i != j).sum())), n)


def graphs(small: bool) -> Iterator[tuple[str, Any]]:
    """Yield the costs with their names."""
    if small:
        yield "torus 10 x 10", torus(10)
        return
    for name in ("G1", "G14", "G32"):
        yield name, read_graph(folder_of("gset") / f"{name}.txt")
    yield "torus 100 x 100", torus(100)
    yield "random 10000, degree 6", random_graph(10_000, 6.0)


def measured(small: bool = False) -> list[dict[str, Any]]:
    """Print and return one row for each graph."""
    rows = []
    for name, C in graphs(small):
        start = time.perf_counter()
        result = lopro.fixed_diagonal(C, tol=TOL)
        row = {
            "problem": name,
            "peer": "lopro",
            "nodes": C.shape[0],
            "status": result.status.name,
            "value": result.fun,
            "gap": result.certificate.relative_gap,
            "products": result.counts.matvecs,
            "factorizations": result.counts.factorizations,
            "seconds": time.perf_counter() - start,
        }
        print(
            "  ".join(
                f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()
            )
        )
        rows.append(row)
    return rows


def main(arguments: list[str]) -> None:
    """Measure all graphs and write the rows to a file."""
    write_json("general_maxcut", {"runs": measured("--small" in arguments)})


if __name__ == "__main__":
    main(sys.argv[1:])
