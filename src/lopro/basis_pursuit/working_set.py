"""Basis pursuit denoising and the LASSO on a growing set of columns: few products with the whole matrix.

Only the columns that matter are worked on. One product ``A'r`` with all of them shows which are missing
and proves how far the solution on the present ones can be from the optimum; a solution has a few hundred
nonzeros, and about ten such products find them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from lopro.basis_pursuit import matrix_free, support_newton
from lopro.basis_pursuit.block_search import BlockSearch
from lopro.basis_pursuit.column_search import Checkpoint, ColumnSearch
from lopro.basis_pursuit.matrix_free import MatrixFree
from lopro.basis_pursuit.operator_search import OperatorSearch
from lopro.basis_pursuit.penalised import SquareRootProblem, sparse_form
from lopro.basis_pursuit.pool import Pool
from lopro.basis_pursuit.problem import BlockNorm, Repeated, SparseForm, SparseProblem
from lopro.basis_pursuit.programs import (
    PursuitPrograms,
    RotatedProgram,
    fits_cones,
    fits_program,
    improve_penalised,
    is_tiny,
    solve_by_cones,
)
from lopro.basis_pursuit.search import Search, newton_rounds, one_nonzero
from lopro.basis_pursuit.support_newton import signs_at_radius
from lopro.core.arrays import Array, is_complex, norm, to_numpy
from lopro.core.deadline import OutOfTime
from lopro.core.validation import check_count
from lopro.errors import MissingCapabilityError, StalledError
from lopro.maps import ArrayMap, LinearMap, NumPyMap
from lopro.maps.operators import OperatorMap
from lopro.methods.second_order import NewtonMultipliers
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench, next_candidate

__all__ = ["ByProducts", "WorkingSet", "in_blocks", "passes_are_expensive"]


@dataclass(frozen=True)
class Settings:
    """Settings of the order of searches."""

    #: Columns per row from which on products take most of the time.
    wide: int = 50
    #: Rounds of a path.
    path: int = 60
    #: The factor of alpha after a round of a path with settled signs.
    descent: float = 0.7
    #: Operations (rows squared times columns) of programs that are as quick as a path, and as some rounds of
    #: one whose support exceeds 0.9 of the rows.
    at_once: float = 5e7
    soon: float = 1e9
    full_share: float = 0.9
    full_rounds: int = 12
    #: A path to a tiny radius is left once its support exceeds this share of the rows.
    tiny_share: float = 0.6
    #: Rows or columns of an operator up to which reading takes about as many products as an easy problem.
    few: int = 64
    #: And up to which it is read at all for directions, which take longer than signs; entries held.
    read_turning: int = 400
    entries: float = 1e7


SETTINGS = Settings()


@dataclass(frozen=True)
class WorkingSet:
    """Working-set semismooth Newton for ``min sum w_i |x_i|  s.t. |A x - y| <= sigma (and x >= 0)``.

    Problem: `L1Norm` over a `ResidualBall` with a matrix that has columns, optionally intersected with
    ``x >= 0``; sums of lengths of groups and rows as well (`lopro.bpdn`). Or `LeastSquares` plus a multiple
    of `L1Norm`, possibly a ridge, and ``x >= 0`` (`lopro.lasso`). Complex numbers, groups and rows
    need matrices that NumPy or SciPy holds. Oracles: columns of A, a product with A' per round. It is
    exact, and the columns in use show that its point is feasible, so nothing is projected. Where it makes no
    progress it hands over: to quadratic and linear programs of moderate size (`PursuitPrograms`), to the
    cone program of small ones (`RotatedProgram`), to `MatrixFree`, and behind that `MultiplierMethod`; with a
    penalty to `NewtonMultipliers`.

    Columns in use, their Gram matrix and its factor are where the matrix is: on its device. Those of a file
    or a cluster come to the driver, into a pool that holds more than are in use: there a pass over the data
    is expensive, and everything that can be done with the columns at hand is done before the next one.

    Parameters
    ----------
    first : int, optional
        Columns to start with; by default a tenth of the rows, or those that the path of solutions ends with
        where there are a few dozen rows.
    rounds : int
        Products ``A'r`` of the first search, after which the path is followed from its start.
    checkpoint : path, optional
        A file that is kept up to date while a matrix in files or on a cluster is searched. A call that finds
        it goes on from there; it stays where it is at the end. Matrices in memory do not use it.

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
        if in_blocks(form) and not _for_blocks(form):
            raise MissingCapabilityError(
                "WorkingSet needs real numbers and no groups where a matrix is on a device, in files or on a "
                f"cluster, got {problem.objective!r} over {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        yield from self.search(bench, bench.problem, x0)

    def search(self, bench: Workbench, problem: Problem, x0: Array) -> Candidates:
        """Propose solutions of the problem in the form in which it has columns."""
        form = sparse_form(problem, x0)
        assert form is not None
        if isinstance(form, SparseProblem) and (
            in_blocks(form) or not passes_are_expensive(form.A)
        ):
            found = one_nonzero(bench, form, x0)
            if found is not None:
                yield found
        if in_blocks(form):
            blocks = BlockSearch(bench, problem, x0)
            yield from self._unless_zero(bench, blocks, self._by_blocks(bench, blocks))
        elif not passes_are_expensive(form.A):
            near = self._column_search(bench, problem)
            yield from self._unless_zero(bench, near, self._in_memory(bench, near, x0))
        else:
            far = ColumnSearch(problem, bench.target, bench.tick, Pool(form.A))
            yield from self._unless_zero(bench, far, self._from_afar(bench, far, x0))

    def _column_search(self, bench: Workbench, problem: Problem) -> ColumnSearch:
        return ColumnSearch(problem, bench.target, bench.tick)

    def _unless_zero(self, bench: Workbench, search: Search, candidates: Candidates) -> Candidates:
        """Propose zero where it is feasible, and what there is when time is up."""
        if search.zero_is_feasible:
            yield search.candidate(bench)
            return
        try:
            yield from candidates
        except OutOfTime:
            yield search.candidate(bench)

    def _in_memory(self, bench: Workbench, search: ColumnSearch, x0: Array) -> Candidates:
        """Search from the end of the path, where it is short, or from the columns that matter most."""
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
        # From the signs that other methods find, Newton's method needs one round.
        if fits_cones(sparse):
            bench.hand_over(RotatedProgram())
            yield from self._helped(bench, search, solve_by_cones(bench, sparse, search.point()))
        bench.hand_over(MatrixFree())
        yield from self._helped(
            bench, search, MatrixFree().go_on(bench, search.point(), cones=False)
        )

    def _begin_at_end_of_path(self, search: ColumnSearch, x0: Array) -> bool:
        """Begin with the signs at the end of the path, where that is short and there is no other start."""
        rows, columns = search.A.shape
        limits = support_newton.SETTINGS
        few = rows <= limits.few_rows and columns <= limits.few_columns
        few = few and isinstance(search.A, NumPyMap)
        given = self.first is not None or np.count_nonzero(to_numpy(x0)) > 0
        if given or not (few and search.plain and 0.0 < search.sigma < np.inf):
            return False
        sparse = search.sparse
        search.serve(search.multiply_y())
        signs = signs_at_radius(
            search.read(np.arange(columns)),
            search.y,
            sparse.weights,
            search.sigma,
            sparse.nonneg,
        )
        if signs is not None:
            search.resume_with(signs)
        return signs is not None

    def _follow_path(
        self, bench: Workbench, search: ColumnSearch, sparse: SparseProblem
    ) -> Candidates:
        """Follow the path from its start, unless the search is done or a program is as quick."""
        s, limit = SETTINGS, (np.inf, 0)
        if search.done or (is_tiny(search) and fits_program(sparse, s.at_once)):
            return
        if is_tiny(search):
            # Where solutions are sparse the path is short, and as long as they are it costs little.
            limit = (s.tiny_share, 0)
        elif fits_program(sparse, s.soon):
            limit = (s.full_share, s.full_rounds)
        search.follow_path(s.descent, limit)
        yield from newton_rounds(bench, search, s.path)

    def _helped(self, bench: Workbench, search: ColumnSearch, candidates: Candidates) -> Candidates:
        """Pass candidates of another method on, and those of Newton's method from their signs."""
        verdict = None
        while (candidate := next_candidate(candidates, verdict)) is not None:
            verdict = yield candidate
            if search.resume_at(candidate.taken_at):
                yield from newton_rounds(bench, search, 3)

    def _by_blocks(self, bench: Workbench, search: BlockSearch) -> Candidates:
        """Newton's method on blocks; the matrix-free method where it does not end."""
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

    def _from_afar(self, bench: Workbench, search: ColumnSearch, x0: Array) -> Candidates:
        """Newton's method on a pool of columns; where it does not end, other searches, or `MatrixFree`."""
        self._begin(search, x0)
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

    def _begin(self, search: ColumnSearch, x0: Array) -> None:
        """Fetch the first columns, or those of the checkpoint, and keep that up to date from now on."""
        if self.checkpoint is None:
            search.serve(search.begin(x0, self.first))
            return
        checkpoint = Checkpoint(self.checkpoint, search)
        saved = checkpoint.load()
        requests = search.begin(x0, self.first) if saved is None else checkpoint.go_on_from(saved)
        search.serve(requests)
        search.after_round = checkpoint.save
        search.after_round()


def _finish_penalised(bench: Workbench, search: ColumnSearch) -> Candidates:
    """Follow the path to the penalty from its start; where that fails as well, a general method goes on."""
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
    """Propose the solution of the equations, which is that of the square-root LASSO for a small weight."""
    problem = form.equations(bench.problem)
    pursuit = SparseProblem.of(problem, form.like)
    for candidate in WorkingSet().search(bench, problem, 0.0 * problem.start(None)):
        if not isinstance(candidate.evidence, Multiplier):
            return
        nu = pursuit.dual_point(candidate.evidence.inequality)
        found = None if nu is None else form.proved(nu, form.A.adjoint(nu), 0.0)
        yield Candidate(candidate.x, None if found is None else form.evidence(found))


def in_blocks(form: SparseForm) -> bool:
    """Whether coefficients have directions that turn, rather than signs."""
    return is_complex(form.like) or isinstance(form.objective, BlockNorm)


def _for_blocks(form: SparseForm) -> bool:
    """Whether the search over blocks applies: arrays of NumPy, and sparse ones."""
    base = form.A.base if isinstance(form.A, Repeated) else form.A
    return base.in_memory and isinstance(base.like, np.ndarray)


def passes_are_expensive(A: LinearMap) -> bool:
    """Whether to do more with few columns for the sake of fewer products with all of them.

    For stored and distributed data, and in memory for matrices that are much wider than high.
    """
    return not A.in_memory or (isinstance(A, ArrayMap) and A.shape[1] >= SETTINGS.wide * A.shape[0])


@dataclass(frozen=True)
class ByProducts:
    """`MatrixFree` for operators; those with few rows or columns are read in time, for `WorkingSet`.

    Problem: as for `MatrixFree`. A product for each row or column gives all entries; with columns in memory
    a solution takes milliseconds. An operator of up to 64 rows or columns is read at once, one of up to 2000
    (400 of complex numbers or groups) when that takes fewer products than to go on would, or as many as have
    been made.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from scipy.sparse.linalg import aslinearoperator
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((20, 60))
    >>> result = lopro.bpdn(aslinearoperator(A), A[:, 0] - 2 * A[:, 5], sigma=0.1)
    >>> result.success, result.support, result.iterations
    (True, array([0, 5]), 1)
    """

    card: ClassVar[Card] = Card(
        assumptions=MatrixFree.card.assumptions,
        oracles="products with A and its adjoint; one for each row or column, where these are few",
        rate="as MatrixFree, or as WorkingSet once the operator has been read",
        projections="as MatrixFree, or as WorkingSet",
        reference="this library",
    )

    def check(self, problem: Problem) -> None:
        MatrixFree().check(problem)
        form = sparse_form(problem)
        assert form is not None
        if _readable(form) is None:
            raise MissingCapabilityError(
                f"ByProducts needs an operator of at most {_most(form)} rows or columns and "
                f"{SETTINGS.entries:.0e} entries and a NumPy array y, got {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        form = sparse_form(bench.problem, x0)
        assert form is not None
        A = _readable(form)
        assert A is not None
        point: Array | None = x0
        zero = isinstance(form, SparseProblem) and norm(form.y) <= form.ball.sigma
        if zero or (min(A.shape) > SETTINGS.few and A.entries is None):
            point = yield from MatrixFree().go_on(bench, x0, _costs_more_than_reading(A))
        elif isinstance(form, SparseProblem):
            found = one_nonzero(bench, form, x0)
            if found is not None:
                yield found
        if point is not None:
            yield from self._by_entries(bench, form, point)

    def _by_entries(self, bench: Workbench, form: SparseForm, x: Array) -> Candidates:
        """Read the operator and search its columns; points are measured by the operator itself."""
        bench.hand_over(WorkingSet())
        candidates = WorkingSet().search(bench, form.with_matrix(bench.problem), x)
        verdict = None
        while (candidate := next_candidate(candidates, verdict)) is not None:
            verdict = yield replace(candidate, image=None, objective_image=None)


def _most(form: SparseForm) -> int:
    """Return how many rows or columns may be read."""
    return SETTINGS.read_turning if in_blocks(form) else matrix_free.SETTINGS.columns


def _readable(form: SparseForm) -> OperatorMap | None:
    """Return the operator of a problem, if it is one of moderate size, on the host."""
    A = form.A
    small = min(A.shape) <= _most(form) and math.prod(A.shape) <= SETTINGS.entries
    return A if small and isinstance(A, OperatorMap) and isinstance(form.y, np.ndarray) else None


def _costs_more_than_reading(A: OperatorMap) -> Callable[[OperatorSearch | None], bool]:
    """Return a test of whether a search has made as many products as reading takes, or would do so."""
    products = min(A.shape)

    def enough(search: OperatorSearch | None) -> bool:
        if search is None or 2 * search.steps >= products:
            return True
        return search.pace_is_known and 2 * search.steps_left >= products

    return enough
