"""Operators of other packages and of users, with the methods that they define."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg
from support.map_kinds import Dictionary, Products

import lopro
from lopro.core.arrays import inner
from lopro.core.counting import Counts, counting
from lopro.errors import MissingCapabilityError
from lopro.maps import OperatorMap, linear_map

RNG = np.random.default_rng(0)
M = RNG.standard_normal((6, 9))


def adjoint_pair(A: OperatorMap, dtype: Any) -> None:
    """Check ``<A x, y> = <x, A^H y>``, and blocks against vectors."""
    m, n = A.shape
    x, y = (RNG.standard_normal(size).astype(dtype) for size in (n, m))
    if np.dtype(dtype).kind == "c":
        x, y = x * (1 + 2j), y * (3 - 1j)
    assert inner(A.forward(x), y) == pytest.approx(inner(x, A.adjoint(y)), rel=1e-12)
    X, Y = np.stack([x, 2.0 * x], axis=1), np.stack([y, -y], axis=1)
    np.testing.assert_allclose(A.forward(X)[:, 1], 2.0 * A.forward(x), rtol=1e-12)
    np.testing.assert_allclose(A.adjoint(Y)[:, 1], -A.adjoint(y), rtol=1e-12)


def test_pylops() -> None:
    pylops = pytest.importorskip("pylops", reason="pylops is not installed")
    A = linear_map(pylops.FirstDerivative(20, dtype="float64"))
    assert isinstance(A, OperatorMap) and A.like.dtype == np.float64 and not A.has_columns
    adjoint_pair(A, np.float64)
    B = linear_map(pylops.signalprocessing.FFT(16, dtype="complex128"))
    adjoint_pair(B, np.complex128)


def test_sigpy() -> None:
    sigpy = pytest.importorskip("sigpy", reason="sigpy is not installed")
    fourier = linear_map(sigpy.linop.FFT((4, 5)))
    assert fourier.shape == (20, 20) and fourier.like.dtype == np.complex128
    adjoint_pair(fourier, np.complex128)
    # In double precision, although SigPy would convert real numbers to single precision.
    x = RNG.standard_normal(20)
    expected = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(x.reshape(4, 5)), norm="ortho"))
    np.testing.assert_allclose(fourier.forward(x), expected.ravel(), rtol=1e-12)
    cut = linear_map(sigpy.linop.Resize((3, 3), (5, 4)))
    assert cut.shape == (9, 20) and cut.like.dtype == np.float64
    adjoint_pair(cut, np.float64)


def test_blocks_are_one_pass_only_for_operators_that_declare_it() -> None:
    for operator, passes in ((Products(M), 1), (scipy.sparse.linalg.aslinearoperator(M), 4)):
        with counting(Counts()) as counts:
            linear_map(operator).forward(np.ones((9, 4)))
        assert counts == Counts(matvecs=4, passes=passes)


def test_an_operator_without_blocks_reads_its_data_for_every_vector() -> None:
    class OneByOne:
        shape, dtype, nbytes = M.shape, M.dtype, M.nbytes

        def matvec(self, x: Any) -> Any:
            return M @ x

        def rmatvec(self, y: Any) -> Any:
            return M.T @ y

    A = linear_map(OneByOne())
    with counting(Counts()) as counts:
        A.forward(np.ones((9, 4)))
        A.adjoint(np.ones(6))
        A.adjoint_exactly(np.ones((6, 2)))
    assert counts == Counts(matvecs=4, rmatvecs=3, passes=7, bytes_read=7 * M.nbytes)


def test_an_operator_with_columns() -> None:
    A = linear_map(Dictionary(M), "D")
    assert A.has_columns and A.has_rows and not A.explicit
    with counting(Counts()) as counts:
        np.testing.assert_array_equal(A.columns([2, 0]), M[:, [2, 0]])
    assert counts == Counts(columns=2, bytes_read=2 * M[:, 0].nbytes)
    with pytest.raises(MissingCapabilityError, match="D is an operator: the matrix"):
        A.matrix  # noqa: B018


def test_columns_of_a_scipy_operator_are_not_guessed() -> None:
    class Misleading(scipy.sparse.linalg.LinearOperator):
        columns = "five"

        def __init__(self) -> None:
            super().__init__(np.float64, M.shape)

        def _matvec(self, x: Any) -> Any:
            return M @ x

        def _rmatvec(self, y: Any) -> Any:
            return M.T @ y

    assert not linear_map(Misleading()).has_columns


def test_stochastic_gradients_from_rows_of_an_operator() -> None:
    b = np.ones(6)
    ours, numpys = (lopro.objectives.LeastSquares(A, b) for A in (Dictionary(M), M))
    assert ours.stochastic
    for f in (ours, numpys):
        f.found = f.stochastic_subgradient(np.ones(9), np.random.default_rng(0))
    np.testing.assert_allclose(ours.found, numpys.found, rtol=1e-13)
    assert not lopro.objectives.LeastSquares(Products(M), b).stochastic


def test_bpdn_with_user_defined_products() -> None:
    y = M[:, 2] + M[:, 5]
    found = lopro.bpdn(Products(M), y, 0.1, tol=1e-8)
    assert found.success
    assert found.fun == pytest.approx(lopro.bpdn(M, y, 0.1, tol=1e-10).fun, rel=1e-7)
