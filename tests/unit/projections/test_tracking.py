"""Tracked eigenpairs: never too small, accurate where accepted, one product for each small change."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest

import lopro
from lopro.constraints import Distance, KyFan, MinEigenvalue, PSDCone
from lopro.core.arrays import to_numpy
from lopro.core.counting import Counts, counting
from lopro.errors import BoundContradictionWarning
from lopro.projections import tracking
from lopro.projections.tracking import EigenpairTracker


def walk(d: int, steps: int, seed: int, *, move: float = 1e-3, is_complex: bool = False) -> Any:
    """Return symmetric matrices, each near the previous one."""
    rng = np.random.default_rng(seed)

    def draw() -> Any:
        X = rng.standard_normal((d, d))
        X = X + 1j * rng.standard_normal((d, d)) if is_complex else X
        return (X + X.conj().T) / np.sqrt(8.0 * d)

    X = draw()
    for _ in range(steps):
        yield X
        X = X + move * draw()


@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("is_complex", [False, True])
def test_values_are_never_below_and_close_where_accepted(k, is_complex):
    tracker, accuracy = EigenpairTracker(k, 0.05), 0.05
    walked = list(walk(120, 25, k, is_complex=is_complex))
    answers = [tracker.smallest(X) for X in walked]
    # The first block is random and may need a second call; those after it start where that one ended.
    assert all(answer is not None for answer in answers[1:])
    for X, (values, vectors) in zip(walked[1:], answers[1:], strict=True):
        true = np.linalg.eigvalsh(X)
        assert values.shape == (k,) and vectors.shape == (120, k)
        np.testing.assert_allclose(vectors.conj().T @ vectors, np.eye(k), atol=1e-12)
        np.testing.assert_allclose((vectors.conj() * (X @ vectors)).sum(axis=0), values, atol=1e-12)
        assert (values >= true[:k] - 1e-12).all()
        scale = max(abs(true[0]), np.linalg.norm(X) / np.sqrt(120))
        assert np.linalg.norm(X @ vectors - vectors * values) <= accuracy * scale * (1 + 1e-12)
        # Symmetric matrices: an eigenvalue lies within the residual of each Ritz value.
        assert (np.abs(values[:, None] - true).min(axis=1) <= accuracy * scale).all()
        # And it is the right one: second order in the residual.
        assert (values <= true[:k] + 0.02 * scale).all()


def test_a_matrix_that_changes_little_takes_one_product_for_each_call():
    tracker = EigenpairTracker(1, 0.1)
    answers = [tracker.smallest(X) for X in walk(200, 60, 3)]
    assert all(answer is not None for answer in answers[10:])
    assert tracker._age <= 90  # products


def test_a_device_is_read_once_for_each_product(monkeypatch):
    """The Gram matrix of the block and its product, in each call once with the size of the matrix."""
    read, real = [], tracking.to_numpy
    monkeypatch.setattr(tracking, "to_numpy", lambda x: read.append(x.shape) or real(x))
    there = array_api_strict.Device("device1")
    tracker, matrices = EigenpairTracker(1, 0.1), list(walk(200, 20, 3))
    monkeypatch.setattr(tracking, "norm", lambda X: read.append("norm") or 14.0)
    for X in matrices:
        tracker.smallest(array_api_strict.asarray(X, device=there))
    assert read.count("norm") == 1, "in the first call the size is not known"
    assert len(read) == 1 + tracker._age
    assert max(shape[0] for shape in read if shape != "norm") <= 36**2 + 1


def test_a_product_with_a_block_takes_few_kernels():
    """Three products, one of them with the matrix; the others join, scale and measure."""
    torch = pytest.importorskip("torch")
    from support.traffic import Traffic

    tracker, matrices = EigenpairTracker(1, 0.1), [torch.asarray(X) for X in walk(200, 20, 3)]
    for X in matrices[:10]:
        tracker.smallest(X)
    before = tracker._age
    with Traffic() as traffic:
        for X in matrices[10:]:
            tracker.smallest(X)
    rounds = tracker._age - before
    assert traffic.kernels <= 10 * rounds + 6 * 10, "a QR factorisation alone would be ten kernels"
    # The matrix is read by its product and for its size, the rest are blocks of 36 rows.
    assert traffic.bytes <= 8 * (5 * 200 * 200 * 10 + rounds * (200 * 200 + 8 * 36 * 200))


def test_dependent_rows_are_dropped():
    """A block of repeated and zero rows gives the Ritz pairs of what they span."""
    rng = np.random.default_rng(0)
    X = next(walk(100, 1, 21))
    B = rng.standard_normal((18, 100))
    B[5], B[9], B[16] = B[2], 0.0, B[0] - 3.0 * B[1]
    block = np.vstack([B, B @ X])
    ritz = tracking._Ritz(block @ block.T, 8)
    Q, _ = np.linalg.qr(B[[0, 1, 2, 3, 4, 6, 7, 8, 10, 11, 12, 13, 14, 15, 17]].T)
    expected, V = np.linalg.eigh(Q.T @ X @ Q)
    np.testing.assert_allclose(ritz.values, expected[:8], atol=1e-12)
    vectors = ritz.vectors @ block
    np.testing.assert_allclose(np.abs(vectors @ Q @ V[:, :8]), np.eye(8), atol=1e-10)
    residuals = vectors @ X - ritz.values[:, None] * vectors
    np.testing.assert_allclose(np.sqrt(ritz.squares), np.linalg.norm(residuals, axis=1), rtol=1e-9)


def test_an_eigenvector_orthogonal_to_the_block_is_found():
    # Products with this matrix do not mix coordinates: those of a block in the first ones never reach the
    # last.
    X = np.diag(np.linspace(-1.0, 1.0, 100))
    X[-1, -1] = -3.0
    tracker = EigenpairTracker(1, 0.01)
    tracker._basis = np.eye(tracker._width, 100)
    assert tracker.smallest(X)[0][0] == pytest.approx(-1.0)
    found = [tracker.smallest(X) for _ in range(40)][-1]
    assert found is not None
    assert found[0][0] == pytest.approx(-3.0, rel=1e-3)


def test_zero_and_constant_matrices():
    for X, expected in ((np.zeros((80, 80)), 0.0), (-2.0 * np.eye(80), -2.0)):
        values, _ = EigenpairTracker(2, 0.1).smallest(X)
        np.testing.assert_allclose(values, expected, atol=1e-12)


def test_huge_numbers_do_not_overflow():
    X = 1e200 * next(walk(80, 1, 4))
    values, _ = EigenpairTracker(1, 0.1).smallest(X)
    assert values[0] == pytest.approx(np.linalg.eigvalsh(X)[0], rel=0.05)


def test_matrices_that_are_not_finite_are_not_tracked():
    assert EigenpairTracker(1, 0.1).smallest(np.full((80, 80), np.nan)) is None


def test_other_libraries_and_precisions_are_kept_and_may_change():
    tracker = EigenpairTracker(1, 0.1)
    X = next(walk(80, 1, 5))
    for convert, kind in (
        (np.asarray, np.float64),
        (np.asarray, np.float32),
        (array_api_strict.asarray, np.float32),
    ):
        Y = convert(X.astype(kind))
        for _ in range(5):
            found = tracker.smallest(Y)
        assert found is not None
        values, vectors = found
        assert isinstance(values, np.ndarray), "a few numbers, used on the host"
        assert type(vectors) is type(Y) and vectors.dtype == Y.dtype and values.dtype == kind
        assert float(values[0]) == pytest.approx(np.linalg.eigvalsh(X)[0], rel=0.05)


@pytest.mark.parametrize("accuracy", [0.0, 1.0, -0.1, float("nan")])
def test_accuracies_out_of_range_are_errors(accuracy):
    with pytest.raises(ValueError, match="accuracy"):
        EigenpairTracker(1, accuracy)


# The cone.


@pytest.mark.parametrize("form", [MinEigenvalue(), KyFan(4)])
def test_a_cone_that_tracks_eigenpairs_gives_minorants_of_the_exact_one(form):
    followed, exact = PSDCone(100, form, accuracy=0.1), PSDCone(100, form)
    rng = np.random.default_rng(0)
    for X in walk(100, 15, 7):
        c, slope = followed.linearize_at((X,))
        g, true = slope(), exact.value(X)
        assert true * 0.8 <= c <= true + 1e-12
        for _ in range(3):
            Y = rng.standard_normal((100, 100))
            Y = X + rng.choice([0.01, 1.0]) * (Y + Y.T)
            assert exact.value(Y) >= c + np.sum(g * (Y - X)) - 1e-9
        assert followed.valid_inequality(X, 2.0).support == 0.0


def test_other_matrices_are_decomposed():
    # A matrix too small for a block, a form that needs all eigenpairs, and an accuracy out of reach.
    for cone in (PSDCone(5, accuracy=0.1), PSDCone(100, Distance(), accuracy=0.1)):
        X = next(walk(cone.dim, 1, 9))
        assert cone.value(X) == pytest.approx(PSDCone(cone.dim, cone.form).value(X), rel=1e-12)
    cone = PSDCone(100, accuracy=1e-9)
    X = next(walk(100, 1, 11))
    assert cone.value(X) == pytest.approx(-np.linalg.eigvalsh(X)[0], rel=1e-6)


def test_violations_and_projections_stay_exact():
    cone, X = PSDCone(100, accuracy=0.5), next(walk(100, 1, 13))
    d = np.sqrt(np.maximum(np.abs(X.diagonal()), 1e-6 * np.abs(X).max()))
    lowest = np.linalg.eigvalsh(X / np.outer(d, d))[0]
    assert cone.violation(X) == pytest.approx(-lowest, rel=1e-12)
    assert np.linalg.eigvalsh(cone.project(X))[0] >= -1e-12


def test_a_run_of_lopgd_uses_tracked_pairs_and_few_decompositions(monkeypatch):
    d = 100
    target = next(walk(d, 1, 15))
    f = lopro.objectives.SquaredDistance(target)
    method = lopro.LoPGD(lopro.theorems.HalvingSteps(lam=2.0, eta=0.02, steps=60, epochs=3))

    def run(accuracy):
        cone = PSDCone(d, accuracy=accuracy)
        return lopro.solve(lopro.Problem(f, cone), np.zeros((d, d)), method, tol=0)

    followed, default = run(0.1), run(0.0)
    assert default.counts.eigendecompositions <= 10
    assert default.fun == pytest.approx(followed.fun, rel=1e-2)
    monkeypatch.setattr(PSDCone, "followed", lambda self: self)
    exact = run(0.0)
    assert followed.counts.eigendecompositions <= 10 < 150 < exact.counts.eigendecompositions
    assert followed.fun == pytest.approx(exact.fun, rel=1e-2)
    assert np.linalg.eigvalsh(followed.x)[0] >= -1e-12


def test_computed_eigenpairs_are_counted():
    with counting(Counts()) as counts:
        EigenpairTracker(3, 0.1).smallest(np.eye(100))
    assert counts.eigenpairs == 3


def test_the_result_is_a_new_array():
    tracker, X = EigenpairTracker(1, 0.1), next(walk(80, 1, 17))
    before = X.copy()
    first = tracker.smallest(X)
    kept = to_numpy(first[1]).copy()
    tracker.smallest(X + 0.1 * np.eye(80))
    np.testing.assert_array_equal(first[1], kept)
    np.testing.assert_array_equal(X, before)


class OneSide(lopro.constraints.Constraint):
    """``max(x_1, x_2) <= 0``, whose function is the minorant ``x_1`` until the first projection."""

    shape = (2,)

    def __init__(self, approximate: bool) -> None:
        self.approximate, self.found = approximate, False

    def value(self, x):
        return float(max(x) if self.found else x[0])

    def subgradient(self, x):
        return np.array([0.0, 1.0]) if self.found and x[1] > x[0] else np.array([1.0, 0.0])

    def project(self, x):
        self.found = True
        return np.minimum(x, 0.0)


def test_no_bound_is_claimed_from_values_of_minorants():
    """The steps minimise ``f + 2 [x_1]_+``; the bound of their regret is no bound for ``f + 2 [c]_+``."""

    def solved(approximate: bool) -> lopro.Result:
        f = lopro.objectives.SquaredDistance(np.ones(2))
        problem = lopro.Problem(f, OneSide(approximate), solution_norm=0.1)
        schedule = lopro.theorems.HalvingSteps(lam=2.0, eta=0.05, steps=2000, epochs=1)
        return lopro.solve(problem, np.zeros(2), lopro.LoPGD(schedule), tol=0)

    result = solved(approximate=True)
    assert result.fun == 1.0 and result.certificate.lower_bound <= 1.0
    with pytest.warns(BoundContradictionWarning):
        solved(approximate=False)


def test_a_cone_that_tracks_pairs_reports_it():
    assert PSDCone(100, accuracy=0.1).approximate
    assert not PSDCone(100).approximate and not PSDCone(100, Distance(), 0.1).approximate


@pytest.mark.parametrize(("rows", "products"), [(100, 8), (1280, 20)])
def test_larger_matrices_allow_more_products(rows, products):
    """An eigendecomposition takes as long as a number of products that grows with the rows."""
    X = np.diag(np.linspace(1.0, 2.0, rows))
    tracker = EigenpairTracker(1, 1e-12)
    assert tracker.smallest(X) is None
    assert tracker._age == products
