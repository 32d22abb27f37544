"""Newton's method for ``min sum_b w_b |Z_b|  s.t. |A Z - Y| <= sigma`` on a few blocks of rows of ``Z``.

A block is a row of ``Z`` (a complex number, or the coefficients of several right-hand sides) or the rows of a
group. Where no block vanishes, the solution for a multiplier ``alpha`` solves ``A^H (Y - A Z) = alpha w u``
with the directions ``u_b = Z_b / |Z_b|``: smooth equations, for which Newton's method converges fast. For
blocks of one real number, whose directions are constant, this is Newton's method on signs.

With ``D_b = w_b / |Z_b|`` Newton's matrix is

    H = A^H A + alpha D (I - u u'):

with a large curvature for turning short blocks. With ``E = 1 / (alpha D)``, ``K = E^1/2 A^H A E^1/2``,
``R = (I + K)^-1`` and ``T = I - R`` its inverse is ``E^1/2 (R + R u (u' T u)^-1 u' R) E^1/2``: a matrix over
the columns, whatever the number of right-hand sides, and one over the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit.blocks.systems import newton_solver
from lopro.basis_pursuit.columns import support_newton
from lopro.basis_pursuit.columns.column_set import ColumnSet
from lopro.basis_pursuit.columns.pieces import Vector, largest, submatrix
from lopro.basis_pursuit.levels import Level
from lopro.core.deadline import current_deadline

__all__ = [
    "BlockNewton",
]

#: The length of a new block relative to its solution alone: with 1, 17.5 products instead of 16.1.
GROWTH = 0.3
#: The maximal number of new blocks in one step, unless half as many blocks are active: factors would take
#: gigabytes. A tenth changes the products of the block instances of `python -m benchmarks.constants
#: basis_pursuit` by 1 %.
_MANY = 200
#: The root of the rounding unit: shorter blocks, in units of alpha w / |a|^2, have no direction; and shorter
#: steps, which do not lower the objective, change values by rounding alone.
_LEAST = math.sqrt(float(np.finfo(np.float64).eps))


@dataclass(frozen=True, eq=False)
class _Face:
    """The blocks of a step: their columns, directions and weights, with Newton's matrix."""

    rows: Vector  # the columns of A, rows of Z
    starts: Vector  # the first row of each block among these
    sizes: Vector  # the number of rows of each block
    u: Vector  # unit directions, block by block
    weights: Vector  # of each row
    gram: Vector
    solve: Callable[[Vector], Vector]


class BlockNewton:
    """A point on a set of blocks, its residual, and steps from it.

    Parameters
    ----------
    columns : ColumnSet
        The columns of the blocks, those of a block side by side; its ``y`` has a column or several.
    level : Level
        The condition that determines alpha.
    nonneg : bool
        Require ``Z >= 0``: entries leave zero where their correlation is positive.

    Examples
    --------
    The complex number of least modulus within 1 of 3 + 4i.

    >>> import numpy as np
    >>> from lopro.basis_pursuit.blocks.newton import BlockNewton
    >>> from lopro.basis_pursuit.columns.column_set import ColumnSet
    >>> from lopro.basis_pursuit.levels import Radius
    >>> columns = ColumnSet(np.array([[3.0 + 4.0j]]), np.ones(1))
    >>> newton = BlockNewton(columns, Radius(1.0))
    >>> newton.extend(
    ...     np.array([0]), np.array([1]), lambda indices: np.ones((1, 1)), np.ones((1, 1))
    ... )
    >>> newton.step(alpha=0.6)
    >>> newton.z.round(6), round(newton.length, 6)
    (array([[2.4+3.2j]]), 1.0)
    """

    def __init__(self, columns: ColumnSet, level: Level, nonneg: bool = False) -> None:
        self.columns, self.level, self.nonneg = columns, level, nonneg
        self.z: Vector = np.zeros((0, columns.y.shape[1]), dtype=columns.y.dtype)
        #: The first column of each block.
        self.starts = np.empty(0, dtype=np.intp)
        #: The number of columns of each block.
        self.sizes = np.empty(0, dtype=np.intp)
        self.move_to(self.z, 1.0)

    # The set.

    def extend(
        self,
        indices: Vector,
        sizes: Vector,
        read: Callable[[Vector], Vector],
        correlations: Vector,
    ) -> None:
        """Add blocks of these sizes, which are zero."""
        n = len(self.columns)
        self.starts = np.concatenate([self.starts, n + np.cumsum(sizes) - sizes])
        self.sizes = np.concatenate([self.sizes, sizes])
        self.columns.extend(indices, read, correlations)
        empty = np.zeros((len(indices), self.z.shape[1]), dtype=self.z.dtype)
        self.z = np.concatenate([self.z, empty])
        self._pull()

    def keep(self, blocks: Vector) -> None:
        """Drop all blocks but those marked; the others are zero."""
        rows = np.repeat(blocks, self.sizes)
        self.columns.keep(rows)
        self.z, self.sizes = self.z[rows], self.sizes[blocks]
        self.starts = np.cumsum(self.sizes) - self.sizes
        self._pull()

    # The point.

    def move_to(self, z: Vector, alpha: float) -> None:
        """Set the point."""
        self.z, self.alpha = z, alpha
        self.residual = self.columns.y - self.columns.forward(z)
        self.length = float(np.linalg.norm(self.residual))
        self._pull()

    def _pull(self) -> None:
        """Compute correlations, lengths and weights of the blocks."""
        self.slope = self.columns.adjoint(self.residual)
        if self.nonneg:
            # Negative correlations do not act on entries at zero.
            self.slope = np.where(self.z > 0.0, self.slope, np.maximum(self.slope, 0.0))
        #: The length of each block, and of its correlations.
        self.lengths, self.pulls = _lengths(self.z, self.starts), _lengths(self.slope, self.starts)
        self.active = self.lengths > 0.0
        self.weights = self.columns.weights[self.starts]
        self.error = self._error()

    @property
    def value(self) -> float:
        """The objective at the point."""
        return float(self.weights @ self.lengths)

    def value_of(self, z: Vector) -> float:
        """Return the objective at another point."""
        return float(self.weights @ _lengths(z, self.starts))

    def spread(self, of_blocks: Vector) -> Vector:
        """Return the values of blocks, repeated for each of their rows."""
        return of_blocks if len(self.sizes) == len(self.z) else np.repeat(of_blocks, self.sizes)

    def _error(self) -> float:
        """Return the largest error of the equations of the active blocks in units of alpha."""
        if not self.active.any():
            return 0.0
        factors = self.alpha * self.weights / np.where(self.active, self.lengths, 1.0)
        rest = self.slope - self.spread(factors)[:, None] * self.z
        off = _lengths(rest, self.starts)[self.active] / self.weights[self.active]
        return float(off.max(initial=0.0)) / self.alpha

    @property
    def excess(self) -> Vector:
        """The excess of the correlations of zero blocks over their weight times alpha, at least 0."""
        beyond = self.pulls / self.weights - (1.0 + support_newton.SETTINGS.close) * self.alpha
        return np.where(self.active, 0.0, np.maximum(beyond, 0.0))

    # Steps.

    @property
    def room(self) -> int:
        """The number of blocks that may be added: half as many as are active, fewer near the equations.

        With more blocks than equations the order of elimination would decide which are dropped.
        """
        active = int(np.count_nonzero(self.active))
        equations = self.residual.size * (2 if np.iscomplexobj(self.residual) else 1)
        many = max(10, min(len(self.residual) // 4, _MANY), active // 2)
        return min(many, max(1, (equations - active) // 8))

    def step(self, alpha: float) -> None:
        """Make a Newton step to the required alpha, or to ``alpha`` if that is larger."""
        excess, included = self.excess, self.active.copy()
        entering = np.flatnonzero(excess)
        included[entering[largest(excess[entering], self.room)]] = True
        if not included.any():
            self.alpha = alpha
            return
        face = self._face(included)
        slope, pull = self.slope[face.rows], face.weights[:, None] * face.u
        p, q = face.solve(slope - self.alpha * pull), face.solve(pull)
        root = self._root(face, p, q)
        after = alpha if root is None or root < alpha else min(root, 2.0 * self.alpha)
        self._move(face, p - (after - self.alpha) * q, after)

    def _face(self, blocks: Vector) -> _Face:
        """Factor Newton's matrix for these blocks; the direction of a zero block is that of its slope."""
        free = self.spread(blocks)
        if self.nonneg:
            free = free & ((self.z > 0.0) | (self.slope > 0.0)).any(axis=1)
        rows, sizes = np.flatnonzero(free), self.sizes[blocks]
        if self.nonneg:
            sizes = np.add.reduceat(free, self.starts, dtype=np.intp)[blocks]
        current_deadline().need(8.0 * len(rows) ** 3)
        starts, weights = np.cumsum(sizes) - sizes, self.weights[blocks]
        along = np.where(self.spread(self.active)[:, None], self.z, self.slope)[rows]
        unit = np.where(self.active, self.lengths, self.pulls)[blocks]
        u = along / np.repeat(np.where(unit > 0.0, unit, 1.0), sizes)[:, None]
        gram = submatrix(self.columns.gram, rows)
        stiff = np.maximum.reduceat(gram.diagonal().real, starts)
        stiff = np.where(stiff > 0.0, stiff, 1.0)
        # The length of a new block is estimated: a share of its solution alone.
        grown = np.where(self.active, self.lengths, 0.0)[blocks] * stiff
        grown += GROWTH * np.where(self.active, 0.0, self.pulls - self.alpha * self.weights)[blocks]
        e = np.sqrt(np.maximum(grown / (self.alpha * weights), _LEAST) / stiff)
        solve = newton_solver(gram, u, np.repeat(e, sizes), starts)
        return _Face(rows, starts, sizes, u, np.repeat(weights, sizes), gram, solve)

    def _root(self, face: _Face, p: Vector, q: Vector) -> float | None:
        """Return the required alpha, to the accuracy of the step; None where there is none."""
        slope, by_p, by_q = self.slope[face.rows], face.gram @ p, face.gram @ q
        a, b = _real(q, by_q), _real(slope, q) - _real(p, by_q)
        left = self.length**2 - 2.0 * _real(slope, p) + _real(p, by_p)
        return self.level.alpha(a, b, math.sqrt(max(left, 0.0)), 0.0, at=self.alpha)

    def _move(self, face: _Face, step: Vector, alpha: float) -> None:
        """Backtrack until ``alpha f + |r|^2 / 2`` does not increase; reversed blocks are set to zero."""
        starts, sizes = face.starts, face.sizes
        base, slope, weights = self.z[face.rows], self.slope[face.rows], face.weights[face.starts]

        def tried(share: float) -> tuple[Vector, float]:
            z = base + share * step
            if self.nonneg:
                z = np.maximum(z, 0.0)
            turned = np.add.reduceat((face.u.conj() * z).real.sum(axis=1), starts) <= 0.0
            z[np.repeat(turned, sizes)] = 0.0
            move = z - base
            change = 0.5 * _real(move, face.gram @ move) - _real(slope, move)
            return z, alpha * float(weights @ _lengths(z, starts)) + change

        before = alpha * float(weights @ _lengths(base, starts))
        rounding = 1e-12 * (before + 0.5 * self.length**2)
        share = 1.0
        z, after = tried(share)
        while after > before + rounding and share > _LEAST:
            share *= 0.5
            z, after = tried(share)
        whole = np.zeros_like(self.z)
        whole[face.rows] = z
        self.move_to(whole, alpha)


def _lengths(v: Vector, starts: Vector) -> Vector:
    """Return the lengths of blocks of rows."""
    if v.shape[1] == 1 and len(starts) == len(v):
        return np.abs(v[:, 0])
    squares = (v.real * v.real).sum(axis=1)
    if np.iscomplexobj(v):
        squares += (v.imag * v.imag).sum(axis=1)
    if len(starts) < len(squares):
        squares = np.add.reduceat(squares, starts)
    lengths: Vector = np.sqrt(squares)
    return lengths


def _real(a: Vector, b: Vector) -> float:
    return float(np.vdot(a, b).real)
