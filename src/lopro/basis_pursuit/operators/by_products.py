"""The matrix-free method for operators, which reads those of moderate size when that takes fewer products."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from lopro.basis_pursuit.one_nonzero import one_nonzero
from lopro.basis_pursuit.operators import matrix_free
from lopro.basis_pursuit.operators.matrix_free import MatrixFree
from lopro.basis_pursuit.operators.search import OperatorSearch
from lopro.basis_pursuit.problem import SparseForm, SparseProblem
from lopro.basis_pursuit.recognition import in_blocks, sparse_form
from lopro.basis_pursuit.working_set import WorkingSet
from lopro.core.arrays import Array, norm
from lopro.errors import MissingCapabilityError
from lopro.maps.operators import OperatorMap
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench, next_candidate

__all__ = ["ByProducts"]


@dataclass(frozen=True)
class Settings:
    """The sizes of operators that are read, by a product for each row or column.

    Pairs of figures are the products of the instances of `python -m benchmarks.constants basis_pursuit` with
    a tenth and with ten times the value.
    """

    #: Rows or columns up to which an operator is read at once: about as many products as an easy problem
    #: (1.01, 1.09).
    few: int = 64
    #: Rows or columns up to which it is read at all where coefficients have directions, for which searches
    #: take longer than for signs (1.00, 1.00); and the largest number of entries, 80 MB (1.30, 1.00).
    read_turning: int = 400
    entries: float = 1e7


SETTINGS = Settings()


@dataclass(frozen=True)
class ByProducts:
    """`MatrixFree` for operators; those with few rows or columns are read for `WorkingSet`.

    Problem: as for `MatrixFree`. A product for each row or column gives all entries; with columns in memory
    a solution takes milliseconds. An operator of up to 64 rows or columns is read at once, one of up to 2000
    (400 for complex numbers or groups) once that takes no more products than have been made, or fewer than
    are predicted to remain.

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
            yield from one_nonzero(bench, form, x0)
        if point is not None:
            yield from self._by_entries(bench, form, point)

    def _by_entries(self, bench: Workbench, form: SparseForm, x: Array) -> Candidates:
        """Read the operator and search its columns; points are evaluated with the operator itself."""
        bench.hand_over(WorkingSet())
        candidates = WorkingSet().search(bench, form.with_matrix(bench.problem), x)
        verdict = None
        while (candidate := next_candidate(candidates, verdict)) is not None:
            verdict = yield replace(candidate, image=None, objective_image=None)


def _most(form: SparseForm) -> int:
    """Return the largest number of rows or columns that are read."""
    return SETTINGS.read_turning if in_blocks(form) else matrix_free.SETTINGS.columns


def _readable(form: SparseForm) -> OperatorMap | None:
    """Return the operator of a problem if it is of moderate size and on the host."""
    A = form.A
    small = min(A.shape) <= _most(form) and math.prod(A.shape) <= SETTINGS.entries
    return A if small and isinstance(A, OperatorMap) and isinstance(form.y, np.ndarray) else None


def _costs_more_than_reading(A: OperatorMap) -> Callable[[OperatorSearch | None], bool]:
    """Return a test whether a search has made, or is predicted to need, as many products as reading."""
    products = min(A.shape)

    def enough(search: OperatorSearch | None) -> bool:
        if search is None or 2 * search.steps >= products:
            return True
        return search.pace_is_known and 2 * search.steps_left >= products

    return enough
