"""Newton's method on a growing set of columns, for whoever can name a column: by entries or by products."""

from __future__ import annotations

from contextlib import suppress

from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.block_search import BlockSearch
from lopro.basis_pursuit.column_search import ColumnSearch
from lopro.basis_pursuit.problem import SparseProblem
from lopro.core.arrays import Array, is_complex, to_numpy
from lopro.errors import StalledError
from lopro.protocol import Candidates, Workbench

__all__ = ["finish_by_columns", "newton", "reads_columns"]

_COLUMNS = 2000  # that an operator is asked for: each costs a product
_ROUNDS = 25


def newton(search: ColumnSearch | BlockSearch, rounds: int) -> Candidates:
    """Go round until the solution is complete, or Newton's method is stuck."""
    for _ in range(rounds):
        search.round()
        if search.complete or search.bench.exhausted:
            yield search.candidate(search.bench)
            # The driver asks for more: only rounding is a reason to stop now.
            search.done = search.bench.exhausted or (search.exact and search.missing.size == 0)
        if search.done or search.stuck:
            return
        search.take_in_missing()


def reads_columns(sparse: SparseProblem) -> bool:
    """Whether an operator may be asked for columns: a real one of moderate size, on the host."""
    ball = sparse.ball
    if isinstance(sparse.objective, BlockNorm):
        return False
    on_host = not is_complex(ball.like) and type(ball.y) is type(to_numpy(ball.y))
    return on_host and min(ball.A.shape) <= _COLUMNS


def finish_by_columns(bench: Workbench, x: Array) -> Candidates:
    """Go on from a point that a first-order method has reached, with the columns of its support.

    Where that method crawls, because columns are nearly dependent or sigma is tiny, its support is a good
    one, and a few rounds of Newton's method end the search. Each column costs a product.
    """
    search = ColumnSearch(bench, bench.problem)
    search.begin(0.0 * to_numpy(x), first=10)
    if not search.resume(to_numpy(x)):
        search.start_over(0.5)
    with suppress(StalledError):
        yield from newton(search, _ROUNDS)
    if not search.done:
        search.start_over(0.7)
        with suppress(StalledError):
            yield from newton(search, 4 * _ROUNDS)
