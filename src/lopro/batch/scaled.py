"""Equilibration of a batch of quadratic programs: rows and columns with entries of about 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.certificates.batched_programs import Programs
from lopro.core.arrays import Array, asarray_like, namespace, to_numpy
from lopro.linalg.batched import add_to_diagonals, largest, positive_or_one, times

__all__ = ["ScaledPrograms", "chosen"]

#: Rounds of Ruiz's equilibration ("A scaling algorithm to equilibrate both rows and columns norms in
#: matrices", 2001): each replaces the largest entries by their square roots, so that 1e12 becomes 1e1.5. 0
#: takes 34 % more steps in ``python -m benchmarks.constants batch``, 30 takes 2 % fewer.
_ROUNDS = 3
#: Rows with larger ratios of multipliers and slacks are left out of the systems, which would overflow.
_LARGEST = 1e200


@dataclass(frozen=True, eq=False)
class ScaledPrograms:
    """``min 1/2 x'Px + q'x  s.t.  E x = b,  R x <= h_1,  -R x <= h_2`` where R has the rows G, and the box.

    An infinite side has ``h = 0`` and is masked; ``-R x <= h_2`` is left out where no problem has such sides.
    A point in the user's units is ``columns`` times the scaled one; a multiplier is the scaled one times the
    unit of its row, divided by ``cost``.
    """

    P: Array
    q: Array
    constant: Array
    E: Array
    b: Array
    G: Array
    #: Of shape (problems, 2 or 1, rows); the sides of the box, if there is one, come last.
    h: Array
    mask: Array
    columns: Array
    equation_units: Array
    row_units: Array
    cost: Array
    #: Positions of the user's rows in the list of equations followed by inequalities.
    order: tuple[int, ...]
    boxed: bool

    @staticmethod
    def of(programs: Programs) -> ScaledPrograms:
        """Equilibrate programs, and separate equations from inequalities."""
        xp, A = namespace(programs.q), programs.A
        equal = _equations(programs)
        first, other = np.flatnonzero(equal), np.flatnonzero(~equal)
        E, b = (chosen(a, first, 1) for a in (A, programs.lower))
        G, low, high = (chosen(a, other, 1) for a in (A, programs.lower, programs.upper))
        P, q, constant = programs.multiplied_out()
        columns, of_E, of_G = _equilibrated(P, E, G)
        P, q = columns[:, :, None] * P * columns[:, None, :], columns * q
        cost = 1.0 / positive_or_one(xp.maximum(largest(abs(P), (1, 2)), largest(abs(q))))
        low, high = low * of_G, high * of_G
        least, most = programs.least / columns, programs.most / columns
        boxed = bool(xp.any(xp.isfinite(least) | xp.isfinite(most)))
        if boxed:
            low, high = xp.concat([low, least], axis=1), xp.concat([high, most], axis=1)
        below = bool(xp.any(xp.isfinite(low)))
        h = xp.stack([high, -low] if below else [high], axis=1)
        bounded = xp.isfinite(h)
        return ScaledPrograms(
            P * cost[:, None, None], q * cost[:, None], constant * cost,
            of_E[:, :, None] * E * columns[:, None, :], b * of_E,
            of_G[:, :, None] * G * columns[:, None, :],
            xp.where(bounded, h, xp.zeros_like(h)), xp.astype(bounded, h.dtype),
            columns, of_E, of_G, cost, tuple(np.argsort(np.r_[first, other]).tolist()), boxed,
        )  # fmt: skip

    def forward(self, x: Array) -> Array:
        """Return ``R x`` and ``-R x``; in R the box follows the rows."""
        xp, z = namespace(x), times(self.G, x)
        z = xp.concat([z, x], axis=-1) if self.boxed else z
        return xp.stack([z, -z], axis=1) if self.two_sided else z[:, None, :]

    def adjoint(self, w: Array) -> Array:
        """Return ``R'(w_1 - w_2)``: the adjoint of `forward`."""
        v, m = self._difference(w), self.G.shape[1]
        z = _transposed_times(self.G, v[:, :m])
        return z + v[:, m:] if self.boxed else z

    def equations_adjoint(self, y: Array) -> Array:
        """Return ``E'y``."""
        return _transposed_times(self.E, y)

    @property
    def two_sided(self) -> bool:
        """Whether any problem has a lower side."""
        return bool(self.h.shape[1] == 2)

    def _difference(self, w: Array) -> Array:
        return w[:, 0, :] - w[:, 1, :] if self.two_sided else w[:, 0, :]

    def hessian(self, ratio: Array, shift: float) -> Array:
        """Return ``P + R' diag(ratio_1 + ratio_2) R + shift I``, without rows whose ratio is too large."""
        xp, m = namespace(ratio), self.G.shape[1]
        weights = ratio[:, 0, :] + ratio[:, 1, :] if self.two_sided else ratio[:, 0, :]
        weights = xp.where(weights < _LARGEST, weights, xp.zeros_like(weights))
        K = xp.matrix_transpose(self.G) @ (weights[:, :m, None] * self.G)
        K += self.P
        return add_to_diagonals(K, weights[:, m:] + shift if self.boxed else shift)

    def user_multipliers(self, y: Array, z: Array) -> dict[str, Array]:
        """Return multipliers of all rows, in the user's order, and of the box, in the user's units."""
        xp, m = namespace(y), self.G.shape[1]
        v, unit = self._difference(z), 1.0 / self.cost[:, None]
        rows = xp.concat([y * self.equation_units, v[:, :m] * self.row_units], axis=1) * unit
        box = v[:, m:] / self.columns * unit if self.boxed else xp.zeros_like(self.columns)
        return {"rows": chosen(rows, np.array(self.order, dtype=np.int64), 1), "box": box}


def chosen(array: Array, places: Array, axis: int = 0) -> Array:
    """Return the entries at some places along an axis."""
    if isinstance(array, np.ndarray):
        return np.take(array, places, axis=axis)
    xp = namespace(array)
    if isinstance(places, np.ndarray):
        if len(places) == 0:
            return array[:0, ...] if axis == 0 else array[:, :0, ...]
        places = asarray_like(places, xp.astype(array[:0, ...], xp.int64))
    return xp.take(array, places, axis=axis)


def _equations(programs: Programs) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of the rows that are equations, on the host."""
    alike = to_numpy(programs.lower == programs.upper)
    if (alike != alike[:1]).any():
        raise ValueError("a row must be an equation in all of the problems, or in none")
    return np.asarray(alike[0])


def _transposed_times(M: Array, v: Array) -> Array:
    return (v[:, None, :] @ M)[:, 0, :]


def _equilibrated(P: Array, E: Array, G: Array) -> tuple[Array, Array, Array]:
    """Return factors for columns, equations and inequalities; 1 for rows and columns of zeros."""
    xp, P, E, G = namespace(P), abs(P), abs(E), abs(G)
    columns = xp.ones_like(P[:, 0, :])
    of_E, of_G = xp.ones_like(E[:, :, 0]), xp.ones_like(G[:, :, 0])
    for _ in range(_ROUNDS):
        scaled_E, scaled_G = of_E[:, :, None] * E, of_G[:, :, None] * G
        across = xp.maximum(largest(scaled_E, 1), largest(scaled_G, 1))
        across = columns * xp.maximum(across, largest(columns[:, :, None] * P, 1))
        of_E = of_E / xp.sqrt(positive_or_one(largest(scaled_E * columns[:, None, :])))
        of_G = of_G / xp.sqrt(positive_or_one(largest(scaled_G * columns[:, None, :])))
        columns = columns / xp.sqrt(positive_or_one(across))
    return columns, of_E, of_G
