"""The certificate of a point of a quadratic program, straight from the data of its standard form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lopro.certificates.bound import Bound, bound_from, unabsorbed
from lopro.certificates.box import VariableBounds
from lopro.certificates.certificate import Outcome, Status
from lopro.certificates.units import column_units
from lopro.certificates.violation import Violation, of_rows
from lopro.functions.term import Term
from lopro.linalg.dense import Array, Matrix
from lopro.linalg.eigenvalues import least_eigenvalue, rounding_of_gram
from lopro.linalg.rounding import (
    EPS,
    Enclosure,
    Estimate,
    adjoint_product,
    dot,
    product,
)
from lopro.maps.host import host_matrix, host_vector

__all__ = ["ProgramProof", "enclose_form"]


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
                parts.append(_of_gram(term))
        return parts[0] if len(parts) == 1 else sum(parts) * (1.0 - 4.0 * len(parts) * EPS)

    @cached_property
    def _boxed(self) -> bool:
        return bool(np.isfinite(self.box.lower).any() or np.isfinite(self.box.upper).any())

    def outcome(self, x: Array, rows: Array, multipliers: Any) -> Outcome | None:
        """Return the outcome that a point and multipliers of the rows prove, rounding included.

        Those of the bounds follow from the others. None where the objective is flat along a direction in
        which neither a bound nor a multiplier holds it: there the rows themselves have to be checked.

        Parameters
        ----------
        x, rows : arrays
            The point, and the multipliers of the rows: positive at upper sides and negative at lower ones.
        multipliers : object
            Those of the outcome.
        """
        smooth = self._enclose(x)
        lost = ((rows > 0.0) & (self.upper == np.inf)) | ((rows < 0.0) & (self.lower == -np.inf))
        y = np.where(lost, 0.0, rows) if lost.any() else rows
        at_x = smooth + self._of_rows(x, y)
        bound = self._bound(at_x, x)
        if bound is None:
            return None
        fun = smooth.value.value
        if self._boxed:
            inside = np.clip(x, self.box.lower, self.box.upper)
            if not np.array_equal(inside, x):
                x, fun = inside, self._enclose(inside).value.value
        violation, charge = self._violation(x, y)
        return Outcome(Status.STOPPED, x, multipliers, fun, bound, charge, violation.relative)

    def _bound(self, at_x: Enclosure, x: Array) -> Bound | None:
        if self.convexity == 0.0 and unabsorbed(at_x, self.box).any():
            return None
        return bound_from(at_x, x, self.box if self._boxed else None, self.convexity)

    def _enclose(self, x: Array) -> Enclosure:
        """Return value and gradient of the objective."""
        parts = []
        if self.P is not None:
            parts.append(enclose_form(*product(self.P, x), self.q, self.constant, x))
        elif not self.squares or self.constant or self.q.any():
            flat = Enclosure(dot(self.q, x) + Estimate(self.constant), self.q, np.zeros(len(x)))
            parts.append(flat)
        for term in self.squares:
            if term.is_identity:
                parts.append(Enclosure(*term.enclose(x, np.zeros(len(x)))))
                continue
            B = host_matrix(term.D)
            value, slope, error = term.enclose(*product(B, x))
            parts.append(Enclosure(value, *adjoint_product(B, slope, error)))
        first, *others = parts
        return sum(others, start=first)

    def _of_rows(self, x: Array, y: Array) -> Enclosure:
        """Return ``<y, A x>`` less what the sides allow, and its gradient in x."""
        normal, error = adjoint_product(self.A, y)
        used = y != 0.0
        sides = np.where(y > 0.0, self.upper, self.lower)[used]
        return Enclosure(dot(normal, x, error) - dot(y[used], sides), normal, error)

    def _violation(self, x: Array, y: Array) -> tuple[Violation, float]:
        """Return by how much rows are violated, and what their multipliers charge for that."""
        image = np.asarray(self.A @ x)
        worst, charge = Violation(), 0.0
        for excess, side in ((image - self.upper, self.upper), (self.lower - image, self.lower)):
            over = np.maximum(excess, 0.0)
            if over.any():
                worst = worst.and_also(of_rows(self.A, x, excess, side, self._units))
                charge += float(np.abs(y) @ over) * (1.0 + (len(y) + 4) * EPS)
        return worst, charge

    def _units(self) -> Any:
        sides = [(self.A, self.lower), (self.A, self.upper)]
        bounds = [(None, self.box.lower), (None, self.box.upper)]
        return column_units([*sides, *bounds], len(self.q))


def _of_gram(term: Term) -> float:
    """Return a lower bound of the least eigenvalue of the Hessian of a square of an image."""
    B = host_matrix(term.D)
    if B.shape[0] < B.shape[1]:
        return 0.0
    gram = B.T @ B if term.scale == 1.0 else term.scale * (B.T @ B)
    lost = rounding_of_gram(B.shape[0], term.scale, host_vector(term.D.column_norms))
    return max(0.0, least_eigenvalue(gram) - lost)
