"""Small ill-conditioned problems as cone programs in singular coordinates, solved by Clarabel.

With ``A = U S V^H`` the equations ``V^H x - u = U^H y / s`` have orthonormal rows, however small some
singular values are. What remains of the condition is in ``|s u| <= sigma``, which an interior-point method
tolerates. With the multiplier ``c`` of the equations ``nu = U (c / s)`` is the dual point.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.problem import NORMS, SparseProblem, residual_ball_of
from lopro.constraints.residual_ball import FEW_COLUMNS
from lopro.core.arrays import Array, asarray_like, norm, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector, from_real_vector, to_real_vector
from lopro.engines import ConicProgram, EngineUnavailable
from lopro.errors import MissingCapabilityError, ProjectionError, StalledError
from lopro.functions.cone_program import real_matrix
from lopro.maps import linear_map
from lopro.objectives import Objective
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = ["RotatedProgram", "fits_cones", "rotated_solution", "solve_by_cones"]


@dataclass(frozen=True)
class Settings:
    """Sizes and accuracies of the cone programs."""

    #: The largest number of entries: then some factorisations cost less than the methods before. A tenth
    #: loses the certificate of one instance of `python -m benchmarks.constants basis_pursuit` (60 x 240,
    #: singular values over eight decades).
    entries: float = 1e5
    #: Singular values below this share of the largest are rounding errors: some hundred roundings.
    rank: float = 1e-13
    #: The accuracy requested from Clarabel.
    accuracy: float = 1e-12
    #: The largest residual beyond sigma, in units of ``sigma + |y|``, at which a point is projected.
    near: float = 1e-3


SETTINGS = Settings()
_EPS, _WIDE = (float(np.finfo(kind).eps) for kind in (np.float64, np.longdouble))


def fits_cones(sparse: SparseProblem) -> bool:
    """Whether a problem is small enough for interior-point methods."""
    A, of_blocks = sparse.ball.A, isinstance(sparse.objective, BlockNorm)
    # The matrix of a small operator may be computed, a product for each column.
    on_host = isinstance(sparse.ball.y, np.ndarray)
    readable = A.explicit or (A.shape[1] <= FEW_COLUMNS and on_host and not of_blocks)
    small = A.shape[0] * A.shape[1] <= SETTINGS.entries
    return small and readable and float(sparse.weights.min()) > 0.0


@dataclass(frozen=True)
class RotatedProgram:
    """The cone program of the problem in singular coordinates, by the interior-point method of Clarabel.

    Problem: sums of moduli or lengths of blocks over a `ResidualBall`, up to 1e5 entries. Singular values may
    differ by many orders of magnitude. `WorkingSet` and `MatrixFree` hand over to it.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.rotated_program import RotatedProgram
    >>> A = np.array([[2.0, 1.0], [0.0, 1e-6]])
    >>> result = lopro.bpdn(A, np.array([3.0, 2e-6]), 1e-8, method=RotatedProgram())
    >>> result.success, result.x.round(2)
    (True, array([0.5 , 1.99]))
    """

    card: ClassVar[Card] = Card(
        assumptions="l1 or block norm over a residual ball, optionally x >= 0, up to 1e5 entries",
        oracles="all entries of A; one singular value decomposition, one cone program",
        rate="that of interior points",
        projections="1",
        reference="Clarabel; this library: the cone program in singular coordinates",
    )

    def check(self, problem: Problem) -> None:
        ball, _ = residual_ball_of(problem.constraint)
        fits = ball is not None and isinstance(problem.objective, NORMS)
        if not fits or not fits_cones(SparseProblem.of(problem, problem.start(None))):
            raise MissingCapabilityError(
                f"RotatedProgram needs L1Norm over a ResidualBall with at most {SETTINGS.entries:.0e} "
                f"entries, got {problem.objective!r} over {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        yield from solve_by_cones(bench, SparseProblem.of(bench.problem, x0), x0)


def solve_by_cones(bench: Workbench, sparse: SparseProblem, x: Array) -> Candidates:
    """Propose the solution of an interior-point method, if the problem is small and the method succeeds."""
    if not fits_cones(sparse):
        return
    with suppress(StalledError, ProjectionError, OverflowError, EngineUnavailable):
        candidate = _by_cones(bench, sparse, x)
        if candidate is not None:
            yield candidate


def _by_cones(bench: Workbench, sparse: SparseProblem, like: Array) -> Candidate | None:
    """Return the solution in singular coordinates with the bound that its multipliers prove."""
    ball = sparse.ball
    A, y = _in_double(ball.as_matrix.A.toarray()), _in_double(ball.y)
    found = rotated_solution(A, y, ball.sigma, sparse.objective, sparse.nonneg)
    if found is None:
        return None
    # Dual points are long where singular values are small: their correlations need extended precision.
    wide = np.clongdouble if np.iscomplexobj(found.nu) else np.longdouble
    g = (A.conj().T.astype(wide) @ found.nu.astype(wide)).astype(found.nu.dtype)
    lost = len(y) * _WIDE * found.stretch * norm(found.nu) + _EPS * float(np.abs(g).max())
    growth = lost / (_EPS * found.stretch * norm(found.nu))
    proof = sparse.proved(found.nu, g, found.stretch, growth)
    if proof is None:
        return None
    inequality = sparse.as_given(proof, like)
    x = found.x
    if sparse.nonneg and norm(A @ x - y) > (
        1.0 + SETTINGS.near
    ) * ball.sigma + SETTINGS.near * norm(y):
        return None  # from a distance, the projection on the ball and x >= 0 is slow, and far from optimal
    before = asarray_like(np.maximum(x, 0.0) if sparse.nonneg else x, like)
    return Candidate(bench.project(before), Multiplier(inequality), before=before)


def _in_double(values: Any) -> Vector:
    plain = to_numpy(values)
    return np.asarray(plain, dtype=np.complex128 if np.iscomplexobj(plain) else np.float64)


@dataclass(frozen=True)
class Rotated:
    """A point, a dual point that is feasible up to the solver's accuracy, and the norm of ``A``."""

    x: Vector
    nu: Vector
    stretch: float


def rotated_solution(
    A: Vector, y: Vector, sigma: float, f: Objective, nonneg: bool
) -> Rotated | None:
    """Minimise a norm over ``|A x - y| <= sigma`` in singular coordinates; None if that fails.

    With ``A = U S V^H`` the unknowns are ``x`` and ``u = V^H x - U^H y / s``; the radius bounds ``|s u|``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.rotated_program import rotated_solution
    >>> from lopro.objectives import L1Norm
    >>> A, y = np.array([[2.0, 1.0], [0.0, 1e-9]]), np.array([3.0, 2e-9])
    >>> found = rotated_solution(A, y, 1e-12, L1Norm(), False)
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
    kept = s > SETTINGS.rank * s[0]
    U, s, Vh = U[:, kept], s[kept], Vh[kept]
    seen = U.conj().T @ y
    rest = y - U @ seen
    rest = rest - U @ (U.conj().T @ rest)
    radius = math.sqrt(max(0.0, (sigma - norm(rest)) * (sigma + norm(rest))))
    if not s.size or (radius == 0.0 and sigma > 0.0) or not np.isfinite(seen / s).all():
        return None
    x, c = _in_rotated_units(Vh, seen / s, s, radius, f, nonneg)
    nu = U @ (c / s)
    if not (np.isfinite(x).all() and np.isfinite(nu).all()):
        return None
    if radius > 0.0:  # residual and dual point have proportional components outside the range of A
        nu = nu + (norm(nu) / radius) * rest
    return Rotated(x, nu, float(s[0]))


def _in_rotated_units(
    Vh: Vector, b: Vector, s: Vector, radius: float, f: Objective, nonneg: bool
) -> tuple[Vector, Vector]:
    """Minimise ``f`` over ``|s (V^H x - b)| <= radius``; return also ``c`` with the subgradient ``V c``."""
    zero = np.zeros(Vh.shape[1], dtype=Vh.dtype)
    unit = float(np.abs(b).max()) or 1.0  # of x
    program, size = ConicProgram(to_real_vector(zero).size), to_real_vector(b).size
    rows = (real_matrix(linear_map(Vh), np.iscomplexobj(Vh)), 0)
    right = to_real_vector(b / unit)
    if radius > 0.0:
        u = program.new_variables(size)
        program.add_equations(right, rows, (-scipy.sparse.eye_array(size), u))
        stiff = np.concatenate([s, s])[:size] * (unit / radius)
        ball = scipy.sparse.diags_array(-stiff, offsets=-1, shape=(size + 1, size))
        program.add_second_order(size + 1, np.eye(1, size + 1)[0], (ball, u))
    else:
        program.add_equations(right, rows)
    if nonneg:
        program.add_inequalities(np.zeros(len(zero)), (-scipy.sparse.eye_array(len(zero)), 0))
    for term in f.terms:
        term.add_to_cone_program(program, zero)
    answer = program.solve(SETTINGS.accuracy)
    x = unit * from_real_vector(answer.x[: program.size], zero)
    return x, -from_real_vector(answer.rows[:size], b)
