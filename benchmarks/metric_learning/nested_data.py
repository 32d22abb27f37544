"""Data sets of the nested cross-validation: those of scikit-learn, and the paper's."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paper.experiments.colon import load_colon

__all__ = ["DATA", "load"]

DATA = ("iris", "wine", "breast cancer", "diabetes", "wine and noise", "digits", "colon")
#: Features of noise added to those of wine, and the number of samples of the digits.
NOISE, DIGITS = 40, 600


def load(name: str, colon: Path | None = None) -> tuple[np.ndarray, np.ndarray, str]:
    """Return samples, labels and a description."""
    from sklearn import datasets

    if name == "colon":
        samples = load_colon(colon)
        return samples.X, np.unique(samples.labels, return_inverse=True)[1], samples.name
    if name == "diabetes":
        X, grade = datasets.load_diabetes(return_X_y=True)
        return X, (grade > np.median(grade)).astype(int), "progress above the median or not"
    rng = np.random.default_rng(0)
    if name == "digits":
        X, y = datasets.load_digits(return_X_y=True)
        chosen = rng.permutation(len(X))[:DIGITS]
        return X[chosen], y[chosen], f"{DIGITS} of the digits"
    key = {"wine and noise": "wine", "breast cancer": "breast_cancer"}.get(name, name)
    X, y = getattr(datasets, f"load_{key}")(return_X_y=True)
    if name != "wine and noise":
        return X, y, "as it ships with scikit-learn"
    noise = rng.standard_normal((len(X), NOISE)) * X.std()
    return np.hstack([X, noise]), y, f"wine and {NOISE} features of noise"
