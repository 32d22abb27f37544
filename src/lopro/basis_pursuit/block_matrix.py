"""Newton's matrix of a sum of lengths of blocks, and how to solve with it.

For ``alpha sum_b w_b |Z_b| + |A Z - Y|^2 / 2`` with directions ``u_b = Z_b / |Z_b|`` it is

    H = A^H A + alpha D (I - u u'),   D_b = w_b / |Z_b|:

turning a short block costs much. With ``E = 1 / (alpha D)``, ``K = E^1/2 A^H A E^1/2``, ``R = (I + K)^-1``
and ``T = I - R`` its inverse is ``E^1/2 (R + R u (u' T u)^-1 u' R) E^1/2``: a matrix over the columns,
whatever the number of right-hand sides, and one over the blocks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.columns import cholesky_routines
from lopro.errors import StalledError

__all__ = ["newton_solver", "solve_in_single"]

Vector: TypeAlias = "np.ndarray[Any, Any]"

#: Of a matrix with eigenvalues between 0 and 1, by precision: what is added until it has a factor.
_SHIFTS = {"d": (1e-14, 1e-11, 1e-8, 1e-5), "f": (1e-7, 1e-6)}
#: Blocks from which on single precision pays, and the error of a solution of it that one correction removes.
#: To factor and to solve twice takes, in single and double precision, 0.3 and 0.2 ms for 100 blocks, 0.6 and
#: 1.2 ms for 150, 4.6 and 8.4 ms for 400.
_LARGE, _ROUGHLY = 128, 0.03


def newton_solver(gram: Vector, u: Vector, e: Vector, starts: Vector) -> Callable[[Vector], Vector]:
    """Return what solves with Newton's matrix.

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
    >>> from lopro.basis_pursuit.block_matrix import newton_solver
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
    # The transpose, which is the conjugate, is in the order LAPACK wants: all is conjugate from here on.
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
    inner = _required(_definite(C))
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
    """Return what solves where blocks are complex numbers: real equations along and across each of them.

    This is one factorisation of twice the size, and quicker than two of the original one. A large one is made
    in single precision, in half of the time, and what it solves is corrected once.
    """
    turned = u.conj()[:, None] * gram
    turned *= u
    stiffness = 1.0 / (e * e)  # of turning
    exactly = functools.cache(lambda: _factored(turned, stiffness, np.float64))
    roughly = _factored(turned, stiffness, np.float32) if len(u) >= _LARGE else None

    def solved(right: Vector) -> Vector:
        if roughly is not None:
            x = roughly(right)
            rest = right - turned @ x - 1j * (stiffness * x.imag)
            if np.linalg.norm(rest) <= _ROUGHLY * np.linalg.norm(right):
                return x + roughly(rest)
        return _required(exactly())(right)

    def solve(right: Vector) -> Vector:
        return (u * solved(u.conj() * right[:, 0]))[:, None]

    return solve


def _factored(
    turned: Vector, stiffness: Vector, dtype: type[np.floating[Any]]
) -> Callable[[Vector], Vector] | None:
    """Return what solves the equations along and across, in this precision; None if they are not definite."""
    n = len(turned)
    H = np.empty((2 * n, 2 * n), dtype=dtype)
    # The upper half, which is the lower one of the transpose.
    H[:n, :n] = H[n:, n:] = turned.real
    H[:n, n:] = -turned.imag
    H.flat[n * (2 * n + 1) :: 2 * n + 1] += stiffness
    solve_both = _definite(H, scale=np.tile(turned.diagonal().real, 2))
    if solve_both is None:
        return None

    def solve(right: Vector) -> Vector:
        # In units of its size: single precision has a short range.
        size = float(np.abs(right).max(initial=0.0)) or 1.0
        parts = np.concatenate([right.real, right.imag]) / size
        found = solve_both(parts.astype(dtype)).astype(np.float64)
        both: Vector = size * (found[:n] + 1j * found[n:])
        return both

    return solve


def _definite(C: Vector, scale: float | Vector = 1.0) -> Callable[[Vector], Vector] | None:
    """Return what solves with a matrix that is positive, or nearly: blocks that depend on others share.

    Its upper half counts. None if it is far from positive.
    """
    potrf, potrs, *_ = cholesky_routines(C.dtype.char)
    for shift in _SHIFTS[C.dtype.char]:
        C.flat[:: len(C) + 1] += shift * scale
        factor, info = potrf(C.T, lower=True, clean=False)
        if info == 0:
            return lambda right: np.asarray(potrs(factor, right, lower=True)[0])
    return None


def _required(solver: Callable[[Vector], Vector] | None) -> Callable[[Vector], Vector]:
    """Return a solver; raise if there is none."""
    if solver is None:
        raise StalledError("directions of blocks depend on each other")
    return solver


def solve_in_single(H: Vector, right: Vector) -> Vector:
    """Return the solutions of systems in single precision; not a number where one is not definite."""
    *_, posv = cholesky_routines(H.dtype.char)
    size = np.abs(right).max(axis=1, keepdims=True)  # single precision has a short range
    size = np.where(size > 0.0, size, 1.0)
    solved = np.full(right.shape, np.nan)
    for i, (matrix, column) in enumerate(zip(H, (right / size).astype(H.dtype), strict=True)):
        # The transpose of a symmetric matrix is in the order LAPACK wants.
        _, x, info = posv(matrix.T, column, overwrite_a=True)
        if info == 0:
            solved[i] = x
    return solved * size
