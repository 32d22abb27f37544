"""Objectives keep the library and dtype of their points, and share no memory with the caller."""

from __future__ import annotations

import numpy as np
import pytest
from support.catalogue_objectives import ENTRIES, LIBRARIES, NUMPY, Entry, Library

from lopro.core.arrays import namespace, to_numpy
from lopro.functions import Ball
from lopro.metric.loss import PairLoss
from lopro.objectives import L1Norm, LeastSquares, Linear, Logistic, Quadratic, SquaredDistance


@pytest.fixture(params=ENTRIES, ids=str)
def entry(request: pytest.FixtureRequest) -> Entry:
    return request.param


def outputs(f, x, target):
    """Every array that an objective returns at ``x``."""
    yield "subgradient", f.subgradient(x)
    yield "linearize_at", f.linearize_at(f.image(x))[1]()
    yield "minorant", f.minorant(x, target)[1]
    if f.proximable:
        yield "prox", f.prox(x, 0.3)
    if f.stochastic:
        yield "stochastic", f.stochastic_subgradient(x, np.random.default_rng(5))


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_library_and_dtype_are_kept_and_results_are_those_of_numpy(entry, library: Library):
    rng = np.random.default_rng(7)
    point, slope = entry.point(rng), entry.point(rng)
    f, reference = entry.build(library.of), entry.build(NUMPY.of)
    x, target = library.of(point), library.of(slope)
    pairs = zip(outputs(f, x, target), outputs(reference, point, slope), strict=True)
    for (name, array), (_, expected) in pairs:
        assert namespace(array) is namespace(x), name
        assert array.dtype == x.dtype, name
        assert tuple(array.shape) == entry.shape, name
        np.testing.assert_allclose(
            to_numpy(array), expected, rtol=library.tolerance, atol=10 * library.tolerance
        )
    value = f.value(x)
    assert isinstance(value, float)
    assert value == pytest.approx(reference.value(point), rel=10 * library.tolerance)


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_constants_are_those_of_numpy(entry, library: Library):
    f, reference = entry.build(library.of), entry.build(NUMPY.of)
    center = entry.point(np.random.default_rng(8))
    ours, expected = (
        [
            g.lipschitz(),
            g.lipschitz(Ball(c, 2.0)),
            g.smoothness(),
            g.strong_convexity(),
            g.infimum(),
            g.sublevel_radius(50.0),
        ]
        for g, c in ((f, library.of(center)), (reference, center))
    )
    for a, b in zip(ours, expected, strict=True):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert isinstance(a.value, float)
            assert a.value == pytest.approx(b.value, rel=2e-3 if library.single else 1e-9)


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_scaling_into_the_domain_in_every_library(entry, library: Library):
    v = entry.point(np.random.default_rng(9), 3.0)
    ours = entry.build(library.of).scale_into_domain(library.of(v))
    expected = entry.build(NUMPY.of).scale_into_domain(v)
    assert ours == (None if expected is None else pytest.approx(expected, rel=1e-5))


def test_points_are_not_changed_nor_shared(entry):
    f = entry.build(NUMPY.of)
    rng = np.random.default_rng(10)
    x, target = entry.point(rng), entry.point(rng)
    x0, target0 = x.copy(), target.copy()
    value = f.value(x)
    first = {name: array.copy() for name, array in outputs(f, x, target)}
    for _, array in outputs(f, x, target):
        assert not np.shares_memory(array, x)
        assert not np.shares_memory(array, target)
        # Changing the returned arrays must not change the objective's data.
        array[...] = np.nan
    for name, array in outputs(f, x, target):
        np.testing.assert_array_equal(array, first[name])
    assert f.value(x) == value
    np.testing.assert_array_equal(x, x0)
    np.testing.assert_array_equal(target, target0)


def test_read_only_points_are_accepted(entry):
    f = entry.build(NUMPY.of)
    x = entry.point(np.random.default_rng(11))
    x.setflags(write=False)
    for _, array in outputs(f, x, x):
        assert np.isfinite(array).all()


MATRIX = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])


@pytest.mark.parametrize(
    ("build", "data"),
    [
        (L1Norm, np.array([1.0, 2.0])),
        (Linear, np.array([1.0, 2.0])),
        (SquaredDistance, np.array([1.0, 2.0])),
        (lambda b: LeastSquares(MATRIX, b), np.array([1.0, 2.0, 3.0])),
        (lambda y: Logistic(MATRIX, y), np.array([1.0, -1.0, 1.0])),
        (lambda q: Quadratic(MATRIX.T @ MATRIX, q), np.array([1.0, 2.0])),
    ],
    ids=["weights", "a", "z", "b", "labels", "q"],
)
def test_vectors_are_copied_at_construction_and_never_written_on(build, data):
    x = np.array([0.3, -0.8])
    given = data.copy()
    f = build(given)
    before = f.value(x), f.subgradient(x)
    np.testing.assert_array_equal(given, data)
    given[:] = 1e6
    assert f.value(x) == before[0]
    np.testing.assert_array_equal(f.subgradient(x), before[1])


def test_the_targets_of_pairs_are_copied_and_the_indices_too():
    targets, first, second = np.array([1.0, 2.0]), np.array([0, 1]), np.array([1, 2])
    f = PairLoss(MATRIX, (first, second), targets)
    before = f.value(np.eye(2))
    targets[:], first[:] = 1e6, 2
    assert f.value(np.eye(2)) == before


def test_plain_lists_of_integers_make_double_precision_objectives():
    f = LeastSquares([[1, 2], [3, 4]], [1, 1]) + L1Norm([1, 2]) + Linear([1, 0])
    x = np.array([0.5, 0.25])
    assert f.subgradient(x).dtype == np.float64
    assert f.value(x) == pytest.approx(0.5 * (0.0 + 1.5**2) + 1.0 + 0.5)


def test_integer_points_are_not_rounded():
    x = np.array([1, 2])
    assert L1Norm([0.5, 0.25]).value(x) == 1.0
    assert Linear([0.5, 0.25]).value(x) == 1.0
    assert SquaredDistance([0.5, 2.0]).value(x) == 0.125


def test_tensors_that_require_gradients_are_detached():
    torch = pytest.importorskip("torch")
    b = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    f = LeastSquares(torch.asarray(MATRIX).requires_grad_(True), b)
    g = f.subgradient(torch.zeros(2, dtype=torch.float64))
    assert not g.requires_grad
    np.testing.assert_allclose(to_numpy(g), -MATRIX.T @ np.array([1.0, 2.0, 3.0]))
