"""The messages between a method and the driver: the method sends a candidate and receives a verdict.

A candidate is a point with the evidence for it: a multiplier, a proved bound, a penalised objective whose
approximate minimiser was projected, or nothing. The guarantee of a theorem is a claim, apart from the
evidence. The verdict holds the conclusions of the driver. Messages are not changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from lopro.certificates import Bound, Certificate, Target, feasibility_tolerance
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, asarray_like, equal, is_complex, norm
from lopro.core.real_vectors import to_real_vector
from lopro.core.validation import check_array, check_shape
from lopro.functions import Image
from lopro.penalties import Penalised

__all__ = [
    "Candidate",
    "Claim",
    "Evidence",
    "Judged",
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
    """Evidence: the point before projection minimises a penalised objective approximately.

    Parameters
    ----------
    F : Penalised
        The penalised objective.
    bound : callable, optional
        Maps ``R`` to ``B_T`` with ``F(x_hat) - F(z) <= B_T`` for every ``|z| <= R``; None where the inner
        algorithm has no such bound.
    """

    F: Penalised
    bound: Callable[[float], float | None] | None = None


@dataclass(frozen=True, eq=False)
class ProvedBound:
    """Evidence: a lower bound that the method has proved, with the rounding of its arithmetic subtracted.

    Parameters
    ----------
    value : float
        A lower bound of the optimal value.
    source : str
        How it was proved.
    radius : float
        It holds for points within this distance of the centre; infinite where it holds everywhere.
    inequality : ValidInequality, optional
        The multipliers that it rests on.
    gained : float
        The charge for the violation of the candidate, the multipliers times the violations: the value may be
        below the bound by this amount, which is a part of the gap.
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
        The point, feasible up to rounding by the computations of the method.
    evidence : Multiplier, PenalisedMinimum, ProvedBound or None
        The source of a lower bound of the optimal value.
    before : array, optional
        The point whose projection is ``x`` and to which the evidence belongs; None without a projection.
    claim : Claim, optional
        The bound on the error of ``x`` that a theorem gives.
    image : tuple of arrays, optional
        The images of ``x`` under the linear maps of the constraint, if the method has computed them.
    objective_image : tuple of arrays, optional
        The same for the maps of the objective.
    violation : float, optional
        The violation of the constraint at ``x``, if the method has computed it.
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
        """The point to which the evidence belongs."""
        return self.x if self.before is None else self.before

    def in_precision_of(self, like: Array) -> Candidate:
        """Return the candidate with its point in the precision of the data; evidence keeps its own point."""
        if self.x.dtype == like.dtype or is_complex(self.x):
            return self
        x, before = asarray_like(self.x, like), self.before
        before = self.taken_at if isinstance(self.evidence, Multiplier) else before
        return replace(self, x=x, before=before, image=None, objective_image=None, violation=None)

    def penalised_value(self, fun: float) -> float | None:
        """Return ``F(x_hat)`` where the evidence is a penalised minimum; ``fun`` is ``f(x)``."""
        if not isinstance(self.evidence, PenalisedMinimum):
            return None
        if equal(self.x, self.taken_at):
            # The point before projection was feasible: F(x_hat) >= f(x_hat) = f(x).
            return fun
        return self.evidence.F.value(self.taken_at)

    def regularity(self, constraint: Constraint) -> float:
        """Return ``c(x_hat) / |x_hat - x|``; NaN where no projection moved the point."""
        before = self.before
        if before is None or equal(self.x, before):
            return math.nan
        excess = constraint.value(before)
        return max(excess, 0.0) / norm(before - self.x)


@dataclass(frozen=True)
class Judged:
    """A point with its value and its violation."""

    x: Array
    fun: float
    violation: float
    #: The sum of the absolute terms of the value; None where gaps are relative to something else.
    magnitude: float | None = None

    @cached_property
    def feasible(self) -> bool:
        """Whether the violation is within rounding."""
        return self.violation <= feasibility_tolerance(self.x)

    @property
    def rank(self) -> tuple[float, float]:
        """The order of points, least first: by violation beyond rounding, then by value."""
        return max(self.violation, feasibility_tolerance(self.x)), self.fun

    def is_below(self, bound: float, target: Target, exactly: bool = False) -> bool:
        """Whether the value is below a lower bound by more than rounding.

        That is the feasibility tolerance times the unit of gaps, or its root for a bound from which rounding
        and violations were not subtracted.
        """
        excess, share = bound - self.fun, feasibility_tolerance(self.x)
        if not excess > 0.0:
            return False
        share = share if exactly else math.sqrt(share)
        return excess > share * target.unit(self.fun, self.magnitude)


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
        if the evidence is not a penalised minimum. 1e-12 of the values allows for their rounding.
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
