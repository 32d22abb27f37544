"""The pool of columns: each is read once, several requests share a pass, and memory is bounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.map_kinds import KINDS, Kind

from lopro.basis_pursuit.columns.column_set import ColumnSet
from lopro.basis_pursuit.columns.pool import PassRequest, Pool
from lopro.core.arrays import to_numpy
from lopro.core.counting import Counts, counting
from lopro.core.device_cholesky import device_factor
from lopro.maps import StoredMap, linear_map

RNG = np.random.default_rng(0)
M = RNG.standard_normal((12, 40))
LIBRARIES = [kind for kind in KINDS if kind.name in ("numpy", "csr", "strict", "torch", "jax")]


@pytest.fixture(params=LIBRARIES, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    for package in request.param.needs:
        pytest.importorskip(package, reason=f"{package} is not installed")
    request.param.prepare()
    return request.param


def columns(*indices: int) -> Any:
    return np.array(indices, dtype=np.intp)


def test_columns_are_returned_in_the_requested_order_from_any_block(
    kind: Kind, tmp_path: Any
) -> None:
    pool = Pool(kind.map(M, tmp_path))
    pool.answer([PassRequest(columns=columns(9, 4))])
    pool.answer([PassRequest(columns=columns(30, 4, 1))])
    np.testing.assert_array_equal(pool.indices, [4, 9, 1, 30])
    for requested in (
        columns(1, 4),
        columns(30, 9, 1, 4),
        columns(
            4,
        ),
    ):
        np.testing.assert_array_equal(to_numpy(pool.read(requested)), M[:, requested])
    r = RNG.standard_normal(12)
    np.testing.assert_allclose(pool.adjoint(r), M[:, [4, 9, 1, 30]].T @ r, rtol=1e-13)
    assert 4 in pool and 5 not in pool


def test_requests_share_a_pass_and_are_answered_separately() -> None:
    pool = Pool(StoredMap(M))
    first, second = RNG.standard_normal((2, 12))
    with counting(Counts()) as counts:
        answers = pool.answer(
            [
                PassRequest(dual=first),
                PassRequest(columns=columns(3, 5)),
                PassRequest(dual=second, columns=columns(5, 7)),
            ]
        )
    assert answers[1] is None
    np.testing.assert_allclose(answers[0], M.T @ first, rtol=1e-12)
    np.testing.assert_allclose(answers[2], M.T @ second, rtol=1e-12)
    np.testing.assert_array_equal(np.sort(pool.indices), [3, 5, 7])
    assert (counts.passes, counts.rmatvecs, counts.columns) == (1, 2, 3)
    with counting(Counts()) as again:
        pool.answer([PassRequest(columns=columns(7, 3))])
    assert again == Counts(), "columns in the pool are not read again"


def test_the_columns_furthest_from_use_are_dropped() -> None:
    pool = Pool(linear_map(M), capacity=6 * 12 * 8)
    pool.answer([PassRequest(columns=np.arange(6))])
    pool.note(np.concatenate([[0.1, 0.9, 0.2, 0.8, 0.3, 0.7], np.zeros(34)]))
    pool.room_for(0, columns(0))
    assert len(pool) == 6, "there is space for all of them"
    pool.room_for(2, columns(0))
    np.testing.assert_array_equal(np.sort(pool.indices), [0, 1, 3, 5])  # 0 is in use
    np.testing.assert_array_equal(pool.read(columns(5, 1)), M[:, [5, 1]])
    pool.room_for(40, columns(0, 1, 3, 5))
    assert len(pool) == 4, "columns in use are kept"


def test_columns_on_a_device_and_their_gram_matrix(kind: Kind, tmp_path: Any) -> None:
    if kind.name == "csr":
        pytest.skip("columns in use are dense")
    for dtype, digits in ((np.float64, 1e-13), (np.float32, 1e-13)):
        data = M.astype(dtype)
        A = kind.map(data, tmp_path)
        y = np.linspace(-1.0, 1.0, 12) / 3.0
        held = ColumnSet(y, np.linspace(1.0, 2.0, 40), like=A.like)
        held.extend(columns(7, 2, 11), A.columns, np.array([1.0, 2.0, 3.0]))
        held.extend(columns(0, 30), A.columns, np.array([4.0, 5.0]))
        held.keep(np.array([True, False, True, True, True]))
        S, wide = [7, 11, 0, 30], data.astype(np.float64)
        np.testing.assert_array_equal(held.indices, S)
        # In double precision given correlations are kept; those of single-precision data are recomputed.
        exact = [1.0, 3.0, 4.0, 5.0] if dtype is np.float64 else wide[:, S].T @ y
        np.testing.assert_allclose(held.correlations, exact, rtol=0.0, atol=1e-15)
        np.testing.assert_array_equal(held.weights, np.linspace(1.0, 2.0, 40)[S])
        np.testing.assert_allclose(
            to_numpy(held.gram), wide[:, S].T @ wide[:, S], rtol=digits, atol=1e-13
        )
        x, r = RNG.standard_normal(4), RNG.standard_normal(12)
        np.testing.assert_allclose(held.forward(x), wide[:, S] @ x, rtol=digits, atol=1e-13)
        np.testing.assert_allclose(held.adjoint(r), wide[:, S].T @ r, rtol=digits, atol=1e-13)
        both = held.forward(np.stack([x, 2.0 * x], axis=1))
        np.testing.assert_allclose(both[:, 1], 2.0 * wide[:, S] @ x, rtol=digits, atol=1e-13)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_a_factor_solves_or_reports_dependent_columns(library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    (kind,) = [kind for kind in KINDS if kind.name == library]
    kind.prepare()
    B = M[:, :5]
    factor = device_factor(kind.of(B.T @ B))
    assert factor is not None and not factor.loses(1e-12)
    by_hand = np.square(np.diagonal(np.linalg.cholesky(B.T @ B)))
    np.testing.assert_allclose(to_numpy(factor.pivots), by_hand, rtol=1e-12)
    solve = factor.solve
    right = RNG.standard_normal((5, 2))
    np.testing.assert_allclose(solve(right), np.linalg.solve(B.T @ B, right), rtol=1e-10)
    np.testing.assert_allclose(solve(right[:, 0]), solve(right)[:, 0], rtol=1e-14)
    for change in (0.0, 1e-9, 1e-7):
        twin = np.column_stack([B, B[:, 0] + change * M[:, 9]])
        dependent = device_factor(kind.of(twin.T @ twin))
        assert dependent is None or dependent.loses(1e-12)
    indefinite = device_factor(kind.of(np.diag([1.0, -1.0])))
    assert indefinite is None or indefinite.loses(0.0)
