"""Newton's method may diverge where alpha decreases fast: this is detected, and the path is followed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro.basis_pursuit import programs
from lopro.basis_pursuit.columns import search as column_search
from lopro.basis_pursuit.columns.search import ColumnSearch


@pytest.fixture
def fresh_starts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of rounds after which the path was restarted."""
    after: list[int] = []
    rounds: list[ColumnSearch] = []
    original, one_round = ColumnSearch.follow_path, ColumnSearch.round

    def follow_path(self: ColumnSearch, *args: float) -> None:
        after.append(sum(search is self for search in rounds))
        original(self, *args)

    def counted_round(self: ColumnSearch) -> None:
        rounds.append(self)
        one_round(self)

    monkeypatch.setattr(ColumnSearch, "round", counted_round)
    monkeypatch.setattr(ColumnSearch, "follow_path", follow_path)
    return after


def with_two_entries_a_column(seed: int) -> tuple[Any, Any, float]:
    rng = np.random.default_rng(seed)
    A = scipy.sparse.random_array((200, 2000), density=0.01, rng=rng, format="csc")
    A.data = rng.standard_normal(A.nnz)
    x = np.zeros(2000)
    x[rng.choice(2000, 10, replace=False)] = rng.standard_normal(10)
    noise = rng.standard_normal(200)
    noise *= 0.01 * np.linalg.norm(A @ x) / np.linalg.norm(noise)
    return A, A @ x + noise, float(np.linalg.norm(noise))


@pytest.mark.parametrize(("seed", "rounds"), [(1, 12), (2, 14)])
def test_a_growing_number_of_missing_columns_restarts_the_path(
    seed: int, rounds: int, fresh_starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = with_two_entries_a_column(seed)
    found = lopro.bpdn(*instance, tol=1e-8)
    assert found.success and fresh_starts == [rounds]
    fresh_starts.clear()
    settings = dataclasses.replace(column_search.SETTINGS, diverging=1000)
    monkeypatch.setattr(column_search, "SETTINGS", settings)
    other = lopro.bpdn(*instance, tol=1e-8)
    assert other.fun == pytest.approx(found.fun, rel=2e-8)
    assert not fresh_starts or fresh_starts[0] > rounds


@pytest.fixture
def no_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linear programs are not allowed here."""

    def solved(*_: Any) -> Any:
        raise AssertionError("a linear program was solved")

    monkeypatch.setattr(programs, "optimal_pair", solved)


@pytest.mark.usefixtures("no_program")
@pytest.mark.parametrize("share", [0.2, 0.05, 0.02])
def test_a_radius_below_the_noise_needs_no_linear_program(
    share: float, fresh_starts: list[int]
) -> None:
    """The solution has nearly as many nonzeros as rows, and is far from that of the equations."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100, 400))
    noise = 0.02 * rng.standard_normal(100)
    y = A[:, :10] @ rng.choice([-1.0, 1.0], 10) + noise
    found = lopro.bpdn(A, y, share * float(np.linalg.norm(noise)), tol=1e-8)
    assert found.success and len(fresh_starts) == 1
    assert found.counts.rmatvecs <= 70


@pytest.fixture
def restarts_before_programs(fresh_starts: list[int], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of restarts after which a linear program was solved."""
    restarts: list[int] = []
    original = programs.optimal_pair

    def optimal_pair(*args: Any) -> Any:
        restarts.append(len(fresh_starts))
        return original(*args)

    monkeypatch.setattr(programs, "optimal_pair", optimal_pair)
    return restarts


def test_a_tiny_radius_begins_with_a_linear_program(restarts_before_programs: list[int]) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((100, 400))
    y = A[:, :10] @ rng.choice([-1.0, 1.0], 10) + 0.02 * rng.standard_normal(100)
    found = lopro.bpdn(A, y, 1e-6 * float(np.linalg.norm(y)), tol=1e-8)
    assert found.success and restarts_before_programs == [0]


def equations(m: int, d: int, nonzeros: int) -> tuple[Any, Any, float]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((m, d))
    return A, A[:, :nonzeros] @ rng.choice([-1.0, 1.0], nonzeros), 0.0


@pytest.mark.usefixtures("no_program")
def test_sparse_solutions_of_many_equations_are_at_the_end_of_a_short_path(
    fresh_starts: list[int],
) -> None:
    found = lopro.bpdn(*equations(300, 1000, 78), tol=1e-8)
    assert found.success and len(found.support) == 78 and len(fresh_starts) == 1
    assert found.counts.rmatvecs <= 30


def test_a_path_whose_support_fills_the_rows_is_replaced_by_a_linear_program(
    restarts_before_programs: list[int],
) -> None:
    found = lopro.bpdn(*equations(300, 1000, 120), tol=1e-8)
    assert found.success and restarts_before_programs == [1]
    assert found.counts.rmatvecs <= 30
