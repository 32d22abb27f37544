"""The messages between a method and the driver: a candidate goes out, a verdict comes back.

A candidate is a point and the evidence for it. The evidence is either a multiplier, or a penalised
objective whose approximate minimiser was projected, or nothing. What a theorem promises is a claim,
whatever the evidence. The verdict says what the driver concluded; nothing is written onto a message.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from lopro.certificates import Bound, Certificate
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, asarray_like, is_complex
from lopro.core.real_vectors import to_real_vector
from lopro.core.validation import check_array, check_shape
from lopro.functions import Image
from lopro.penalties import Penalised

__all__ = [
    "Candidate",
    "Claim",
    "Evidence",
    "Multiplier",
    "PenalisedMinimum",
    "ProvedBound",
    "Verdict",
    "checked_multipliers",
]


@dataclass(frozen=True)
class Claim:
    """A bound on ``f(x) - f_*`` that a theorem gives for the constants a user has supplied.

    Examples
    --------
    >>> from lopro.protocol import Claim
    >>> Claim(0.25, "Theorem 2").gap
    0.25
    """

    gap: float
    source: str


@dataclass(frozen=True, eq=False)
class Multiplier:
    """Evidence: a valid inequality of the feasible set, which bounds the optimum from below.

    Parameters
    ----------
    inequality : ValidInequality
        ``<direction, z> <= support`` for every feasible ``z``.
    """

    inequality: ValidInequality


@dataclass(frozen=True, eq=False)
class PenalisedMinimum:
    """Evidence: the point before projection minimises a penalised objective, more or less.

    Parameters
    ----------
    F : Penalised
        What was minimised.
    bound : callable, optional
        From ``R`` to ``B_T`` with ``F(x_hat) - F(z) <= B_T`` for every ``|z| <= R``; None where the inner
        algorithm has no such bound.
    """

    F: Penalised
    bound: Callable[[float], float | None] | None = None


@dataclass(frozen=True, eq=False)
class ProvedBound:
    """Evidence: a lower bound that the method has proved by itself, the rounding of its arithmetic included.

    Parameters
    ----------
    value : float
        A lower bound of the optimal value.
    source : str
        How it is known.
    radius : float
        It holds for points within this distance of the centre; infinite where it holds everywhere.
    inequality : ValidInequality, optional
        The multipliers that it rests on.
    gained : float
        What the violation of the candidate can have gained, the multipliers times the violations: the value
        may be below the bound by so much, and it counts as a part of the gap.
    centre : array, optional
        By default the candidate.
    local : Bound, optional
        The bound with its slopes, where it decreases with the distance; its value is ``value``.
    """

    value: float
    source: str
    radius: float = math.inf
    inequality: ValidInequality | None = None
    gained: float = 0.0
    centre: Array | None = None
    local: Bound | None = None

    def bound(self, x: Array) -> Bound:
        """Return the bound with its centre, which is the candidate unless another one is given."""
        if self.local is not None:
            return self.local
        if math.isinf(self.radius):
            return Bound.everywhere(self.value)
        centre = to_real_vector(x if self.centre is None else self.centre)
        return Bound(self.value, np.zeros(0), centre, limit=self.radius)


#: The evidence for a candidate.
Evidence: TypeAlias = Multiplier | PenalisedMinimum | ProvedBound | None


@dataclass(frozen=True, eq=False)
class Candidate:
    """The message of a method to the driver: a point that may be the answer.

    Parameters
    ----------
    x : array
        The point; feasible up to rounding, as far as the method knows.
    evidence : Multiplier, PenalisedMinimum, ProvedBound or None
        What bounds the optimum from below.
    before : array, optional
        The point whose projection ``x`` is; evidence was taken there. None where nothing was projected.
    claim : Claim, optional
        What a theorem promises of ``x``.
    image : tuple of arrays, optional
        ``x`` under the linear maps of the constraint, where it is known already.
    objective_image : tuple of arrays, optional
        The same for the maps of the objective.
    violation : float, optional
        What the constraint says of ``x``, where it was asked already.
    """

    x: Array
    evidence: Evidence = None
    before: Array | None = None
    claim: Claim | None = None
    image: Image | None = None
    objective_image: Image | None = None
    violation: float | None = None

    @property
    def taken_at(self) -> Array:
        """The point at which the evidence was taken."""
        return self.x if self.before is None else self.before

    def in_precision_of(self, like: Array) -> Candidate:
        """Return the candidate with its point in the precision of the data; evidence keeps its own point."""
        if self.x.dtype == like.dtype or is_complex(self.x):
            return self
        x, before = asarray_like(self.x, like), self.before
        before = self.taken_at if isinstance(self.evidence, Multiplier) else before
        return replace(self, x=x, before=before, image=None, objective_image=None, violation=None)


@dataclass(frozen=True)
class Verdict:
    """The answer of the driver to a candidate: its value, and on demand the certificate of the run.

    Parameters
    ----------
    fun : float
        ``f(x)``.
    penalised : float, optional
        ``F(x_hat)`` where the evidence is a penalised minimum.
    """

    fun: float
    penalised: float | None = None
    _certificate: Callable[[], Certificate] = field(default=Certificate.unknown, repr=False)

    @property
    def exact(self) -> bool | None:
        """R2: the projected point is no worse than the penalised value, ``f(x) <= F(x_hat)``.

        It always holds for ``lam >= G / rho``; where it fails, the penalty weight is too small. None
        where the evidence is not a penalised minimum.
        """
        if self.penalised is None:
            return None
        return self.fun <= self.penalised + 1e-12 * (abs(self.fun) + abs(self.penalised))

    def certificate(self) -> Certificate:
        """Return the certificate of the best point so far; computed on demand."""
        return self._certificate()

    def merit(self) -> float:
        """Return the measure of progress: the certified gap, or the value where there is no certificate."""
        gap = self.certificate().gap
        return gap if math.isfinite(gap) else self.fun


def checked_multipliers(constraint: Constraint, start: Array, given: Any) -> Image | None:
    """Return the multipliers in the library and precision of the start, or raise an error.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.driver.candidate import checked_multipliers
    >>> rows = lopro.constraints.Affine(np.eye(2), lower=0.0, upper=1.0)
    >>> checked_multipliers(rows, np.zeros(2), [[1.0, -2.0]])
    (array([ 1., -2.]),)
    """
    if given is None:
        return None
    if not all(member.has_image_set for member in constraint.members()):
        raise ValueError(f"multipliers0 are for sets given by linear maps, not for {constraint!r}")
    images = constraint.image(start)
    if isinstance(given, np.ndarray) or len(given) != len(images):
        raise ValueError(
            f"multipliers0 must be a sequence of {len(images)} arrays, one for each set, got {given!r}"
        )
    found = []
    for k, (v, image) in enumerate(zip(given, images, strict=True)):
        array = check_array(f"multipliers0[{k}]", v)
        check_shape(f"multipliers0[{k}]", array, tuple(image.shape))
        found.append(asarray_like(array, image))
    return tuple(found)
