"""Fit one class of metric-learn on the splits of a file, in the environment of metric-learn.

python foreign_worker.py CLASS INPUT.npz OUTPUT.npz

It imports nothing of this project. The input has ``X`` and ``y`` and, for every split k, ``train_k``; the
output, written anew after every split, has ``map_k`` and ``seconds_k``, or ``error_k``.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np


def main(name: str, source: str, target: str) -> None:
    import metric_learn

    learner = getattr(metric_learn, name)
    data = np.load(source)
    found: dict[str, np.ndarray] = {}
    for k in range(int(data["splits"])):
        train = data[f"train_{k}"]
        X, y = data["X"][train], data["y"][train]
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[f"map_{k}"] = np.asarray(learner(random_state=k).fit(X, y).components_)
        except Exception as error:
            found[f"error_{k}"] = np.array(
                f"{type(error).__name__}: {' '.join(str(error).split())}"
            )
        found[f"seconds_{k}"] = np.array(time.perf_counter() - start)
        # After every split, so that the splits finished before the time limit are kept.
        np.savez(target, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
