"""The metrics whose kNN accuracy is compared: each a linear map learned from the training part."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import lopro

__all__ = ["FOREIGN", "HERE", "METRICS"]


def euclidean(X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """The Euclidean metric of the standardised features."""
    return np.eye(X.shape[1])


def ours(X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """`lopro.learn_metric` with its defaults."""
    factor = lopro.learn_metric(X, y, seed=seed).factor
    assert factor is not None
    return np.asarray(factor)


def neighbourhood_components(X: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """scikit-learn's NCA with its defaults."""
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    return np.asarray(NeighborhoodComponentsAnalysis(random_state=seed).fit(X, y).components_)


#: A map ``L`` from training samples, labels and a seed: distances are Euclidean ones of ``X @ L.T``.
HERE: dict[str, Callable[[np.ndarray, np.ndarray, int], np.ndarray]] = {
    "Euclidean": euclidean,
    "lopro": ours,
    "NCA (scikit-learn)": neighbourhood_components,
}
#: Classes of metric-learn, run in a separate environment.
FOREIGN = {
    "ITML (metric-learn)": "ITML_Supervised",
    "LSML (metric-learn)": "LSML_Supervised",
    "MMC (metric-learn)": "MMC_Supervised",
    "LMNN (metric-learn)": "LMNN",
    "SDML (metric-learn)": "SDML_Supervised",
}
METRICS = [*HERE, *FOREIGN]
