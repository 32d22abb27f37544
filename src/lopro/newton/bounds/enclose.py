"""Values and gradients of smooth functions with bounds of their rounding errors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from lopro.certificates.rounding import Estimate, adjoint_product, dot, length, product, total
from lopro.newton.arrays import EPS, Array
from lopro.newton.bounds.mapped import enclose_adjoint, enclose_forward
from lopro.newton.parts import L1, Ball, GroupNorms, Interval, Part, SecondOrderCone
from lopro.newton.smooth import (
    Huber,
    LeastSquares,
    Linear,
    Logistic,
    Quadratic,
    QuadraticOnDevice,
    SquaredDistance,
    Sum,
)

__all__ = ["Enclosure", "enclose", "enclose_conjugate"]

#: Units in the last place by which exp, log1p and expit may be off; libraries promise less than 4.
_LIBRARY = 4.0 * EPS


@dataclass(frozen=True)
class Enclosure:
    """Value and gradient at a point; ``error`` bounds the error of each entry of the gradient."""

    value: Estimate
    gradient: Array
    error: Array

    def __add__(self, other: Enclosure) -> Enclosure:
        gradient = self.gradient + other.gradient
        error = self.error + other.error + EPS * np.abs(gradient)
        return Enclosure(self.value + other.value, gradient, error * (1.0 + 8.0 * EPS))

    def slope(self) -> float:
        """Return an upper bound of the norm of the exact gradient."""
        return length(self.gradient, self.error)


@singledispatch
def enclose(f: object, x: Array) -> Enclosure:
    """Return value and gradient of ``f`` at ``x`` with bounds of their errors."""
    raise TypeError(f"no rounding analysis for {type(f).__name__}")


@enclose.register
def _(f: Linear, x: Array) -> Enclosure:
    return Enclosure(dot(f.q, x), f.q, np.zeros(len(x)))


@enclose.register
def _(f: SquaredDistance, x: Array) -> Enclosure:
    difference = x - f.center
    gradient = f.weights * difference
    # Two roundings in the gradient, one more for its product with the difference, itself rounded.
    value = dot(gradient, difference, 2.0 * EPS * np.abs(gradient)) * 0.5
    return Enclosure(value, gradient, EPS * np.abs(gradient) * (1.0 + 8.0 * EPS))


@enclose.register
def _(f: Quadratic, x: Array) -> Enclosure:
    Px, error = enclose_forward(f.map, x) if isinstance(f, QuadraticOnDevice) else product(f.P, x)
    gradient = Px + f.q
    error = (error + EPS * np.abs(gradient)) * (1.0 + 8.0 * EPS)
    half = 0.5 * Px + f.q
    value = dot(half, x, 0.5 * error + EPS * np.abs(half)) + Estimate(f.constant)
    return Enclosure(value, gradient, error)


@enclose.register
def _(f: LeastSquares, x: Array) -> Enclosure:
    Bx, error = enclose_forward(f.map, x)
    residual = Bx - f.b
    error = (error + EPS * np.abs(residual)) * (1.0 + 8.0 * EPS)
    # |r|^2 with r known up to e: each square is off by at most 2 |r| e + e^2.
    squares = residual * residual
    value = total(squares, EPS * squares + (2.0 * np.abs(residual) + error) * error) * 0.5
    return Enclosure(value, *enclose_adjoint(f.map, residual, error))


@enclose.register
def _(f: Logistic, x: Array) -> Enclosure:
    Ax, error = enclose_forward(f.map, x)
    margins = -f.labels * Ax
    losses = np.logaddexp(0.0, margins)
    # The loss has slope at most 1 and the odds at most 1/4.
    value = total(f.weights * losses, f.weights * ((2.0 * _LIBRARY) * losses + error))
    odds = f.odds(Ax)
    p = -f.weights * f.labels * odds
    p_error = f.weights * (_LIBRARY * odds + 0.25 * error) * (1.0 + 8.0 * EPS) + EPS * np.abs(p)
    return Enclosure(value, *enclose_adjoint(f.map, p, p_error))


@enclose.register
def _(f: Huber, x: Array) -> Enclosure:
    Ax, error = product(f.A, x)
    r = Ax - f.b
    error = (error + EPS * np.abs(r)) * (1.0 + 8.0 * EPS)
    s = f.slopes(r)
    losses = s * (r - 0.5 * s)
    # The loss has slope at most |s| + e where the residual is off by e, and the slope itself at most 1.
    value = total(losses, 4.0 * EPS * np.abs(losses) + (np.abs(s) + error) * error) * f.weight
    p = f.weight * s
    return Enclosure(value, *adjoint_product(f.A, p, f.weight * error + EPS * np.abs(p)))


@enclose.register
def _(f: Sum, x: Array) -> Enclosure:
    parts = [enclose(part, x) for part in f.parts]
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


@singledispatch
def enclose_conjugate(part: Part, v: Array) -> Estimate:
    """Return the conjugate of a part at a point of its domain, with a bound of its error."""
    raise TypeError(f"no rounding analysis for the conjugate of {type(part).__name__}")


@enclose_conjugate.register
def _(part: Interval, v: Array) -> Estimate:
    sides = np.where(v > 0.0, part.upper, part.lower)
    used = v != 0.0
    if not bool(np.all(np.isfinite(sides[used]))):
        return Estimate(np.inf)
    return dot(v[used], sides[used])


@enclose_conjugate.register
def _(part: Ball, v: Array) -> Estimate:
    # The length is an upper bound already: what its product rounds to is a matter of one unit.
    return dot(v, part.center) + Estimate(length(v)) * part.radius


@enclose_conjugate.register
def _(part: SecondOrderCone, v: Array) -> Estimate:
    if not length(v[1:]) <= -float(v[0]):
        return Estimate(np.inf)
    return dot(v, -part.offset)


@enclose_conjugate.register
def _(part: L1, v: Array) -> Estimate:
    return Estimate(part.conjugate(v))


@enclose_conjugate.register
def _(part: GroupNorms, v: Array) -> Estimate:
    blocks = v.reshape(part.groups, part.group_size)
    # The norms of groups, each rounded up.
    up = 1.0 + (part.group_size + 4) * EPS
    lengths = np.sqrt(np.einsum("ij,ij->i", blocks, blocks)) * up
    return Estimate(0.0 if bool(np.all(lengths <= part.weight)) else np.inf)
