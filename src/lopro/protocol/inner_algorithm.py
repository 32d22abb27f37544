"""What an inner algorithm is: Theorem 1's "any algorithm" on the penalised objective.

An inner algorithm never projects and never decides to stop. It makes a state, advances it by one
step, and says which point stands for the run so far (the last iterate, or an average).
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from lopro.core.arrays import Array
from lopro.penalties import Penalised

__all__ = ["InnerAlgorithm", "Stepper"]

F = TypeVar("F", contravariant=True)


class Stepper(Protocol[F]):
    """What the workbench can advance: three methods, on whatever it steps on."""

    def init(self, F: F, x: Array, rng: np.random.Generator, /) -> Any:
        """Return the state that starts at ``x``."""
        ...

    def step(self, F: F, state: Any, /) -> Any:
        """Return the state one iteration later; the old one may be reused."""
        ...

    def output(self, state: Any, /) -> Array:
        """Return the point the theory speaks of."""
        ...


class InnerAlgorithm(Stepper[Penalised], Protocol):
    """The protocol of `lopro.inner`: those three, on a penalised objective, and two more."""

    def check(self, problem: Any) -> None:
        """Raise `MissingCapabilityError` if the problem lacks what the algorithm needs."""
        ...

    def bound(self, state: Any, distance: float) -> float | None:
        """Return ``B_T`` with ``F(output) - F(z) <= B_T`` for every z with ``|x_1 - z| <= distance``.

        None where no such bound is known.
        """
        ...
