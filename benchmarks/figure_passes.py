"""Passes over the data against the number of columns, for `lopro.bpdn` on stored data.

    python benchmarks/figure_passes.py [--rows 200] [--columns 1000 10000 100000 1000000] [--docs]

Normal entries in single precision, 10 nonzeros, sigma the length of the noise, a certified gap of 1e-8; three
problems of each size. For data stored by columns a pass is a product with the adjoint; for data stored by
rows, reading columns is a pass as well. In memory each product counts as a pass.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import matplotlib
import numpy as np
from _report import write_json
from _style import BLUE, GREY, ORANGE, save

import lopro
from lopro.maps import StoredMap

matplotlib.use("Agg")

SEEDS = range(3)
STORED = {
    "in files, row by row": (ORANGE, lambda A: StoredMap(A)),
    "in memory": (GREY, lambda A: A),
    "in files, column by column": (BLUE, lambda A: StoredMap(np.asfortranarray(A))),
}


def passes(rows: int, columns: int, seed: int) -> dict[str, int]:
    """Return the passes that one problem takes in each kind of storage."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns), dtype=np.float32)
    noise = 0.1 * rng.standard_normal(rows)
    places = rng.choice(columns, 10, replace=False)
    y = A[:, places] @ rng.uniform(1.0, 2.0, 10) + noise
    found: dict[str, int] = {}
    for name, (_, stored) in STORED.items():
        tol = (
            1e-6 if name == "in memory" else 1e-8
        )  # there the point is rounded to single precision
        result = lopro.bpdn(stored(A), y, float(np.linalg.norm(noise)), tol=tol)
        assert result.success, str(result)
        found[name] = result.counts.passes
    return found


def main() -> None:
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--columns", type=int, nargs="+", default=[10**k for k in range(3, 7)])
    parser.add_argument("--docs", action="store_true", help="renew the figure in docs/images")
    options = parser.parse_args()
    records: list[dict[str, Any]] = []
    for columns in options.columns:
        for seed in SEEDS:
            records.append({"columns": columns, **passes(options.rows, columns, seed)})
            print(records[-1], flush=True)
    figure, axes = plt.subplots(figsize=(5.5, 3.2))
    for name, (colour, _) in STORED.items():
        worst = [max(r[name] for r in records if r["columns"] == d) for d in options.columns]
        axes.semilogx(options.columns, worst, "o-", color=colour, label=name)
    axes.set(xlabel="columns", ylabel="passes, most of three", ylim=(0, 20))
    axes.legend(frameon=False)
    print(save(figure, "passes", docs=options.docs))
    print(write_json("passes", {"rows": options.rows, "load": os.getloadavg()[0], "runs": records}))


if __name__ == "__main__":
    main()
