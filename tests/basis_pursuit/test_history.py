"""Points side by side: the same sums and products as term by term, whatever comes and goes."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro.basis_pursuit import operator_search
from lopro.basis_pursuit.history import History, HostHistory, history_for
from lopro.basis_pursuit.part import Part
from lopro.basis_pursuit.point import Point
from lopro.basis_pursuit.problem import SparseProblem
from lopro.basis_pursuit.shrinkage import MixedShrinkage
from lopro.constraints import Intersection, Polyhedron, ResidualBall
from lopro.objectives import L1Norm

D, M = 40, 9


def numbers(rng: np.random.Generator, n: int, dtype: Any) -> Any:
    v = rng.standard_normal(n)
    if np.dtype(dtype).kind == "c":
        v = v + 1j * rng.standard_normal(n)
    return v.astype(dtype)


def point(rng: np.random.Generator, dtype: Any, support: Any) -> tuple[Point, Any]:
    x = np.zeros(D, dtype=dtype)
    x[support] = numbers(rng, len(support), dtype)
    r, g, left = (numbers(rng, n, dtype) for n in (M, D, D))
    return Point(x, r, g, float(rng.uniform(0.5, 2.0)), 0.0), left


def products(kept: list[tuple[Point, Any]], root: Any) -> Any:
    """Return products by the definition: a zero that the last point has left takes its slope."""
    last, left_of_last = kept[-1]
    slope = (last.g - left_of_last) / last.alpha
    settled = [(p, np.where(p.x == 0, p.g - p.alpha * slope, left)) for p, left in kept]
    return gram(settled, root)


def gram(kept: list[tuple[Point, Any]], root: Any) -> Any:
    rows = kept[-1][0].x != 0
    R = np.stack([left[rows] for _, left in kept]) * (1.0 if root is None else root[rows])
    return (R.conj() @ R.T).real


@pytest.mark.parametrize("dtype", [np.float64, np.complex128, np.float32])
@pytest.mark.parametrize("with_root", [False, True])
def test_points_come_and_go(dtype: Any, with_root: bool) -> None:
    """Supports grow, shrink and stay; points are dropped from the front, the middle and all at once."""
    rng = np.random.default_rng(5)
    history = HostHistory(6)
    kept: list[tuple[Point, Any]] = []
    root = rng.uniform(0.5, 2.0, D) if with_root else None
    supports = [
        range(9),
        range(9),
        range(12),
        range(2, 12),
        range(2, 12),
        range(5, 30),
        range(5, 30),
    ]
    drops = [[], [], [], [1], [], [0, 1], [], [2], [], [0, 1, 2, 3], [], [], [], [0]]
    rough = {"rtol": 1e-5, "atol": 1e-5} if dtype is np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    before = np.zeros(D, dtype=bool)
    for support, drop in zip(2 * supports, drops, strict=True):
        new, left = point(rng, dtype, np.array(support))
        stay = [i for i in range(len(kept)) if i not in drop]
        beside = [history.points[i] for i in stay]
        kept = [*(kept[i] for i in stay), (new, left)]
        history.add(new, left, beside)
        assert [p.alpha for p in history.points] == [p.alpha for p, _ in kept]
        theta = rng.standard_normal(len(kept))
        for name in ("x", "r", "g"):
            expected = sum(t * getattr(p, name) for t, (p, _) in zip(theta, kept, strict=True))
            found = history.mixed(name, theta)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, **rough)
        # What is left where a point is zero is settled when the last one leaves zero there, and stays so.
        slope, leaves = (new.g - left) / new.alpha, (new.x != 0) & ~before
        for i, (p, old) in enumerate(kept[:-1]):
            kept[i] = (p, np.where((p.x == 0) & leaves, p.g - p.alpha * slope, old))
        before = new.x != 0
        np.testing.assert_allclose(history.gram(root), gram(kept, root), **rough)
        np.testing.assert_array_equal(history.points[-1].g, new.g)


def test_a_place_that_is_left_does_not_count() -> None:
    """Not even if what lay there was no number."""
    rng = np.random.default_rng(6)
    history = HostHistory(4)
    pairs = [point(rng, np.float64, np.arange(5)) for _ in range(4)]
    bad = Point(*(np.full(n, np.nan) for n in (D, M, D)), 1.0, 0.0)
    for p, left in [*pairs[:2], (bad, np.full(D, np.nan)), pairs[2]]:
        history.add(p, left, beside=history.points)
    first = history.points[0]
    history.add(*pairs[3], beside=[first])
    assert np.isfinite(history.gram()).all()
    for name in ("x", "r", "g"):
        expected = 0.25 * getattr(pairs[0][0], name) + 0.75 * getattr(pairs[3][0], name)
        found = history.mixed(name, np.array([0.25, 0.75]))
        np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_other_libraries_have_the_same_products(dtype: Any) -> None:
    rng = np.random.default_rng(7)
    pairs = [point(rng, dtype, np.arange(9 - 3 * j, 12 + 5 * j)) for j in range(4)]
    host = history_for(pairs[0][0].x, 4)
    assert isinstance(host, HostHistory)
    like = array_api_strict.asarray
    other = history_for(like(pairs[0][0].x), 4)
    assert type(other) is History
    for p, left in pairs:
        host.add(p, left, beside=host.points)
        there = Point(like(p.x), like(p.r), like(p.g), p.alpha, p.fun)
        other.add(there, like(left), beside=other.points)
    root = rng.uniform(0.5, 2.0, D)
    np.testing.assert_allclose(other.gram(like(root)), host.gram(root), rtol=1e-12)
    np.testing.assert_allclose(other.gram(), products(pairs, None), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_part_of_the_entries_has_the_same_products(dtype: Any) -> None:
    rng = np.random.default_rng(8)
    pairs = [point(rng, dtype, np.arange(4, 12 + j)) for j in range(4)]
    history = history_for(pairs[0][0].x, 6)
    assert isinstance(history, HostHistory)
    for p, left in pairs[:3]:
        history.add(p, left, beside=history.points)
    ball = ResidualBall(np.ones((M, D)), np.ones(M), 0.1)
    sparse = SparseProblem.of(lopro.Problem(L1Norm(), ball), np.zeros(D))
    near, wider = np.zeros(D, dtype=bool), np.zeros(D, dtype=bool)
    near[2:14], wider[:25] = True, True
    narrow = history.on(None, Part.chosen(sparse, near))
    np.testing.assert_allclose(narrow.gram(), products(pairs[:3], None), rtol=1e-12)
    # The last point has nonzeros outside: more entries are taken in first.
    part = Part.chosen(sparse, wider)
    wide = narrow.on(Part.chosen(sparse, near), part)
    p, left = pairs[3]
    on_part = Point(part.of(p.x), p.r, part.of(p.g), p.alpha, p.fun, everywhere=p.g)
    wide.add(on_part, part.of(left), beside=wide.points)
    np.testing.assert_allclose(wide.gram(), products(pairs, None), rtol=1e-12)
    theta = rng.standard_normal(4)
    for name in ("x", "g"):
        expected = sum(t * getattr(q, name) for t, (q, _) in zip(theta, pairs, strict=True))
        np.testing.assert_allclose(wide.mixed(name, theta), part.of(expected), rtol=1e-12)
    for held, (q, _) in zip(wide.points, pairs, strict=True):
        np.testing.assert_array_equal(held.whole, q.g)


def sparse_operator(seed: int, dtype: Any) -> tuple[Any, Any, float]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((100, 400)) * np.exp(rng.uniform(-1.0, 1.0, 400))
    if np.dtype(dtype).kind == "c":
        A = A + 1j * rng.standard_normal(A.shape)
    x = np.zeros(400)
    x[rng.choice(400, 12, replace=False)] = rng.uniform(0.5, 2.0, 12)
    y = A @ x
    e = rng.standard_normal(100)
    e *= 0.05 * np.linalg.norm(y) / np.linalg.norm(e)
    return A, y + e, float(np.linalg.norm(e))


@pytest.mark.parametrize("nonneg", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_working_on_a_part_changes_no_answer(
    dtype: Any, weighted: bool, nonneg: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the third step on: entries that come near are taken in, and the proof is one for all of them."""
    if nonneg and dtype is np.complex128:
        pytest.skip("complex numbers have no signs")
    parts: list[int] = []
    chosen = Part.chosen

    def watched(sparse: Any, wanted: Any) -> Part:
        parts.append(int(np.count_nonzero(wanted)))
        return chosen(sparse, wanted)

    monkeypatch.setattr(Part, "chosen", staticmethod(watched))
    grown = 0
    for seed in range(3):
        A, y, sigma = sparse_operator(seed, dtype)
        weights = np.random.default_rng(seed).uniform(0.5, 2.0, 400) if weighted else None
        ball = ResidualBall(aslinearoperator(A), y, sigma)
        signs = Polyhedron.box(np.zeros(400), np.full(400, np.inf))
        constraint = Intersection(ball, signs) if nonneg else ball
        problem = lopro.Problem(L1Norm(1.0 if weights is None else weights), constraint)
        for name, value in (("_LONG", 3), ("_STEADY", 0), ("_LARGE", 10**9)):
            monkeypatch.setattr(operator_search, name, value)
        whole = lopro.solve(problem, method=lopro.MatrixFree(), tol=1e-7)
        assert not parts
        monkeypatch.setattr(operator_search, "_LARGE", 10)
        part = lopro.solve(problem, method=lopro.MatrixFree(), tol=1e-7)
        assert whole.success and part.success
        assert part.fun == pytest.approx(whole.fun, rel=2e-7)
        assert part.certificate.lower_bound <= whole.fun * (1.0 + 1e-12)
        assert np.linalg.norm(A @ part.x - y) <= sigma * (1.0 + 1e-12)
        pulled = A.conj().T @ np.asarray(part.multiplier.dual[0])
        w = np.ones(400) if weights is None else weights
        size = -pulled.real if nonneg else np.abs(pulled)
        assert (size / w).max() <= 1.0 + 1e-12  # of all entries, not of the part
        assert parts[0] < 60 and parts == sorted(set(parts))
        grown += len(parts) > 1
        few, many = (r.counts.matvecs + r.counts.rmatvecs for r in (part, whole))
        assert few <= 1.1 * many
        parts.clear()
    assert grown >= 2


def test_a_run_that_ends_early_on_a_part_has_all_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it ends: after a step, before points are looked at, or where rounding is in the way."""
    for name, value in (("_LONG", 2), ("_STEADY", 0), ("_LARGE", 10)):
        monkeypatch.setattr(operator_search, name, value)
    A, y, sigma = sparse_operator(1, np.float64)
    ball = ResidualBall(aslinearoperator(A), y, sigma)
    problem = lopro.Problem(L1Norm(), ball)
    for steps in range(1, 12):
        result = lopro.solve(problem, method=lopro.MatrixFree(), max_iter=steps)
        assert result.x.shape == (400,) and result.certificate.violation <= 1e-9
    for patience in (1, 2, 4, 8):
        method = lopro.MatrixFree(patience=patience)
        assert lopro.solve(problem, method=method, tol=1e-6).success
        assert lopro.solve(problem, method=method, tol=1e-14).x.shape == (400,)
    algorithm = MixedShrinkage(ball, abs)
    state = algorithm.init(L1Norm(), np.zeros(400), np.random.default_rng(0))
    for _ in range(3):
        state = algorithm.step(L1Norm(), state)
    before = algorithm.output(state)
    sparse = SparseProblem.of(problem, np.zeros(400))
    algorithm.narrow(state, Part.chosen(sparse, state.last.active), None)
    np.testing.assert_array_equal(algorithm.output(state), before)


def test_a_part_that_lacks_entries_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing from it may correlate too much with the residual, and bounds look at all entries."""
    for name, value in (("_LONG", 3), ("_STEADY", 0), ("_LARGE", 10), ("_TOUCH", 1e9)):
        monkeypatch.setattr(operator_search, name, value)
    for seed in range(3):
        A, y, sigma = sparse_operator(seed, np.float64)
        optimum = lopro.bpdn(A, y, sigma, tol=1e-9).fun
        ball = ResidualBall(aslinearoperator(A), y, sigma)
        problem = lopro.Problem(L1Norm(), ball)
        result = lopro.solve(problem, method=lopro.MatrixFree(), tol=1e-6, max_iter=60)
        assert not result.success
        assert 0.0 < result.certificate.lower_bound <= optimum
        assert result.certificate.violation <= 1e-9
