"""Objectives against answers known in closed form: constants, sums, stochastic gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse
from support.catalogue_objectives import (
    COMPLEX,
    DEFICIENT,
    ENTRIES,
    LABELS,
    LIBRARIES,
    NUMPY,
    PAIRS,
    SPARSE,
    TALL,
    WEIGHTS,
    WIDE,
    euclidean,
    hyperbola,
    operator,
)

from lopro.constraints import PSDCone
from lopro.core.arrays import inner, to_numpy
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball, Source
from lopro.methods import LoPGD
from lopro.methods.paper.theorems import HalvingSteps
from lopro.metric.loss import PairLoss
from lopro.metric.pair_maps import Differences, Graph, SparseGraph, pair_map
from lopro.objectives import (
    FunctionObjective,
    L1Norm,
    LeastSquares,
    Linear,
    Logistic,
    Objective,
    OffDiagonalL1,
    Quadratic,
    Scaled,
    SquaredDistance,
    Sum,
)
from lopro.problem import Problem
from lopro.solving import solve

FOUND = {entry.name: entry.build(NUMPY.of) for entry in ENTRIES}


def _s(A: np.ndarray) -> np.ndarray:
    return np.linalg.svd(A, compute_uv=False)


MEAN_ROW_NORM = float(np.linalg.norm(TALL, axis=1).mean())

#: name: (G, L, mu), None where there is none.
CONSTANTS = {
    "l1": (2.0, None, None),
    "l1-shapeless": (None, None, None),
    "l1-number": (5.0, None, None),
    "l1-weights": (np.linalg.norm(WEIGHTS), None, None),
    "l1-complex": (np.linalg.norm(WEIGHTS + 0.1), None, None),
    "least-squares": (None, _s(TALL)[0] ** 2, _s(TALL)[-1] ** 2),
    "least-squares-wide": (None, _s(WIDE)[0] ** 2, None),
    "least-squares-deficient": (None, _s(DEFICIENT)[0] ** 2, None),
    "least-squares-complex": (None, _s(COMPLEX)[0] ** 2, _s(COMPLEX)[-1] ** 2),
    "least-squares-sparse": (None, _s(SPARSE)[0] ** 2, _s(SPARSE)[-1] ** 2),
    "least-squares-operator": (None, _s(WIDE)[0] ** 2, None),
    "quadratic": (None, _s(TALL)[0] ** 2, _s(TALL)[-1] ** 2),
    "quadratic-singular": (None, _s(WIDE)[0] ** 2, None),
    "squared-distance-matrix": (None, 1.0, 1.0),
    "logistic": (MEAN_ROW_NORM, _s(TALL)[0] ** 2 / 36.0, None),
    "logistic-ridge": (None, _s(TALL)[0] ** 2 / 36.0 + 0.3, 0.3),
    "off-diagonal": (0.7 * math.sqrt(6.0), None, None),
    "function-smooth": (2.0, 1.0, None),
    "function-strongly-convex": (None, None, 0.5),
    "scaled-prox": (0.25 * np.linalg.norm(WEIGHTS), None, None),
    "scaled-zero": (0.0, None, None),
    "sum-lasso": (None, None, _s(TALL)[-1] ** 2),
    "sum-smooth": (None, _s(TALL)[0] ** 2 + 1.0 + 2.0 + 0.0, _s(TALL)[-1] ** 2 + 1.0),
    "sum-rough": (2.0 + 1.0 + 1.0, None, None),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_the_known_ones(name):
    f = FOUND[name]
    ours = [f.lipschitz(), f.smoothness(), f.strong_convexity()]
    for constant, reference in zip(ours, CONSTANTS[name], strict=True):
        if reference is None:
            assert constant is None
        else:
            # A Lanczos estimate is good to its tolerance, a spectrum to rounding.
            accuracy = 1e-5 if constant.source is Source.ESTIMATED else 1e-11
            assert constant.value == pytest.approx(reference, rel=accuracy)


@pytest.mark.parametrize("shape", [(5, 3), (5, 12)], ids=["tall", "wide"])
def test_the_loss_of_pairs_and_its_adjoint_are_those_of_their_differences(shape):
    rng = np.random.default_rng(0)
    X, w, A = (
        rng.standard_normal(shape),
        rng.standard_normal(10),
        rng.standard_normal((shape[1],) * 2),
    )
    Z = X[PAIRS[0]] - X[PAIRS[1]]
    for f in (PairLoss(X, PAIRS, w), PairLoss.from_differences(Z, w)):
        np.testing.assert_array_equal(f.X[f.pairs[0]] - f.X[f.pairs[1]], Z)
        np.testing.assert_allclose(f.distances(A), np.einsum("ei,ij,ej->e", Z, A, Z), atol=1e-12)
        np.testing.assert_allclose(f.adjoint(w), np.einsum("e,ei,ej->ij", w, Z, Z), atol=1e-12)
        assert inner(f.adjoint(w), A) == pytest.approx(w @ f.distances(A), rel=1e-12)
        # Bounded from above by a quotient, so never below; sharp because the quotient converges.
        L = np.linalg.eigvalsh((Z @ Z.T) ** 2)[-1] / 10
        assert L <= f.smoothness().value * (1.0 + 1e-15) <= L * (1.0 + 1e-8)


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_the_ways_to_the_distances_of_pairs_agree(library):
    rng = np.random.default_rng(1)
    X, w, A = (library.of(rng.standard_normal(shape)) for shape in ((5, 3), (10,), (3, 3)))
    Z = to_numpy(X)[PAIRS[0]] - to_numpy(X)[PAIRS[1]]
    for way in (Differences(library.of(Z)), Graph(X, *PAIRS), SparseGraph(X, *PAIRS)):
        distances, matrix = way.distances(A), way.adjoint(w)
        assert type(distances) is type(A) and distances.dtype == matrix.dtype == A.dtype
        close = {"rtol": library.tolerance, "atol": 10 * library.tolerance}
        np.testing.assert_allclose(to_numpy(distances), ((Z @ to_numpy(A)) * Z).sum(1), **close)
        np.testing.assert_allclose(to_numpy(matrix), (Z.T * to_numpy(w)) @ Z, **close)
        np.testing.assert_array_equal(to_numpy(matrix), to_numpy(matrix).T)


def test_many_samples_with_few_pairs_make_no_matrix_over_all_of_them():
    rng = np.random.default_rng(2)
    X, N = rng.standard_normal((1500, 4)), 1500
    for pairs, kind in ((1000, Differences), (5000, SparseGraph), (200_000, Graph)):
        first, second = rng.integers(N, size=pairs), rng.integers(N, size=pairs)
        chosen = pair_map(X, first, second)
        assert type(chosen) is kind
        A, Z = np.eye(4) + 0.1, X[first] - X[second]
        np.testing.assert_allclose(chosen.distances(A), ((Z @ A) * Z).sum(1), rtol=1e-9, atol=1e-12)


def test_the_smoothness_of_a_loss_whose_pairs_do_not_meet_is_that_of_the_largest():
    # H is diagonal: the power iteration leaves all but one entry behind.
    f = PairLoss.from_differences(np.diag([1.0, 3.0, 0.0]), [1.0, 1.0, 1.0])
    assert f.smoothness().value == pytest.approx(81.0 / 3.0, rel=1e-8)
    assert PairLoss.from_differences(np.zeros((2, 3)), [1.0, 0.0]).smoothness().value == 0.0


def test_bounds_from_below_are_claimed_where_they_exist():
    with_infimum = {name for name, f in FOUND.items() if f.infimum() is not None}
    without = {"linear", "linear-matrix", "linear-complex", "function-smooth", "function-prox"}
    assert set(FOUND) - with_infimum == without | {"sum-rough", "sum-nested"}
    with_radius = {name for name, f in FOUND.items() if f.sublevel_radius(1.0) is not None}
    expected = {"l1", "l1-list", "least-squares", "logistic-ridge", "sum-smooth", "sum-lasso"}
    assert expected <= with_radius
    assert not with_radius & {"l1-weights", "least-squares-wide", "logistic", "off-diagonal"}


def test_constants_of_operators_say_that_they_are_estimates():
    f = LeastSquares(operator(NUMPY.of, WIDE), np.ones(3))
    assert f.smoothness().source is Source.ESTIMATED
    assert f.lipschitz(Ball(np.zeros(6), 1.0)).source is Source.ESTIMATED
    assert (f + L1Norm()).lipschitz(Ball(np.zeros(6), 1.0)).source is Source.ESTIMATED
    assert f.strong_convexity() is None
    assert not f.stochastic


def test_the_minorant_of_a_norm_takes_the_target_where_it_is_feasible():
    f = L1Norm(np.array([1.0, 2.0, 0.0]))
    alpha, g = f.minorant(np.ones(3), np.array([0.5, -3.0, 1.0]))
    assert alpha == 0.0
    np.testing.assert_array_equal(g, [0.5, -2.0, 0.0])
    _, g = OffDiagonalL1(2, 1.0).minorant(np.eye(2), np.array([[5.0, 0.5], [-4.0, 5.0]]))
    np.testing.assert_array_equal(g, [[0.0, 0.5], [-1.0, 0.0]])
    _, g = L1Norm().minorant(np.ones(1), np.array([3.0 + 4.0j]))
    np.testing.assert_allclose(g, [0.6 + 0.8j], rtol=1e-15)


def test_the_minorant_of_a_sum_gives_the_norm_the_rest_of_the_target():
    smooth, rough = SquaredDistance(np.array([1.0, 1.0])), L1Norm(2.0)
    x, target = np.array([2.0, 0.0]), np.array([1.5, 3.0])
    alpha, g = Sum(rough, smooth).minorant(x, target)
    # The gradient of the smooth part at x is (1, -1); the rest of the target is (0.5, 4), clipped to 2.
    np.testing.assert_allclose(g, np.array([1.0, -1.0]) + np.array([0.5, 2.0]))
    assert alpha == pytest.approx(1.0 - 2.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_a_large_off_diagonal_norm_adds_its_slope_by_blocks(dtype):
    d, rng = 150, np.random.default_rng(0)
    x, total = (rng.standard_normal((d, d)).astype(dtype) for _ in range(2))
    x[rng.random((d, d)) < 0.3] = 0.0
    f = OffDiagonalL1(d, 0.7)
    reference = total + 0.7 * np.sign(x) * (1.0 - np.eye(d))
    found = f.add_subgradient(x, total.copy())
    assert found.dtype == dtype
    np.testing.assert_allclose(found, reference, rtol=1e-5 if dtype == np.float32 else 1e-14)


def test_sums_and_penalties_never_write_on_slopes_that_are_not_theirs():
    class Stored(Objective):
        """A linear function that returns its own array, without a copy."""

        shape = (300, 300)

        def __init__(self):
            self.a = np.ones(self.shape)

        def value(self, x):
            return inner(self.a, x)

        def subgradient(self, x):
            return self.a

    stored = Stored()
    ridge = SquaredDistance(np.zeros((300, 300)))
    for f in (stored + OffDiagonalL1(300, 0.1), ridge + stored, Sum(stored), stored + L1Norm()):
        cone = PSDCone(300, accuracy=0.1)
        method = LoPGD(HalvingSteps(lam=1.0, eta=1e-3, steps=5, epochs=2))
        solve(Problem(f, cone), -np.eye(300), method, tol=0)
        np.testing.assert_array_equal(stored.a, np.ones(stored.shape))


def test_proxes_known_by_hand():
    np.testing.assert_allclose(
        L1Norm().prox(np.array([3.0 + 4.0j, 0.1j, 0.0]), 1.0), [2.4 + 3.2j, 0.0, 0.0]
    )
    x = np.array([[5.0, 0.2], [-3.0, 1.0]])
    np.testing.assert_allclose(OffDiagonalL1(2, 0.5).prox(x, 2.0), [[5.0, 0.0], [-2.0, 1.0]])
    np.testing.assert_allclose((2.0 * SquaredDistance([3.0])).prox(np.array([0.0]), 0.25), [1.0])


# Sums.


def test_sums_are_flat_and_split_into_a_smooth_and_a_proximable_part():
    a, b, norm1 = Linear([1.0, 2.0]), SquaredDistance([0.0, 1.0]), L1Norm()
    f = (a + 3.0 * (b + norm1)) + a
    assert len(f.parts) == 4
    smooth, proximable = f.split()
    assert smooth.image_length == 3
    assert isinstance(proximable, Scaled)
    assert Sum(a, b).split()[1] is None
    assert Sum(a, norm1).split()[0] is a
    assert Sum(norm1).split()[0] is None


def test_two_nonsmooth_parts_leave_subgradients_only():
    f = L1Norm(shape=(4,)) + euclidean()
    assert f.split() == (None, None)
    assert not f.smooth
    assert not f.proximable


def test_a_sum_gives_its_shape_to_parts_without_one():
    f = Linear([3.0, 4.0]) + 2.0 * L1Norm()
    assert f.lipschitz().value == pytest.approx(5.0 + 2.0 * math.sqrt(2.0))
    assert (L1Norm() + L1Norm()).lipschitz() is None
    assert (L1Norm() + L1Norm()).shaped((4,)).lipschitz().value == pytest.approx(4.0)


def test_numpy_numbers_scale_objectives():
    f = np.float64(2.0) * L1Norm()
    assert isinstance(f, Scaled)
    assert f.value(np.ones(3)) == 6.0
    assert isinstance(np.int64(2) * f, Scaled)


def test_the_radius_of_a_sum_uses_the_lower_bounds_of_the_others():
    # On {f <= level} the norm is at most level + 2, for the quadratic is at least -2.
    f = L1Norm(shape=(2,)) + Quadratic(np.zeros((2, 2)), constant=-2.0)
    assert f.sublevel_radius(3.0).value == pytest.approx(5.0)
    assert (L1Norm() + Linear([1.0, 0.0])).sublevel_radius(1.0) is None


def test_sources_of_sums_are_those_of_the_weakest_part():
    assert (hyperbola((2,)) + L1Norm()).lipschitz().source is Source.GIVEN
    assert (Linear([1.0]) + L1Norm()).lipschitz().source is Source.DERIVED


# Stochastic gradients.


class EveryRow:
    """A generator that returns given indices."""

    def __init__(self, row: int) -> None:
        self.row = row

    def integers(self, high: int, size: int) -> np.ndarray:
        assert 0 <= self.row < high
        return np.full(size, self.row)


@pytest.mark.parametrize(
    "f",
    [
        LeastSquares(TALL, LABELS),
        LeastSquares(COMPLEX, COMPLEX[:, 0]),
        LeastSquares(scipy.sparse.csc_array(COMPLEX), COMPLEX[:, 0], batch_size=2),
        LeastSquares(scipy.sparse.csr_array(SPARSE), np.arange(8.0)),
        Logistic(TALL, LABELS, batch_size=4),
        Logistic(TALL, LABELS, l2=0.5),
        Logistic(scipy.sparse.csr_array(SPARSE), LABELS[:8], l2=0.5),
        2.0 * LeastSquares(TALL, LABELS) + L1Norm(),
    ],
    ids=lambda f: type(f).__name__,
)
def test_stochastic_gradients_average_to_the_gradient(f):
    x = np.random.default_rng(3).standard_normal(f.shape[0])
    rows = {4: 9, 5: 8}[f.shape[0]] if f.like.dtype.kind == "f" else 6
    draws = [f.stochastic_subgradient(x, EveryRow(i)) for i in range(rows)]
    np.testing.assert_allclose(np.mean(draws, axis=0), f.subgradient(x), rtol=1e-12, atol=1e-12)


def test_stochastic_gradients_are_reproducible_and_batches_reduce_the_variance():
    x = np.ones(4)
    small, large = (LeastSquares(TALL, LABELS, batch_size=size) for size in (1, 16))
    one, two = (small.stochastic_subgradient(x, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    rng = np.random.default_rng(5)
    spread = [
        np.mean(
            [np.sum((f.stochastic_subgradient(x, rng) - f.subgradient(x)) ** 2) for _ in range(400)]
        )
        for f in (small, large)
    ]
    # The variance falls like 1 / batch size.
    assert spread[0] / spread[1] == pytest.approx(16.0, rel=0.3)


# Extreme numbers, and plain callables.


def test_logistic_survives_margins_that_overflow_the_exponential():
    f = Logistic(np.array([[1.0], [1.0]]), [1, 0])
    for w in (1e4, -1e4):
        assert f.value(np.array([w])) == pytest.approx(5e3)
        assert abs(f.subgradient(np.array([w]))[0]) == pytest.approx(0.5)
    assert f.value(np.zeros(1)) == pytest.approx(math.log(2.0))


def test_labels_zero_and_one_mean_minus_one_and_one():
    x = np.ones(4)
    a, b = Logistic(TALL, LABELS), Logistic(TALL, (LABELS > 0).tolist())
    assert a.value(x) == b.value(x)


def test_a_nearly_symmetric_matrix_is_symmetrised():
    P = TALL.T @ TALL
    P[0, 1] *= 1.0 + 1e-15
    f = Quadratic(P)
    x, h = np.ones(4), 1e-6 * np.eye(4)
    differences = [(f.value(x + e) - f.value(x - e)) / 2e-6 for e in h]
    np.testing.assert_allclose(f.subgradient(x), differences, rtol=1e-8)


def test_capabilities_of_callables_follow_from_what_is_given():
    assert hyperbola().smooth
    assert not hyperbola().proximable
    assert euclidean().proximable
    assert not euclidean().smooth
    assert not euclidean().stochastic
    with pytest.raises(MissingCapabilityError, match="prox"):
        hyperbola().prox(np.ones(4), 1.0)
    with pytest.raises(MissingCapabilityError, match="stochastic_subgradient"):
        hyperbola().stochastic_subgradient(np.ones(4), np.random.default_rng(0))


def test_callables_may_reuse_their_memory_and_overwrite_their_point():
    buffer = np.zeros(2)

    def gradient(x: np.ndarray) -> np.ndarray:
        buffer[:] = x
        x[:] = np.nan
        return buffer

    f = FunctionObjective(lambda x: 0.5 * float(x @ x), gradient=gradient)
    x = np.array([1.0, 2.0])
    first = f.subgradient(x)
    f.subgradient(2.0 * x)
    np.testing.assert_array_equal(first, [1.0, 2.0])
    np.testing.assert_array_equal(x, [1.0, 2.0])
