"""Small problems as programs: where Newton's method fails at degenerate vertices or with very many signs.

For equations the dual is a linear program, ``max <y, v>  s.t. |A'v| <= w``; a point of the path has
``- alpha |v|^2 / 2`` in its objective as well, and ``alpha v`` is its residual. PIQP solves small ones in a
few milliseconds. What is taken from it is which columns are active, and a dual point with room to spare. The
pair is computed anew from these, at once or by Newton's method, and checked like any other.

Problems that are too ill-conditioned for these are cone programs in other coordinates. With ``A = U S V^H``
the equations ``V^H x - u = U^H y / s`` have orthonormal rows, however small some singular values are. What
remains of the condition is in ``|s u| <= sigma``, where it does not hurt an interior-point method: some
coordinates matter little. With the multiplier ``c`` of the equations ``nu = U (c / s)`` is the dual point.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit import support_newton
from lopro.basis_pursuit.column_search import ColumnSearch
from lopro.basis_pursuit.problem import (
    NORMS,
    BlockNorm,
    SparseForm,
    SparseProblem,
    residual_ball_of,
)
from lopro.basis_pursuit.search import newton_rounds
from lopro.constraints.residual_ball import FEW_COLUMNS
from lopro.core.arrays import Array, asarray_like, norm, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector, from_real_vector, to_real_vector
from lopro.engines import (
    AnswerStatus,
    ConicProgram,
    EngineUnavailable,
    QuadraticProgram,
    solve_by_piqp,
)
from lopro.errors import MissingCapabilityError, ProjectionError, StalledError
from lopro.functions.cone_program import real_matrix
from lopro.maps import NumPyMap, SparseMap, linear_map
from lopro.objectives import Objective
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = [
    "Pair",
    "PursuitPrograms",
    "RotatedProgram",
    "fits_cones",
    "fits_program",
    "improve_penalised",
    "is_tiny",
    "optimal_pair",
    "rotated_solution",
    "solve_by_cones",
]


@dataclass(frozen=True)
class Settings:
    """Sizes and accuracies of programs."""

    #: Rows squared times columns: some ten seconds of PIQP.
    operations: float = 1e10
    #: sigma relative to y: the vertex for sigma = 0 has most of the signs.
    tiny: float = 1e-4
    #: The accuracy requested from PIQP; a correlation this close to its weight counts as equal to it.
    residual: float = 1e-10
    active: float = 1e-6
    #: Of the largest pivot: columns with smaller ones depend on others.
    dependent: float = 1e-9
    #: Programs on the way to sigma, and rounds of Newton's method after each.
    programs: int = 6
    rounds_each: int = 3
    #: Cone program: entries of a matrix for which some factorisations cost less than the methods before.
    entries: float = 1e5
    #: Cone program: singular values below this share of the largest are rounding; Clarabel's tolerance.
    rank: float = 1e-13
    accuracy: float = 1e-12
    #: Cone program, of the radius: what a point may be outside by.
    near: float = 1e-3


SETTINGS = Settings()
_EPS, _WIDE = (float(np.finfo(kind).eps) for kind in (np.float64, np.longdouble))


@dataclass(frozen=True)
class PursuitPrograms:
    """Quadratic and linear programs that show which columns are active; Newton's method does the rest.

    Problem: `L1Norm` over a `ResidualBall` with a real matrix that has columns, optionally ``x >= 0``, of
    moderate size. `WorkingSet` hands over to it where its path has many signs or degenerate vertices.

    Parameters
    ----------
    rounds : int
        Rounds of Newton's method from the signs of a vertex.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.programs import PursuitPrograms
    >>> A = np.random.default_rng(0).standard_normal((10, 40))
    >>> result = lopro.bpdn(A, A[:, 0], 0.0, method=PursuitPrograms())
    >>> result.success, result.support
    (True, array([0]))
    """

    card: ClassVar[Card] = Card(
        assumptions="l1 norm over a residual ball, optionally x >= 0, a matrix of moderate size",
        oracles="all entries of A; quadratic and linear programs of its size",
        rate="finite where the signs of the program are right",
        projections="0 where Newton's method succeeds",
        reference="PIQP; this library: semismooth Newton from their signs",
    )

    rounds: int = 25

    def check(self, problem: Problem) -> None:
        ball, _ = residual_ball_of(problem.constraint)
        fits = ball is not None and ball.A.has_columns and isinstance(problem.objective, NORMS)
        if not fits or not fits_program(SparseProblem.of(problem, problem.start(None))):
            raise MissingCapabilityError(
                "PursuitPrograms needs L1Norm over a ResidualBall with a matrix of moderate size that has "
                f"columns, got {problem.objective!r} over {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        search = ColumnSearch(bench.problem, bench.target, bench.tick)
        search.serve(search.begin(x0, None))
        yield from self.improve(bench, search)

    def improve(self, bench: Workbench, search: ColumnSearch) -> Candidates:
        """Solve programs at sigma = 0, or where the path has come to, then nearer and nearer to the radius.

        The residual is alpha times a dual point that changes little.
        """
        A, sigma = to_numpy(search.A.toarray()).astype(np.float64, copy=False), search.ball.sigma
        at_zero = search.solution is None or is_tiny(search)
        alpha = 0.0 if at_zero or search.solution is None else search.solution.alpha
        for _ in range(SETTINGS.programs):
            pair = optimal_pair(search.pursuit, A, alpha)
            if pair is None:
                break
            yield from self._from_pair(bench, search, A, pair)
            if search.done or sigma == 0.0:
                break
            alpha = sigma / float(np.linalg.norm(pair.dual))

    def _from_pair(
        self, bench: Workbench, search: ColumnSearch, A: Vector, pair: Pair
    ) -> Candidates:
        """Propose the point that the signs of a pair determine, and those of Newton's method from them."""
        candidate = pair.candidate(search.pursuit, A, search.point())
        if candidate is not None:
            yield candidate
        search.resume_with(pair.signs)
        yield from newton_rounds(
            bench, search, self.rounds if pair.alpha == 0.0 else SETTINGS.rounds_each
        )


def is_tiny(search: ColumnSearch) -> bool:
    """Whether the radius is so small beside ``y`` that the vertex for sigma = 0 is near."""
    return bool(search.ball.sigma <= SETTINGS.tiny * float(np.linalg.norm(search.y)))


def fits_program(sparse: SparseProblem, operations: float = SETTINGS.operations) -> bool:
    """Whether the matrix is small, and wide enough for the equations to have more than one solution.

    A step of PIQP takes about the square of the rows times the columns; ``operations`` is the limit of that.
    1e9 are most of a second.
    """
    rows, columns = sparse.ball.A.shape
    return bool(rows < columns and float(rows) ** 2 * columns <= operations)


@dataclass(frozen=True)
class Pair:
    """A solution for one parameter of the path and one of its dual, up to the accuracy of a solver."""

    x: Vector
    dual: Vector
    #: Signs of the columns that are active in the dual point, or in use.
    signs: Vector
    alpha: float = 0.0

    def candidate(self, sparse: SparseProblem, A: Vector, like: Array) -> Candidate | None:
        """Return the solution that the signs determine, as precise as ``like``; None where they are wrong.

        Independent columns in use determine it. With ``A = Q R`` on them it is ``R^-1 (Q'y - a t)`` with
        ``t = R^-T w s``, and its residual is what ``Q`` leaves of ``y`` plus ``a Q t``: two parts at a right
        angle, so that the radius gives ``a``. Equations are met where ``a`` is zero, and these columns alone
        do not give their dual point. That of an interior point method is the centre of all of them, so what
        makes it exact on these columns leaves room on the others.
        """
        y, used = to_numpy(sparse.ball.y).astype(np.float64), np.flatnonzero(self.signs)
        if not 0 < used.size <= len(y):
            return None
        Q, R = np.linalg.qr(A[:, used])
        pivots = np.abs(R.diagonal())
        if pivots.min() <= SETTINGS.dependent * pivots.max():
            return None
        t = scipy.linalg.solve_triangular(R, (sparse.weights * self.signs)[used], trans="T")
        inside = Q.T @ y
        rest, sigma = y - Q @ inside, sparse.ball.sigma
        met = support_newton.SETTINGS.met
        inner = (1.0 - met) * sigma  # rounding makes residuals no longer than sigma
        room = (inner - norm(rest)) * (inner + norm(rest))
        lengths = [math.sqrt(room) / norm(t)] if room > 0.0 else []
        # The solution of the equations may do where their signs are not those at the radius.
        for a in [*lengths, 0.0] if self.alpha == 0.0 else lengths:
            x = np.zeros(A.shape[1])
            x[used] = scipy.linalg.solve_triangular(R, inside - a * t)
            if (x * self.signs < 0.0).any() or norm(A @ x - y) > max(sigma, met * norm(y)):
                continue
            nu = Q @ t + (rest / a if a > 0.0 else self.dual - Q @ (Q.T @ self.dual))
            proof = sparse.proved(nu, A.T @ nu, norm(A))
            if proof is not None:
                evidence = Multiplier(sparse.as_given(proof, like))
                return Candidate(asarray_like(x, like), evidence)
        return None


def improve_penalised(bench: Workbench, search: ColumnSearch, rounds: int) -> Candidates:
    """Propose the solution of the program for a penalty, and those of Newton's method from its signs.

    Where columns are dependent, the signs of Newton's method may cycle; a program does not mind.
    """
    form, (m, d) = search.sparse, search.A.shape
    readable = isinstance(search.A, NumPyMap | SparseMap) and search.level.least > 0.0
    rows = m + d if form.ridge > 0.0 else m
    if not readable or float(rows) * d * min(rows, d) > SETTINGS.operations:
        return
    bench.hand_over(PursuitPrograms(rounds))
    A, y = to_numpy(search.A.toarray()).astype(np.float64, copy=False), search.y
    tall, right = A, y
    if form.ridge > 0.0:  # rows that make |x|^2 a part of the residual
        tall = np.vstack([A, math.sqrt(form.ridge) * np.eye(d)])
        right = np.concatenate([y, np.zeros(d)])
    Q, R = np.linalg.qr(tall) if len(right) > d else (np.eye(m), A)
    pair = optimal_pair(form, R, search.level.least, Q.T @ right)
    if pair is None:
        return
    x = np.where(np.abs(pair.x) > SETTINGS.active * np.abs(pair.x).max(initial=0.0), pair.x, 0.0)
    r = y - A @ (np.maximum(x, 0.0) if form.nonneg else x)
    search.propose(np.maximum(x, 0.0) if form.nonneg else x, r)
    yield search.candidate(bench)
    search.resume_with(np.sign(x))
    yield from newton_rounds(bench, search, rounds)


def optimal_pair(
    sparse: SparseForm, A: Vector, alpha: float = 0.0, right: Vector | None = None
) -> Pair | None:
    """Return a solution of ``min sum w_i |x_i|  s.t. A x = y`` by PIQP; None where it finds none in time.

    With ``alpha``, of ``min alpha sum w_i |x_i| + |A x - y|^2 / 2``; with another right-hand side, for that.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.programs import optimal_pair
    >>> from lopro.basis_pursuit.application import bpdn_problem
    >>> from lopro.basis_pursuit.problem import SparseProblem
    >>> A = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]])
    >>> sparse = SparseProblem.of(bpdn_problem(A, np.ones(2), 0.0), np.zeros(3))
    >>> optimal_pair(sparse, A).signs
    array([0., 0., 1.])
    """
    y = to_numpy(sparse.y).astype(np.float64) if right is None else right
    w = np.asarray(sparse.weights, dtype=np.float64)
    unit, size, heavy = (float(np.abs(v).max()) for v in (A, y, w))
    if not (unit > 0.0 and size > 0.0):
        return None
    M, y, w = np.asarray(A, dtype=np.float64) / unit, y / size, w / heavy
    deadline = current_deadline()
    deadline.check()
    try:
        found = _by_piqp(M, y, w, sparse.nonneg, deadline.left, alpha=alpha * heavy / (unit * size))
    except EngineUnavailable:
        return None
    if found is None:
        return None
    x, dual = found
    pulled = (M.T @ dual) / w
    active = (pulled if sparse.nonneg else np.abs(pulled)) >= 1.0 - SETTINGS.active
    in_use = np.abs(x) > SETTINGS.active * np.abs(x).max(initial=0.0)
    signs = np.where(active, np.sign(pulled), np.sign(np.where(in_use, x, 0.0)))
    return Pair(x * (size / unit), dual * (heavy / unit), signs, alpha)


def _by_piqp(
    M: Vector, y: Vector, w: Vector, nonneg: bool, left: float, alpha: float = 0.0
) -> tuple[Vector, Vector] | None:
    """Solve the dual ``max <y, v> - alpha |v|^2 / 2  s.t. |M'v| <= w``; its multipliers are the solution."""
    lower = np.full(len(w), -np.inf) if nonneg else -w
    square = alpha * np.eye(len(y)) if alpha > 0.0 else None
    program = QuadraticProgram.of(square, -y, A=M.T, lower=lower, upper=w)
    answer = solve_by_piqp(program, SETTINGS.residual, left)
    if answer.status is not AnswerStatus.SOLVED or not answer.finite:
        return None
    return answer.rows, answer.x


# Singular coordinates.


def fits_cones(sparse: SparseProblem) -> bool:
    """Whether a problem is small enough for interior-point methods."""
    A, of_blocks = sparse.ball.A, isinstance(sparse.objective, BlockNorm)
    # All columns of a small operator may be computed: each costs a product.
    on_host = isinstance(sparse.ball.y, np.ndarray)
    readable = A.explicit or (A.shape[1] <= FEW_COLUMNS and on_host and not of_blocks)
    small = A.shape[0] * A.shape[1] <= SETTINGS.entries
    return small and readable and float(sparse.weights.min()) > 0.0


@dataclass(frozen=True)
class RotatedProgram:
    """The cone program of the problem in singular coordinates, by the interior-point method of Clarabel.

    Problem: sums of moduli or lengths of blocks over a `ResidualBall`, up to 1e5 entries. It does not mind
    singular values that differ by many orders of magnitude; `WorkingSet` and `MatrixFree` hand over to it.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.programs import RotatedProgram
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
    """Propose what an interior-point method finds; nothing where the problem is too large or it fails."""
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
    if sparse.nonneg and norm(A @ x - y) > (
        1.0 + SETTINGS.near
    ) * ball.sigma + SETTINGS.near * norm(y):
        return None  # a projection on ball and signs takes long from afar, and ends nowhere near
    before = asarray_like(np.maximum(x, 0.0) if sparse.nonneg else x, like)
    return Candidate(bench.project(before), Multiplier(inequality), before=before)


def _in_double(values: Any) -> Vector:
    plain = to_numpy(values)
    return np.asarray(plain, dtype=np.complex128 if np.iscomplexobj(plain) else np.float64)


@dataclass(frozen=True)
class Rotated:
    """A point, a dual point that is feasible up to the accuracy of the solver, and the norm of ``A``."""

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
    >>> from lopro.basis_pursuit.programs import rotated_solution
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
    if radius > 0.0:  # a residual has the same share of what A does not reach
        nu = nu + (norm(nu) / radius) * rest
    return Rotated(x, nu, float(s[0]))


def _in_rotated_units(
    Vh: Vector, b: Vector, s: Vector, radius: float, f: Objective, nonneg: bool
) -> tuple[Vector, Vector]:
    """Minimise ``f`` over ``|s (V^H x - b)| <= radius``; return also ``c``, of which ``V c`` is a slope."""
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
