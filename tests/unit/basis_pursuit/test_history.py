"""Several points stored together: sums and products as for each point alone, also after changes."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest

from lopro.basis_pursuit.operators.history import History, Point

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
def test_points_are_added_and_dropped(dtype: Any, with_root: bool) -> None:
    """Supports grow, shrink and stay; points are dropped from the front, the middle and all at once."""
    rng = np.random.default_rng(5)
    history = History(6)
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
        np.testing.assert_allclose(history.gram(root), products(kept, root), **rough)
        assert history.points[-1] is new


def test_a_freed_place_does_not_affect_products() -> None:
    """Not even if it held NaN."""
    rng = np.random.default_rng(6)
    history = History(4)
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
    host, other, like = History(4), History(4), array_api_strict.asarray
    for p, left in pairs:
        host.add(p, left, beside=host.points)
        there = Point(like(p.x), like(p.r), like(p.g), p.alpha, p.fun)
        other.add(there, like(left), beside=other.points)
    root = rng.uniform(0.5, 2.0, D)
    np.testing.assert_allclose(other.gram(like(root)), host.gram(root), rtol=1e-12)
    np.testing.assert_allclose(other.gram(), products(pairs, None), rtol=1e-12)
