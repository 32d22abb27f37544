"""A batch of quadratic programs in units of its own: rows and columns with entries of about 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.batch.programs import QuadraticPrograms, times
from lopro.core.arrays import Array, asarray_like, namespace

__all__ = ["ScaledPrograms"]

#: Rounds of Ruiz's equilibration ("A scaling algorithm to equilibrate both rows and columns norms in
#: matrices", 2001): each takes the square root of what the largest entries are off by, 1e12 becomes 1e1.5.
_ROUNDS = 3


@dataclass(frozen=True, eq=False)
class ScaledPrograms:
    """``min 1/2 x'Px + q'x  s.t.  E x = b,  sign_k R x <= h_k`` where R has the rows G, and the box.

    The sides are one or two: the upper ones with sign 1, the lower ones with sign -1. A side that is not
    bounded has ``h = 0`` and is masked. A point of the user is ``columns`` times that of the batch, a
    multiplier ``rows / cost`` times that of the batch.
    """

    P: Array
    q: Array
    constant: Array
    E: Array
    b: Array
    G: Array
    #: Of shape (problems, sides, rows): with those of the box, if there is one, at the end.
    h: Array
    mask: Array
    columns: Array
    equation_units: Array
    row_units: Array
    cost: Array
    signs: tuple[float, ...]
    boxed: bool

    @staticmethod
    def of(programs: QuadraticPrograms) -> ScaledPrograms:
        """Return programs in their own units; equations are told from inequalities."""
        xp = namespace(programs.q)
        P, q, constant = programs.total()
        equal = programs.equations
        E, b = _rows(programs, equal, 0), _rows(programs, equal, 1)
        G, low, high = (_rows(programs, ~equal, k) for k in range(3))
        columns, of_E, of_G = _equilibrated(P, E, G)
        P = columns[:, :, None] * P * columns[:, None, :]
        q = columns * q
        cost = 1.0 / _or_one(xp.maximum(_largest(P, (1, 2)), _largest(q, (1,))))
        sides = [(low * of_G, high * of_G)]
        box = programs.box
        if box is not None:
            sides.append((box[0] / columns, box[1] / columns))
        bounds = {
            1.0: xp.concat([each[1] for each in sides], axis=-1),
            -1.0: -xp.concat([each[0] for each in sides], axis=-1),
        }
        used = {s: h for s, h in bounds.items() if 0 in h.shape or bool(xp.any(xp.isfinite(h)))}
        h = xp.stack(list(used.values()) or [bounds[1.0]], axis=1)
        bounded = xp.isfinite(h)
        return ScaledPrograms(
            P * cost[:, None, None], q * cost[:, None], constant * cost,
            of_E[:, :, None] * E * columns[:, None, :], b * of_E,
            of_G[:, :, None] * G * columns[:, None, :],
            xp.where(bounded, h, xp.zeros_like(h)), xp.astype(bounded, q.dtype),
            columns, of_E, of_G, cost, tuple(used) or (1.0,), box is not None,
        )  # fmt: skip

    def sided(self, z: Array) -> Array:
        """Return numbers of the rows for each side, with its sign."""
        if self.signs == (1.0,):
            return z[:, None, :]
        xp = namespace(z)
        return xp.stack([z if sign > 0.0 else -z for sign in self.signs], axis=1)

    def summed(self, w: Array) -> Array:
        """Return the sum over the sides, each with its sign: the adjoint of `sided`."""
        if len(self.signs) == 1:
            return w[:, 0, :] if self.signs[0] > 0.0 else -w[:, 0, :]
        return w[:, 0, :] - w[:, 1, :]

    def forward(self, x: Array) -> Array:
        """Return ``R x``: rows, then the box."""
        z = times(self.G, x)
        return namespace(x).concat([z, x], axis=-1) if self.boxed else z

    def adjoint(self, v: Array) -> Array:
        """Return ``R'v``."""
        m = self.G.shape[1]
        z = _transposed_times(self.G, v[:, :m] if self.boxed else v)
        return z + v[:, m:] if self.boxed else z

    def equations_adjoint(self, y: Array) -> Array:
        """Return ``E'y``."""
        return _transposed_times(self.E, y)

    def hessian(self, weights: Array, eye: Array, shift: float) -> Array:
        """Return ``P + R' diag(weights) R + shift I``; ``eye`` is the identity."""
        xp, m = namespace(weights), self.G.shape[1]
        w = weights[:, :m] if self.boxed else weights
        K = self.P + xp.matrix_transpose(self.G) @ (w[:, :, None] * self.G) + shift * eye
        return K + weights[:, m:, None] * eye if self.boxed else K

    def user_point(self, x: Array) -> Array:
        """Return a point in the units of the user."""
        return self.columns * x

    def user_multipliers(self, y: Array, z: Array, equal: Any) -> tuple[Array, Array | None]:
        """Return multipliers of all rows, equations among them, and of the box, in the user's units."""
        xp, m = namespace(y), self.G.shape[1]
        v = self.summed(z)
        unit = 1.0 / self.cost[:, None]
        both = [y * self.equation_units * unit, v[:, :m] * self.row_units * unit]
        order = np.argsort(np.concatenate([np.flatnonzero(equal), np.flatnonzero(~equal)]))
        rows = xp.concat(both, axis=1)
        if len(order) and equal.any():
            rows = xp.take(rows, asarray_like(order, _integers(rows)), axis=1)
        return rows, v[:, m:] / self.columns * unit if self.boxed else None


def _integers(like: Array) -> Array:
    xp = namespace(like)
    return xp.astype(like[:0, 0], xp.int64)


def _transposed_times(M: Array, v: Array) -> Array:
    return (v[:, None, :] @ M)[:, 0, :]


def _rows(programs: QuadraticPrograms, chosen: Any, k: int) -> Array:
    """Return some rows of the matrices, or their lower or upper sides."""
    xp, q = namespace(programs.q), programs.q
    if programs.A is None:
        return xp.zeros_like(q[:, None, :])[:, :0, :] if k == 0 else q[:, :0]
    array = (programs.A, *programs.sides)[k]
    if chosen.all():
        return array
    return xp.take(array, asarray_like(np.flatnonzero(chosen), _integers(q)), axis=1)


def _or_one(x: Array) -> Array:
    xp = namespace(x)
    return xp.where((x > 0.0) & xp.isfinite(x), x, xp.ones_like(x))


def _largest(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the largest modulus along some axes; 0 where there is nothing."""
    xp, found = namespace(x), abs(x)
    if any(x.shape[axis] == 0 for axis in axes):
        return xp.sum(found, axis=axes)
    return xp.max(found, axis=axes)


def _equilibrated(P: Array, E: Array, G: Array) -> tuple[Array, Array, Array]:
    """Return factors of columns, equations and rows; those of rows and columns of zeros are 1."""
    xp = namespace(P)
    P, E, G = abs(P), abs(E), abs(G)
    columns = xp.ones_like(P[:, 0, :])
    of_E, of_G = xp.ones_like(E[:, :, 0]), xp.ones_like(G[:, :, 0])
    for _ in range(_ROUNDS):
        scaled_P = columns[:, :, None] * P
        scaled_E, scaled_G = of_E[:, :, None] * E, of_G[:, :, None] * G
        largest = xp.maximum(_largest(scaled_E, (1,)), _largest(scaled_G, (1,)))
        across = columns * xp.maximum(largest, _largest(scaled_P, (1,)))
        of_E = of_E / xp.sqrt(_or_one(_largest(scaled_E * columns[:, None, :], (2,))))
        of_G = of_G / xp.sqrt(_or_one(_largest(scaled_G * columns[:, None, :], (2,))))
        columns = columns / xp.sqrt(_or_one(across))
    return columns, of_E, of_G
