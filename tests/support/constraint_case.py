"""A constraint for the contract tests: how it is built, and points in, near and on its set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from support.catalogue_objectives import (
    NUMPY,
    Convert,
)
from support.projection_judges import farthest_feasible

from lopro.constraints import (
    Constraint,
    ResidualBall,
)

Draw = Callable[[np.random.Generator], Any]


@dataclass(frozen=True)
class ConstraintCase:
    """One constraint of the catalogue."""

    name: str
    build: Callable[[Convert], Constraint]
    #: Draws a feasible point, as a NumPy array.
    feasible: Draw
    #: Whether points must be symmetric matrices.
    symmetric: bool = False
    #: Whether the set is given by equations alone.
    thin: bool = False

    @property
    def numpy(self) -> Constraint:
        """The constraint on float64 NumPy data."""
        return self.build(NUMPY.of)

    def point(self, rng: np.random.Generator, scale: float = 1.0) -> Any:
        """Draw any point, near the set for small scales, far from it for large ones."""
        z = self.feasible(rng)
        u = rng.standard_normal(z.shape)
        if np.iscomplexobj(z):
            u = u + 1j * rng.standard_normal(z.shape)
        return z + scale * (u + u.conj().T if self.symmetric else u)

    def allowed_violation(self, x: Any) -> float:
        """Return the violation that rounding alone may cause at a feasible point.

        Without a radius to compare with, a residual is measured in units of ``|y|``, and there a few
        roundings of the terms of ``A x - y`` count where ``x`` is large.
        """
        c = self.numpy
        if not (self.thin and isinstance(c, ResidualBall)):
            return 1e-10
        y = float(np.linalg.norm(c.y))
        terms = c.largest_singular_value.value * float(np.linalg.norm(x)) + y
        return 8.0 * 2.2e-16 * terms / y

    def boundary(self, rng: np.random.Generator) -> Any | None:
        """Return the last feasible point on a random ray; None where the ray never leaves."""
        z, c = self.feasible(rng), self.numpy
        return farthest_feasible(lambda v: c.value(v) <= 0.0, z, self.point(rng) - z)

    def __str__(self) -> str:
        return self.name
