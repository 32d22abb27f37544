"""Arrays of device libraries: no synchronisation, no transfer, and accurate sums in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy
from support.map_kinds import KINDS, Kind

from lopro.core.arrays import namespace, to_numpy
from lopro.core.counting import Counts, counting
from lopro.maps import linear_map

RNG = np.random.default_rng(0)
M = RNG.standard_normal((50, 70))
LIBRARIES = [
    kind for kind in KINDS if kind.name in ("strict", "torch", "torch-cuda", "jax", "cupy")
]


@pytest.fixture(params=LIBRARIES, ids=str)
def kind(request: pytest.FixtureRequest) -> Kind:
    for package in request.param.needs:
        pytest.importorskip(package, reason=f"{package} is not installed")
    request.param.prepare()
    return request.param


@pytest.mark.parametrize("complex_map", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("complex_dual", [False, True], ids=["real-dual", "complex-dual"])
def test_single_precision_data_are_summed_in_the_precision_of_the_dual(
    kind: Kind, complex_map: bool, complex_dual: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lopro.maps.arrays._SLAB", 7 * 70)  # several slabs, the last one smaller
    data = M + 1j * M[::-1] if complex_map else M
    data = data.astype(np.complex64 if complex_map else np.float32)
    y = RNG.standard_normal((50, 2)) * (1 - 2j if complex_dual else 1.0)
    A = linear_map(kind.of(data))
    exact = data.astype(np.complex128).conj().T @ y
    found = A.adjoint_exactly(kind.of(y))
    np.testing.assert_allclose(to_numpy(found), exact, rtol=0, atol=1e-12)
    single = y.astype(np.complex64 if complex_dual else np.float32)
    rough = to_numpy(A.adjoint_exactly(kind.of(single)))
    assert rough.dtype in (np.float32, np.complex64)
    np.testing.assert_allclose(rough, exact, rtol=0, atol=1e-3)
    assert np.abs(rough - exact).max() > 1e-10, "the result shows the rounding of single precision"
    # The lengths of columns too are summed in double precision.
    lengths = np.linalg.norm(data.astype(np.complex128), axis=0)
    np.testing.assert_allclose(to_numpy(A.column_norms), lengths, rtol=1e-14)


def test_answers_are_in_the_library_of_the_data(kind: Kind) -> None:
    A = linear_map(kind.of(M))
    xp = namespace(A.like)
    products = (A.forward(kind.of(np.ones(70))), A.adjoint_exactly(kind.of(np.ones(50))))
    blocks = (A.columns([1]), A.rows([1]), A.column_norms, A.row_norms)
    assert all(namespace(part) is xp for part in (*products, *blocks))


def test_nothing_waits_for_the_device_after_the_first_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Conversions to Python numbers and truth values, and copies to the host, wait for a GPU."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    A = linear_map(torch.asarray(M))
    y = torch.ones(50, dtype=torch.float64)
    A.adjoint(y)

    def forbidden(*args: Any, **named: Any) -> Any:
        raise AssertionError("waits for the device")

    for method in ("item", "__float__", "__bool__", "__int__", "numpy", "cpu", "tolist"):
        monkeypatch.setattr(torch.Tensor, method, forbidden)
    A.forward(A.adjoint(y))
    A.adjoint_exactly(torch.ones((50, 3), dtype=torch.float64))
    A.columns([1, 2])


def test_entries_that_are_not_finite_are_found_before_they_are_used() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    broken = M.copy()
    broken[3, 4] = np.inf
    for use in (
        lambda A: A.adjoint(torch.zeros(50, dtype=torch.float64)),
        lambda A: A.adjoint_exactly(torch.ones(50, dtype=torch.float64)),
        lambda A: A.matrix,
        lambda A: A.row_norms,
        lambda A: A.left_spectrum,
    ):
        with pytest.raises(ValueError, match="Phi must be finite"):
            use(linear_map(torch.asarray(broken), "Phi"))


def test_a_product_that_overflows_is_no_error_of_the_matrix() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    A = linear_map(torch.full((3, 2), 1e200, dtype=torch.float64))
    assert torch.isinf(A.adjoint(torch.full((3,), 1e200, dtype=torch.float64))).all()
    large = linear_map(torch.full((3, 2), 1.7e308, dtype=torch.float64))
    assert torch.isinf(large.adjoint(torch.ones(3, dtype=torch.float64))).all()


def test_jax_needs_64_bits() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    before = jax.config.jax_enable_x64
    try:
        jax.config.update("jax_enable_x64", False)
        with pytest.raises(TypeError, match=r'Phi is a JAX array.*"jax_enable_x64", True'):
            linear_map(jax.numpy.ones((2, 2)), "Phi")
    finally:
        jax.config.update("jax_enable_x64", before)


def test_checks_take_no_additional_passes(kind: Kind) -> None:
    with counting(Counts()) as counts:
        linear_map(kind.of(M)).adjoint(kind.of(np.ones(50)))
    assert counts == Counts(rmatvecs=1, passes=1, bytes_read=M.nbytes)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_sparse_matrix_is_copied_to_the_device_once(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vectors stay on the device: only the matrix is copied."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    dense = np.array([[1.0, 0.0, 2.0], [0.0, -3.0, 0.0]]).astype(dtype)
    if dtype is np.complex128:
        dense[0, 2] += 4.0j
    A = linear_map(scipy.sparse.csc_array(dense))
    monkeypatch.setattr("lopro.maps.sparse_map.on_host", lambda x: False)
    monkeypatch.setattr(torch.Tensor, "cpu", None)  # copies to the host would fail
    x, y = np.array([1.0, 2.0, 3.0]).astype(dtype), np.array([2.0, -1.0]).astype(dtype)
    with counting(Counts()) as counts:
        forward = [A.forward(torch.asarray(x)) for _ in range(2)][1]
        back = A.adjoint(torch.asarray(y))
    np.testing.assert_allclose(np.asarray(forward), dense @ x)
    np.testing.assert_allclose(np.asarray(back), dense.conj().T @ y)
    assert (counts.transfers, counts.bytes_transferred) == (1, A.nbytes)
