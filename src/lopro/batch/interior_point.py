"""Mehrotra's predictor-corrector method for many quadratic programs of one shape at once.

All problems take their steps together: a step forms one batched inverse of the reduced systems and computes
two directions from it. Nothing is copied from the device here; `lopro.batch.solve` transfers two integers a
step, which decide whether proofs are attempted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.batch.scaled import ScaledPrograms
from lopro.core.arrays import Array, asarray_like, namespace
from lopro.core.device_cholesky import inverses_of_definite
from lopro.linalg.batched import add_to_diagonals, times

__all__ = ["Iterates", "Settings", "advance", "complementarity", "start"]


@dataclass(frozen=True)
class Settings:
    """Settings of the method, in the units of `ScaledPrograms`, where entries are about 1."""

    #: Share of the step to the boundary that is taken (Mehrotra 1992: 0.9 to 0.9995).
    boundary: float = 0.995
    #: Proximal terms on x and on the multipliers of equations (Altman and Gondzio 1999), which do
    #: not change the solution. The square root of the rounding unit keeps half of the digits of the system.
    proximal: float = 1e-8
    #: Lower bound of the target of complementarity, as a share of the complementarity that is allowed. A
    #: tenth and ten times as much take 0 and 2 % more steps in ``python -m benchmarks.constants batch``.
    floor: float = 0.1
    #: Maximum number of steps. Programs that are solved take 6 to 20; the others go to `lopro.solve`. Of
    #: 100,000 on an H200 a few are never proved; a step of these takes 4 ms, as long as one `lopro.solve`.
    steps: int = 25
    #: Maximum number of steps with small enough complementarity, at which proofs are attempted; each gains
    #: a digit or more. 0 and 80 change nothing in ``python -m benchmarks.constants batch``.
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
    """The Newton systems of all problems after elimination of slacks and multipliers of inequalities."""

    programs: ScaledPrograms
    #: Inverse of the matrix scaled to a diagonal of ones, and the factors of that scaling.
    inverse: Array
    unit: Array
    ratio: Array
    proximal: float

    @staticmethod
    def of(programs: ScaledPrograms, ratio: Array, proximal: float) -> _System:
        """Invert ``[[P + R'WR + rho I, E'], [E, -rho I]]``, W the sum of the ratios of both sides."""
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
        """Return x and y after one step of refinement: inverses lose digits where weights differ by much."""
        dx, dy = self._times_inverse(right, of_equations)
        if not refined:
            return dx, dy
        p, rho = self.programs, self.proximal
        hessian = times(p.P, dx) + rho * dx + p.adjoint(self.ratio * p.forward(dx))
        residual_x = right - hessian - p.equations_adjoint(dy)
        residual_y = of_equations - times(p.E, dx) + rho * dy
        correction_x, correction_y = self._times_inverse(residual_x, residual_y)
        return dx + correction_x, dy + correction_y

    def _times_inverse(self, right: Array, of_equations: Array) -> tuple[Array, Array]:
        n = right.shape[1]
        if of_equations.shape[1] == 0:
            return self.unit * times(self.inverse, self.unit * right), of_equations
        both = namespace(right).concat([right, of_equations], axis=1)
        both = self.unit * times(self.inverse, self.unit * both)
        return both[:, :n], both[:, n:]


def _inverse(K: Array, n: int) -> tuple[Array, Array]:
    """Return the inverses of the matrices scaled to a diagonal of 1, and the factors of that scaling.

    The first ``n`` rows have positive diagonals; those of equations are scaled to a largest entry of 1.
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
        inverse = xp.linalg.inv(add_to_diagonals(K, 1e-6))
    return inverse, unit


def start(programs: ScaledPrograms, settings: Settings) -> Iterates:
    """Return the least-squares starting point, with slacks and multipliers shifted to at least 1.

    Vandenberghe, "The CVXOPT linear and quadratic cone program solvers" (2010), section 5.3.
    """
    p = programs
    system = _System.of(p, p.mask, settings.proximal)
    x, y = system.solve(p.adjoint(p.h) - p.q, p.b)
    z = (p.forward(x) - p.h) * p.mask
    return Iterates(x, y, _positive(-z, p.mask), _positive(z, p.mask) * p.mask)


def _positive(v: Array, mask: Array) -> Array:
    """Return the numbers of each problem, shifted to at least 1; 1 where they are masked."""
    xp = namespace(v)
    if v.shape[2] == 0:
        return v
    used = xp.where(mask > 0.0, v, xp.full_like(v, float("inf")))
    least = xp.min(used, axis=(1, 2))
    shift = xp.maximum(1.0 - least, xp.zeros_like(least))
    return xp.where(mask > 0.0, v + shift[:, None, None], xp.ones_like(v))


def complementarity(iterates: Iterates) -> Array:
    """Return ``<s, z>``, the duality gap of points that are feasible for the primal and the dual."""
    return namespace(iterates.s).sum(iterates.s * iterates.z, axis=(1, 2))


def advance(programs: ScaledPrograms, at: Iterates, allowed: Array, settings: Settings) -> Iterates:
    """Take one predictor-corrector step in all problems.

    Complementarity is not reduced far below what is ``allowed`` for each problem: the systems would lose the
    digits that the residuals, and with them the proofs, require.
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
    # The predictor serves only to choose the centring and to estimate the second-order term ds dz.
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
    """Return a share of the step to the boundary, at most 1."""
    xp = namespace(ds)
    if ds.shape[2] == 0:
        return xp.ones_like(at.x[:, 0])
    z = xp.where(at.z > 0.0, at.z, xp.ones_like(at.z))
    most = xp.maximum(xp.max(-ds / at.s, axis=(1, 2)), xp.max(-dz / z, axis=(1, 2)))
    return share / xp.maximum(most, xp.full_like(most, share))


def _finite_or(old: Iterates, new: Iterates) -> Iterates:
    """Return the new points, and the old ones of problems where a new number is not finite."""
    xp = namespace(new.x)
    finite = xp.isfinite(xp.sum(new.x, axis=1) + xp.sum(new.s + new.z, axis=(1, 2)))

    flat, sided = finite[:, None], finite[:, None, None]
    return Iterates(
        xp.where(flat, new.x, old.x), xp.where(flat, new.y, old.y),
        xp.where(sided, new.s, old.s), xp.where(sided, new.z, old.z),
    )  # fmt: skip
