"""Many quadratic programs of one shape: values, gradients, typical sizes and convexity.

Arrays have one leading axis for the problems. All are in double precision, in the library and on the device
of the data, and no number is copied to the host.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.core.arrays import Array, asarray_like, namespace
from lopro.core.device_cholesky import inverses_of_definite
from lopro.linalg.batched import Enclosures, largest, lengths, positive_or_one, times
from lopro.linalg.dense import EPS
from lopro.linalg.rounding import gamma

__all__ = ["Programs", "Square"]


@dataclass(frozen=True, eq=False)
class Square:
    """``1/2 s |D x - b|^2`` of each problem."""

    D: Array
    b: Array
    scale: Array


@dataclass(frozen=True, eq=False)
class Programs:
    """``min 1/2 x'Px + q'x + constant + squares  s.t.  lower <= A x <= upper, least <= x <= most``.

    All arrays are given, in double precision; there may be no rows, and sides may be infinite. The matrices
    are exactly symmetric, and positive semidefinite up to rounding.
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
        """Return values, gradients and the sums of absolute terms, the denominators of relative gaps."""
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
            given = xp.isfinite(side) & (side != 0.0)
            return xp.where(given, abs(side), xp.full_like(side, float("inf")))

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
        """Return a bound of the rounding error of the Hessian as it was formed and scaled."""
        xp = namespace(self.q)
        found = lengths(columns[:, :, None] * self.P * columns[:, None, :], (1, 2))
        rows = max((term.D.shape[1] for term in self.squares), default=0)
        for term in self.squares:
            D = term.D * columns[:, None, :]
            found = found + term.scale * xp.sum(D * D, axis=(1, 2))
        return 2.0 * gamma(len(self.squares) + rows + 6) * found
