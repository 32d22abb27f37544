"""Certificates of many quadratic programs at once, on the device of their data.

The formulas are those of `lopro.certificates.bound`, for programs of `lopro.certificates.batched_programs`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lopro.certificates.batched_programs import Programs
from lopro.certificates.tolerances import FARTHER, negligible_share
from lopro.core.arrays import Array, namespace
from lopro.linalg.batched import Enclosures, largest, lengths, positive_or_one, times
from lopro.linalg.rounding import gamma

__all__ = ["Proofs"]


@dataclass(frozen=True, eq=False)
class Proofs:
    """Certificates of points and multipliers of a batch of programs.

    Parameters
    ----------
    programs : Programs
        The data.
    columns : array of shape (problems, n)
        Units of the variables, in which convexity is measured.
    convexity : array of shape (problems,)
        Lower bounds of the least eigenvalues of the Hessians in these units, or 0.
    unit, scale : array of shape (problems,)
        A typical length of the points, and the least value that gaps are relative to.
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
        """Compute the units and constants of the proofs for a required relative gap."""
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
        # A multiplier at an infinite side, or one that is not finite, is replaced by 0.
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
        # The error of the slack includes the rounding of A x and that of the difference from the side.
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
        # In units of the variables, each half-width is at least FARTHER times the largest entry of x.
        level = FARTHER * xp.max(abs(x) / self.columns, axis=-1)
        reach = xp.maximum(radius[:, None], level[:, None] * self.columns)
        infinite = xp.full_like(radius, float("inf"))
        radius = xp.where(self.convexity > 0.0, infinite, radius)
        bound = self.lower_bounds(value, gradient, x, reach)
        if p.squares:  # an objective of squares alone is at least its constant
            alone = (largest(abs(p.q)) == 0.0) & (largest(abs(p.P), (1, 2)) == 0.0)
            bound = xp.where(alone, xp.maximum(bound, p.constant), bound)
        return bound, radius

    def lower_bounds(
        self, lagrangian: Enclosures, gradient: Enclosures, x: Array, reach: Array
    ) -> Array:
        """Return lower bounds of convex functions over the box, from value and gradient at ``x``.

        Where ``x_j >= l_j``, a slope ``c_j >= 0`` lowers the bound by ``c_j (x_j - l_j)``. Slopes towards
        infinite bounds of variables lower it by ``sum (columns_j c_j)^2 / (2 mu)``; where the convexity mu is
        0, by ``sum c_j reach_j``, and then it holds only for points with ``|z_j - x_j| <= reach_j``.
        """
        xp, n, zero = namespace(x), x.shape[-1], namespace(x).zeros_like(x)
        least, most, mu = self.programs.least, self.programs.most, self.convexity
        decrease_down = xp.maximum(gradient.value + gradient.error, zero)
        decrease_up = xp.maximum(gradient.error - gradient.value, zero)
        below, above = xp.isfinite(least), xp.isfinite(most)
        down = decrease_down * xp.maximum(x - xp.where(below, least, x), zero)
        up = decrease_up * xp.maximum(xp.where(above, most, x) - x, zero)
        box = xp.sum(xp.maximum(down, up), axis=-1)
        rise = xp.maximum(xp.where(below, zero, decrease_down), xp.where(above, zero, decrease_up))
        own = rise * self.columns
        quadratic, linear = (
            xp.sum(own * own, axis=-1) / (2.0 * positive_or_one(mu)),
            xp.sum(rise * reach, axis=-1),
        )
        loss = (box + xp.where(mu > 0.0, quadratic, linear)) * (1.0 + 2.0 * gamma(n + 8))
        return lagrangian.lower() - loss - gamma(4) * (abs(lagrangian.value) + loss)

    def _violations(
        self, x: Array, v: Array, slope: Array, images: Array, image_sizes: Array
    ) -> tuple[Array, Array, Array]:
        """Return relative and absolute violations, and the charges: violations times multipliers.

        ``slope`` is that of the Lagrangian, ``images`` are ``A x``, and ``image_sizes`` ``|A| |x|``.
        """
        p, xp = self.programs, namespace(x)
        relative = absolute = charge = xp.zeros_like(x[:, 0])
        for Ax, sizes, multipliers, low, high in (
            (images, image_sizes, v, p.lower, p.upper),
            (x, abs(x), -slope, p.least, p.most),
        ):
            none = xp.zeros_like(Ax)
            for excess, side, own in (
                (Ax - high, high, multipliers),
                (low - Ax, low, -multipliers),
            ):
                excess = xp.maximum(excess, none)
                size = sizes + xp.where(xp.isfinite(side), abs(side), none)
                # A violation with nothing to compare it with is infinite.
                without_size = xp.where(excess > 0.0, none + float("inf"), none)
                ratio = xp.where(size > 0.0, excess / positive_or_one(size), without_size)
                relative = xp.maximum(relative, largest(ratio))
                absolute = xp.maximum(absolute, largest(excess))
                charge = charge + xp.sum(excess * xp.maximum(own, none), axis=-1)
        return relative, absolute, charge
