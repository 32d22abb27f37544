"""Work in threads: results in order, a limited number of tasks in advance, and no more after an error."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from support.map_kinds import Sliced

from lopro.maps import StoredMap
from lopro.maps.in_order import in_order


def test_the_order_is_that_of_the_items_and_threads_do_work_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)

    def work(n: int) -> int:
        both.wait()  # each waits for the other
        return n

    assert list(in_order(work, range(10), workers=2)) == list(range(10))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_no_more_tasks_are_started_than_there_are_workers(workers: int) -> None:
    begun: list[int] = []
    for taken, n in enumerate(in_order(lambda n: begun.append(n) or n, range(12), workers)):
        assert n == taken
        # The items taken, and as many more as workers; with one worker no item is started in advance.
        assert len(begun) <= taken + (1 if workers == 1 else 1 + workers)
    assert sorted(begun) == list(range(12))


def test_an_error_is_raised_in_order_and_ends_the_work() -> None:
    begun: list[int] = []

    def work(n: int) -> int:
        begun.append(n)
        if n == 3:
            raise OSError("a bad sector")
        return n

    results = in_order(work, range(100), workers=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="a bad sector"):
        next(results)
    assert max(begun) <= 5


def test_work_whose_results_are_not_requested_is_not_started() -> None:
    begun: list[int] = []
    results = in_order(lambda n: begun.append(n), range(100), workers=2)
    next(results)
    results.close()
    assert len(begun) <= 4
    assert threading.active_count() < 50


def test_answers_do_not_depend_on_the_number_of_workers() -> None:
    rng = np.random.default_rng(0)
    M = rng.standard_normal((40, 60)).astype(np.float32)
    Y, X = rng.standard_normal((40, 3)), rng.standard_normal((60, 2))
    answers: list[Any] = []
    for workers in (1, 2, 5):
        A = StoredMap(Sliced(M), chunks=(7, 9), block_bytes=1, workers=workers)
        answers.append((A.forward(X), A.adjoint(Y), A.columns([1, 40]), A.column_norms))
    for other in answers[1:]:
        for one, same in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
    with pytest.raises(ValueError, match="workers must be at least 1"):
        StoredMap(M, workers=0)
