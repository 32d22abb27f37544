"""The penalised objective ``F = f + h``, which inner algorithms minimise without a constraint."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, zeros
from lopro.core.vectors import axpy
from lopro.functions import Image, Linearization
from lopro.penalties.base import Penalty

__all__ = ["Penalised"]


class Penalised:
    """``F(x) = f(x) + h(x)``: all that an inner algorithm can evaluate of a problem.

    It has no projection, so inner algorithms cannot project.

    Parameters
    ----------
    objective, constraint
        The functions of the problem; in a run their calls are counted.
    penalty : Penalty
        ``h`` as a function of the constraint.
    like : array
        A point, for its shape, dtype and library.
    unit : float
        A typical length of ``x``.
    """

    def __init__(
        self, objective: Any, constraint: Any, penalty: Penalty, like: Array, unit: float = 1.0
    ) -> None:
        self.objective = objective
        self.constraint = constraint
        self.penalty = penalty
        self.unit = unit
        #: Whether the caller may overwrite a subgradient.
        self.fresh_slopes: bool = objective.fresh_slopes
        self._zero = zeros(tuple(like.shape), like)
        self._smooth, self._proximable = objective.split()
        self._cut = 0 if self._smooth is None else self._smooth.image_length

    @property
    def splits(self) -> bool:
        """Whether ``f`` is a smooth part plus a proximable one (either may be missing)."""
        return self._smooth is not None or self._proximable is not None

    def value(self, x: Array) -> float:
        """Return ``F(x)``."""
        penalty, constraint = self.penalty, self.constraint
        h, _ = penalty.linearize_at(constraint, penalty.image(constraint, x))
        return float(self.objective.value(x)) + h

    def subgradient(self, x: Array) -> Array:
        """Return a subgradient of ``F`` at ``x``."""
        return self._plus_penalty(self.objective.subgradient(x), x)

    def stochastic_subgradient(self, x: Array, rng: np.random.Generator) -> Array:
        """Return an unbiased estimate of a subgradient: ``f`` is sampled, the penalty is not."""
        return self._plus_penalty(self.objective.stochastic_subgradient(x, rng), x)

    def _plus_penalty(self, g: Array, x: Array) -> Array:
        _, slope = self.penalty.linearize_at(
            self.constraint, self.penalty.image(self.constraint, x)
        )
        h = slope()
        if h is None:
            return g
        return axpy(1.0, g, h, reuse=True) if self.fresh_slopes else g + h

    # Accelerated methods treat F as a smooth part f_smooth + h and a proximable part.

    def image(self, x: Array) -> Image:
        """Return the linear part of the smooth part at ``x``."""
        image = self.penalty.image(self.constraint, x)
        return image if self._smooth is None else self._smooth.image(x) + image

    def linearize_at(self, image: Image) -> Linearization:
        """Return the value of the smooth part at the point with this image, and on demand its gradient."""
        h, slope = self.penalty.linearize_at(self.constraint, image[self._cut :])
        if self._smooth is None:

            def gradient_of_penalty() -> Array:
                g = slope()
                return self._zero if g is None else g

            return h, gradient_of_penalty
        f, gradient_of_f = self._smooth.linearize_at(image[: self._cut])

        def gradient() -> Array:
            g, of_penalty = gradient_of_f(), slope()
            return g if of_penalty is None else g + of_penalty

        return f + h, gradient

    def prox(self, x: Array, step: float) -> Array:
        """Return the proximal point of the proximable part; ``x`` itself if there is no such part."""
        return x if self._proximable is None else self._proximable.prox(x, step)
