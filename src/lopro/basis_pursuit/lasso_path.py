"""One matrix, one right-hand side, many penalties: what the searches along the path hand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lopro.basis_pursuit.application import ProblemData, solve_one
from lopro.basis_pursuit.batch import shares_passes, solve_together
from lopro.basis_pursuit.column_search import ColumnSearch
from lopro.basis_pursuit.penalised import sparse_form
from lopro.basis_pursuit.result import LassoResult
from lopro.basis_pursuit.working_set import WorkingSet, in_blocks, passes_are_expensive
from lopro.driver.options import Options
from lopro.problem import Problem
from lopro.protocol import Method, Workbench

__all__ = ["AlongPath", "solve_path"]


def solve_path(
    data: ProblemData, problems: list[Problem], lams: list[float], options: Options
) -> list[LassoResult]:
    """Solve for all penalties, in the order given."""
    if shares_passes(data.A, problems):
        found: list[Any] = solve_together(data, problems, options)
        return found
    form = sparse_form(problems[0])
    assert form is not None
    held = data.A.has_columns and not in_blocks(form) and not passes_are_expensive(data.A)
    method: Method | None = AlongPath() if held else None
    results: dict[int, LassoResult] = {}
    x0 = None
    for i in sorted(range(len(lams)), key=lambda i: -lams[i]):
        results[i] = solve_one(problems[i], x0, method, options)
        if results[i].success:
            x0 = results[i].x
    return [results[i] for i in range(len(lams))]


@dataclass(frozen=True, eq=False)
class AlongPath(WorkingSet):
    """`WorkingSet` that goes on with the columns of the search before."""

    _before: list[ColumnSearch] = field(default_factory=list, repr=False)

    def _column_search(self, bench: Workbench, problem: Problem) -> ColumnSearch:
        search = ColumnSearch(bench, problem, *self._before)
        self._before[:] = [search]
        return search
