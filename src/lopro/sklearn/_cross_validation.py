"""Choice of the weight of a penalty, and of the share of the l1 norm, by the mean loss on test samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.core.validation import check_number

__all__ = ["Choice", "check_share", "choose", "given_grid", "take_fit"]

#: The attributes that a cross-validated estimator copies from the fit to all data.
FITTED = ("coef_", "intercept_", "dual_gap_", "n_iter_")


@dataclass(frozen=True, eq=False)
class Choice:
    """The share and the weight with the least mean loss, the grid of that share, and all losses."""

    share: float
    weight: float
    grid: np.ndarray
    #: Of shape (n_shares, n_weights, n_folds), without the first axis for a single share.
    losses: np.ndarray


def choose(
    losses_of: Callable[[float, np.ndarray, Any, Any], np.ndarray],
    grids: list[tuple[float, np.ndarray]],
    folds: list[tuple[Any, Any]],
    sample_weight: np.ndarray | None,
) -> Choice:
    """Return the share and the weight with the least mean loss of all test samples.

    Parameters
    ----------
    losses_of : callable
        Returns the mean losses on test samples, one for each weight, from the share, the weights, and the
        indices of the training and the test samples.
    grids : list of (float, array)
        Shares, each with the weights to try.
    folds : list of (array, array)
        Indices of training and test samples.
    sample_weight : array, optional
        The weight of a fold is the sum of those of its test samples.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.sklearn._cross_validation import choose
    >>> folds = [(np.array([1]), np.array([0])), (np.array([0]), np.array([1]))]
    >>> grids = [(1.0, np.array([3.0, 1.0]))]
    >>> def losses(share, weights, train, test):
    ...     return abs(weights - test[0])
    >>> best = choose(losses, grids, folds, None)
    >>> best.weight, best.losses.tolist()
    (1.0, [[3.0, 2.0], [1.0, 0.0]])
    """
    losses = np.array([[losses_of(*pair, *fold) for fold in folds] for pair in grids])
    of_folds = [1.0 if sample_weight is None else float(sample_weight[t].sum()) for _, t in folds]
    mean = np.average(losses, axis=1, weights=of_folds)
    best = np.unravel_index(int(mean.argmin()), mean.shape)
    share, grid = grids[best[0]]
    path = losses.transpose(0, 2, 1)
    return Choice(share, float(grid[best[1]]), grid, path[0] if len(grids) == 1 else path)


def given_grid(name: str, values: Any) -> np.ndarray | None:
    """Return the given weights in ascending order; None if only their number is given."""
    if np.ndim(values) != 1:
        return None
    return np.sort([check_number(name, value, minimum=0.0, exclusive=True) for value in values])


def check_share(value: Any, without: str) -> float:
    """Return ``l1_ratio``, in (0, 1]; ``without`` names scikit-learn's estimator without an l1 norm."""
    share = check_number("l1_ratio", value, minimum=0.0, maximum=1.0)
    if share == 0.0:
        raise ValueError(f"l1_ratio must be positive; without an l1 norm use {without}")
    return share


def take_fit(estimator: Any, model: Any) -> None:
    """Copy the attributes of a fitted model to an estimator."""
    for name in FITTED:
        setattr(estimator, name, getattr(model, name))
