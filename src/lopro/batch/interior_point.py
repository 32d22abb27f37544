"""Mehrotra's predictor-corrector method for many quadratic programs of one shape at once.

All problems take their steps together: one batched inverse of the reduced systems, two directions from it.
Nothing but one truth value a step is copied from the device, which says whether the method is done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.batch.scaled import ScaledPrograms
from lopro.core.arrays import Array, asarray_like, namespace
from lopro.core.device_cholesky import inverses_of_definite
from lopro.linalg.batched import raised, times

__all__ = ["Iterates", "Settings", "advance", "complementarity", "start"]


@dataclass(frozen=True)
class Settings:
    """Settings of the method; units are those of `ScaledPrograms`, where entries are about 1."""

    #: Steps end at this share of the way to the boundary (Mehrotra 1992 takes 0.9 to 0.9995).
    boundary: float = 0.995
    #: Proximal terms on x and on the multipliers of equations (Altman and Gondzio 1999). They move no
    #: solution. The square root of the rounding unit, so that half of the digits of the system survive.
    proximal: float = 1e-8
    #: Complementarity is aimed at no less than this share of what is allowed.
    floor: float = 0.1
    #: Steps at most. Programs that are solved take 6 to 20; others are handed to `lopro.solve`. Of 100,000
    #: on an H200 a few are never proved; a step of these few takes 4 ms, as long as `lopro.solve` for one.
    steps: int = 25
    #: Attempts to prove the answer of a problem before it is given up; a step gains a digit or more.
    attempts: int = 8


@dataclass(frozen=True, eq=False)
class Iterates:
    """Points, multipliers of the equations, and slacks and multipliers of the sides of the inequalities."""

    x: Array
    y: Array
    s: Array
    z: Array


@dataclass(frozen=True, eq=False)
class _System:
    """The Newton system of all problems after slacks and multipliers of inequalities are eliminated."""

    programs: ScaledPrograms
    #: Of the matrix with a diagonal of ones, and the units that take it there.
    inverse: Array
    unit: Array
    ratio: Array
    proximal: float

    @staticmethod
    def of(programs: ScaledPrograms, ratio: Array, proximal: float) -> _System:
        """Invert ``[[P + R'WR + rho I, E'], [E, -rho I]]``; W has the ratios of both sides, added."""
        xp, n, p = namespace(ratio), programs.P.shape[1], programs.E.shape[1]
        K = programs.hessian(ratio, proximal)
        if p:
            corner = xp.zeros_like(K[:, :1, :1]) - proximal * asarray_like(np.eye(p), ratio)
            top = xp.concat([K, xp.matrix_transpose(programs.E)], axis=2)
            K = xp.concat([top, xp.concat([programs.E, corner], axis=2)], axis=1)
        return _System(programs, *_inverse(K, n), ratio, proximal)

    def solve(
        self, right: Array, of_equations: Array, *, refined: bool = True
    ) -> tuple[Array, Array]:
        """Return x and y, refined once: an inverse loses digits where the weights are far apart."""
        dx, dy = self._times_inverse(right, of_equations)
        if not refined:
            return dx, dy
        p, rho = self.programs, self.proximal
        hessian = times(p.P, dx) + rho * dx + p.adjoint(self.ratio * p.forward(dx))
        missing = right - hessian - p.equations_adjoint(dy)
        missing_too = of_equations - times(p.E, dx) + rho * dy
        more, more_too = self._times_inverse(missing, missing_too)
        return dx + more, dy + more_too

    def _times_inverse(self, right: Array, of_equations: Array) -> tuple[Array, Array]:
        n = right.shape[1]
        if of_equations.shape[1] == 0:
            return self.unit * times(self.inverse, self.unit * right), of_equations
        both = namespace(right).concat([right, of_equations], axis=1)
        both = self.unit * times(self.inverse, self.unit * both)
        return both[:, :n], both[:, n:]


def _inverse(K: Array, n: int) -> tuple[Array, Array]:
    """Return inverses of matrices with a diagonal of 1, and units.

    The first ``n`` rows have positive diagonals; the others, of equations, get largest entries of 1.
    """
    xp = namespace(K)
    unit = 1.0 / xp.sqrt(xp.linalg.diagonal(K)[:, :n])
    if n < K.shape[-1]:
        rows = xp.max(abs(K[:, n:, :n]) * unit[:, None, :], axis=2)
        unit = xp.concat([unit, 1.0 / xp.where(rows > 0.0, rows, xp.ones_like(rows))], axis=1)
    K = K * (unit[:, :, None] * unit[:, None, :])
    if n == K.shape[-1]:
        return inverses_of_definite(K, 1e-6), unit
    try:
        inverse = xp.linalg.inv(K)
    except (np.linalg.LinAlgError, RuntimeError):  # a pivot is 0; PyTorch's is a RuntimeError
        inverse = xp.linalg.inv(raised(K, 1e-6))
    return inverse, unit


def start(programs: ScaledPrograms, settings: Settings) -> Iterates:
    """Return the least-squares start: x for slacks of weight 1, then slacks and multipliers at least 1.

    Vandenberghe, "The CVXOPT linear and quadratic cone program solvers" (2010), section 5.3.
    """
    p = programs
    system = _System.of(p, p.mask, settings.proximal)
    x, y = system.solve(p.adjoint(p.h) - p.q, p.b)
    z = (p.forward(x) - p.h) * p.mask
    return Iterates(x, y, _positive(-z, p.mask), _positive(z, p.mask) * p.mask)


def _positive(v: Array, mask: Array) -> Array:
    """Return the numbers, shifted until they are positive; 1 where they are masked."""
    xp = namespace(v)
    if v.shape[2] == 0:
        return v
    used = xp.where(mask > 0.0, v, xp.full_like(v, float("inf")))
    least = xp.min(used, axis=(1, 2))
    shift = xp.maximum(1.0 - least, xp.zeros_like(least))
    return xp.where(mask > 0.0, v + shift[:, None, None], xp.ones_like(v))


def complementarity(iterates: Iterates) -> Array:
    """Return ``<s, z>``: the duality gap of points that satisfy everything else."""
    return namespace(iterates.s).sum(iterates.s * iterates.z, axis=(1, 2))


def advance(programs: ScaledPrograms, at: Iterates, allowed: Array, settings: Settings) -> Iterates:
    """Return all points one step later.

    Complementarity is not driven far below what each problem is ``allowed``: the systems would lose the
    digits that residuals, and with them the proofs, need.
    """
    p, xp = programs, namespace(at.x)
    slope = times(p.P, at.x) + p.q + p.equations_adjoint(at.y)
    primal = (p.forward(at.x) + at.s - p.h) * p.mask
    equations = p.b - times(p.E, at.x)
    ratio = at.z / at.s
    system = _System.of(p, ratio * p.mask, settings.proximal)

    def direction(products: Array, *, refined: bool) -> tuple[Array, Array, Array, Array]:
        """Return the Newton direction at which ``s z`` becomes ``s z - products``, to first order."""
        pulled = (ratio * primal - products / at.s) * p.mask
        dx, dy = system.solve(-slope - p.adjoint(at.z + pulled), equations, refined=refined)
        ds = (-primal - p.forward(dx)) * p.mask
        return dx, dy, ds, (-products / at.s - ratio * ds) * p.mask

    products = at.s * at.z
    count = xp.maximum(xp.sum(p.mask, axis=(1, 2)), xp.ones_like(at.x[:, 0]))
    mean = xp.sum(products, axis=(1, 2)) / count
    # The predictor determines only how much to centre, and the curvature of the products.
    *_, ds, dz = direction(products, refined=False)
    t = _step(at, ds, dz)[:, None, None]
    reached = xp.sum((at.s + t * ds) * (at.z + t * dz) * p.mask, axis=(1, 2)) / count
    share = reached / xp.where(mean > 0.0, mean, xp.ones_like(mean))
    least = settings.floor * allowed / count
    centre = xp.maximum(share * share * share * mean, least)[:, None, None]
    dx, dy, ds, dz = direction((products + ds * dz - centre) * p.mask, refined=True)
    t = _step(at, ds, dz, settings.boundary)
    moved = Iterates(
        at.x + t[:, None] * dx, at.y + t[:, None] * dy,
        at.s + t[:, None, None] * ds, at.z + t[:, None, None] * dz,
    )  # fmt: skip
    return _finite_or(at, moved)


def _step(at: Iterates, ds: Array, dz: Array, share: float = 1.0) -> Array:
    """Return the step to the boundary, times a share, but no more than 1."""
    xp = namespace(ds)
    if ds.shape[2] == 0:
        return xp.ones_like(at.x[:, 0])
    z = xp.where(at.z > 0.0, at.z, xp.ones_like(at.z))
    most = xp.maximum(xp.max(-ds / at.s, axis=(1, 2)), xp.max(-dz / z, axis=(1, 2)))
    return share / xp.maximum(most, xp.full_like(most, share))


def _finite_or(old: Iterates, new: Iterates) -> Iterates:
    """Return the new points, but the old ones where a number is not finite any more."""
    xp = namespace(new.x)
    finite = xp.isfinite(xp.sum(new.x, axis=1) + xp.sum(new.s + new.z, axis=(1, 2)))

    flat, sided = finite[:, None], finite[:, None, None]
    return Iterates(
        xp.where(flat, new.x, old.x), xp.where(flat, new.y, old.y),
        xp.where(sided, new.s, old.s), xp.where(sided, new.z, old.z),
    )  # fmt: skip
