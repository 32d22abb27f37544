"""The features that a metric uses against the weight of the norms of its rows: wine with features of noise.

    python benchmarks/figure_selected_features.py [--docs]

Every point is a certified solution. ``--docs`` also renews the figure of the documentation.
"""

from __future__ import annotations

import argparse

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from _style import BLUE, GREY, save
from sklearn.datasets import load_wine

import lopro
from lopro.metric import diagonal_from
from lopro.metric.pairs import pair_loss

matplotlib.use("Agg")

NOISE, WEIGHTS = 40, np.geomspace(0.1, 30.0, 9)


def lengths(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the norms of the rows of the metric for each weight."""
    unit = diagonal_from(pair_loss(X, y, None, None, None, None))
    found = []
    for weight in WEIGHTS:
        result = lopro.learn_metric(X, y, l1=0.03 * unit, features=weight * unit, tol=0.01)
        assert result.success
        found.append(np.linalg.norm(result.x, axis=1))
    return np.array(found)


def main() -> None:
    """Draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--docs", action="store_true", help="renew the figure in docs/images")
    options = parser.parse_args()
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    count = X.shape[1]
    X = np.hstack([X, np.random.default_rng(0).standard_normal((len(X), NOISE))])
    rows = lengths(X, y)
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    ax.plot(WEIGHTS, rows[:, count:], color=GREY, lw=0.6, alpha=0.7)
    ax.plot(WEIGHTS, rows[:, :count], color=BLUE, lw=1.4)
    ax.plot([], [], color=BLUE, label=f"the {count} features of wine")
    ax.plot([], [], color=GREY, label=f"{NOISE} features of noise")
    ax.set_xscale("log")
    ax.set_xlabel(
        "weight of the norms of the rows, relative to the weight that makes the metric diagonal"
    )
    ax.set_ylabel("norm of the row of the metric")
    ax.legend(frameon=False)
    for i, weight in enumerate(WEIGHTS):
        used = rows[i] > 0.0
        print(f"{weight:6.2f}: {used[:count].sum()} of wine, {used[count:].sum()} of noise")
    for path in save(figure, "selected_features", docs=options.docs):
        print(path)


if __name__ == "__main__":
    main()
