"""Basis pursuit denoising for operators: two products per step, and a certificate without extra products.

The residual of every step is, scaled to feasibility, a dual point, whose correlations ``A^H r`` are computed
anyway. So the gap is known after every step; and as the target residual is slightly below sigma, points are
feasible without a projection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.columns.search import ColumnSearch
from lopro.basis_pursuit.one_nonzero import one_nonzero
from lopro.basis_pursuit.operators.search import OperatorSearch, State
from lopro.basis_pursuit.penalised import PenalisedProblem
from lopro.basis_pursuit.problem import SparseForm, SparseProblem
from lopro.basis_pursuit.recognition import sparse_form
from lopro.basis_pursuit.rotated_program import RotatedProgram, fits_cones, solve_by_cones
from lopro.basis_pursuit.search import newton_rounds
from lopro.core.arrays import Array, eps, is_complex, norm, to_numpy
from lopro.core.validation import check_count
from lopro.errors import MissingCapabilityError, StalledError
from lopro.methods.multipliers import MultiplierMethod
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Verdict, Workbench

__all__ = ["MatrixFree"]


@dataclass(frozen=True)
class Settings:
    """Settings of the methods that follow shrinkage.

    Pairs of figures are the products of the 22 instances of `python -m benchmarks.constants basis_pursuit`
    that use this method, with a tenth and with ten times the value.
    """

    #: Steps between two updates of multipliers where interior-point methods have failed (not 0; 1.03, and 1.8
    #: for the instance that needs them).
    short: int = 5
    #: The largest number of columns (or rows) computed from an operator, one product each (1.56, 1.18), and
    #: the maximal number of rounds of Newton's method (0.99, 1.14).
    columns: int = 2000
    rounds: int = 25


SETTINGS = Settings()

#: Whether to stop a search; None stands for one that has ended without success.
Enough: TypeAlias = "Callable[[OperatorSearch | None], bool]"
#: Candidates, then the point from which to continue, None where the run is complete.
Leaving: TypeAlias = "Generator[Candidate, Verdict, Array | None]"


@dataclass(frozen=True)
class MatrixFree:
    """Mixed shrinkage for ``min sum w_i |x_i|  s.t. |A x - y| <= sigma (and x >= 0)`` from products only.

    Problem: `L1Norm` with positive weights over a `ResidualBall`, real or complex, optionally intersected
    with ``x >= 0``. Oracles: one product with A and one with its adjoint per step, and a few random products
    that estimate column norms. Where it is slow and the rows of A are orthogonal, it continues with
    Douglas-Rachford splitting; without progress, and for ``sigma = 0``, with `MultiplierMethod`.

    Parameters
    ----------
    memory : int
        Number of earlier points that are stored (three vectors of the size of x and one of the size of y
        each).
    patience : int
        Stop after this number of steps in a row without a better gap.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from scipy.sparse.linalg import aslinearoperator
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((20, 60))
    >>> y = A[:, 0] - 2 * A[:, 5]
    >>> ball = lopro.constraints.ResidualBall(aslinearoperator(A), y, sigma=0.1)
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), ball)
    >>> result = lopro.solve(problem, method=lopro.MatrixFree(), tol=1e-8)
    >>> result.success, np.flatnonzero(result.x), result.counts.projections
    (True, array([0, 5]), 0)
    """

    card: ClassVar[Card] = Card(
        assumptions="l1 norm over a residual ball, optionally x >= 0, any linear operator",
        oracles="products with A and its adjoint",
        rate="linear once the support has settled",
        projections="0 where shrinkage succeeds; one per certified candidate of splitting",
        reference="this library: Anderson-mixed shrinkage with a root search for the multiplier; "
        "Douglas-Rachford splitting",
    )

    memory: int = 20
    patience: int = 150

    def __post_init__(self) -> None:
        check_count("memory", self.memory, minimum=2)
        check_count("patience", self.patience)

    def check(self, problem: Problem) -> None:
        form = sparse_form(problem)
        if form is None or form.ridge > 0.0:
            raise MissingCapabilityError(
                "MatrixFree needs L1Norm over a ResidualBall, or LeastSquares plus a multiple of L1Norm (and "
                f"possibly x >= 0), got {problem.objective!r} over {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        yield from self.go_on(bench, x0)

    def go_on(
        self,
        bench: Workbench,
        x0: Array,
        enough: Enough = lambda search: False,
        cones: bool = True,
    ) -> Leaving:
        """Run until ``enough`` holds; return the point from which another method continues.

        ``cones`` is False where interior-point methods have failed before, or do not apply.
        """
        sparse = sparse_form(bench.problem, x0)
        if isinstance(sparse, PenalisedProblem):
            return (yield from self._penalised(bench, sparse, x0, enough))
        assert isinstance(sparse, SparseProblem)
        ball = sparse.ball
        if norm(ball.y) <= ball.sigma:
            yield _at_zero(bench, sparse, x0)
            return None
        yield from one_nonzero(bench, sparse, x0)
        least = sparse.objective.least_weight
        if ball.sigma == 0.0 or least == 0.0:
            if ball.sigma == 0.0 and least > 0.0 and _reads_columns(sparse):
                yield from _finish_by_columns(bench, x0)
            if enough(None):
                return x0
            yield from _resorts(bench, sparse, x0, cones)
            return None
        search = OperatorSearch(bench, sparse, self.memory)
        if (yield from self._steps(bench, search, x0, enough)):
            return search.point()
        if not ball.A.has_columns and _reads_columns(sparse):
            yield from _finish_by_columns(bench, search.point())
        yield from _resorts(bench, sparse, search.point(), cones)
        return None

    def _steps(
        self, bench: Workbench, search: OperatorSearch, x0: Array, enough: Enough
    ) -> Generator[Candidate, Verdict, bool]:
        """Step until ``enough`` holds (return True) or there is no progress."""
        state: State = search.start(x0)
        while search.idle <= self.patience * search.slowness and search.moving(state):
            state = bench.advance(search.algorithm, search.norm, state, 1)
            search.judge(state)
            if search.certified or bench.exhausted:
                yield search.candidate()
            if bench.exhausted:
                raise StalledError
            if enough(search):
                return True
            state = search.reconsidered(state)
        # The tolerance is below the attainable accuracy: no other method can do better.
        if bench.target.tol < 1e3 * eps(search.sparse.weights):
            yield search.candidate()
            raise StalledError
        return enough(None)

    def _penalised(
        self, bench: Workbench, sparse: PenalisedProblem, x0: Array, enough: Enough
    ) -> Leaving:
        """Step to the given weight of the penalty, then use Newton's method on the support."""
        search = OperatorSearch(bench, sparse, self.memory)
        if (yield from self._steps(bench, search, x0, enough)):
            return search.point()
        yield search.candidate()
        if not sparse.A.has_columns and _reads_columns(sparse):
            yield from _finish_by_columns(bench, search.point())
        raise StalledError


def _resorts(bench: Workbench, sparse: SparseProblem, x: Array, cones: bool) -> Candidates:
    """Continue with an interior-point method if the problem is small enough, then with multipliers."""
    small = fits_cones(sparse)
    if cones and small:
        bench.hand_over(RotatedProgram())
        yield from solve_by_cones(bench, sparse, x)
    last = MultiplierMethod(SETTINGS.short) if small else MultiplierMethod()
    bench.hand_over(last)
    yield from last.run(bench, x)


def _reads_columns(sparse: SparseForm) -> bool:
    """Whether columns of an operator may be computed: it is real, of moderate size, and on the host."""
    if isinstance(sparse.objective, BlockNorm):
        return False
    on_host = not is_complex(sparse.like) and type(sparse.y) is type(to_numpy(sparse.y))
    return on_host and min(sparse.A.shape) <= SETTINGS.columns


def _finish_by_columns(bench: Workbench, x: Array) -> Candidates:
    """Continue from a point of a first-order method with the columns of its support, one product each.

    Where that method is slow, because columns are nearly dependent or sigma is tiny, its support is close to
    the optimal one, and a few rounds of Newton's method suffice.
    """
    search = ColumnSearch(bench.problem, bench.target, bench.tick)
    search.serve(search.begin(0.0 * to_numpy(x), first=10))
    if not search.resume_at(to_numpy(x)):
        search.follow_path(0.5)
    yield from newton_rounds(bench, search, SETTINGS.rounds)
    if not search.done:
        search.follow_path(0.7)
        yield from newton_rounds(bench, search, 4 * SETTINGS.rounds)


def _at_zero(bench: Workbench, sparse: SparseProblem, x0: Array) -> Candidate:
    """Return the candidate zero, which is optimal if it is feasible."""
    zero = 0.0 * x0
    return Candidate(zero, Multiplier(sparse.at_zero(zero)))
