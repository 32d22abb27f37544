"""Small problems as programs: where Newton's method fails at degenerate vertices or with very many signs.

For equations the dual is a linear program, ``max <y, v>  s.t. |A'v| <= w``; a point of the path has
``- alpha |v|^2 / 2`` in its objective as well, and ``alpha v`` is its residual. PIQP solves small ones in a
few milliseconds. What is taken from it is which columns are active, and a dual point with room to spare. The
pair is computed anew from these, at once or by Newton's method, and checked like any other.

Problems that are too ill-conditioned for these are solved by their dual in other coordinates. With ``A = U S
V^H`` and ``nu = U (c / s)`` the dual ``max <y, nu> - sigma |nu|, |A^H nu| <= w`` becomes
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
from lopro.core.real_vectors import Vector
from lopro.engines import (
    AnswerStatus,
    ConeProgram,
    EngineUnavailable,
    QuadraticProgram,
    solve_by_piqp,
    solve_cones,
)
from lopro.engines.cones import Cone, Nonnegative, SecondOrder
from lopro.errors import MissingCapabilityError, ProjectionError, StalledError
from lopro.maps import NumPyMap, SparseMap
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = [
    "ConicDual",
    "Pair",
    "PursuitPrograms",
    "fits_cones",
    "fits_program",
    "improve_penalised",
    "is_tiny",
    "optimal_pair",
    "rotated_dual",
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
    #: Of y: equations are met up to this. Of sigma: what residuals aim at; rounding makes them no longer.
    met: float = 1e-12
    inside: float = 1.0 - 1e-12
    #: Programs on the way to sigma, and rounds of Newton's method after each.
    programs: int = 6
    rounds_each: int = 3
    #: Conic dual: entries of a matrix for which some factorisations cost less than what was tried before.
    entries: float = 1e5
    #: Conic dual: singular values below this share of the largest are rounding; what Clarabel is asked for.
    rank: float = 1e-13
    accuracy: float = 1e-12
    #: Conic dual, of the radius: what a point may be outside by.
    near: float = 1e-3


SETTINGS = Settings()
_EPS, _WIDE = (float(np.finfo(kind).eps) for kind in (np.float64, np.longdouble))


@dataclass(frozen=True)
class PursuitPrograms:
    """Quadratic and linear programs that tell which columns are active; Newton's method does the rest.

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
        search.ask(search.begin(x0, None))
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
        """Propose the point that the signs of a pair tell, and those of Newton's method from them."""
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
        """Return the solution that the signs tell, as precise as ``like``; None where they are wrong.

        Columns in use that are independent tell it. With ``A = Q R`` on them it is ``R^-1 (Q'y - a t)`` with
        ``t = R^-T w s``, and its residual is what ``Q`` leaves of ``y`` plus ``a Q t``: two parts at a right
        angle, so that the radius tells ``a``. Equations are met where ``a`` is zero, and these columns alone
        do not tell their dual point. That of an interior point method is the centre of all of them, so what
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
        room = (SETTINGS.inside * sigma - norm(rest)) * (SETTINGS.inside * sigma + norm(rest))
        lengths = [math.sqrt(room) / norm(t)] if room > 0.0 else []
        # The solution of the equations may do where their signs are not those at the radius.
        for a in [*lengths, 0.0] if self.alpha == 0.0 else lengths:
            x = np.zeros(A.shape[1])
            x[used] = scipy.linalg.solve_triangular(R, inside - a * t)
            if (x * self.signs < 0.0).any() or norm(A @ x - y) > max(sigma, SETTINGS.met * norm(y)):
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


# The conic dual.


def fits_cones(sparse: SparseProblem) -> bool:
    """Whether a problem is small enough for interior-point methods, and of the form below."""
    A, of_blocks = sparse.ball.A, isinstance(sparse.objective, BlockNorm)
    # All columns of a small operator may be asked for: each costs a product.
    on_host = isinstance(sparse.ball.y, np.ndarray)
    readable = A.explicit or (A.shape[1] <= FEW_COLUMNS and on_host and not of_blocks)
    if A.shape[0] * A.shape[1] > SETTINGS.entries or not readable:
        return False
    if sparse.nonneg and of_blocks:
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
    >>> from lopro.basis_pursuit.programs import ConicDual
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
                f"ConicDual needs L1Norm over a ResidualBall with at most {SETTINGS.entries:.0e} entries, "
                f"got {problem.objective!r} over {problem.constraint!r}"
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
    if sparse.nonneg and norm(A @ x - y) > (
        1.0 + SETTINGS.near
    ) * ball.sigma + SETTINGS.near * norm(y):
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
    >>> from lopro.basis_pursuit.programs import rotated_dual
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
    kept = s > SETTINGS.rank * s[0]
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
    answer = solve_cones(program, SETTINGS.accuracy, scaled=False)
    c = answer.x[:r]
    if pairs:
        c = c[: r // 2] + 1j * c[r // 2 :]
    return c, unit * limits.read(answer.rows[:count])
