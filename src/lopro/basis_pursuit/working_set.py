"""Basis pursuit denoising on a growing set of columns: few products with the whole matrix.

Only the columns that matter are worked on. One product ``A'r`` with all of them tells which are missing
and proves how far the solution on the present ones can be from the optimum; a solution has a few hundred
nonzeros, and about ten such products find them.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lopro._util.arrays import Array, is_complex
from lopro._util.deadline import OutOfTime
from lopro._util.validation import check_count
from lopro.basis_pursuit.by_columns import newton
from lopro.basis_pursuit.column_search import ColumnSearch
from lopro.basis_pursuit.first_piece import first_piece
from lopro.basis_pursuit.linear_program import fits_linear_program, vertex
from lopro.basis_pursuit.matrix_free import MatrixFree
from lopro.basis_pursuit.problem import residual_ball_of
from lopro.errors import MissingCapabilityError, StalledError
from lopro.objectives import L1Norm
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench, next_candidate

__all__ = ["WorkingSet"]

_PATIENT_ROUNDS = 150
_PATIENT_DESCENTS = (0.7, 0.9)  # of alpha, while sigma is out of reach


@dataclass(frozen=True)
class WorkingSet:
    """Working-set semismooth Newton for ``min sum w_i |x_i|  s.t. |A x - y| <= sigma (and x >= 0)``.

    Problem: `L1Norm` over a `ResidualBall` with a real NumPy or sparse matrix, optionally intersected with
    ``x >= 0``. Oracles: columns of A, a product with A' per round. As an inner algorithm it is exact, so one
    projection (which finds nothing to do) ends a run. Where it makes no progress `MatrixFree` goes on from
    its point, and behind that `MultiplierMethod`.

    Parameters
    ----------
    first : int, optional
        Columns to start with; a tenth of the rows by default.
    rounds : int
        Products ``A'r`` of the quick search, after which a patient one follows the path from its start.

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
        assumptions="l1 norm over a residual ball, optionally x >= 0, explicit real columns",
        oracles="columns of A, a product with A' per round",
        rate="finite: Newton's method on the signs of a working set",
        projections="1 where Newton's method succeeds",
        reference="this library: semismooth Newton on working sets",
    )

    proves_emptiness: ClassVar[bool] = True

    first: int | None = None
    rounds: int = 25

    def __post_init__(self) -> None:
        if self.first is not None:
            check_count("first", self.first)
        check_count("rounds", self.rounds)

    def check(self, problem: Problem) -> None:
        ball, _ = residual_ball_of(problem.constraint)
        fits = isinstance(problem.objective, L1Norm)
        if not fits or ball is None or not ball.A.explicit or is_complex(ball.like):
            raise MissingCapabilityError(
                "WorkingSet needs L1Norm over a ResidualBall with a real explicit matrix (and possibly "
                f"x >= 0), got {problem.objective!r} over {problem.constraint!r}"
            )
        if not isinstance(ball.like, np.ndarray):
            raise MissingCapabilityError("WorkingSet reads columns with NumPy; use lopro.Auto()")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        search = ColumnSearch(bench, x0, self.first)
        if search.zero_is_feasible:
            yield search.candidate()
            return
        found = first_piece(bench, search.sparse, x0)
        if found is not None:
            yield found
        try:
            yield from self._search(bench, search)
        except OutOfTime:
            yield search.candidate()

    def _search(self, bench: Workbench, search: ColumnSearch) -> Candidates:
        """Newton's method on a growing set of columns; the matrix-free method where it does not end."""
        with suppress(StalledError):
            yield from newton(search, self.rounds)
        if not search.done and fits_linear_program(search.sparse):
            yield from self._from_vertex(search)
        for descent in _PATIENT_DESCENTS:
            if not search.done:
                search.start_over(descent)
                with suppress(StalledError):
                    yield from newton(search, _PATIENT_ROUNDS)
        if search.done:
            return
        # The first-order method finds out signs that Newton's method then needs one round for.
        candidates, verdict = MatrixFree().run(bench, search.point()), None
        while (candidate := next_candidate(candidates, verdict)) is not None:
            verdict = yield candidate
            if search.resume(candidate.taken_at):
                with suppress(StalledError):
                    yield from newton(search, 3)

    def _from_vertex(self, search: ColumnSearch) -> Candidates:
        """Ask a linear program which columns are active where sigma = 0, and start there."""
        found = vertex(search.sparse, np.asarray(search.A.toarray()))
        if found is not None:
            search.resume_with(found.signs)
            with suppress(StalledError):
                yield from newton(search, self.rounds)
