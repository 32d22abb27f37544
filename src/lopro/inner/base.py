"""What an inner algorithm is: Theorem 1's "any algorithm" on the penalised objective.

An inner algorithm never projects and never decides to stop. It makes a state, advances it by one
step, and says which point stands for the run so far (the last iterate, or an average).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from lopro._arrays import Array
from lopro.penalised import Penalised

__all__ = ["InnerAlgorithm"]


class InnerAlgorithm(Protocol):
    """The protocol of `lopro.inner`: add an algorithm by writing these five methods."""

    def check(self, problem: Any) -> None:
        """Raise `MissingCapabilityError` if the problem lacks what the algorithm needs."""
        ...

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> Any:
        """Return the state that starts at ``x``."""
        ...

    def step(self, F: Penalised, state: Any) -> Any:
        """Return the state one iteration later; the old one may be reused."""
        ...

    def output(self, state: Any) -> Array:
        """Return the point the theory speaks of."""
        ...

    def bound(self, state: Any, distance: float) -> float | None:
        """Return ``B_T`` with ``F(output) - F(z) <= B_T`` for every z with ``|x_1 - z| <= distance``.

        None where no such bound is known.
        """
        ...
