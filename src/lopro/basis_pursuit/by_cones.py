"""Small problems that are too ill-conditioned for other methods: the dual, in coordinates that are not.

With ``A = U S V'`` and ``nu = U (c / s)`` the dual ``max <y, nu> - sigma |nu|, |A' nu| <= w`` becomes
``max <U'y / s, c> - sigma |c / s|, |V c| <= w``: the columns of ``V`` are orthonormal, however small some
singular values are. What remains of the condition is in the objective, where it does not hurt an
interior-point method: some coordinates matter little. The multipliers of ``|V c| <= w`` are the solution.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro._util.arrays import Array, asarray_like, is_complex, norm, to_numpy, widest
from lopro._util.deadline import current_deadline
from lopro._util.real_vectors import Vector
from lopro.basis_pursuit.by_columns import reads_columns
from lopro.basis_pursuit.problem import SparseProblem
from lopro.cones.by_clarabel import run_clarabel
from lopro.constraints.base import ValidInequality
from lopro.errors import ProjectionError, StalledError
from lopro.maps import LinearMap
from lopro.methods.second_order.interior_point import InteriorPoint
from lopro.protocol import Candidate, Candidates, Multiplier, Workbench

__all__ = ["rotated_dual", "solve_by_cones"]

#: Entries of a matrix for which some factorisations cost less than what has been tried before.
_SMALL = 1e5
#: Columns of an operator.
_COLUMNS = 300
#: Singular values below this share of the largest are rounding.
_RANK = 1e-13
_ACCURACY = 1e-12
_EPS, _WIDE = (float(np.finfo(kind).eps) for kind in (np.float64, np.longdouble))


def solve_by_cones(bench: Workbench, sparse: SparseProblem, x: Array) -> Candidates:
    """Propose what interior-point methods find; nothing where they are too dear or get nowhere."""
    A = sparse.ball.A
    if A.shape[0] * A.shape[1] > _SMALL or not (A.explicit or _may_be_read(A, sparse)):
        return
    if float(sparse.weights.min()) == 0.0:
        return
    with suppress(StalledError, ProjectionError, OverflowError):
        found = _complex if is_complex(sparse.ball.like) else _from_dual
        candidate = found(bench, sparse, x)
        if candidate is not None:
            yield candidate


def _complex(bench: Workbench, sparse: SparseProblem, like: Array) -> Candidate | None:
    """Return what the general interior-point method finds, with the bound that its residual proves."""
    ball = sparse.ball
    if not ball.A.explicit:
        return None
    found = next(iter(InteriorPoint().run(bench, like)), None)
    if found is None:
        return None
    r = ball.y - ball.A.forward(found.taken_at)
    stretch = ball.largest_singular_value.value
    proof = sparse.proved(r, ball.A.adjoint(r), stretch)
    return None if proof is None else Candidate(found.x, Multiplier(proof), before=found.before)


def _may_be_read(A: LinearMap, sparse: SparseProblem) -> bool:
    """Whether all columns of an operator may be asked for: each costs a product."""
    return A.shape[1] <= _COLUMNS and reads_columns(sparse)


def _matrix(A: LinearMap, like: Array) -> Vector:
    if A.explicit:
        return _plain(A.toarray())
    return _plain(A.forward(asarray_like(np.eye(A.shape[1]), like)))


def _from_dual(bench: Workbench, sparse: SparseProblem, like: Array) -> Candidate | None:
    """Return the solution of the rotated dual with the bound that it proves."""
    ball = sparse.ball
    A, y = _matrix(ball.A, like), _plain(ball.y)
    w = _plain(sparse.weights) * np.ones(A.shape[1])
    found = rotated_dual(A, y, ball.sigma, w, sparse.nonneg)
    if found is None:
        return None
    # Dual points are long where singular values are small: their correlations need all digits there are.
    g = A.T.astype(np.longdouble) @ found.nu.astype(np.longdouble)
    lost = len(y) * _WIDE * found.stretch * norm(found.nu) + _EPS * float(np.abs(g).max())
    growth = lost / (_EPS * found.stretch * norm(found.nu))
    proof = sparse.proved(found.nu, g.astype(np.float64), found.stretch, growth)
    if proof is None:
        return None
    dual = proof.dual and tuple(asarray_like(v, widest((ball.y, ball.like))) for v in proof.dual)
    inequality = ValidInequality(asarray_like(proof.direction, like), proof.support, dual)
    before = asarray_like(_inside(A, y, ball.sigma, w, sparse.nonneg, found.x), like)
    return Candidate(bench.project(before), Multiplier(inequality), before=before)


def _inside(A: Vector, y: Vector, sigma: float, w: Vector, nonneg: bool, x: Vector) -> Vector:
    """Return a point that meets the radius, from a smaller one where ``x`` is outside by a little.

    A projection would do that too, but along small singular values, where it costs much of the norm.
    """
    aim = sigma
    for _ in range(3):
        excess = float(np.linalg.norm(A @ x - y)) - sigma
        aim -= 1.5 * max(excess, 0.0)
        if not 0.0 < excess < 1e-3 * sigma or aim <= 0.0:
            break
        found = rotated_dual(A, y, aim, w, nonneg)
        x = x if found is None else found.x
    return np.maximum(x, 0.0) if nonneg else x


def _plain(values: Any) -> Vector:
    return np.asarray(to_numpy(values), dtype=np.float64)


@dataclass(frozen=True)
class Rotated:
    """A point, a dual point that is feasible up to the accuracy of the solver, and the norm of ``A``."""

    x: Vector
    nu: Vector
    stretch: float


def rotated_dual(A: Vector, y: Vector, sigma: float, w: Vector, nonneg: bool) -> Rotated | None:
    """Solve ``min sum w_i |x_i|, |A x - y| <= sigma`` by its dual in singular coordinates; None if it fails.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.by_cones import rotated_dual
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
    U, s, Vh = np.linalg.svd(A, full_matrices=False)
    kept = s > _RANK * s[0]
    U, s, Vh = U[:, kept], s[kept], Vh[kept]
    seen = U.T @ y
    rest = y - U @ seen
    rest = rest - U @ (U.T @ rest)
    radius = math.sqrt(max(0.0, (sigma - norm(rest)) * (sigma + norm(rest))))
    if not s.size or (radius == 0.0 and sigma > 0.0) or not np.isfinite(seen / s).all():
        return None
    c, z = _solved(seen / s, s, Vh.T / w[:, None], radius, norm(y), nonneg)
    x, nu = z / w, U @ (c / s)
    if not (np.isfinite(x).all() and np.isfinite(nu).all()):
        return None
    if radius > 0.0:  # a residual has the same share of what A does not reach
        nu = nu + (norm(nu) / radius) * rest
    return Rotated(x, nu, float(s[0]))


def _solved(
    b: Vector, s: Vector, V: Vector, radius: float, size: float, nonneg: bool
) -> tuple[Vector, Vector]:
    """Return ``c`` that maximises ``<b, c> - radius |c / s|`` over ``|V c| <= 1``, and the multipliers."""
    import clarabel

    n, r = V.shape
    unit = float(np.abs(b).max()) or 1.0
    zeros = np.zeros((n, 1))
    sides = [V] if nonneg else [V, -V]
    rows = [np.hstack([side, zeros]) for side in sides]
    bounds, cones = [np.ones(n * len(sides))], [clarabel.NonnegativeConeT(n * len(sides))]
    cost = -b / unit
    if radius > 0.0:
        # The length of nu is measured in units in which that of y is one.
        rows.append(
            -np.vstack([np.eye(1, r + 1, r), np.eye(r, r + 1) * (size / (s * unit))[:, None]])
        )
        bounds.append(np.zeros(r + 1))
        cones.append(clarabel.SecondOrderConeT(r + 1))
    else:
        rows = [part[:, :r] for part in rows]
    q = np.append(cost, radius / size) if radius > 0.0 else cost
    P = scipy.sparse.csc_matrix((len(q), len(q)))
    G = scipy.sparse.csc_matrix(np.vstack(rows))
    answer = run_clarabel(P, q, G, np.concatenate(bounds), cones, _ACCURACY, homogeneous=False)
    z = answer.z[:n] if nonneg else answer.z[:n] - answer.z[n : 2 * n]
    return answer.x[:r], unit * z
