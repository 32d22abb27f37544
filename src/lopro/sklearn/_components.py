"""`components_of`: factors of a learned matrix, and checks of their arguments."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["check_components", "components_of", "sample_vector"]


def sample_vector(name: str, values: Any) -> np.ndarray:
    """Return one sample as a vector."""
    vector = np.atleast_1d(np.squeeze(np.asarray(values, dtype=float)))
    if vector.ndim != 1:
        raise ValueError(f"{name} must be one sample, got shape {np.shape(values)}")
    return vector


def check_components(n_components: Any, features: int) -> None:
    """Raise `ValueError` unless ``n_components`` is valid."""
    whole = isinstance(n_components, Integral) and not isinstance(n_components, bool)
    if not (n_components in (None, "rank") or (whole and 1 <= n_components <= features)):
        raise ValueError(
            f"n_components must be 'rank', None or an integer in [1, {features}], got {n_components!r}"
        )


def components_of(A: np.ndarray, n_components: Any = "rank") -> np.ndarray:
    """Return ``L`` with ``A = L'L``, largest eigenvalues first: ``n_components`` rows, at least one.

    The submatrix of the features in use is decomposed; for others ``L`` has columns of zeros.
    """
    used = np.flatnonzero(A.any(axis=0))
    values, vectors = np.linalg.eigh(A[np.ix_(used, used)])
    # The solver raises zero eigenvalues by slightly more than their rounding errors.
    negligible = max(1e-12, 4 * len(A) * float(np.finfo(A.dtype).eps))
    rank = max(1, int((values > negligible * max(values.max(initial=0.0), 0.0)).sum()))
    rows = rank
    if n_components != "rank":
        rows = len(A) if n_components is None else int(n_components)
    kept = np.argsort(-values)[:rows]
    L = np.zeros((rows, len(A)), dtype=A.dtype)
    L[: len(kept), used] = (vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))).T
    return L
