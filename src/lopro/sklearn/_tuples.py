"""Samples and pairs, given as arrays or as indices that a preprocessor looks up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_array

from lopro.core.validation import check_unmasked
from lopro.sklearn._watching import FLOATS

__all__ = ["Preprocessor", "looked_up", "pairs_from", "preprocessor_from"]

Preprocessor: TypeAlias = Callable[[Any], Any]


class SampleTable:
    """The rows of an array, by their indices."""

    def __init__(self, samples: Any) -> None:
        check_unmasked("preprocessor", samples)
        self.samples = check_array(samples, dtype=None)

    def __call__(self, indices: Any) -> Any:
        """Return the samples with these indices."""
        try:
            return self.samples[np.asarray(indices)]
        except IndexError as error:
            raise ValueError(
                f"the preprocessor has {len(self.samples)} samples, and integers look them up: {error}"
            ) from None


def preprocessor_from(given: Any) -> Preprocessor | None:
    """Return the function that looks up samples: in the rows of an array, or the given function."""
    if given is None or callable(given):
        return given  # type: ignore[no-any-return]
    if isinstance(given, str) or not (hasattr(given, "__len__") or hasattr(given, "shape")):
        raise ValueError(
            f"preprocessor must be None, an array of samples or a function, got {given!r}"
        )
    return SampleTable(given)


def looked_up(X: Any, preprocessor: Preprocessor | None) -> Any:
    """Return the samples ``X``, or those with the indices ``X`` if it has one dimension."""
    check_unmasked("X", X)
    if preprocessor is None or _dimensions(X) != 1:
        return X
    return np.asarray(preprocessor(np.asarray(X)))


def pairs_from(pairs: Any, preprocessor: Preprocessor | None) -> np.ndarray:
    """Return pairs of samples, of shape (n_pairs, 2, n_features)."""
    check_unmasked("pairs", pairs)
    if preprocessor is not None and _dimensions(pairs) == 2:
        indices = np.asarray(pairs)
        columns = [looked_up(indices[:, k], preprocessor) for k in range(indices.shape[1])]
        pairs = np.stack(columns, axis=1)
    pairs = check_array(pairs, allow_nd=True, ensure_2d=False, dtype=FLOATS, input_name="pairs")
    if pairs.ndim == 3 and pairs.shape[1] in (3, 4):
        raise ValueError(
            f"pairs must have shape (n_pairs, 2, n_features), got {pairs.shape}: triplets and quadruplets "
            "compare distances, this metric is learned from targets of distances"
        )
    if pairs.ndim != 3 or pairs.shape[1] != 2:
        hint = "" if preprocessor is not None else "; indices need a preprocessor"
        raise ValueError(f"pairs must have shape (n_pairs, 2, n_features), got {pairs.shape}{hint}")
    return np.asarray(pairs)


def _dimensions(X: Any) -> int:
    return int(X.ndim) if hasattr(X, "ndim") else np.ndim(X)
