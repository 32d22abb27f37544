"""Objectives and constraints of unknown structure, with the operations that their classes define."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lopro.core.arrays import Array
from lopro.errors import MissingCapabilityError
from lopro.functions.atoms.base import Atom, Step

__all__ = ["Opaque"]


class Opaque(Atom):
    """An objective or constraint that is not made of atoms: its value, its slope, and its prox if it has one.

    Parameters
    ----------
    function : Function
        An objective, or a constraint ``c(x) <= 0``, whose points are the images themselves.
    is_set : bool
        Whether it stands for the set ``c(x) <= 0``.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.functions.atoms import Opaque
    >>> f = lopro.objectives.FunctionObjective(lambda x: float(x @ x), gradient=lambda x: 2.0 * x)
    >>> Opaque(f).value(np.ones(2)), Opaque(f).slope(np.ones(2))
    (2.0, array([2., 2.]))
    """

    def __init__(self, function: Any, is_set: bool = False) -> None:
        self.function = function
        self.is_set = is_set
        self.smooth = not is_set and bool(getattr(function, "smooth", False))
        self.differentiable = hasattr(function, "has_hessian")
        self.proximable = is_set or bool(getattr(function, "proximable", False))
        if is_set:
            self.steepness = 0.0

    def _missing(self, what: str) -> MissingCapabilityError:
        return MissingCapabilityError(f"{type(self.function).__name__} has no {what}")

    def value(self, z: Array) -> float:
        value = float(self.function.value(z))
        if self.is_set:
            return 0.0 if value <= 0.0 else math.inf
        return value

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        if self.is_set:
            raise self._missing("slopes")
        return self.value(z), lambda: self.function.subgradient(z)

    def prox(self, w: Array, step: Step) -> Array:
        if not self.proximable:
            raise self._missing("prox")
        return self.function.project(w) if self.is_set else self.function.prox(w, step)
