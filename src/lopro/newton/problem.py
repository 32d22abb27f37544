"""The problems of the Newton method: ``f(x) + sum of g_i(D_i x)``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lopro.newton.arrays import Array
from lopro.newton.maps import Identity, LinearMap, as_map
from lopro.newton.parts import Part
from lopro.newton.smooth import Smooth

__all__ = ["Composite", "Term"]


@dataclass(frozen=True)
class Term:
    """``g(Dx)``."""

    part: Part
    D: LinearMap


class Composite:
    """``f(x) + sum of g_i(D_i x)`` with ``f`` smooth and every ``g_i`` a set or a norm.

    Parameters
    ----------
    smooth : Smooth
        ``f``.
    terms : sequence of (part, map)
        Maps are arrays, sparse arrays, operators with ``matvec`` and ``rmatvec``, or None for the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton import Composite
    >>> from lopro.newton.parts import Interval
    >>> from lopro.newton.smooth import SquaredDistance
    >>> problem = Composite(
    ...     SquaredDistance(np.array([3.0, 4.0])), [(Interval(upper=1.0, size=2), None)]
    ... )
    >>> problem.size
    2
    """

    def __init__(self, smooth: Smooth, terms: Sequence[tuple[Part, Any]]) -> None:
        self.smooth = smooth
        self.size = smooth.size
        self.terms = tuple(Term(part, as_map(D, smooth.size)) for part, D in terms)
        for term in self.terms:
            if term.D.shape != (term.part.size, self.size):
                expected = (term.part.size, self.size)
                raise ValueError(f"terms: a map of shape {expected} is needed, got {term.D.shape}")

    @property
    def entries(self) -> int:
        """How many entries the matrices of all parts have, or would have."""
        smooth = getattr(self.smooth, "parts", (self.smooth,))
        maps = [getattr(part, "map", None) for part in smooth] + [term.D for term in self.terms]
        return sum(
            math.prod(D.shape) for D in maps if D is not None and not isinstance(D, Identity)
        )

    @property
    def norms(self) -> tuple[Term, ...]:
        """The terms that are no sets."""
        return tuple(term for term in self.terms if term.part.steepness > 0.0)

    def value(self, x: Array) -> float:
        """Return the objective: the smooth part and the norms, whether or not ``x`` is in the sets."""
        return self.smooth.value(x) + sum(t.part.value(t.D.forward(x)) for t in self.norms)

    def steepness(self) -> float:
        """Return the largest slope of a norm along a row of its map; 0 where all terms are sets."""
        slopes = [t.part.steepness * t.D.row_norms().max(initial=0.0) for t in self.norms]
        return float(max(slopes, default=0.0))
