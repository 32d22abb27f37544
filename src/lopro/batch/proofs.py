"""Certificates of all programs of a batch, from their own data: no number leaves the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.batch.programs import QuadraticPrograms, times
from lopro.certificates import FARTHER, NOISE, feasibility_tolerance
from lopro.certificates.batched import (
    Enclosures,
    enclosed_dot,
    enclosed_product,
    lower_bounds,
    row_violations,
)
from lopro.core.arrays import Array, asarray_like, namespace
from lopro.linalg.rounding import gamma
from lopro.linalg.types import EPS

__all__ = ["NEGLIGIBLE", "Certificates", "Proofs"]

#: Values below this share of the value at zero are zero, as in `lopro.Problem` (``gap_scale``).
NEGLIGIBLE = 1e-8


@dataclass(frozen=True, eq=False)
class Certificates:
    """What `lopro.certificates.Certificate` says of a point, one number for each problem."""

    fun: Array
    lower_bound: Array
    gap: Array
    relative_gap: Array
    violation: Array
    absolute_violation: Array
    charge: Array
    radius: Array


@dataclass(frozen=True, eq=False)
class Proofs:
    """The data of a batch, and what can be proved of points and multipliers.

    Parameters
    ----------
    programs : QuadraticPrograms
        In double precision.
    columns : array of shape (problems, n)
        Lengths that are typical of the variables.
    convexity : array of shape (problems,)
        Lower bounds of the least eigenvalues of the Hessians.
    feasible : float
        The relative violation up to which a point counts as feasible.
    """

    programs: QuadraticPrograms
    columns: Array
    convexity: Array
    #: A length that is typical of the points of the set.
    unit: Array
    #: What gaps are relative to at least.
    scale: Array
    feasible: float
    #: Whether the objectives are sums of squares.
    squares: bool

    @staticmethod
    def of(programs: QuadraticPrograms, columns: Array, like: Array, tol: float) -> Proofs:
        """Prepare proofs to a tolerance, for answers in the precision of ``like``."""
        xp, p = namespace(columns), programs
        share = max(NEGLIGIBLE, NOISE / tol) if tol > 0.0 else NEGLIGIBLE
        unit, typical = _sizes(p)
        squares = p.P is None and bool(p.squares) and not bool(xp.any(p.q != 0.0))
        feasible = feasibility_tolerance(like[0, :])
        return Proofs(p, columns, _convexity(p, columns), unit, share * typical, feasible, squares)

    def certify(self, x: Array, rows: Array, z: Array | None = None) -> Certificates:
        """Return the certificates of points with multipliers of their rows.

        Parameters
        ----------
        x : array of shape (problems, n)
            The points that are returned.
        rows : array of shape (problems, m)
            Multipliers: positive at upper sides and negative at lower ones.
        z : array, optional
            Points near ``x`` at which the Lagrangian is nearly stationary: ``x`` before it was rounded.
        """
        xp = namespace(x)
        value, gradient, magnitude = _objective(self.programs, x)
        # A multiplier that no side carries cannot be used.
        used, sides = self._into_domain(rows)
        violation, absolute, charge = self._violations(x, used, gradient)
        if z is None or z is x:
            at, slope = value, gradient
        else:
            at, slope, _ = _objective(self.programs, z)
        bound, radius = self._bound(x if z is None else z, at, slope, used, sides)
        fun = value.value
        known = xp.isfinite(bound) & (violation <= self.feasible)
        gap = xp.where(
            known, xp.maximum(fun - bound, xp.zeros_like(fun)) + charge,
            xp.full_like(fun, float("inf")),
        )  # fmt: skip
        unit = xp.maximum(magnitude, self.scale)
        given = self.programs.gap_scale
        if given is not None:  # NaN where the user has given none
            unit = xp.where(given >= 0.0, xp.maximum(given, abs(fun)), unit)
        told = unit > 0.0
        relative = gap / xp.where(told, unit, xp.ones_like(unit))
        nothing = xp.where(gap == 0.0, gap, xp.full_like(gap, float("inf")))
        relative = xp.where(told, relative, nothing)
        return Certificates(fun, bound, gap, relative, violation, absolute, charge, radius)

    def _into_domain(self, rows: Array) -> tuple[Array, Array]:
        """Return multipliers that are carried by a side, and these sides; 0 where there is none."""
        xp = namespace(rows)
        if self.programs.A is None:
            return rows, rows
        low, high = self.programs.sides
        side = xp.where(rows > 0.0, high, low)
        carried = xp.isfinite(side) & xp.isfinite(rows)
        zero = xp.zeros_like(rows)
        return xp.where(carried, rows, zero), xp.where(carried, side, zero)

    def _bound(
        self, x: Array, value: Enclosures, gradient: Enclosures, v: Array, sides: Array
    ) -> tuple[Array, Array]:
        """Return lower bounds, and how far from x they hold."""
        p, xp = self.programs, namespace(x)
        if p.A is not None:
            slack = enclosed_product(p.A, x) - Enclosures(sides, xp.zeros_like(sides))
            # What rounding makes of A x beside a large side is in the error of the difference.
            value = value + enclosed_dot(slack.value, v, slack.error)
            gradient = gradient + enclosed_product(xp.matrix_transpose(p.A), v)
        reach, radius = self._reach(x)
        bound = lower_bounds(value, gradient, x, p.box, self.convexity, self.columns, reach)
        if self.squares:
            # A sum of squares is not negative; its constant is added with a rounding.
            constant = xp.zeros_like(bound) if p.constant is None else p.constant
            bound = xp.maximum(bound, constant - gamma(4) * abs(constant))
        return bound, radius

    def _reach(self, x: Array) -> tuple[Array, Array]:
        """Return how far bounds have to hold in each variable, and the radius of a ball within that."""
        xp = namespace(x)
        norm = xp.sqrt(xp.sum(x * x, axis=-1))
        radius = FARTHER * xp.maximum(norm, self.unit)
        # No shorter than the point would be in columns of one length.
        level = xp.max(abs(x) / self.columns, axis=-1)
        reach = xp.maximum(radius[:, None], FARTHER * level[:, None] * self.columns)
        curved = self.convexity > 0.0
        return reach, xp.where(curved, xp.full_like(radius, float("inf")), radius)

    def _violations(self, x: Array, v: Array, gradient: Enclosures) -> tuple[Array, Array, Array]:
        """Return relative and absolute violations, and what multipliers charge for them."""
        p, xp = self.programs, namespace(x)
        found = [xp.zeros_like(x[:, 0])] * 3
        parts = []
        if p.A is not None:
            parts.append((times(p.A, x), times(abs(p.A), abs(x)), v, p.sides))
        if p.box is not None:
            slope = gradient.value
            if p.A is not None:
                slope = slope + times(xp.matrix_transpose(p.A), v)
            parts.append((x, abs(x), -slope, p.box))
        for z, sizes, multipliers, (low, high) in parts:
            for excess, side, sign in ((z - high, high, 1.0), (low - z, low, -1.0)):
                bounded = xp.isfinite(side)
                size = sizes + xp.where(bounded, abs(side), xp.zeros_like(side))
                own = xp.maximum(sign * multipliers, xp.zeros_like(multipliers))
                relative, absolute, charge = row_violations(excess, size, own)
                found = [
                    xp.maximum(found[0], relative), xp.maximum(found[1], absolute),
                    found[2] + charge,
                ]  # fmt: skip
        return found[0], found[1], found[2]


def _objective(p: QuadraticPrograms, x: Array) -> tuple[Enclosures, Enclosures, Array]:
    """Return values, gradients and the sums of absolute terms, which gaps are relative to."""
    xp = namespace(x)
    value = enclosed_dot(p.q, x)
    gradient = Enclosures(p.q, xp.zeros_like(p.q))
    magnitude = xp.sum(abs(p.q * x), axis=-1)
    if p.P is not None:
        Px = enclosed_product(p.P, x)
        half = enclosed_dot(Px.value, 0.5 * x, Px.error)
        value, gradient = value + half, gradient + Px
        magnitude = magnitude + abs(half.value)
    if p.constant is not None:
        value = value + Enclosures(p.constant, xp.zeros_like(p.constant))
        magnitude = magnitude + abs(p.constant)
    for term in p.squares:
        r = Enclosures(x, xp.zeros_like(x)) if term.D is None else enclosed_product(term.D, x)
        if term.b is not None:
            r = r - Enclosures(term.b, xp.zeros_like(term.b))
        back = r
        if term.D is not None:
            back = enclosed_product(xp.matrix_transpose(term.D), r.value, r.error)
        # Half a square is off by at most |r| e + e^2 / 2.
        half = enclosed_dot(0.5 * r.value, r.value, r.error)
        half = Enclosures(half.value, half.error + xp.sum(r.error * r.error, axis=-1))
        value = value + half.times(term.scale)
        gradient = gradient + back.times(term.scale[:, None])
        magnitude = magnitude + term.scale * half.value
    return value, gradient, magnitude


def _farthest_row(p: QuadraticPrograms) -> Array:
    """The distance of the farthest row from zero: a length that is typical of the points of the set."""
    xp = namespace(p.q)
    found = xp.zeros_like(p.q[:, 0])
    parts = [] if p.box is None else [(1.0, p.box)]
    if p.A is not None:
        lengths = xp.sqrt(xp.sum(p.A * p.A, axis=-1))
        parts.append((xp.where(lengths > 0.0, lengths, xp.ones_like(lengths)), p.sides))
    for lengths, sides in parts:
        for side in sides:
            bounded = xp.where(xp.isfinite(side), abs(side), xp.zeros_like(side))
            found = xp.maximum(found, xp.max(bounded / lengths, axis=-1))
    return found


def _sizes(p: QuadraticPrograms) -> tuple[Array, Array]:
    """Return a typical length of the points, and a typical value of the objectives, as `lopro.solve` does.

    The length is the distance of the farthest row, or of the best step from zero along the slope. The value
    is the one at zero; where that is 0, the slope there times the length, or else half of the trace of the
    Hessian times the square of the length: the mean over points of this length.
    """
    xp = namespace(p.q)
    P, q, constant = p.total()
    slope = xp.sqrt(xp.sum(q * q, axis=-1))
    curvature = xp.sum(q * times(P, q), axis=-1)
    ones = xp.ones_like(slope)
    step = slope * slope * slope / xp.where(curvature > 0.0, curvature, ones)
    far = _farthest_row(p)
    unit = xp.where(far > 0.0, far, xp.where(curvature > 0.0, step, xp.zeros_like(far)))
    mean = 0.5 * xp.sum(xp.linalg.diagonal(P), axis=-1) / p.size * unit * unit
    typical = xp.where(constant != 0.0, abs(constant), xp.where(slope > 0.0, slope * unit, mean))
    return unit, xp.where(xp.isfinite(typical), typical, xp.zeros_like(typical))


def _convexity(programs: QuadraticPrograms, columns: Array) -> Array:
    """Return proved lower bounds of the least eigenvalues of the Hessians in units ``columns``, or 0.

    For an approximate inverse X of P with ``|I - X P| <= a < 1`` no eigenvalue of P has a modulus below
    ``(1 - a) / |X|``, and P has no negative ones. Frobenius norms throughout.
    """
    xp, n = namespace(programs.q), programs.size
    if programs.P is None and not programs.squares:
        return xp.zeros_like(programs.q[:, 0])
    P = columns[:, :, None] * programs.total()[0] * columns[:, None, :]
    size, off = _norm(P), _forming_error(programs, columns)
    eye = asarray_like(np.eye(n), P)
    # A singular matrix is inverted with a shift, and then the residual tells.
    shift = xp.where(size > 0.0, 1e-14 * size, xp.ones_like(size))
    X = xp.linalg.inv(P + shift[:, None, None] * eye)
    length = _norm(X)
    residual = _norm(eye - X @ P) + 2.0 * gamma(n + 4) * (length * size + n) + length * off
    mu = (1.0 - residual) / length * (1.0 - gamma(8))
    # Smaller ones may be negative by rounding: convexity is known up to that only.
    certain = (residual < 0.5) & (mu > 100.0 * n * EPS * size)
    return xp.where(certain, mu, xp.zeros_like(mu))


def _forming_error(programs: QuadraticPrograms, columns: Array) -> Array:
    """Return a bound of what rounding made of the Hessian as it was formed and scaled."""
    xp = namespace(programs.q)
    found = xp.zeros_like(programs.q[:, 0])
    if programs.P is not None:
        found = found + _norm(columns[:, :, None] * programs.P * columns[:, None, :])
    roundings = len(programs.squares) + 6
    for term in programs.squares:
        D = columns[:, None, :] if term.D is None else term.D * columns[:, None, :]
        roundings = max(roundings, len(programs.squares) + D.shape[1] + 6)
        found = found + term.scale * xp.sum(D * D, axis=(1, 2))
    return 2.0 * gamma(roundings) * found


def _norm(M: Array) -> Array:
    return namespace(M).sqrt(namespace(M).sum(M * M, axis=(1, 2)))
