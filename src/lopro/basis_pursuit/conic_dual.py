"""Small problems that are too ill-conditioned for other methods: the dual, in coordinates that are not.

With ``A = U S V^H`` and ``nu = U (c / s)`` the dual ``max <y, nu> - sigma |nu|, |A^H nu| <= w`` becomes
``max <U^H y / s, c> - sigma |c / s|, |V c| <= w``: the columns of ``V`` are orthonormal, however small some
singular values are. What remains of the condition is in the objective, where it does not hurt an
interior-point method: some coordinates matter little. The multipliers of ``|V c| <= w`` are the solution.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.blocks import BlockNorm
from lopro.basis_pursuit.problem import NORMS, SparseProblem, residual_ball_of
from lopro.constraints.residual_ball import FEW_COLUMNS
from lopro.core.arrays import Array, asarray_like, norm, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.engines import ConeProgram, EngineUnavailable, solve_cones
from lopro.engines.cones import Cone, Nonnegative, SecondOrder
from lopro.errors import MissingCapabilityError, ProjectionError, StalledError
from lopro.maps import LinearMap
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = ["ConicDual", "fits_cones", "rotated_dual", "solve_by_cones"]

#: Entries of a matrix for which some factorisations cost less than what has been tried before.
_SMALL = 1e5
#: Singular values below this share of the largest are rounding.
_RANK = 1e-13
_ACCURACY = 1e-12
#: Of the radius: what a point may be outside by.
_NEAR = 1e-3
_EPS, _WIDE = (float(np.finfo(kind).eps) for kind in (np.float64, np.longdouble))


def fits_cones(sparse: SparseProblem) -> bool:
    """Whether a problem is small enough for interior-point methods, and of the form below."""
    A = sparse.ball.A
    if A.shape[0] * A.shape[1] > _SMALL or not (A.explicit or _may_be_read(A, sparse)):
        return False
    if sparse.nonneg and isinstance(sparse.objective, BlockNorm):
        return False  # the dual is not one of lengths alone
    return float(sparse.weights.min()) > 0.0


@dataclass(frozen=True)
class ConicDual:
    """The dual in singular coordinates, by the interior-point method of Clarabel.

    Problem: sums of moduli or lengths of blocks over a `ResidualBall`, up to 1e5 entries. It does not mind
    singular values that differ by many orders of magnitude; `WorkingSet` and `MatrixFree` hand over to it.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.conic_dual import ConicDual
    >>> A = np.array([[2.0, 1.0], [0.0, 1e-6]])
    >>> result = lopro.bpdn(A, np.array([3.0, 2e-6]), 1e-8, method=ConicDual())
    >>> result.success, result.x.round(2)
    (True, array([0.5 , 1.99]))
    """

    card: ClassVar[Card] = Card(
        assumptions="l1 or block norm over a residual ball, optionally x >= 0, up to 1e5 entries",
        oracles="all entries of A; one singular value decomposition, one conic program",
        rate="that of interior points",
        projections="1",
        reference="Clarabel; this library: the dual in singular coordinates",
    )

    def check(self, problem: Problem) -> None:
        ball, _ = residual_ball_of(problem.constraint)
        fits = ball is not None and isinstance(problem.objective, NORMS)
        if not fits or not fits_cones(SparseProblem.of(problem, problem.start(None))):
            raise MissingCapabilityError(
                f"ConicDual needs L1Norm over a ResidualBall with at most {_SMALL:.0e} entries, got "
                f"{problem.objective!r} over {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        yield from solve_by_cones(bench, SparseProblem.of(bench.problem, x0), x0)


def solve_by_cones(bench: Workbench, sparse: SparseProblem, x: Array) -> Candidates:
    """Propose what an interior-point method finds; nothing where the problem is too large or it fails."""
    if not fits_cones(sparse):
        return
    with suppress(StalledError, ProjectionError, OverflowError, EngineUnavailable):
        candidate = _from_dual(bench, sparse, x)
        if candidate is not None:
            yield candidate


def _may_be_read(A: LinearMap, sparse: SparseProblem) -> bool:
    """Whether all columns of an operator may be asked for: each costs a product."""
    of_blocks = isinstance(sparse.objective, BlockNorm)
    return A.shape[1] <= FEW_COLUMNS and not of_blocks and isinstance(sparse.ball.y, np.ndarray)


def _from_dual(bench: Workbench, sparse: SparseProblem, like: Array) -> Candidate | None:
    """Return the solution of the rotated dual with the bound that it proves."""
    ball, labels = sparse.ball, getattr(sparse.objective, "labels", None)
    A, y = _plain(ball.as_matrix.A.toarray()), _plain(ball.y)
    w = np.asarray(to_numpy(sparse.weights), dtype=np.float64) * np.ones(A.shape[1])
    found = rotated_dual(A, y, ball.sigma, w, sparse.nonneg, labels)
    if found is None:
        return None
    # Dual points are long where singular values are small: their correlations need all digits there are.
    wide = np.clongdouble if np.iscomplexobj(found.nu) else np.longdouble
    g = (A.conj().T.astype(wide) @ found.nu.astype(wide)).astype(found.nu.dtype)
    lost = len(y) * _WIDE * found.stretch * norm(found.nu) + _EPS * float(np.abs(g).max())
    growth = lost / (_EPS * found.stretch * norm(found.nu))
    proof = sparse.proved(found.nu, g, found.stretch, growth)
    if proof is None:
        return None
    inequality = sparse.as_given(proof, like)
    x = found.x
    if sparse.nonneg and norm(A @ x - y) > (1.0 + _NEAR) * ball.sigma + _NEAR * norm(y):
        return None  # a projection on ball and signs takes long from afar, and ends nowhere near
    before = asarray_like(np.maximum(x, 0.0) if sparse.nonneg else x, like)
    return Candidate(bench.project(before), Multiplier(inequality), before=before)


def _plain(values: Any) -> Vector:
    plain = to_numpy(values)
    return np.asarray(plain, dtype=np.complex128 if np.iscomplexobj(plain) else np.float64)


@dataclass(frozen=True)
class Rotated:
    """A point, a dual point that is feasible up to the accuracy of the solver, and the norm of ``A``."""

    x: Vector
    nu: Vector
    stretch: float


def rotated_dual(
    A: Vector, y: Vector, sigma: float, w: Vector, nonneg: bool, labels: Vector | None = None
) -> Rotated | None:
    """Solve ``min sum w_i |x_i|, |A x - y| <= sigma`` by its dual in singular coordinates; None if it fails.

    Real or complex. With ``labels`` the lengths of blocks are summed, which are not ``nonneg``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.conic_dual import rotated_dual
    >>> A, y = np.array([[2.0, 1.0], [0.0, 1e-9]]), np.array([3.0, 2e-9])
    >>> found = rotated_dual(A, y, 1e-12, np.ones(2), False)
    >>> (
    ...     found.x.round(2),
    ...     round(float(found.nu @ y), 4),
    ... )  # the second row alone makes the second entry 2
    (array([0.5, 2. ]), 2.5)
    """
    m, n = A.shape
    current_deadline().need(20.0 * m * n * min(m, n))
    # Real equations of complex numbers have complex multipliers, too.
    U, s, Vh = np.linalg.svd(A.astype(np.result_type(A, y)), full_matrices=False)
    kept = s > _RANK * s[0]
    U, s, Vh = U[:, kept], s[kept], Vh[kept]
    seen = U.conj().T @ y
    rest = y - U @ seen
    rest = rest - U @ (U.conj().T @ rest)
    radius = math.sqrt(max(0.0, (sigma - norm(rest)) * (sigma + norm(rest))))
    if not s.size or (radius == 0.0 and sigma > 0.0) or not np.isfinite(seen / s).all():
        return None
    of_signs = labels is None and not np.iscomplexobj(Vh)
    V = Vh.conj().T / w[:, None]
    limits = _signs(V, nonneg) if of_signs else _lengths(V, labels)
    c, z = _solved(seen / s, s, limits, radius, norm(y))
    x, nu = z / w, U @ (c / s)
    if not (np.isfinite(x).all() and np.isfinite(nu).all()):
        return None
    if radius > 0.0:  # a residual has the same share of what A does not reach
        nu = nu + (norm(nu) / radius) * rest
    return Rotated(x, nu, float(s[0]))


@dataclass(frozen=True, eq=False)
class _Limits:
    """``|V c| <= 1`` as ``bounds - rows c`` in cones, ``c`` real or as pairs, and how to read multipliers."""

    rows: Vector
    bounds: Vector
    cones: list[Cone]
    read: Callable[[Vector], Vector]


def _signs(V: Vector, nonneg: bool) -> _Limits:
    """Return the limits of single real coefficients: one row each, or two."""
    n = len(V)
    if nonneg:
        return _Limits(V, np.ones(n), [Nonnegative(n)], lambda z: z)
    cones: list[Cone] = [Nonnegative(2 * n)]
    return _Limits(np.vstack([V, -V]), np.ones(2 * n), cones, lambda z: z[:n] - z[n:])


def _lengths(V: Vector, labels: Vector | None) -> _Limits:
    """Return the limits of blocks, real or complex: a cone of second order for each."""
    n = len(V)
    rows, units = V[:, None, :], np.ones(1)
    if np.iscomplexobj(V):  # real and imaginary parts side by side, in rows and in unknowns
        rows = np.stack([np.hstack([V.real, -V.imag]), np.hstack([V.imag, V.real])], axis=1)
        units = np.array([1.0, 1.0j])
    block_of = np.arange(n) if labels is None else np.asarray(labels, dtype=np.intp)
    sizes = 1 + len(units) * np.bincount(block_of)
    heads = np.cumsum(sizes) - sizes
    order = np.argsort(block_of, kind="stable")
    places = np.setdiff1d(np.arange(sizes.sum()), heads).reshape(n, len(units))
    all_rows, bounds = np.zeros((sizes.sum(), rows.shape[2])), np.zeros(sizes.sum())
    all_rows[places] = rows[order]
    bounds[heads] = 1.0

    def read(z: Vector) -> Vector:
        x = np.empty(n, dtype=V.dtype)
        x[order] = z[places] @ units
        return x

    return _Limits(all_rows, bounds, [SecondOrder(int(k)) for k in sizes], read)


def _solved(
    b: Vector, s: Vector, limits: _Limits, radius: float, size: float
) -> tuple[Vector, Vector]:
    """Return ``c`` that maximises ``<b, c> - radius |c / s|`` within the limits, and their multipliers."""
    pairs = np.iscomplexobj(b)
    if pairs:
        b, s = np.concatenate([b.real, b.imag]), np.concatenate([s, s])
    count, r = limits.rows.shape
    unit = float(np.abs(b).max()) or 1.0
    rows, bounds, cones, q = [limits.rows], [limits.bounds], list(limits.cones), -b / unit
    if radius > 0.0:
        # The length of nu is measured in units in which that of y is one.
        lengths = np.vstack([np.eye(1, r + 1, r), np.eye(r, r + 1) * (size / (s * unit))[:, None]])
        rows = [np.hstack([limits.rows, np.zeros((count, 1))]), -lengths]
        bounds.append(np.zeros(r + 1))
        cones.append(SecondOrder(r + 1))
        q = np.append(q, radius / size)
    P = scipy.sparse.csc_matrix((len(q), len(q)))
    G = scipy.sparse.csc_matrix(np.vstack(rows))
    program = ConeProgram(P, q, G, np.concatenate(bounds), cones)
    answer = solve_cones(program, _ACCURACY, scaled=False)
    c = answer.x[:r]
    if pairs:
        c = c[: r // 2] + 1j * c[r // 2 :]
    return c, unit * limits.read(answer.rows[:count])
