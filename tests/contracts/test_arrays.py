"""The array helpers return Python floats, keep libraries and dtypes, and handle extreme numbers."""

from __future__ import annotations

import math

import array_api_strict
import numpy as np
import pytest
from support.catalogue_objectives import LIBRARIES, Library

from lopro.core.arrays import (
    Companion,
    asarray_like,
    copy,
    eps,
    from_numpy,
    inner,
    is_array,
    is_complex,
    is_single,
    isfinite,
    namespace,
    norm,
    to_numpy,
    widest,
    zeros,
)
from lopro.core.vectors import inners, norms

RNG = np.random.default_rng(0)
REAL = RNG.standard_normal((3, 4))
COMPLEX = REAL + 1j * RNG.standard_normal((3, 4))

every_library = pytest.mark.parametrize("library", LIBRARIES, ids=str)


@every_library
@pytest.mark.parametrize("x", [REAL, COMPLEX], ids=["real", "complex"])
@pytest.mark.parametrize("y", [REAL + 1.0, COMPLEX * (2.0 + 1.0j)], ids=["real", "complex"])
def test_inner_is_the_real_inner_product(library: Library, x, y):
    expected = float(np.sum(x.real * y.real + x.imag * y.imag))
    found = inner(library.of(x), library.of(y))
    assert type(found) is float
    assert found == pytest.approx(expected, rel=10 * library.tolerance)


@every_library
@pytest.mark.parametrize("x", [REAL, COMPLEX, REAL.T, REAL[::-1]])
def test_norm_is_the_frobenius_norm(library: Library, x):
    found = norm(library.of(x))
    assert type(found) is float
    assert found == pytest.approx(np.linalg.norm(x), rel=library.tolerance)


@every_library
@pytest.mark.parametrize("unit", [1.0, 1.0 + 1.0j])
@pytest.mark.parametrize("exponent", [-300, -170, -40, -30, -12, 0, 12, 18, 30, 160, 300])
def test_norm_survives_extreme_numbers(library: Library, exponent, unit):
    if library.single and abs(exponent) > 30:
        exponent = int(math.copysign(36, exponent))
    x = unit * np.array([3.0, 4.0]) * 10.0**exponent
    expected = 5.0 * abs(unit) * 10.0**exponent
    assert norm(library.of(x)) == pytest.approx(expected, rel=library.tolerance)


@every_library
def test_norm_of_special_arrays(library: Library):
    assert norm(library.of(np.zeros(3))) == 0.0
    assert norm(library.of(np.zeros((0, 2)))) == 0.0
    assert norm(library.of([1.0, np.inf])) == math.inf
    assert math.isnan(norm(library.of([1.0, np.nan])))
    # The largest entry determines the norm, also where its square underflows in single precision.
    assert norm(library.of([1e-25, 0.0])) == pytest.approx(1e-25)


@every_library
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e18])
def test_several_at_once_are_the_same_one_by_one(library: Library, size):
    """Vectors of one kind take one device-to-host transfer; matrices, complex and mixed ones one each."""
    vectors = [library.of(size * REAL[0]), library.of(size * REAL[1, :]), library.of(0.0 * REAL[0])]
    others = [library.of(REAL), library.of(COMPLEX), library.of(COMPLEX[0])]
    for arrays in (vectors, [*vectors, *others]):
        assert norms(*arrays) == pytest.approx([norm(x) for x in arrays], rel=library.tolerance)
        assert all(type(found) is float for found in norms(*arrays))
    pairs = [(vectors[0], vectors[1]), (vectors[1], vectors[1]), (vectors[0], vectors[2])]
    for some in (pairs, [*pairs, (others[0], others[1])]):
        expected = [inner(x, y) for x, y in some]
        assert inners(*some) == pytest.approx(expected, rel=10 * library.tolerance)


@every_library
def test_predicates_of_dtypes(library: Library):
    real, both = library.of(REAL), library.of(COMPLEX)
    assert not is_complex(real)
    assert is_complex(both)
    for x in (real, both):
        assert eps(x) == float(np.finfo(np.float32 if library.single else np.float64).eps)
        assert is_single(x) is library.single
        assert is_array(x)
        assert isfinite(x)
    assert not isfinite(library.of([1.0, np.nan]))
    assert not isfinite(library.of([1.0, np.inf]))


def test_scalars_and_lists_are_no_arrays():
    assert not any(map(is_array, (1.0, np.float64(1.0), [1.0], "x", None)))


@every_library
def test_copies_and_zeros(library: Library):
    x = library.of(REAL)
    other = copy(x)
    other[0, 0] = 99.0
    assert to_numpy(x)[0, 0] == pytest.approx(REAL[0, 0])
    assert namespace(other) is namespace(x)
    assert other.dtype == x.dtype
    nothing = zeros((2, 5), x)
    assert tuple(nothing.shape) == (2, 5)
    assert nothing.dtype == x.dtype
    assert norm(nothing) == 0.0


@every_library
@pytest.mark.parametrize(
    "values",
    [REAL, REAL[::-1, ::2], np.asfortranarray(REAL), REAL.astype(np.float32), REAL.tolist()],
    ids=["plain", "strided", "fortran", "float32", "list"],
)
def test_conversion_to_numpy_and_back(library: Library, values):
    if isinstance(values, np.ndarray):
        values.setflags(write=False)
    like = library.of([1.0])
    there = asarray_like(values, like)
    assert namespace(there) is namespace(like)
    assert there.dtype == like.dtype
    np.testing.assert_allclose(to_numpy(there), np.array(values), rtol=1e-6)
    # From any library into any other.
    for other in LIBRARIES:
        again = asarray_like(there, other.of([1.0]))
        np.testing.assert_allclose(to_numpy(again), np.array(values), rtol=1e-6)


@every_library
def test_from_numpy_keeps_the_dtype(library: Library):
    found = from_numpy(COMPLEX, library.of([1.0]))
    assert namespace(found) is namespace(library.of([1.0]))
    np.testing.assert_array_equal(to_numpy(found), COMPLEX)


def test_widest():
    singles = [np.zeros(1, t) for t in (np.float32, np.float64, np.complex64)]
    assert widest(singles[:2]).dtype == np.float64
    assert widest(singles).dtype == np.complex64
    assert widest([]) is None


@every_library
def test_a_companion_follows_its_points(library: Library):
    weights = Companion(np.array([1.0, 2.0]))
    real, both = library.of([1.0, 1.0]), library.of([1.0j, 1.0])
    for _ in range(2):
        for x in (real, both):
            beside = weights.beside(x)
            assert beside.dtype == x.dtype
            assert namespace(beside) is namespace(x)
            np.testing.assert_array_equal(to_numpy(beside * x), [1.0, 2.0] * to_numpy(x))
    assert weights.beside(real) is weights.beside(real), "converted once"


@every_library
def test_companions_stay_real_or_complex_where_they_must(library: Library):
    x = library.of([1.0j, 1.0])
    beside = Companion(np.array([1.0, 2.0]), real=True).beside(x)
    assert not is_complex(beside)
    assert is_single(beside) is library.single
    phases = Companion(np.array([1.0j, 2.0]))
    assert is_complex(phases.beside(library.of([1.0, 1.0])))
    assert phases.beside(np.array([1, 2])).dtype == np.complex128
    assert Companion(np.array([0.5, 2.0])).beside(np.array([1, 2])).dtype == np.float64


def test_devices_are_kept():
    elsewhere = array_api_strict.Device("device1")
    x = array_api_strict.asarray([1.0, 2.0], device=elsewhere)
    assert zeros((3,), x).device == elsewhere
    assert asarray_like(np.ones(2), x).device == elsewhere
    weights = Companion(array_api_strict.asarray([1.0, 2.0]))
    assert weights.beside(x).device == elsewhere


def test_special_cases_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0 + 2.0j, 3.0j])
    np.testing.assert_array_equal(to_numpy(x.conj()), [1.0 - 2.0j, -3.0j])
    leaf = torch.tensor([3.0, 4.0], requires_grad=True)
    assert not copy(leaf).requires_grad
    np.testing.assert_array_equal(to_numpy(leaf), [3.0, 4.0])
