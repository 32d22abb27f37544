"""Small problems as quadratic programs: where Newton's method fails at degenerate vertices or many signs.

For equations the dual is a linear program, ``max <y, v>  s.t. |A'v| <= w``; for a point of the path its
objective has the term ``- alpha |v|^2 / 2`` as well, and ``alpha v`` is the residual. PIQP solves small ones
in a few milliseconds. Its solution yields the active columns and a strictly complementary dual point; from
these the solution is computed again, directly or by Newton's method, and certified like any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.columns import support_newton
from lopro.basis_pursuit.columns.search import ColumnSearch
from lopro.basis_pursuit.problem import NORMS, SparseForm, SparseProblem, residual_ball_of
from lopro.basis_pursuit.search import newton_rounds
from lopro.core.arrays import Array, asarray_like, norm, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector
from lopro.engines import (
    AnswerStatus,
    EngineUnavailable,
    QuadraticProgram,
    solve_by_piqp,
)
from lopro.errors import MissingCapabilityError
from lopro.maps import NumPyMap, SparseMap
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = [
    "Pair",
    "PursuitPrograms",
    "fits_program",
    "improve_penalised",
    "is_tiny",
    "optimal_pair",
]


@dataclass(frozen=True)
class Settings:
    """Sizes and accuracies of programs.

    Pairs of figures are the products of the 20 instances of `python -m benchmarks.constants basis_pursuit`
    that use programs, with a tenth and with ten times the value.
    """

    #: The largest number of operations of a step of PIQP, rows squared times columns: some ten seconds in all
    #: (1.00, 1.00).
    operations: float = 1e10
    #: The radius relative to ``|y|`` below which the vertex for sigma = 0 has most of the signs (1.02, loses
    #: a certificate).
    tiny: float = 1e-4
    #: The accuracy requested from PIQP (1.00, 1.00); the relative distance within which a correlation counts
    #: as equal to its weight, and a coefficient as zero (1.00, 1.00).
    residual: float = 1e-10
    active: float = 1e-6
    #: Columns with a pivot below this share of the largest count as dependent (1.00, 1.00).
    dependent: float = 1e-9
    #: The maximal number of programs on the way to sigma (none loses a certificate, 1.00), and of rounds of
    #: Newton's method after each (1.00, 1.00).
    programs: int = 6
    rounds_each: int = 3


SETTINGS = Settings()


@dataclass(frozen=True)
class PursuitPrograms:
    """Quadratic and linear programs that identify the active columns, followed by Newton's method.

    Problem: `L1Norm` over a `ResidualBall` with a real matrix that has columns, optionally ``x >= 0``, of
    moderate size. `WorkingSet` hands over to it where its path has many signs or degenerate vertices.

    Parameters
    ----------
    rounds : int
        The maximal number of rounds of Newton's method from the signs of a vertex.

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
        """Solve programs for alpha = 0, or the last alpha of the path, then for alphas that approach sigma.

        The residual is alpha times a dual point that changes little.
        """
        A, sigma = to_numpy(search.A.toarray()).astype(np.float64, copy=False), search.ball.sigma
        at_zero = search.solution is None or is_tiny(search)
        alpha = 0.0 if at_zero or search.solution is None else search.solution.alpha
        for _ in range(SETTINGS.programs):
            pair = optimal_pair(search.sparse, A, alpha)
            if pair is None:
                break
            yield from self._from_pair(bench, search, A, pair)
            if search.done or sigma == 0.0:
                break
            alpha = sigma / float(np.linalg.norm(pair.dual))

    def _from_pair(
        self, bench: Workbench, search: ColumnSearch, A: Vector, pair: Pair
    ) -> Candidates:
        """Propose the solution for the signs of a pair, and those of Newton's method from these signs."""
        assert isinstance(search.sparse, SparseProblem)
        candidate = pair.candidate(search.sparse, A, search.point())
        if candidate is not None:
            yield candidate
        search.resume_with(pair.signs)
        yield from newton_rounds(
            bench, search, self.rounds if pair.alpha == 0.0 else SETTINGS.rounds_each
        )


def is_tiny(search: ColumnSearch) -> bool:
    """Whether the radius is so small relative to ``y`` that the vertex for sigma = 0 is close."""
    return bool(search.ball.sigma <= SETTINGS.tiny * float(np.linalg.norm(search.y)))


def fits_program(sparse: SparseProblem, operations: float = SETTINGS.operations) -> bool:
    """Whether the matrix is small, and has more columns than rows.

    A step of PIQP takes about the square of the rows times the columns; ``operations`` is the limit of that.
    With 1e9 a program takes most of a second.
    """
    rows, columns = sparse.ball.A.shape
    return bool(rows < columns and float(rows) ** 2 * columns <= operations)


@dataclass(frozen=True)
class Pair:
    """A solution for one alpha and a dual solution, up to the accuracy of a solver."""

    x: Vector
    dual: Vector
    #: Signs of the columns whose dual constraint is active, or whose coefficient is not zero.
    signs: Vector
    alpha: float = 0.0

    def candidate(self, sparse: SparseProblem, A: Vector, like: Array) -> Candidate | None:
        """Return the solution for the signs, in the precision of ``like``; None where they are wrong.

        With ``A = Q R`` on the independent columns with a sign it is ``R^-1 (Q'y - a t)``, ``t = R^-T w s``,
        and its residual is ``y - Q Q'y`` plus ``a Q t``: two orthogonal parts, so that the radius determines
        ``a``. Equations hold for ``a = 0``, where these columns do not determine the dual point. That of an
        interior-point method is central, so that a correction which makes it exact on these columns does not
        violate the constraints of the others.
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
        inner = (1.0 - met) * sigma  # so that computed residuals are at most sigma
        room = (inner - norm(rest)) * (inner + norm(rest))
        lengths = [math.sqrt(room) / norm(t)] if room > 0.0 else []
        # Where the signs of the equations are not those at the radius, their solution may suffice.
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

    Where columns are dependent, the signs of Newton's method may cycle; programs have no such difficulty.
    """
    form, (m, d) = search.sparse, search.A.shape
    readable = isinstance(search.A, NumPyMap | SparseMap) and search.level.least > 0.0
    rows = m + d if form.ridge > 0.0 else m
    if not readable or float(rows) * d * min(rows, d) > SETTINGS.operations:
        return
    bench.hand_over(PursuitPrograms(rounds))
    A, y = to_numpy(search.A.toarray()).astype(np.float64, copy=False), search.y
    tall, right = A, y
    if form.ridge > 0.0:  # rows that add ridge |x|^2 to the squared residual
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
    """Return a solution of ``min sum w_i |x_i|  s.t. A x = y`` by PIQP; None where it fails in the time left.

    With ``alpha > 0`` of ``min alpha sum w_i |x_i| + |A x - y|^2 / 2``; ``right`` replaces ``y``.

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
