"""Projections of random points onto the simplex, the l1 ball and the spectrahedron."""

from __future__ import annotations

from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.optimize
from support.projection_judges import (
    assert_agrees_with_outside,
    assert_optimal,
    assert_stands_still,
)

from lopro.constraints import L1Ball, Simplex, Spectrahedron
from lopro.functions.simplex import project_l1_ball, project_simplex

CASES = 300


def make(seed: int) -> tuple[np.random.Generator, Any, float]:
    """Points near and far, with ties, zeros and entries of very different size."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 25))
    x = rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 3)
    if seed % 4 == 1:
        x = np.round(x, 0)
    if seed % 4 == 2:
        x = x * 10.0 ** rng.uniform(-6, 0, d)
    if seed % 50 == 0:
        x = np.zeros(d)
    return rng, x, float(10.0 ** rng.uniform(-2, 2))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-12])
def test_a_small_total_is_not_lost_next_to_large_entries(dtype: str, share: float) -> None:
    """The sum is right relative to itself, not to the point: distances from the largest entry are exact."""
    rng = np.random.default_rng(0)
    eps = float(np.finfo(dtype).eps)
    for d in (1, 4, 30):
        x = (rng.standard_normal(d) + 2.0).astype(dtype)
        x[-1] = x.max()  # a tie shares the total
        total = share * float(x.max())
        assert not np.signbit(project_simplex(x, total)).any()
        for p in (project_simplex(x, total), project_l1_ball(x, total)):
            assert p.dtype == x.dtype
            assert abs(float(np.abs(p.astype(np.float64)).sum()) - total) <= 4 * d * eps * total


def corners(d: int, total: float, rng: np.random.Generator) -> list[Any]:
    return [*(total * np.eye(d)), *(total * rng.dirichlet(np.ones(d), 5))]


def reference(x: Any, total: float) -> Any:
    """The threshold from a root finder instead of from sorting."""

    def missing(t: float) -> float:
        return float(np.maximum(x - t, 0.0).sum()) - total

    low, high = float(x.min()) - total - 1.0, float(x.max())
    return np.maximum(x - scipy.optimize.brentq(missing, low, high, xtol=1e-15, rtol=1e-15), 0.0)


@pytest.mark.parametrize("equality", [True, False])
def test_simplex(equality: bool) -> None:
    for seed in range(CASES):
        rng, x, total = make(seed)
        p = project_simplex(x, total, equality=equality)
        slack = 1e-13 * (total + np.abs(x).max())
        assert p.min() >= 0.0
        assert p.sum() <= total + slack and (not equality or p.sum() >= total - slack)
        members = corners(len(x), total, rng) + ([] if equality else [np.zeros(len(x))])
        assert_optimal(x, p, members, tol=1e-13)
        project = partial(project_simplex, total=total, equality=equality)
        for z in members:
            assert_stands_still(project, z, 1e-14)
        if equality:
            assert np.linalg.norm(p - reference(x, total)) <= 1e-12 * (total + np.linalg.norm(x))


@pytest.mark.parametrize("is_complex", [False, True])
def test_l1_ball(is_complex: bool) -> None:
    for seed in range(CASES):
        rng, x, size = make(seed)
        phase = np.exp(2j * np.pi * rng.random(len(x))) if is_complex else 1.0
        x = x * phase
        p = project_l1_ball(x, size)
        assert np.abs(p).sum() <= size + 1e-13 * (size + np.abs(x).max())
        members = [z * np.exp(2j * np.pi * rng.random(len(x))) for z in corners(len(x), size, rng)]
        members = members if is_complex else [z.real for z in members]
        assert_optimal(x, p, members, tol=1e-13)
        project = partial(project_l1_ball, radius=size)
        for z in members:
            assert_stands_still(project, 0.99 * z, 0.0)
            assert_stands_still(project, z, 1e-14)


@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("equality", [True, False])
def test_spectrahedron(equality: bool, is_complex: bool) -> None:
    for seed in range(CASES // 3):
        rng, values, trace = make(seed)
        B = rng.standard_normal((len(values), len(values)))
        Q = np.linalg.qr(B + 1j * rng.standard_normal(B.shape) if is_complex else B)[0]
        X = (Q * values) @ Q.conj().T
        X = 0.5 * (X + X.conj().T)
        c = Spectrahedron(len(values), trace, equality=equality)
        P = c.project(X)
        expected = (Q * project_simplex(values, trace, equality=equality)) @ Q.conj().T
        assert np.linalg.norm(P - expected) <= 1e-12 * (trace + np.linalg.norm(X))
        members = [(Q * z) @ Q.conj().T for z in corners(len(values), trace, rng)]
        U = np.linalg.qr(rng.standard_normal(B.shape))[0]
        members += [(U * z) @ U.T for z in corners(len(values), trace, rng)]
        assert_optimal(X, P, members, tol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_another_solver(seed: int) -> None:
    x = make(seed)[1][:6]
    x = x / max(1e-3, float(np.linalg.norm(x)))
    z = cp.Variable(len(x))
    assert_agrees_with_outside(x, project_simplex(x, 0.5), z, [z >= 0, cp.sum(z) == 0.5])
    filled = project_simplex(x, 0.5, equality=False)
    assert_agrees_with_outside(x, filled, z, [z >= 0, cp.sum(z) <= 0.5])
    assert_agrees_with_outside(x, project_l1_ball(x, 0.5), z, [cp.norm1(z) <= 0.5])
    X = np.outer(x, x[::-1])
    X = X + X.T
    Z = cp.Variable(X.shape, PSD=True)
    assert_agrees_with_outside(X, Spectrahedron(len(x), 0.3).project(X), Z, [cp.trace(Z) <= 0.3])


def test_scaling_into_the_set_is_rejected() -> None:
    """Dividing by the norm gives a feasible point too, but not the nearest one."""
    x = np.array([3.0, 1.0, 0.2])
    with pytest.raises(AssertionError):
        assert_optimal(x, x / x.sum(), corners(3, 1.0, np.random.default_rng(0)))


@pytest.mark.parametrize("c", [L1Ball(4), Simplex(4), Spectrahedron(3)], ids=repr)
def test_the_regularity_constant_is_attained(c: Any) -> None:
    """Rho = 1: along an axis the l1 and the Euclidean distance agree; 1.1 would be refused."""
    x = 5.0 * np.eye(3) * np.eye(3)[0] if isinstance(c, Spectrahedron) else 5.0 * np.eye(4)[0]
    distance = float(np.linalg.norm(x - c.project(x)))
    assert c.regularity().value * distance == pytest.approx(c.value(x))
    assert 1.1 * distance > c.value(x)
