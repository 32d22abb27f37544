"""Very sparse columns are stored sparse, and give the same answers as dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro.basis_pursuit.columns import pieces
from lopro.basis_pursuit.columns.column_set import ColumnSet


def instance(
    dtype: Any = np.float64, signs: tuple[float, ...] = (-1.0, 1.0)
) -> tuple[Any, Any, float]:
    rng = np.random.default_rng(1)
    A = scipy.sparse.random_array((400, 1500), density=0.01, rng=rng, format="csc", dtype=dtype)
    A.data = rng.standard_normal(A.nnz).astype(dtype)
    if np.iscomplexobj(A.data):
        A.data += 1j * rng.standard_normal(A.nnz).astype(A.data.real.dtype)
    x = np.zeros(1500)
    x[rng.choice(1500, 30, replace=False)] = rng.choice(signs, 30)
    noise = 0.01 * rng.standard_normal(400)
    return A, (A @ x + noise).astype(dtype), float(np.linalg.norm(noise))


def test_a_set_of_sparse_columns_agrees_with_one_of_dense_columns() -> None:
    A, y, _ = instance()
    rng = np.random.default_rng(2)
    sets = [ColumnSet(y, np.ones(1500)) for _ in range(2)]
    readers = [lambda i: A[:, i], lambda i: A[:, i].toarray()]
    first, more = rng.permutation(1500)[:700], np.arange(3)
    expected = rng.random(703) < 0.4
    for columns, read in zip(sets, readers, strict=True):
        columns.extend(first, read, A.T[first] @ y)
        columns.extend(np.setdiff1d(more, first), read, A.T[np.setdiff1d(more, first)] @ y)
        columns.keep(expected[: len(columns)])
    sparse, dense = sets
    assert all(scipy.sparse.issparse(piece) for piece in sparse._pieces)
    np.testing.assert_array_equal(sparse.indices, dense.indices)
    np.testing.assert_allclose(sparse.gram, dense.gram, atol=1e-13)
    np.testing.assert_array_equal(sparse.toarray(), dense.toarray())
    x, r = rng.standard_normal(len(sparse)), rng.standard_normal(400)
    np.testing.assert_allclose(sparse.forward(x), dense.forward(x), atol=1e-12)
    np.testing.assert_allclose(sparse.adjoint(r), dense.adjoint(r), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
@pytest.mark.parametrize("kind", ["plain", "nonneg", "joint", "groups"])
def test_answers_agree_with_those_of_dense_columns(
    dtype: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonneg = kind == "nonneg"
    if nonneg and np.issubdtype(dtype, np.complexfloating):
        pytest.skip("complex numbers have no signs")
    A, y, sigma = instance(dtype, (1.0,) if nonneg else (-1.0, 1.0))
    options: dict[str, Any] = {"nonneg": nonneg}
    if kind == "joint":
        y, options["joint"] = np.stack([y, y[::-1]], axis=1), True
        sigma = 0.3 * float(np.linalg.norm(y))
    if kind == "groups":
        options["groups"] = np.arange(1500) // 2
    options["tol"] = 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-8
    made_dense: list[int] = []
    toarray = scipy.sparse.csc_array.toarray
    monkeypatch.setattr(
        scipy.sparse.csc_array,
        "toarray",
        lambda self, *a, **k: made_dense.append(self.shape[0]) or toarray(self, *a, **k),
    )
    sparse = lopro.bpdn(A, y, sigma, **options)
    assert 400 not in made_dense
    monkeypatch.setattr(pieces, "_SPARSE", 0.0)
    dense = lopro.bpdn(A, y, sigma, **options)
    assert 400 in made_dense
    assert sparse.success and dense.success
    assert sparse.fun == pytest.approx(dense.fun, rel=3.0 * options["tol"])
    assert sparse.counts.columns == dense.counts.columns
