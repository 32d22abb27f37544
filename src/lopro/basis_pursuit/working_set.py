"""Basis pursuit denoising and the LASSO on a growing set of columns: few products with the whole matrix.

The problem is solved on a set of columns. One product ``A'r`` with all columns shows the missing ones and
proves a lower bound of the optimum; solutions with a few hundred nonzeros take about ten such products.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from lopro.basis_pursuit.blocks.search import BlockSearch
from lopro.basis_pursuit.columns.checkpoint import begin
from lopro.basis_pursuit.columns.exact_path import fits_path, signs_at_radius
from lopro.basis_pursuit.columns.pool import Pool
from lopro.basis_pursuit.columns.pooled_search import PooledSearch
from lopro.basis_pursuit.columns.search import ColumnSearch
from lopro.basis_pursuit.one_nonzero import one_nonzero
from lopro.basis_pursuit.operators import matrix_free
from lopro.basis_pursuit.operators.matrix_free import MatrixFree
from lopro.basis_pursuit.penalised import SquareRootProblem
from lopro.basis_pursuit.problem import SparseProblem
from lopro.basis_pursuit.programs import PursuitPrograms, fits_program, improve_penalised, is_tiny
from lopro.basis_pursuit.recognition import (
    in_blocks,
    passes_are_expensive,
    searches_blocks,
    sparse_form,
)
from lopro.basis_pursuit.rotated_program import RotatedProgram, fits_cones, solve_by_cones
from lopro.basis_pursuit.search import ResidualSearch, newton_rounds
from lopro.core.arrays import Array, to_numpy
from lopro.core.deadline import OutOfTime
from lopro.core.validation import check_count
from lopro.errors import MissingCapabilityError, StalledError
from lopro.methods.second_order import NewtonMultipliers
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench, next_candidate

__all__ = ["WorkingSet"]


@dataclass(frozen=True)
class Settings:
    """Settings of the order of searches; pairs of figures as those of `columns.search.Settings`."""

    #: The maximal number of rounds along a path (loses a certificate, 1.12).
    path: int = 60
    #: The factor of alpha after a round of a path with settled signs (0.99, no descent).
    descent: float = 0.7
    #: Operations (rows squared times columns) of programs that are as fast as a path (a certificate lost,
    #: 1.00), and as some rounds of a path with a full support (1.00, 1.00): one that exceeds a share of the
    #: rows (0.99, 1.00) in more than a number of rounds (1.00, 1.00).
    at_once: float = 5e7
    soon: float = 1e9
    full_share: float = 0.9
    full_rounds: int = 12
    #: A path to a tiny radius is abandoned once its support exceeds this share of the rows (1.00, 1.00).
    tiny_share: float = 0.6


SETTINGS = Settings()


@dataclass(frozen=True)
class WorkingSet:
    """Working-set semismooth Newton for ``min sum w_i |x_i|  s.t. |A x - y| <= sigma (and x >= 0)``.

    Problem: `L1Norm` over a `ResidualBall` with a matrix that has columns, optionally intersected with
    ``x >= 0``; sums of lengths of groups and rows as well (`lopro.bpdn`). Or `LeastSquares` plus a multiple
    of `L1Norm`, possibly a ridge, and ``x >= 0`` (`lopro.lasso`). Complex numbers, groups and rows
    need matrices of NumPy or SciPy. Oracles: columns of A, a product with A' per round. It is exact, and
    the columns in use show that its point is feasible, so nothing is projected. Where it makes no progress it
    hands over: to quadratic and linear programs of moderate size (`PursuitPrograms`), to the cone program of
    small ones (`RotatedProgram`), to `MatrixFree`, and then to `MultiplierMethod`; with a penalty to
    `NewtonMultipliers`.

    Columns in use, their Gram matrix and its factor stay on the device of the matrix. Those of a file or a
    cluster are read into a pool, on whose columns the problem is solved before the next pass over the data.

    Parameters
    ----------
    first : int, optional
        Columns to start with; by default a tenth of the rows, or with a few dozen rows the support of the
        solution, found by following the path.
    rounds : int
        The maximal number of rounds of the first search, after which the path is followed from its start.
    checkpoint : path, optional
        A file with the state of the search, written after each pass over a matrix in files or on a cluster.
        If it exists, the call resumes from it; it is not removed at the end. Not used for matrices in memory.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((20, 60))
    >>> ball = lopro.constraints.ResidualBall(A, A[:, 0] - 2 * A[:, 5], sigma=0.1)
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), ball)
    >>> result = lopro.solve(problem, method=lopro.WorkingSet(), tol=1e-10)
    >>> result.success, np.flatnonzero(result.x)
    (True, array([0, 5]))
    """

    card: ClassVar[Card] = Card(
        assumptions="l1 norm over a residual ball or added to least squares, optionally x >= 0, columns",
        oracles="columns of A, a product with A' per round",
        rate="finite: Newton's method on the signs of a working set; fast where directions turn",
        projections="0 where Newton's method succeeds",
        reference="this library: semismooth Newton on working sets",
    )

    first: int | None = None
    rounds: int = matrix_free.SETTINGS.rounds
    checkpoint: str | Path | None = None

    def __post_init__(self) -> None:
        if self.first is not None:
            check_count("first", self.first)
        check_count("rounds", self.rounds)

    def check(self, problem: Problem) -> None:
        form = sparse_form(problem)
        if form is None or not form.A.has_columns:
            raise MissingCapabilityError(
                "WorkingSet needs L1Norm over a ResidualBall, or LeastSquares plus a multiple of L1Norm, "
                "with a matrix that has columns (and possibly x >= 0), got "
                f"{problem.objective!r} over {problem.constraint!r}"
            )
        if in_blocks(form) and not searches_blocks(form):
            raise MissingCapabilityError(
                "WorkingSet needs real numbers and no groups where a matrix is on a device, in files or on a "
                f"cluster, got {problem.objective!r} over {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        yield from self.search(bench, bench.problem, x0)

    def search(self, bench: Workbench, problem: Problem, x0: Array) -> Candidates:
        """Propose solutions of a problem whose map has columns."""
        form = sparse_form(problem, x0)
        assert form is not None
        cheap = in_blocks(form) or not passes_are_expensive(form.A)
        if cheap and isinstance(form, SparseProblem) and form.is_close_to_y:
            yield from one_nonzero(bench, form, x0)
        if in_blocks(form):
            blocks = BlockSearch(bench, problem, x0)
            yield from self._unless_zero(bench, blocks, self._by_blocks(bench, blocks))
        elif not passes_are_expensive(form.A):
            near = self._column_search(bench, problem)
            yield from self._unless_zero(bench, near, self._in_memory(bench, near, x0))
        else:
            far = PooledSearch(problem, bench.target, bench.tick, Pool(form.A))
            yield from self._unless_zero(bench, far, self._from_afar(bench, far, x0))

    def _column_search(self, bench: Workbench, problem: Problem) -> ColumnSearch:
        return ColumnSearch(problem, bench.target, bench.tick)

    def _unless_zero(
        self, bench: Workbench, search: ResidualSearch, candidates: Candidates
    ) -> Candidates:
        """Propose zero where it is feasible, and the present solution when time is up."""
        if search.zero_is_feasible:
            yield search.candidate(bench)
            return
        try:
            yield from candidates
        except OutOfTime:
            yield search.candidate(bench)

    def _in_memory(self, bench: Workbench, search: ColumnSearch, x0: Array) -> Candidates:
        """Search from the end of the path, where that is short, or from the columns that correlate most."""
        if not self._begin_at_end_of_path(search, x0):
            search.serve(search.begin(x0, self.first))
        yield from newton_rounds(bench, search, self.rounds)
        sparse, programs = search.sparse, PursuitPrograms(self.rounds)
        if not isinstance(sparse, SparseProblem):
            yield from _finish_penalised(bench, search)
            return
        yield from self._follow_path(bench, search, sparse)
        if not search.done and fits_program(sparse):
            bench.hand_over(programs)
            yield from programs.improve(bench, search)
        if not search.done and not fits_cones(sparse):
            search.follow_path(SETTINGS.descent)
            yield from newton_rounds(bench, search, SETTINGS.path)
        if search.done:
            return
        # From the signs of the solutions of other methods, Newton's method takes one round.
        if fits_cones(sparse):
            bench.hand_over(RotatedProgram())
            yield from self._helped(bench, search, solve_by_cones(bench, sparse, search.point()))
        bench.hand_over(MatrixFree())
        yield from self._helped(
            bench, search, MatrixFree().go_on(bench, search.point(), cones=False)
        )

    def _begin_at_end_of_path(self, search: ColumnSearch, x0: Array) -> bool:
        """Begin with the signs at the end of the path, where that is short and no start is given."""
        given = self.first is not None or np.count_nonzero(to_numpy(x0)) > 0
        if given or not (fits_path(search.A) and search.plain and 0.0 < search.sigma < np.inf):
            return False
        sparse, all_columns = search.sparse, search.read(np.arange(search.A.shape[1]))
        search.serve(search.multiply_y())
        signs = signs_at_radius(all_columns, search.y, sparse.weights, search.sigma, sparse.nonneg)
        if signs is not None:
            search.resume_with(signs)
        return signs is not None

    def _follow_path(
        self, bench: Workbench, search: ColumnSearch, sparse: SparseProblem
    ) -> Candidates:
        """Follow the path from its start, unless the search is done or a program is as fast."""
        s, limit = SETTINGS, (np.inf, 0)
        if search.done or (is_tiny(search) and fits_program(sparse, s.at_once)):
            return
        if is_tiny(search):
            # As long as solutions are sparse, the path costs little.
            limit = (s.tiny_share, 0)
        elif fits_program(sparse, s.soon):
            limit = (s.full_share, s.full_rounds)
        search.follow_path(s.descent, limit)
        yield from newton_rounds(bench, search, s.path)

    def _helped(self, bench: Workbench, search: ColumnSearch, candidates: Candidates) -> Candidates:
        """Yield the candidates of another method, and those of Newton's method from their signs."""
        verdict = None
        while (candidate := next_candidate(candidates, verdict)) is not None:
            verdict = yield candidate
            if search.resume_at(candidate.taken_at):
                yield from newton_rounds(bench, search, 3)

    def _by_blocks(self, bench: Workbench, search: BlockSearch) -> Candidates:
        """Use Newton's method on blocks; where it does not converge, other methods."""
        yield from newton_rounds(bench, search, SETTINGS.path)
        sparse = search.sparse
        if not search.done and isinstance(sparse, SparseProblem) and fits_cones(sparse):
            bench.hand_over(RotatedProgram())
            yield from solve_by_cones(bench, sparse, search.point())
        if not search.done:
            yield from newton_rounds(bench, search, 3 * SETTINGS.path)
        if not search.done:
            bench.hand_over(MatrixFree())
            yield from MatrixFree().go_on(bench, search.point(), cones=False)

    def _from_afar(self, bench: Workbench, search: PooledSearch, x0: Array) -> Candidates:
        """Search on a pool of columns; where that is stuck, in memory or by `MatrixFree`."""
        begin(search, x0, self.first, self.checkpoint)
        yield from newton_rounds(bench, search, self.rounds)
        if search.done:
            return
        if search.A.in_memory:
            near = self._column_search(bench, search.problem)
            yield from self._in_memory(bench, near, search.point())
        elif search.sparse.ridge > 0.0:
            yield search.candidate(bench)
            raise StalledError
        else:
            bench.hand_over(MatrixFree())
            yield from MatrixFree().run(bench, search.point())


def _finish_penalised(bench: Workbench, search: ColumnSearch) -> Candidates:
    """Follow the path to the penalty from its start; where that fails, continue by a general method."""
    if not search.done:
        share = np.inf if search.level.least > 0.0 else SETTINGS.full_share
        search.follow_path(SETTINGS.descent, (share, 0))
        yield from newton_rounds(bench, search, SETTINGS.path)
    if not search.done and isinstance(search.sparse, SquareRootProblem):
        yield from _at_equations(bench, search.sparse)
    if not search.done:
        yield from improve_penalised(bench, search, SETTINGS.path)
    if search.done:
        return
    yield search.candidate(bench)
    for general in (NewtonMultipliers(), MatrixFree()):
        with suppress(MissingCapabilityError):
            general.check(bench.problem)
            bench.hand_over(general)
            yield from general.run(bench, search.point())
            return


def _at_equations(bench: Workbench, form: SquareRootProblem) -> Candidates:
    """Propose the solution of the equations, which solves the square-root LASSO for small weights."""
    problem = form.equations(bench.problem)
    pursuit = SparseProblem.of(problem, form.like)
    for candidate in WorkingSet().search(bench, problem, 0.0 * problem.start(None)):
        if not isinstance(candidate.evidence, Multiplier):
            return
        nu = pursuit.dual_point(candidate.evidence.inequality)
        # The form is that of a search, whose vectors are on the host.
        found = nu if nu is None else form.proved(to_numpy(nu), to_numpy(form.A.adjoint(nu)), 0.0)
        evidence = None if found is None else form.evidence(form.as_given(found, form.like))
        yield Candidate(candidate.x, evidence)
