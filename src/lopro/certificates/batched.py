"""The certificates of many quadratic programs at once, where their data are.

Arrays have one leading axis for the problems; everything is in double precision, in the library and on the
device of the data, and no number is copied to the host. The formulas are those
of `lopro.certificates.bound`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.certificates.tolerances import FARTHER, negligible_share
from lopro.core.arrays import Array, asarray_like, namespace
from lopro.core.device_cholesky import inverses_of_definite
from lopro.linalg.batched import Enclosures, largest, lengths, positive_or_one, times
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import gamma

__all__ = ["Programs", "Proofs", "Square"]


@dataclass(frozen=True, eq=False)
class Square:
    """``1/2 s |D x - b|^2`` of each problem."""

    D: Array
    b: Array
    scale: Array


@dataclass(frozen=True, eq=False)
class Programs:
    """``min 1/2 x'Px + q'x + constant + squares  s.t.  lower <= A x <= upper, least <= x <= most``.

    In double precision, and nothing is missing: there may be no rows, and sides may be infinite. The
    matrices are exactly symmetric, and positive semidefinite up to rounding.
    """

    q: Array
    P: Array
    constant: Array
    A: Array
    lower: Array
    upper: Array
    least: Array
    most: Array
    squares: tuple[Square, ...] = ()
    #: `lopro.Problem.gap_scale`, NaN where none is given; None where no problem has one.
    gap_scale: Array | None = None

    def multiplied_out(self) -> tuple[Array, Array, Array]:
        """Return ``P``, ``q`` and the constants of the objectives with the squares multiplied out."""
        xp, P, q, constant = namespace(self.q), self.P, self.q, self.constant
        for term in self.squares:
            s, transposed = term.scale, xp.matrix_transpose(term.D)
            P = P + s[:, None, None] * (transposed @ term.D)
            q = q - s[:, None] * times(transposed, term.b)
            constant = constant + 0.5 * s * xp.sum(term.b * term.b, axis=-1)
        return P, q, constant

    def evaluate(self, x: Array) -> tuple[Enclosures, Enclosures, Array]:
        """Return values, gradients and the sums of absolute terms, which gaps are relative to."""
        xp, exact = namespace(x), Enclosures.exact
        Px = Enclosures.product(self.P, x)
        half = Enclosures.dot(Px.value, 0.5 * x, Px.error)
        value = Enclosures.dot(self.q, x) + half + exact(self.constant)
        gradient = exact(self.q) + Px
        magnitude = xp.sum(abs(self.q * x), axis=-1) + abs(half.value) + abs(self.constant)
        for term in self.squares:
            r = Enclosures.product(term.D, x) - exact(term.b)
            back = Enclosures.product(xp.matrix_transpose(term.D), r.value, r.error)
            # Half a square is off by at most |r| e + e^2 / 2.
            half = Enclosures.dot(0.5 * r.value, r.value, r.error)
            half = Enclosures(half.value, half.error + xp.sum(r.error * r.error, axis=-1))
            value = value + half.times(term.scale)
            gradient = gradient + back.times(term.scale[:, None])
            magnitude = magnitude + term.scale * half.value
        return value, gradient, magnitude

    def typical(self) -> tuple[Array, Array]:
        """Return a typical length of the points and a typical value of the objectives, as `lopro.solve` does.

        The length is the distance of the farthest row from zero, or else of the best step from zero along
        the slope. The value is the one at zero; where that is 0, the slope there over units of columns that
        sides give, or the length where they give none; or else half of the diagonal of the Hessian times the
        squares of these: the mean over points of such entries.
        """
        xp = namespace(self.q)
        P, q, constant = self.multiplied_out()
        slope, curvature = lengths(q), xp.sum(q * times(P, q), axis=-1)
        rows, zero = lengths(self.A), xp.zeros_like(slope)
        far = zero
        for units, sides in (
            (positive_or_one(rows), (self.lower, self.upper)),
            (1.0, (self.least, self.most)),
        ):
            for side in sides:
                bounded = xp.where(xp.isfinite(side), abs(side), xp.zeros_like(side))
                far = xp.maximum(far, largest(bounded / units))
        step = slope * slope * slope / positive_or_one(curvature)
        unit = xp.where(far > 0.0, far, xp.where(curvature > 0.0, step, zero))
        diagonal, units = xp.linalg.diagonal(P), self._column_units()
        mean = 0.5 * xp.sum(diagonal * units * units, axis=-1)
        alike = 0.5 * xp.sum(diagonal, axis=-1) / q.shape[-1] * unit * unit
        mean = xp.where(mean > 0.0, mean, alike)
        over_units = xp.sum(abs(q) * units, axis=-1)
        over_units = xp.where(over_units > 0.0, over_units, slope * unit)
        value = xp.where(constant != 0.0, abs(constant), xp.where(slope > 0.0, over_units, mean))
        return unit, xp.where(xp.isfinite(value), value, zero)

    def _column_units(self) -> Array:
        """Return the least ``|side| / |a_j|`` of rows and bounds with a side, 0 for columns without one."""
        xp = namespace(self.q)

        def sizes(side: Array) -> Array:
            told = xp.isfinite(side) & (side != 0.0)
            return xp.where(told, abs(side), xp.full_like(side, float("inf")))

        found = xp.minimum(sizes(self.least), sizes(self.most))
        entries = abs(self.A)
        for side in (self.lower, self.upper) if entries.shape[1] else ():
            ratios = sizes(side)[:, :, None] / positive_or_one(entries)
            ratios = xp.where(entries > 0.0, ratios, xp.full_like(ratios, float("inf")))
            found = xp.minimum(found, xp.min(ratios, axis=1))
        return xp.where(xp.isfinite(found), found, xp.zeros_like(found))

    def convexity(self, columns: Array) -> Array:
        """Return proved lower bounds of the least eigenvalues of the Hessians in units ``columns``, or 0.

        For an approximate inverse X of P with ``|I - X P| <= a < 1`` no eigenvalue of P has a modulus below
        ``(1 - a) / |X|``, and P has no negative ones. Frobenius norms throughout.
        """
        xp, n = namespace(self.q), self.q.shape[-1]
        P = columns[:, :, None] * self.multiplied_out()[0] * columns[:, None, :]
        size, eye = lengths(P, (1, 2)), asarray_like(np.eye(n), P)
        # A singular matrix is inverted with a shift, and then the residual shows the error.
        shift = xp.where(size > 0.0, 1e-14 * size, xp.ones_like(size))
        X = inverses_of_definite(P + shift[:, None, None] * eye, 1e-6)
        length = lengths(X, (1, 2))
        residual = lengths(eye - X @ P, (1, 2)) + 2.0 * gamma(n + 4) * (length * size + n)
        residual = residual + length * self._forming_error(columns)
        mu = (1.0 - residual) / length * (1.0 - gamma(8))
        # Smaller ones may be negative by rounding: convexity is known up to that only.
        certain = (residual < 0.5) & (mu > 100.0 * n * EPS * size)
        return xp.where(certain, mu, xp.zeros_like(mu))

    def _forming_error(self, columns: Array) -> Array:
        """Return a bound of what rounding made of the Hessian as it was formed and scaled."""
        xp = namespace(self.q)
        found = lengths(columns[:, :, None] * self.P * columns[:, None, :], (1, 2))
        rows = max((term.D.shape[1] for term in self.squares), default=0)
        for term in self.squares:
            D = term.D * columns[:, None, :]
            found = found + term.scale * xp.sum(D * D, axis=(1, 2))
        return 2.0 * gamma(len(self.squares) + rows + 6) * found


@dataclass(frozen=True, eq=False)
class Proofs:
    """Programs, and what can be proved of points and multipliers.

    Parameters
    ----------
    programs : Programs
        The data.
    columns : array of shape (problems, n)
        Units of the variables, in which convexity is measured.
    convexity : array of shape (problems,)
        Lower bounds of the least eigenvalues of the Hessians in these units, or 0.
    unit, scale : array of shape (problems,)
        A length that is typical of the points, and what gaps are relative to at least.
    feasible, tol : float
        The relative violation up to which a point counts as feasible, and the relative gap to reach.
    """

    programs: Programs
    columns: Array
    convexity: Array
    unit: Array
    scale: Array
    feasible: float
    tol: float

    @staticmethod
    def of(programs: Programs, columns: Array, tol: float, feasible: float) -> Proofs:
        """Prepare proofs to a tolerance."""
        unit, value = programs.typical()
        scale = negligible_share(tol) * value
        return Proofs(programs, columns, programs.convexity(columns), unit, scale, feasible, tol)

    def certify(self, x: Array, v: Array, z: Array | None = None) -> dict[str, Array]:
        """Return the values, and the fields of `lopro.certificates.Certificate`, of all problems.

        Parameters
        ----------
        x : array of shape (problems, n)
            The points that are returned.
        v : array of shape (problems, m)
            Multipliers of the rows: positive at upper sides and negative at lower ones.
        z : array, optional
            Points near ``x`` at which the Lagrangian is nearly stationary: ``x`` before it was rounded.
        """
        xp, p = namespace(x), self.programs
        value, gradient, magnitude = p.evaluate(x)
        # A multiplier that no side carries cannot be used.
        side = xp.where(v > 0.0, p.upper, p.lower)
        carried = xp.isfinite(side) & xp.isfinite(v)
        v, side = (xp.where(carried, a, xp.zeros_like(a)) for a in (v, side))
        moduli = abs(p.A)
        back = xp.matrix_transpose
        pulled = Enclosures.of(times(back(p.A), v), times(back(moduli), abs(v)), v.shape[-1])
        images, sizes = times(p.A, x), times(moduli, abs(x))
        slope = gradient.value + pulled.value
        violation, absolute, charge = self._violations(x, v, slope, images, sizes)
        at = value
        if z is not None and z is not x:
            at, gradient = p.evaluate(z)[:2]
            images, sizes = times(p.A, z), times(moduli, abs(z))
        slack = Enclosures.of(images, sizes, x.shape[-1]) - Enclosures.exact(side)
        # The rounding of A x beside a large side is part of the error of the difference.
        at = at + Enclosures.dot(slack.value, v, slack.error)
        bound, radius = self._bound(x if z is None else z, at, gradient + pulled)
        fun, infinite = value.value, xp.full_like(bound, float("inf"))
        known = xp.isfinite(bound) & (violation <= self.feasible)
        gap = xp.maximum(fun - bound, xp.zeros_like(fun)) + charge
        gap = xp.where(known, gap, infinite)
        shown = gap <= self.tol * magnitude  # as in `Target.relative`
        size = xp.where(shown, magnitude, xp.maximum(magnitude, self.scale))
        if p.gap_scale is not None:
            size = xp.where(p.gap_scale >= 0.0, xp.maximum(p.gap_scale, abs(fun)), size)
        relative = xp.where(
            size > 0.0, gap / positive_or_one(size), xp.where(gap == 0.0, gap, infinite)
        )
        return {
            "fun": fun, "lower_bound": bound, "gap": gap, "relative_gap": relative,
            "violation": violation, "absolute_violation": absolute, "charge": charge,
            "radius": radius,
        }  # fmt: skip

    def _bound(self, x: Array, value: Enclosures, gradient: Enclosures) -> tuple[Array, Array]:
        """Return a lower bound of the Lagrangian, rounding included, and the radius around x where it holds.

        Parameters
        ----------
        x : array of shape (problems, n)
            The points.
        value, gradient : Enclosures
            Of the Lagrangian there.
        """
        xp, p = namespace(x), self.programs
        radius = FARTHER * xp.maximum(lengths(x), self.unit)
        # No shorter than the point would be in columns of one length.
        level = FARTHER * xp.max(abs(x) / self.columns, axis=-1)
        reach = xp.maximum(radius[:, None], level[:, None] * self.columns)
        infinite = xp.full_like(radius, float("inf"))
        radius = xp.where(self.convexity > 0.0, infinite, radius)
        bound = self.lower_bounds(value, gradient, x, reach)
        if p.squares:  # these are not negative
            alone = (largest(abs(p.q)) == 0.0) & (largest(abs(p.P), (1, 2)) == 0.0)
            bound = xp.where(alone, xp.maximum(bound, p.constant), bound)
        return bound, radius

    def lower_bounds(
        self, lagrangian: Enclosures, gradient: Enclosures, x: Array, reach: Array
    ) -> Array:
        """Return lower bounds of convex functions over the box, from value and gradient at ``x``.

        Over ``x_j >= l_j`` a slope ``c_j >= 0`` costs ``c_j (x_j - l_j)``. What is left of the slope costs
        ``sum (columns_j c_j)^2 / (2 mu)``; where the convexity mu is 0, ``sum c_j reach_j``, and then the
        bound holds for points with ``|z_j - x_j| <= reach_j``.
        """
        xp, n, zero = namespace(x), x.shape[-1], namespace(x).zeros_like(x)
        least, most, mu = self.programs.least, self.programs.most, self.convexity
        falls_down = xp.maximum(gradient.value + gradient.error, zero)
        falls_up = xp.maximum(gradient.error - gradient.value, zero)
        below, above = xp.isfinite(least), xp.isfinite(most)
        down = falls_down * xp.maximum(x - xp.where(below, least, x), zero)
        up = falls_up * xp.maximum(xp.where(above, most, x) - x, zero)
        box = xp.sum(xp.maximum(down, up), axis=-1)
        rise = xp.maximum(xp.where(below, zero, falls_down), xp.where(above, zero, falls_up))
        own = rise * self.columns
        square, line = (
            xp.sum(own * own, axis=-1) / (2.0 * positive_or_one(mu)),
            xp.sum(rise * reach, axis=-1),
        )
        paid = (box + xp.where(mu > 0.0, square, line)) * (1.0 + 2.0 * gamma(n + 8))
        return lagrangian.lower() - paid - gamma(4) * (abs(lagrangian.value) + paid)

    def _violations(
        self, x: Array, v: Array, slope: Array, images: Array, of_images: Array
    ) -> tuple[Array, Array, Array]:
        """Return relative and absolute violations, and what multipliers charge for them.

        ``slope`` is that of the Lagrangian, ``images`` are ``A x``, and ``of_images`` sums of moduli.
        """
        p, xp = self.programs, namespace(x)
        relative = absolute = charge = xp.zeros_like(x[:, 0])
        for Ax, sizes, multipliers, low, high in (
            (images, of_images, v, p.lower, p.upper),
            (x, abs(x), -slope, p.least, p.most),
        ):
            none = xp.zeros_like(Ax)
            for excess, side, own in (
                (Ax - high, high, multipliers),
                (low - Ax, low, -multipliers),
            ):
                excess = xp.maximum(excess, none)
                size = sizes + xp.where(xp.isfinite(side), abs(side), none)
                # Infinite where a violated row compares nothing.
                beside_nothing = xp.where(excess > 0.0, none + float("inf"), none)
                ratio = xp.where(size > 0.0, excess / positive_or_one(size), beside_nothing)
                relative = xp.maximum(relative, largest(ratio))
                absolute = xp.maximum(absolute, largest(excess))
                charge = charge + xp.sum(excess * xp.maximum(own, none), axis=-1)
        return relative, absolute, charge
