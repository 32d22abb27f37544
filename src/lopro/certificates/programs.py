"""Certificates of points of quadratic programs, computed from the data of the standard form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lopro.certificates.bound import (
    Bound,
    bound_from,
    bound_over_rows,
    sharpened,
    unabsorbed,
)
from lopro.certificates.box import VariableBounds
from lopro.certificates.certificate import Outcome, Status
from lopro.certificates.units import Units, column_units, curvature_units, reach_units
from lopro.certificates.violation import Violation, of_rows
from lopro.functions.term import Term
from lopro.linalg.dense import Array, Matrix
from lopro.linalg.eigenvalues import is_above, least_eigenvalue, rounding_of_gram
from lopro.linalg.rounding import (
    EPS,
    Enclosure,
    Estimate,
    adjoint_product,
    dot,
    product,
    total,
)
from lopro.maps.host import host_matrix

__all__ = ["ProgramProof", "enclose_form"]

_NONE = Violation()
_TINY = float(np.finfo(np.float64).tiny)


def enclose_form(Px: Array, error: Array, q: Array, constant: float, x: Array) -> Enclosure:
    """Return value and gradient of ``1/2 x'Px + q'x + constant`` from ``P x``, known up to ``error``."""
    gradient = Px + q
    error = (error + EPS * np.abs(gradient)) * (1.0 + 8.0 * EPS)
    half = 0.5 * Px + q
    value = dot(half, x, 0.5 * error + EPS * np.abs(half)) + Estimate(constant)
    return Enclosure(value, gradient, error)


@dataclass(frozen=True, eq=False)
class ProgramProof:
    """``min 1/2 x'Px + q'x + constant + squares  s.t.  lower <= A x <= upper, least <= x <= most``.

    Parameters
    ----------
    P, q, constant : matrix or None, array, float
        The quadratic part: symmetric and positive semidefinite. None for zero.
    squares : sequence of Term
        Terms ``s/2 |B x - b|^2`` whose maps have their entries on the host: their normal matrices would be
        rounded.
    A, lower, upper : matrix, arrays
        The rows, dense or sparse.
    box : VariableBounds
        The bounds of the variables.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.certificates import VariableBounds
    >>> from lopro.certificates.programs import ProgramProof
    >>> free = VariableBounds(np.full(1, -np.inf), np.full(1, np.inf))
    >>> A, lower, upper = np.ones((1, 1)), np.array([-np.inf]), np.ones(1)
    >>> proof = ProgramProof(np.eye(1), np.array([-3.0]), 0.0, (), A, lower, upper, free)
    >>> outcome = proof.outcome(np.ones(1), np.array([2.0]), ())
    >>> outcome.fun, round(outcome.bound.value, 12), outcome.violation
    (-2.5, -2.5, 0.0)
    """

    P: Matrix | None
    q: Array
    constant: float
    squares: Sequence[Term]
    A: Matrix
    lower: Array
    upper: Array
    box: VariableBounds

    @cached_property
    def convexity(self) -> float:
        """A proved lower bound of the least eigenvalue of the Hessian, or 0."""
        parts = [] if self.P is None else [least_eigenvalue(self.P)]
        for term in self.squares:
            if term.is_identity:
                parts.append(term.scale)
            else:
                gram, lost = self._grams[id(term)]
                parts.append(0.0 if gram is None else max(0.0, least_eigenvalue(gram) - lost))
        return parts[0] if len(parts) == 1 else sum(parts) * (1.0 - 4.0 * len(parts) * EPS)

    @cached_property
    def _boxed(self) -> bool:
        bounds = np.maximum(self.box.lower, -self.box.upper)  # -inf where there is neither
        return bool(np.logical_or.reduce(bounds > -np.inf))

    def outcome(self, x: Array, rows: Array, multipliers: Any) -> Outcome | None:
        """Return the outcome that a point and multipliers of the rows prove, rounding included.

        Multipliers of the bounds follow from those of the rows. None for a sum with squares that is not
        proved to be strongly convex, if the bounds do not absorb the slope.

        Parameters
        ----------
        x, rows : arrays
            The point, and the multipliers of the rows: positive at upper sides and negative at lower ones.
        multipliers : object
            The multipliers to store in the outcome.
        """
        sides = np.where(rows > 0.0, self.upper, self.lower)
        there = np.isfinite(sides)
        y, sides = np.where(there, rows, 0.0), np.where(there, sides, 0.0)
        fun, at_x = self._lagrangian(x, y, sides)
        bound = self._bound(at_x, x, y)
        if bound is None:
            return None
        if self._boxed:
            inside = np.clip(x, self.box.lower, self.box.upper)
            if not np.array_equal(inside, x):
                x, fun = inside, self._lagrangian(inside, 0.0 * y, 0.0 * y)[0]
        violation, charge = self._violation(x, y)
        return Outcome(Status.STOPPED, x, multipliers, fun, bound, charge, violation.relative)

    def _bound(self, at_x: Enclosure, x: Array, y: Array) -> Bound | None:
        if not self._boxed:
            # With this convexity the slope costs one rounding of the value: one factorisation proves it,
            # whereas the least eigenvalue takes two factorisations and some solves.
            enough = at_x.slope() ** 2 / (2.0 * EPS * max(abs(at_x.value.value), _TINY))
            if self._exceeds(enough):
                return bound_from(at_x, x, None, enough)
        elif not unabsorbed(at_x, self.box).any():
            return bound_from(
                at_x, x, self.box
            )  # where bounds absorb the slope, convexity adds nothing
        if self.convexity == 0.0 and unabsorbed(at_x, self.box).any():
            return None if self.squares else self._over_rows(at_x, x, y)
        return bound_from(at_x, x, self.box if self._boxed else None, self.convexity)

    def _over_rows(self, at_x: Enclosure, x: Array, y: Array) -> Bound:
        """Return the bound over implied bounds of the variables, with a gradient in extended precision."""
        if not isinstance(self.A, np.ndarray):
            Px, error = np.zeros(len(x)), np.zeros(len(x))
            if self.P is not None:
                Px, error = product(self.P, x)
            form = enclose_form(Px, error, self.q, self.constant, x)
            at_x = sharpened(at_x.value, form, [(self.A, y)])
        return bound_over_rows(at_x, x, self.box, self._implied, lambda: self._rows, self._reach)

    @property
    def _rows(self) -> list[tuple[Matrix, Array, Array]]:
        return [(self.A, self.lower, self.upper)] if len(self.lower) else []

    @cached_property
    def _implied(self) -> VariableBounds:
        return self.box.implied(self._rows)

    @cached_property
    def _reach(self) -> Units:
        """The units that determine the region in which solutions are assumed."""
        diagonal = np.zeros(len(self.q)) if self.P is None else self.P.diagonal()
        curved = curvature_units(np.maximum(diagonal, 0.0), self.q)
        return reach_units(self._blocks, len(self.q), curved)

    @property
    def _blocks(self) -> list[tuple[Matrix | None, Array]]:
        """The sides of rows and bounds."""
        rows = [(A, side) for A, *sides in self._rows for side in sides]
        return [*rows, (None, self.box.lower), (None, self.box.upper)]

    def _exceeds(self, convexity: float) -> bool:
        """Whether one factorisation proves that no eigenvalue of the Hessian is below a positive number."""
        hessian, lost = self.P, 0.0
        if len(self.squares) == 1 and self.P is None and not self.squares[0].is_identity:
            hessian, lost = self._grams[id(self.squares[0])]
        elif self.squares:
            return False
        if not isinstance(hessian, np.ndarray):
            return False
        return 0.0 < convexity < hessian[0, 0] and is_above(
            hessian, (convexity + lost) * (1.0 + 4.0 * EPS)
        )

    @cached_property
    def _grams(self) -> dict[int, tuple[Matrix | None, float]]:
        """The Hessians of squares of images with their rounding, by the identities of the terms."""
        return {id(term): _gram(term) for term in self.squares if not term.is_identity}

    def _lagrangian(self, x: Array, y: Array, sides: Array) -> tuple[float, Enclosure]:
        """Return the value of the objective, and the Lagrangian ``f(x) + <y, A x> - <y, sides>`` at x.

        Without the squares it is ``<q + P x / 2 + A'y, x> - <y, sides>``, computed as one sum.
        """
        normal, off = adjoint_product(self.A, y)
        half, curved = self.q, None
        bent: Array | float = 0.0
        if self.P is not None:
            Px, error = product(self.P, x)
            curved, bent = 0.5 * Px, 0.5 * error
            half = curved + self.q
        slope = half + normal
        off = (off + bent + EPS * (np.abs(half) + np.abs(slope))) * (1.0 + 8.0 * EPS)
        terms, paid = slope * x, y * sides
        errors = EPS * np.abs(terms) + off * np.abs(x), EPS * np.abs(paid)
        value = total(np.concatenate((terms, -paid)), np.concatenate(errors))
        value, fun = value + Estimate(self.constant), float(half @ x) + self.constant
        if curved is not None:
            slope = slope + curved
            off = (off + bent + EPS * np.abs(slope)) * (1.0 + 8.0 * EPS)
        at_x = Enclosure(value, slope, off)
        for term in self.squares:
            square = _square(term, x)
            at_x, fun = at_x + square, fun + square.value.value
        return fun, at_x

    def _violation(self, x: Array, y: Array) -> tuple[Violation, float]:
        """Return the violation of the rows, and the charge of their multipliers for it."""
        image = np.asarray(self.A @ x)
        worst, charge = _NONE, 0.0
        for excess, side in ((image - self.upper, self.upper), (self.lower - image, self.lower)):
            if not np.maximum.reduce(excess, initial=0.0) <= 0.0:  # also where it is not a number
                worst = worst.and_also(of_rows(self.A, x, excess, side, self._units))
                charge += float(np.abs(y) @ np.maximum(excess, 0.0)) * (1.0 + (len(y) + 4) * EPS)
        return worst, charge

    def _units(self) -> Units:
        return column_units(self._blocks, len(self.q))


def _square(term: Term, x: Array) -> Enclosure:
    """Return value and gradient of ``s/2 |B x - b|^2``."""
    if term.is_identity:
        return Enclosure(*term.enclose(x, np.zeros(len(x))))
    B = host_matrix(term.D)
    value, slope, error = term.enclose(*product(B, x))
    return Enclosure(value, *adjoint_product(B, slope, error))


def _gram(term: Term) -> tuple[Matrix | None, float]:
    """Return the Hessian of a square of an image, and a bound of the rounding error of its eigenvalues.

    None for the Hessian if the image has fewer entries than the point, so that it is singular.
    """
    B = host_matrix(term.D)
    if B.shape[0] < B.shape[1]:
        return None, 0.0
    gram = B.T @ B if term.scale == 1.0 else term.scale * (B.T @ B)
    return gram, rounding_of_gram(B.shape[0], B.shape[1], float(gram.diagonal().sum()))
