"""Basis pursuit denoising for operators: by products, and by their entries where these cost less.

An operator with few rows or few columns can be read: a product for each of them tells all entries, and with
columns at hand a solution takes milliseconds. So no more products are spent on a search without columns than
twice what reading takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lopro.basis_pursuit.matrix_free import MatrixFree
from lopro.basis_pursuit.operator_search import OperatorSearch
from lopro.basis_pursuit.path import one_nonzero
from lopro.basis_pursuit.problem import SparseProblem, residual_ball_of
from lopro.basis_pursuit.working_set import WorkingSet, in_blocks
from lopro.constraints import Intersection, ResidualBall
from lopro.core.arrays import Array, norm
from lopro.errors import MissingCapabilityError
from lopro.maps.operators import OperatorMap
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench, next_candidate

__all__ = ["ByProducts"]

#: Rows or columns up to which reading takes about as many products as an easy problem.
_FEW = 64
#: And up to which it is done at all, for signs and for directions, which take longer; entries that are held.
_MOST, _MOST_TURNING, _ENTRIES = 2000, 400, 1e7


@dataclass(frozen=True)
class ByProducts:
    """`MatrixFree` for operators; those with few rows or columns are read in time, for `WorkingSet`.

    Problem: as for `MatrixFree`. An operator of up to 64 rows or columns is read at once, one of up to 2000
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
        if _readable(problem) is None:
            raise MissingCapabilityError(
                f"ByProducts needs an operator of at most {_most(problem)} rows or columns and "
                f"{_ENTRIES:.0e} entries and a NumPy array y, got {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        ball, _ = residual_ball_of(bench.problem.constraint)
        A = _readable(bench.problem)
        assert ball is not None and A is not None
        point: Array | None = x0
        if norm(ball.y) <= ball.sigma or (min(A.shape) > _FEW and A.entries is None):
            point = yield from MatrixFree().until(bench, x0, _costs_more_than_reading(A))
        else:
            found = one_nonzero(bench, SparseProblem.of(bench.problem, x0), x0)
            if found is not None:
                yield found
        if point is not None:
            yield from self._by_entries(bench, ball, point)

    def _by_entries(self, bench: Workbench, ball: ResidualBall, x: Array) -> Candidates:
        """Read the operator and search its columns; what comes of that is measured by the operator itself."""
        bench.hand_over(WorkingSet())
        candidates = WorkingSet().search(bench, _with_ball(bench.problem, ball.with_matrix()), x)
        verdict = None
        while (candidate := next_candidate(candidates, verdict)) is not None:
            verdict = yield replace(candidate, image=None)


def _most(problem: Problem) -> int:
    """Return how many rows or columns may be read."""
    return _MOST_TURNING if in_blocks(problem) else _MOST


def _readable(problem: Problem) -> OperatorMap | None:
    """Return the operator of a problem, if it is one of moderate size, on the host."""
    ball, _ = residual_ball_of(problem.constraint)
    assert ball is not None
    A = ball.A
    small = min(A.shape) <= _most(problem) and math.prod(A.shape) <= _ENTRIES
    return A if small and isinstance(A, OperatorMap) and isinstance(ball.y, np.ndarray) else None


def _costs_more_than_reading(A: OperatorMap) -> Callable[[OperatorSearch | None], bool]:
    """Return what tells whether a search has made as many products as reading takes, or would do so."""
    products = min(A.shape)

    def enough(search: OperatorSearch | None) -> bool:
        if search is None or 2 * search.steps >= products:
            return True
        return search.pace_is_known and 2 * search.steps_left >= products

    return enough


def _with_ball(problem: Problem, ball: ResidualBall) -> Problem:
    """Return the same problem with its residual ball in another form."""
    members = [ball if isinstance(m, ResidualBall) else m for m in problem.constraint.members()]
    constraint = members[0] if len(members) == 1 else Intersection(*members)
    return replace(problem, constraint=constraint)
