"""Sparse tensors of PyTorch: solved where they are, by products, columns and the working set."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.maps import linear_map

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

RNG = np.random.default_rng(0)
A = RNG.standard_normal((60, 200)) * (RNG.random((60, 200)) < 0.2)
Y = A[:, :4] @ np.array([1.0, -2.0, 3.0, 1.5])


def sparse(layout: str = "csr") -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(torch.asarray(A), f"to_sparse_{layout}")()


@pytest.mark.parametrize("method", [None, lopro.WorkingSet(), lopro.MatrixFree()])
def test_basis_pursuit_of_a_sparse_tensor(method: Any) -> None:
    result = lopro.bpdn(sparse(), torch.asarray(Y), 0.01, method=method)
    assert result.success
    assert isinstance(result.x, torch.Tensor)
    assert result.fun == pytest.approx(lopro.bpdn(A, Y, 0.01).fun, rel=2e-6)


def test_least_squares_of_a_sparse_tensor_over_a_box() -> None:
    zero, one = torch.zeros(200, dtype=torch.float64), torch.ones(200, dtype=torch.float64)
    box = lopro.constraints.Polyhedron.box(zero, one)
    f = lopro.objectives.LeastSquares(sparse(), torch.asarray(Y) + 1.0)
    result = lopro.solve(lopro.Problem(f, box))
    dense = lopro.objectives.LeastSquares(A, Y + 1.0)
    host = lopro.constraints.Polyhedron.box(np.zeros(200), np.ones(200))
    assert result.success and isinstance(result.x, torch.Tensor)
    assert result.fun == pytest.approx(lopro.solve(lopro.Problem(dense, host)).fun, rel=2e-6)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_every_layout_gives_the_same_numbers(layout: str) -> None:
    made = sparse(layout) if layout != "coo" else torch.asarray(A).to_sparse()
    found = linear_map(made)
    np.testing.assert_allclose(found.columns([5, 0]).numpy(), A[:, [5, 0]])
    np.testing.assert_allclose(found.rows([7]).numpy(), A[[7]])
    np.testing.assert_allclose(found.adjoint(torch.asarray(Y)).numpy(), A.T @ Y, atol=1e-12)
    assert found.in_memory and not found.explicit


def test_a_constraint_requires_a_matrix() -> None:
    with pytest.raises(TypeError, match="C must be an array or a sparse matrix"):
        lopro.constraints.Polyhedron(sparse(), torch.asarray(Y))
