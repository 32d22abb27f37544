"""Rows with a lower bound, an upper bound, or both, which are kept as rows with one side each."""

from __future__ import annotations

import numpy as np

from lopro.constraints.polyhedron import Polyhedron
from lopro.core.arrays import Array, asarray_like, to_numpy
from lopro.functions import Image

__all__ = ["TwoSided", "check_sides"]


class TwoSided(Polyhedron):
    """The base of sets with bounds on both sides: a user counts one multiplier for each row.

    The rows of ``C`` are those with an upper bound, then minus those with a lower one.
    """

    #: The bounds on the host, infinite where there are none; do not write on them.
    lower: np.ndarray
    upper: np.ndarray

    def multipliers_of(self, dual: Image) -> Image:
        """Return multipliers that are positive at upper bounds and negative at lower ones."""
        above, below = np.isfinite(self.upper), np.isfinite(self.lower)
        v, sides = np.zeros(above.shape), to_numpy(dual[0])
        v[above] += sides[: np.count_nonzero(above)]
        v[below] -= sides[np.count_nonzero(above) :]
        return (asarray_like(v, dual[0]),)

    def dual_of(self, multipliers: Image) -> Image:
        """Return the multipliers of the sides: the inverse, with one of the two sides at 0."""
        v = to_numpy(multipliers[0])
        above, below = np.isfinite(self.upper), np.isfinite(self.lower)
        both = np.concatenate([np.maximum(v, 0.0)[above], np.maximum(-v, 0.0)[below]])
        return (asarray_like(both, multipliers[0]),)


def check_sides(lower: Array, upper: Array) -> None:
    """Raise where a lower bound exceeds the upper one, where no number is between, or without any bound."""
    wrong = np.argwhere(lower > upper)
    if wrong.size:
        at = tuple(int(i) for i in wrong[0])
        place = ", ".join(map(str, at))
        raise ValueError(
            f"lower must not exceed upper, but lower[{place}]={lower[at]:g} > "
            f"upper[{place}]={upper[at]:g}"
        )
    if np.isposinf(lower).any() or np.isneginf(upper).any():
        raise ValueError("lower must be below +inf and upper above -inf everywhere")
    if not (np.isfinite(lower).any() or np.isfinite(upper).any()):
        raise ValueError("lower and upper must not both be infinite everywhere")
