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
from lopro.basis_pursuit.penalised import sparse_form
from lopro.basis_pursuit.problem import SparseForm, SparseProblem
from lopro.basis_pursuit.working_set import WorkingSet, in_blocks
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
        form = sparse_form(problem)
        assert form is not None
        if _readable(form) is None:
            raise MissingCapabilityError(
                f"ByProducts needs an operator of at most {_most(form)} rows or columns and "
                f"{_ENTRIES:.0e} entries and a NumPy array y, got {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        form = sparse_form(bench.problem, x0)
        assert form is not None
        A = _readable(form)
        assert A is not None
        point: Array | None = x0
        zero = isinstance(form, SparseProblem) and norm(form.y) <= form.ball.sigma
        if zero or (min(A.shape) > _FEW and A.entries is None):
            point = yield from MatrixFree().until(bench, x0, _costs_more_than_reading(A))
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
    return _MOST_TURNING if in_blocks(form) else _MOST


def _readable(form: SparseForm) -> OperatorMap | None:
    """Return the operator of a problem, if it is one of moderate size, on the host."""
    A = form.A
    small = min(A.shape) <= _most(form) and math.prod(A.shape) <= _ENTRIES
    return A if small and isinstance(A, OperatorMap) and isinstance(form.y, np.ndarray) else None


def _costs_more_than_reading(A: OperatorMap) -> Callable[[OperatorSearch | None], bool]:
    """Return what tells whether a search has made as many products as reading takes, or would do so."""
    products = min(A.shape)

    def enough(search: OperatorSearch | None) -> bool:
        if search is None or 2 * search.steps >= products:
            return True
        return search.pace_is_known and 2 * search.steps_left >= products

    return enough
