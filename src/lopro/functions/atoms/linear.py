"""A linear function."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lopro.core.arrays import Array, Companion, copy, equal, inner
from lopro.core.real_vectors import to_real_vector
from lopro.functions.atoms.base import Atom, Step
from lopro.functions.cone_program import ConeBuilder, RealImage
from lopro.linalg.rounding import Estimate

__all__ = ["Linear"]


class Linear(Atom):
    """``g(z) = Re <c, z>``; its conjugate is 0 at ``c`` and infinite elsewhere.

    Parameters
    ----------
    c : array
        The slope.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Linear
    >>> Linear(np.array([1.0, -2.0])).value(np.array([3.0, 1.0]))
    1.0
    """

    smooth = True
    proximable = True
    separable = True

    def __init__(self, c: Array) -> None:
        self._c = Companion(c)

    @property
    def c(self) -> Array:
        """The slope; do not modify it."""
        return self._c.array

    def times(self, factor: float) -> Linear:
        return Linear(factor * self.c)

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        c = self._c.beside(z)
        return inner(c, z), lambda: copy(c)

    def curvature(self, z: Array) -> Array:
        return 0.0 * abs(z)

    def prox(self, w: Array, step: Step) -> Array:
        return w - step * self._c.beside(w)

    def conjugate(self, v: Array) -> float:
        return 0.0 if equal(v, self._c.beside(v)) else np.inf

    def into_domain(self, v: Array) -> Array:
        return copy(self._c.beside(v))

    def enclose_conjugate(self, v: Array) -> Estimate:
        return Estimate(self.conjugate(v))

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        c = to_real_vector(self.c)
        program.add_linear(scale * (image.D.T @ c))
        program.constant -= scale * float(c @ image.b)
