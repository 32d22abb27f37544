"""Gram matrices and decompositions are started only if the deadline allows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lopro.core.deadline as deadlines
from lopro.core.arrays import on_host
from lopro.core.counting import Counts, counting
from lopro.core.deadline import EIGH, Deadline, OutOfTime, using_clock
from lopro.maps import LinearMap, linear_map

ROWS, COLUMNS = 30, 50
M = np.random.default_rng(0).standard_normal((ROWS, COLUMNS))
GRAM, EIGEN = 2.0 * ROWS**2 * COLUMNS, EIGH * ROWS**3


def in_time_for(operations: float, ask: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Return whether the work is done if the time left suffices for some operations, by a stopped clock."""
    monkeypatch.setattr(deadlines, "operations_per_second", lambda: 1.0)
    with using_clock(lambda: 0.0), Deadline(operations).active(), counting(Counts()) as counts:
        try:
            ask()
        except OutOfTime:
            return False
    return counts.factorizations > 0


@pytest.mark.parametrize("factor", [0.99, 1.01])
@pytest.mark.parametrize(
    ("matrix", "ask", "operations"),
    [
        (M, lambda A: A.left_gram, GRAM),
        (scipy.sparse.csr_array(np.eye(30, 50)), lambda A: A.left_gram, 2.0 * ROWS**2),
        (M, lambda A: A.left_spectrum, max(GRAM, EIGEN)),
        (M.T, lambda A: A.left_spectrum, EIGH * ROWS**2 * COLUMNS),
        (M, lambda A: A.largest_singular_value, max(GRAM, EIGEN)),
    ],
    ids=["gram", "sparse gram", "eigenvalues", "singular values", "norm"],
)
def test_expensive_work_is_checked_against_the_deadline_in_operations(
    matrix: Any,
    ask: Callable[[LinearMap], Any],
    operations: float,
    factor: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    A = linear_map(matrix)
    assert in_time_for(factor * operations, lambda: ask(A), monkeypatch) == (factor > 1.0)


def test_the_speed_of_a_device_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    A = linear_map(M)
    monkeypatch.setattr("lopro.maps.spectrum.on_host", lambda like: False)
    assert in_time_for(1.0, lambda: A.left_gram, monkeypatch)
    assert not in_time_for(0.0, lambda: linear_map(M).left_gram, monkeypatch)


def test_arrays_on_the_host_are_recognised() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert on_host(M) and on_host(torch.ones(2))
    assert not on_host(torch.ones(2, device="meta"))


def test_an_estimate_of_the_norm_stops_between_steps() -> None:
    class Rows:
        shape = M.shape

        def matvec(self, x: Any) -> Any:
            self.time += 1.0
            return M @ x

        def rmatvec(self, y: Any) -> Any:
            return M.T @ y

    rows = Rows()
    rows.time = 0.0
    with using_clock(lambda: rows.time), Deadline(3.5).active(), pytest.raises(OutOfTime):
        _ = linear_map(rows).largest_singular_value
    assert rows.time == 4.0, "after the step that passed the limit"
