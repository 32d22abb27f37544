"""The threshold of the distance up to which a pair counts as similar."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

__all__ = ["best_threshold", "check_calibration"]

STRATEGIES = ("accuracy", "f_beta", "max_tpr", "max_tnr")


def check_calibration(strategy: Any = "accuracy", min_rate: Any = None, beta: Any = 1.0) -> None:
    """Raise `ValueError` unless these say what a threshold is to be good for."""
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
    """Return the distance up to which pairs should count as similar.

    Parameters
    ----------
    distances : array of shape (n_pairs,)
        Distances of pairs.
    similar : array of bool
        Whether each pair is similar indeed.
    strategy : {"accuracy", "f_beta", "max_tpr", "max_tnr"}
        What is to be large: the share of right decisions; the F score with this ``beta``; the share of
        similar pairs that are found, with at least ``min_rate`` of the others found too; or the other way
        round.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn._threshold import best_threshold
    >>> best_threshold(np.array([0.5, 2.0, 1.0]), np.array([True, False, True]))
    1.0
    """
    cuts, positives, negatives = _counts(distances, similar)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Of none, no share is right.
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
        kept, asked = (hits, others) if strategy == "max_tpr" else (others, hits)
        quality = np.where(asked >= (min_rate or 0.0), kept, -math.inf)
    return float(cuts[np.argmax(quality)])


def _counts(distances: np.ndarray, similar: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return thresholds, ascending from one that accepts nothing, and how many of each kind are accepted."""
    order = np.argsort(distances, kind="stable")
    cuts, ends = distances[order], np.cumsum(similar[order])
    # Pairs of one distance are accepted together.
    last = np.append(cuts[1:] > cuts[:-1], True)
    accepted = np.arange(1, len(cuts) + 1)[last]
    positives = np.concatenate([[0], ends[last]]).astype(float)
    negatives = np.concatenate([[0], accepted]) - positives
    return np.concatenate([[cuts[0] - 1.0], cuts[last]]), positives, negatives
