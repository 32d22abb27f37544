"""The problems of Newton's method: ``f(x) + sum of g_i(D_i x)``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import HalfSquare, Interval, Linear, Opaque, Quadratic
from lopro.functions.term import Term, bounds_of
from lopro.linalg.dense import Array
from lopro.maps.host import entries_of, host_map, host_vector
from lopro.newton.callables import SmoothCallable
from lopro.newton.losses import Loss, SquaredLoss
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.smooth import Smooth, SmoothSum

__all__ = ["Composite"]


class Composite:
    """``f(x) + sum of g_i(D_i x)`` with ``f`` smooth and every ``g_i`` a set or a function with a prox.

    Parameters
    ----------
    smooth : Smooth
        ``f``.
    terms : sequence of Term
        The terms ``g_i(D_i x)``; without a map ``D_i`` is the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import HalfSquare, Interval
    >>> from lopro.functions.term import Term, bounds_of
    >>> from lopro.newton import Composite
    >>> square = Term(HalfSquare(), offset=np.array([3.0, 4.0]))
    >>> half = Term(Interval(np.full(2, -np.inf), np.ones(2)))
    >>> problem = Composite.of([square, half], 2)
    >>> problem.value(np.ones(2)), [type(term.atom).__name__ for term in problem.terms]
    (6.5, ['Interval'])
    """

    def __init__(self, smooth: Smooth, terms: Sequence[Term]) -> None:
        self.smooth = smooth
        self.size = smooth.size
        self.terms = tuple(term.on_host(self.size) for term in terms)
        for term in self.terms:
            assert term.map is not None
            if term.map.shape[1] != self.size:
                raise ValueError(
                    f"terms: maps must have {self.size} columns, got shape {term.map.shape}"
                )

    @staticmethod
    def of(terms: Iterable[Term], size: int) -> Composite:
        """Return the sum of terms of vectors of this size, with the smooth ones in ``f``.

        Raises
        ------
        MissingCapabilityError
            If a term has neither second derivatives nor a prox.
        """
        smooth: list[Smooth] = []
        others: list[Term] = []
        for term in terms:
            part = _smooth_part(term, size)
            if part is not None:
                smooth.append(part)
            elif _has_prox(term):
                others.append(term)
            else:
                raise MissingCapabilityError(_unsupported(term))
        if not smooth:
            smooth = [QuadraticForm(None, np.zeros(size))]
        return Composite(smooth[0] if len(smooth) == 1 else SmoothSum(smooth), others)

    @staticmethod
    def lacks(terms: Iterable[Term]) -> str | None:
        """Return a message that names the first term that is not supported; None if all are."""
        return next((_unsupported(t) for t in terms if not (t.second_order or _has_prox(t))), None)

    @property
    def parts(self) -> tuple[Smooth, ...]:
        """The summands of ``f``."""
        return self.smooth.parts if isinstance(self.smooth, SmoothSum) else (self.smooth,)

    @property
    def entries(self) -> int:
        """The number of entries of the matrices of all terms, formed or not."""
        maps = [getattr(part, "map", None) for part in self.parts] + [t.map for t in self.terms]
        return sum(math.prod(D.shape) for D in maps if D is not None and not D.is_identity)

    @cached_property
    def boxed(self) -> bool:
        """Whether a term bounds single variables."""
        return any(t.is_identity and isinstance(t.atom, Interval) for t in self.terms)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """The largest lower and the smallest upper bounds of single variables, not to be modified."""
        return bounds_of(self.terms, self.size)

    @cached_property
    def norms(self) -> tuple[Term, ...]:
        """The terms that are not sets."""
        return tuple(term for term in self.terms if not term.is_set)

    def value(self, x: Array) -> float:
        """Return the objective: the smooth part and the norms, whether or not ``x`` is in the sets."""
        return self.smooth.value(x) + sum(t.value(t.image(x)) for t in self.norms)

    def steepness(self) -> float:
        """Return the largest slope of a norm along a row of its map; 0 where all terms are sets."""
        slopes = [t.steepness * t.row_norms.max(initial=0.0) for t in self.norms]
        return float(max(slopes, default=0.0))


def _unsupported(term: Term) -> str:
    return (
        f"{type(term.atom).__name__} has neither second derivatives nor a prox; "
        "use lopro.Auto(), which requires neither"
    )


def _has_prox(term: Term) -> bool:
    return term.atom.proximable and not isinstance(term.atom, Opaque)


def _smooth_part(term: Term, size: int) -> Smooth | None:
    """Convert a smooth term; return None for others."""
    atom = term.atom
    if not term.second_order:
        return None
    if isinstance(atom, Opaque):
        return SmoothCallable(atom, size, term.scale)
    if isinstance(atom, Linear):
        return QuadraticForm(None, host_vector(atom.c))
    if isinstance(atom, Quadratic):
        return _quadratic(atom, term.scale)
    here = term.on_host(size)
    fits = isinstance(atom, HalfSquare) and not here.is_identity
    return SquaredLoss(here) if fits else Loss(here)


def _quadratic(atom: Quadratic, scale: float) -> QuadraticForm:
    q, P = host_vector(atom.q), host_map(atom.P)
    if scale == 1.0:
        return QuadraticForm(P, q, atom.constant)
    return QuadraticForm(scale * entries_of(P), scale * q, scale * atom.constant)
