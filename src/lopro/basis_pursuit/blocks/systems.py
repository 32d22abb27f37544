"""Systems with Newton's matrix of a sum of lengths of blocks, factored over the columns and the blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.columns.pieces import Vector, cholesky_routines
from lopro.errors import StalledError

__all__ = ["newton_solver"]

#: Shifts that are added, one after the other, to a matrix with eigenvalues between 0 and 1 until it is
#: definite in floating point: from some rounding units to beyond the root of the rounding unit. A tenth and
#: ten times of each change no count of `benchmarks.constants`.
_SHIFTS = (1e-14, 1e-11, 1e-8, 1e-5)


def newton_solver(gram: Vector, u: Vector, e: Vector, starts: Vector) -> Callable[[Vector], Vector]:
    """Return a solver for systems with Newton's matrix.

    Parameters
    ----------
    gram : array of shape (n, n)
        ``A^H A`` of the columns of the blocks.
    u : array of shape (n, k)
        Directions, of length 1 over the rows of each block.
    e : array of length n
        The root of ``|Z_b| / (alpha w_b)`` for each row.
    starts : array of int
        The first row of each block.

    Examples
    --------
    A block of two: along its direction the matrix is the Gram matrix, across it is larger by 1.

    >>> import numpy as np
    >>> from lopro.basis_pursuit.blocks.systems import newton_solver
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
    # The transpose, which is the conjugate, is in the order of LAPACK: from here on all is conjugate.
    factor, info = potrf(K.T, lower=True, overwrite_a=True, clean=False)
    if info != 0:
        raise StalledError("the Gram matrix is not positive")
    R, _ = potri(factor, lower=True)
    # The lower half of u' T u; T = I - R, and u has unit length.
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
    """Return the solver for complex numbers: real equations along and across the direction of each.

    One factorisation of twice the size is faster than two of the original size.
    """
    turned = u.conj()[:, None] * gram
    turned *= u
    n = len(turned)
    H = np.empty((2 * n, 2 * n))
    # The upper half, the lower one of the transpose.
    H[:n, :n] = H[n:, n:] = turned.real
    H[:n, n:] = -turned.imag
    H.flat[n * (2 * n + 1) :: 2 * n + 1] += 1.0 / (e * e)  # the curvature of turning
    solve_both = _definite(H, scale=np.tile(turned.diagonal().real, 2))

    def solve(right: Vector) -> Vector:
        right = u.conj() * right[:, 0]
        found = solve_both(np.concatenate([right.real, right.imag]))
        both: Vector = (u * (found[:n] + 1j * found[n:]))[:, None]
        return both

    return solve


def _definite(C: Vector, scale: float | Vector = 1.0) -> Callable[[Vector], Vector]:
    """Return a solver for a positive definite matrix, or for a nearly singular one with a shift.

    Only its upper half is used. Raise if it is indefinite.
    """
    potrf, potrs, *_ = cholesky_routines(C.dtype.char)
    for shift in _SHIFTS:
        C.flat[:: len(C) + 1] += shift * scale
        factor, info = potrf(C.T, lower=True, clean=False)
        if info == 0:
            return lambda right: np.asarray(potrs(factor, right, lower=True)[0])
    raise StalledError("directions of blocks depend on each other")
