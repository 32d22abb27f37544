"""`best_threshold`: the distance up to which a pair is classified as similar."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

__all__ = ["best_threshold", "check_calibration"]

STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


def check_calibration(strategy: Any = "accuracy", min_rate: Any = None, beta: Any = 1.0) -> None:
    """Raise `ValueError` unless these are valid arguments of `best_threshold`."""
    if strategy not in STRATEGIES:
        raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}")
    if strategy == "f_beta" and not isinstance(beta, Real):
        raise ValueError(f"beta must be a real number, got {beta!r}")
    rates = strategy in ("max_tpr", "max_tnr")
    if rates and not (isinstance(min_rate, Real) and 0.0 <= float(min_rate) <= 1.0):
        raise ValueError(f"min_rate must be a number in [0, 1], got {min_rate!r}")


def best_threshold(
    distances: np.ndarray,
    similar: np.ndarray,
    strategy: str = "accuracy",
    min_rate: float | None = None,
    beta: float = 1.0,
) -> float:
    """Return the distance up to which pairs are best classified as similar.

    Parameters
    ----------
    distances : array of shape (n_pairs,)
        Distances of pairs.
    similar : array of bool
        Whether each pair is similar.
    strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}
        The quantity to maximise: the accuracy; the F score with this ``beta``; the true positive rate
        subject to a true negative rate of at least ``min_rate``; or the true negative rate subject to a true
        positive rate of at least ``min_rate``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn._threshold import best_threshold
    >>> best_threshold(np.array([0.5, 2.0, 1.0]), np.array([True, False, True]))
    1.0
    """
    cuts, positives, negatives = _counts(distances, similar)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Rates of no pairs are 0.
        hits = np.nan_to_num(positives / positives[-1])
        others = np.nan_to_num(1.0 - negatives / negatives[-1])
        precision = np.nan_to_num(positives / (positives + negatives))
    if strategy == "accuracy":
        quality = positives - negatives
    elif strategy == "f_beta":
        below = beta**2 * precision + hits
        quality = np.where(below > 0.0, precision * hits / np.where(below > 0.0, below, 1.0), 0.0)
        if beta == 0.0:
            quality = precision
    else:
        maximised, bounded = (hits, others) if strategy == "max_tpr" else (others, hits)
        quality = np.where(bounded >= (min_rate or 0.0), maximised, -math.inf)
    return float(cuts[np.argmax(quality)])


def _counts(distances: np.ndarray, similar: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return ascending thresholds, from one that accepts no pair, and the numbers accepted of each kind."""
    order = np.argsort(distances, kind="stable")
    cuts, ends = distances[order], np.cumsum(similar[order])
    # Pairs with equal distances are accepted together.
    last = np.append(cuts[1:] > cuts[:-1], True)
    accepted = np.arange(1, len(cuts) + 1)[last]
    positives = np.concatenate([[0], ends[last]]).astype(float)
    negatives = np.concatenate([[0], accepted]) - positives
    return np.concatenate([[cuts[0] - 1.0], cuts[last]]), positives, negatives
