"""Newton's method for ``min sum_b w_b |Z_b|  s.t. |A Z - Y| <= sigma`` on a few blocks of rows of ``Z``.

A block is a row of ``Z`` (a complex number, or the coefficients of several right-hand sides) or the rows of a
group. Where no block vanishes, the solution for a multiplier ``alpha`` solves ``A^H (Y - A Z) = alpha w u``
with the directions ``u_b = Z_b / |Z_b|``: smooth equations, for which Newton's method converges fast. Blocks
of one real number have no direction to turn to: there this is Newton's method on signs.

With ``D_b = w_b / |Z_b|`` Newton's matrix is

    H = A^H A + alpha D (I - u u'):

with a large curvature across short blocks. With ``E = 1 / (alpha D)``, ``K = E^1/2 A^H A E^1/2``,
``R = (I + K)^-1`` and ``T = I - R`` its inverse is ``E^1/2 (R + R u (u' T u)^-1 u' R) E^1/2``: a matrix over
the columns, whatever the number of right-hand sides, and one over the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit import support_newton
from lopro.basis_pursuit.columns import ColumnSet
from lopro.basis_pursuit.pieces import Vector, cholesky_routines, largest, submatrix
from lopro.basis_pursuit.support_newton import Level
from lopro.core.deadline import current_deadline
from lopro.errors import StalledError

__all__ = ["BlockNewton", "aimed_residual", "newton_solver"]

#: Of a matrix with eigenvalues between 0 and 1: what is added until it has a factor.
_SHIFTS = (1e-14, 1e-11, 1e-8, 1e-5)
_GROWTH = 0.3  # length of a new block, of what it would grow to alone: with 1, 17.5 products instead of 16.1
_MANY = 200  # new blocks in one step, unless blocks are many already: factors would take gigabytes
#: The root of the rounding: of a block in units of alpha w / |a|^2, shorter ones have no direction; and of a
#: step that does not lower the objective, less of it changes values by rounding alone.
_LEAST = math.sqrt(float(np.finfo(np.float64).eps))


@dataclass(frozen=True, eq=False)
class _Face:
    """Blocks that take part in a step: their columns, directions and weights, with Newton's matrix."""

    rows: Vector  # which columns of A, rows of Z
    starts: Vector  # where blocks begin among these
    sizes: Vector  # and how many they are
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
        What fixes alpha.
    nonneg : bool
        Ask for ``Z >= 0``: entries leave zero where their correlation is positive.

    Examples
    --------
    The complex number of least modulus within 1 of 3 + 4i.

    >>> import numpy as np
    >>> from lopro.basis_pursuit.block_newton import BlockNewton
    >>> from lopro.basis_pursuit.columns import ColumnSet
    >>> from lopro.basis_pursuit.support_newton import Radius
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
        #: Where blocks begin.
        self.starts = np.empty(0, dtype=np.intp)
        #: How many columns each block has.
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
        """Add blocks of so many columns each; they are zero."""
        n = len(self.columns)
        self.starts = np.concatenate([self.starts, n + np.cumsum(sizes) - sizes])
        self.sizes = np.concatenate([self.sizes, sizes])
        self.columns.extend(indices, read, correlations)
        empty = np.zeros((len(indices), self.z.shape[1]), dtype=self.z.dtype)
        self.z = np.concatenate([self.z, empty])
        self._pull()

    def keep(self, blocks: Vector) -> None:
        """Drop all blocks but those marked; they are zero."""
        rows = np.repeat(blocks, self.sizes)
        self.columns.keep(rows)
        self.z, self.sizes = self.z[rows], self.sizes[blocks]
        self.starts = np.cumsum(self.sizes) - self.sizes
        self._pull()

    # The point.

    def move_to(self, z: Vector, alpha: float) -> None:
        """Take another point."""
        self.z, self.alpha = z, alpha
        self.residual = self.columns.y - self.columns.forward(z)
        self.length = float(np.linalg.norm(self.residual))
        self._pull()

    def _pull(self) -> None:
        """Compute correlations, lengths and weights of the blocks anew."""
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
        """Return by how much the equations of the active blocks are off, in units of alpha."""
        if not self.active.any():
            return 0.0
        factors = self.alpha * self.weights / np.where(self.active, self.lengths, 1.0)
        rest = self.slope - self.spread(factors)[:, None] * self.z
        off = _lengths(rest, self.starts)[self.active] / self.weights[self.active]
        return float(off.max(initial=0.0)) / self.alpha

    @property
    def excess(self) -> Vector:
        """By how much blocks that are zero exceed what their weight allows; 0 if they do not."""
        beyond = self.pulls / self.weights - (1.0 + support_newton.SETTINGS.close) * self.alpha
        return np.where(self.active, 0.0, np.maximum(beyond, 0.0))

    # Steps.

    @property
    def room(self) -> int:
        """The number of blocks that may enter: half as many as are active, fewer as equations run out.

        With more blocks than equations the order of elimination would decide which are dropped.
        """
        active = int(np.count_nonzero(self.active))
        equations = self.residual.size * (2 if np.iscomplexobj(self.residual) else 1)
        many = max(10, min(len(self.residual) // 4, _MANY), active // 2)
        return min(many, max(1, (equations - active) // 8))

    def step(self, alpha: float) -> None:
        """Make a Newton step towards the required point; alpha is at least this."""
        excess, taking_part = self.excess, self.active.copy()
        entering = np.flatnonzero(excess)
        taking_part[entering[largest(excess[entering], self.room)]] = True
        if not taking_part.any():
            self.alpha = alpha
            return
        face = self._face(taking_part)
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
        # New blocks have no length yet: a part of what they would grow to alone.
        grown = np.where(self.active, self.lengths, 0.0)[blocks] * stiff
        grown += (
            _GROWTH * np.where(self.active, 0.0, self.pulls - self.alpha * self.weights)[blocks]
        )
        e = np.sqrt(np.maximum(grown / (self.alpha * weights), _LEAST) / stiff)
        solve = newton_solver(gram, u, np.repeat(e, sizes), starts)
        return _Face(rows, starts, sizes, u, np.repeat(weights, sizes), gram, solve)

    def _root(self, face: _Face, p: Vector, q: Vector) -> float | None:
        """Return the required alpha, to the accuracy of the step; None if it does not reach it."""
        slope, by_p, by_q = self.slope[face.rows], face.gram @ p, face.gram @ q
        a, b = _real(q, by_q), _real(slope, q) - _real(p, by_q)
        left = self.length**2 - 2.0 * _real(slope, p) + _real(p, by_p)
        return self.level.alpha(a, b, math.sqrt(max(left, 0.0)), 0.0, at=self.alpha)

    def _move(self, face: _Face, step: Vector, alpha: float) -> None:
        """Go as far as ``alpha f + |r|^2 / 2`` falls; blocks whose direction would reverse become zero."""
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


def aimed_residual(sigma: Any, allowed: Any, alpha: Any, size: Any) -> Any:
    """Return the residual to aim at: inside by what costs a tenth of the tolerance, and by rounding.

    Parameters
    ----------
    sigma, allowed, alpha, size : floats, or arrays of them
        Radius, the gap that is allowed, multiplier, and the length of ``y``.
    """
    spare = np.minimum(0.01, 0.1 * allowed * alpha / sigma**2)
    rounding = 4.0 * float(np.finfo(np.float64).eps) * size
    return np.maximum(0.0, sigma * (1.0 - 1e-12 - spare) - rounding)


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


def newton_solver(gram: Vector, u: Vector, e: Vector, starts: Vector) -> Callable[[Vector], Vector]:
    """Return a function that solves systems with Newton's matrix.

    Parameters
    ----------
    gram : array of shape (n, n)
        ``A^H A`` of the columns of the blocks.
    u : array of shape (n, k)
        Directions, of length 1 over the rows of each block.
    e : array of length n
        The root of ``|Z_b| / (alpha w_b)`` for each row.
    starts : array of int
        Where blocks begin.

    Examples
    --------
    A block of two: along its direction the matrix is that of the columns, across it is 1 more.

    >>> import numpy as np
    >>> from lopro.basis_pursuit.block_newton import newton_solver
    >>> u = np.array([[1.0], [0.0]])
    >>> solve = newton_solver(np.eye(2), u, np.ones(2), np.array([0]))
    >>> solve(np.array([[1.0], [1.0]])).round(6)
    array([[1. ],
           [0.5]])
    """
    n, single = len(e), len(starts) == len(e)
    if single and u.shape[1] == 1 and np.iscomplexobj(gram):
        return _along_and_across(gram, u[:, 0], e)
    K = e[:, None] * gram
    K *= e
    K.flat[:: n + 1] += 1.0
    potrf, potri, potrs = scipy.linalg.get_lapack_funcs(("potrf", "potri", "potrs"), (K,))
    # The transpose, which is the conjugate, is in the order of LAPACK: all is conjugate from here on.
    factor, info = potrf(K.T, lower=True, overwrite_a=True, clean=False)
    if info != 0:
        raise StalledError("the Gram matrix is not positive")
    R, _ = potri(factor, lower=True)
    # u' T u, of which the lower half is right; T = I - R, and u has unit length.
    C = np.multiply(R.T, u.conj() @ u.T).real
    np.negative(C, out=C)
    C.flat[:: n + 1] += (u.real * u.real + u.imag * u.imag).sum(axis=1)
    if not single:
        C = np.triu(C) + np.triu(C, 1).T
        C = np.add.reduceat(np.add.reduceat(C, starts, axis=0), starts, axis=1)
    inner = _definite(C)
    sizes = np.diff(np.append(starts, n))

    def by_R(right: Vector) -> Vector:
        solved: Vector = potrs(factor, right.conj(), lower=True)[0]
        return solved.conj()

    def solve(right: Vector) -> Vector:
        a = by_R(e[:, None] * right)
        along = (u.conj() * a).real.sum(axis=1)
        b = inner(along if single else np.add.reduceat(along, starts))
        both: Vector = e[:, None] * (a + by_R((b if single else b.repeat(sizes))[:, None] * u))
        return both

    return solve


def _along_and_across(gram: Vector, u: Vector, e: Vector) -> Callable[[Vector], Vector]:
    """Return the solver for blocks of complex numbers: real equations along and across each of them.

    This is one factorisation of twice the size, and quicker than two of the original one.
    """
    turned = u.conj()[:, None] * gram
    turned *= u
    n = len(turned)
    H = np.empty((2 * n, 2 * n))
    # The upper half, which is the lower one of the transpose.
    H[:n, :n] = H[n:, n:] = turned.real
    H[:n, n:] = -turned.imag
    H.flat[n * (2 * n + 1) :: 2 * n + 1] += 1.0 / (e * e)  # the stiffness of turning
    solve_both = _definite(H, scale=np.tile(turned.diagonal().real, 2))

    def solve(right: Vector) -> Vector:
        right = u.conj() * right[:, 0]
        found = solve_both(np.concatenate([right.real, right.imag]))
        both: Vector = (u * (found[:n] + 1j * found[n:]))[:, None]
        return both

    return solve


def _definite(C: Vector, scale: float | Vector = 1.0) -> Callable[[Vector], Vector]:
    """Return the solver for a positive definite matrix, or a nearly singular one, with a shift.

    Its upper half counts. Raise if it is far from positive.
    """
    potrf, potrs, *_ = cholesky_routines(C.dtype.char)
    for shift in _SHIFTS:
        C.flat[:: len(C) + 1] += shift * scale
        factor, info = potrf(C.T, lower=True, clean=False)
        if info == 0:
            return lambda right: np.asarray(potrs(factor, right, lower=True)[0])
    raise StalledError("directions of blocks depend on each other")
