"""Units do not matter: data scaled by powers of two give the same steps and the scaled answer, bit by bit.

``x`` becomes ``s x``, ``f`` becomes ``t f``, and each constraint is multiplied by ``r``. Multiplying by a
power of two commutes with rounding, so any difference at all means that some constant has units.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro import constraints as lc
from lopro import objectives as lo

RNG = np.random.default_rng(1)
SLOPE, POINT = RNG.standard_normal(4), 2.0 * RNG.standard_normal(4)
FRAME = np.linalg.qr(RNG.standard_normal((4, 4)))[0] * np.array([0.6, 1.0, 1.7, 3.0])
B, TARGET = RNG.standard_normal((9, 4)), RNG.standard_normal(9)
ROWS, LIMITS = RNG.standard_normal((6, 4)), 0.3 + RNG.random(6)
LABELS = np.where(RNG.standard_normal(9) > 0.0, 1.0, -1.0)
SYMMETRIC = RNG.standard_normal((4, 4)) + 4.0 * np.diag(RNG.standard_normal(4))
SYMMETRIC = SYMMETRIC + SYMMETRIC.T

#: Functions ``t f(x / s)``.
OBJECTIVES: dict[str, Callable[[float, float], Any]] = {
    "linear": lambda s, t: lo.Linear(SLOPE * (t / s)),
    "distance": lambda s, t: (t / s**2) * lo.SquaredDistance(s * POINT),
    "least squares": lambda s, t: t * lo.LeastSquares(B / s, TARGET),
    "quadratic": lambda s, t: lo.Quadratic((t / s**2) * (B.T @ B), (t / s) * SLOPE),
    "l1": lambda s, t: (t / s) * lo.L1Norm(),
    "logistic": lambda s, t: t * lo.Logistic(B / s, LABELS),
    "lasso": lambda s, t: t * lo.LeastSquares(B / s, TARGET) + (0.3 * t / s) * lo.L1Norm(),
}

#: Sets ``{x : r c(x / s) <= 0}``.
CONSTRAINTS: dict[str, Callable[[float, float], Any]] = {
    "ball": lambda s, r: lc.ResidualBall(FRAME * (r / s), 0.3 * r * SLOPE, r),
    "operator": lambda s, r: lc.ResidualBall(
        aslinearoperator(FRAME * (r / s)), 0.3 * r * SLOPE, r, lc.ResidualNorm()
    ),
    "rows": lambda s, r: lc.Polyhedron(ROWS * (r / s), LIMITS * r),
    "sparse rows": lambda s, r: lc.Polyhedron(
        sp.csr_array(ROWS * (r / s)), LIMITS * r, lc.NormForm()
    ),
    "box": lambda s, r: lc.Polyhedron.box(-s * np.ones(4), s * np.ones(4)),
    "simplex": lambda s, r: lc.Simplex(4, s),
    "l1 ball": lambda s, r: lc.L1Ball(4, s),
    "ball and rows": lambda s, r: lc.Intersection(
        lc.ResidualBall(FRAME * (r / s), np.zeros(4), r),
        lc.Polyhedron(ROWS[:2] * (r / s), LIMITS[:2] * r),
    ),
    "callable": lambda s, r: lc.FunctionConstraint(
        lambda x: r * (float(x @ x) / s**2 - 1.0),
        lambda x: (2.0 * r / s**2) * x,
        smooth=True,
        shape=(4,),
        x_scale=s,
    ),
}

MATRICES: dict[str, Callable[[float, float], Any]] = {
    "cone": lambda s, r: lc.PSDCone(4),
    "spectrahedron": lambda s, r: lc.Spectrahedron(4, s),
}

UNITS = [
    (2.0**-40, 1.0, 1.0),
    (2.0**40, 1.0, 1.0),
    (1.0, 2.0**-40, 1.0),
    (1.0, 2.0**40, 1.0),
    (1.0, 1.0, 2.0**-40),
    (1.0, 1.0, 2.0**40),
    (2.0**20, 2.0**-30, 2.0**13),
]


def solved(objective: Any, constraint: Any, s: float, t: float, r: float) -> lopro.Result:
    return lopro.solve(lopro.Problem(objective(s, t), constraint(s, r)), max_iter=2000)


def assert_same(ours: lopro.Result, plain: lopro.Result, s: float, t: float) -> None:
    assert ours.status is plain.status
    assert ours.iterations == plain.iterations
    assert ours.counts == plain.counts
    np.testing.assert_array_equal(ours.x, s * plain.x)
    assert ours.fun == t * plain.fun
    assert ours.certificate.lower_bound == t * plain.certificate.lower_bound
    assert ours.certificate.relative_gap == plain.certificate.relative_gap
    assert ours.certificate.violation == plain.certificate.violation


@pytest.mark.parametrize("pair", list(itertools.product(OBJECTIVES, CONSTRAINTS)), ids="/".join)
def test_vectors(pair: tuple[str, str]) -> None:
    objective, constraint = OBJECTIVES[pair[0]], CONSTRAINTS[pair[1]]
    plain = solved(objective, constraint, 1.0, 1.0, 1.0)
    for s, t, r in UNITS:
        assert_same(solved(objective, constraint, s, t, r), plain, s, t)


@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str) -> None:
    def distance(s: float, t: float) -> Any:
        return (t / s**2) * lo.SquaredDistance(s * SYMMETRIC)

    plain = solved(distance, MATRICES[name], 1.0, 1.0, 1.0)
    for s, t, r in UNITS:
        assert_same(solved(distance, MATRICES[name], s, t, r), plain, s, t)


@pytest.mark.parametrize("name", [*CONSTRAINTS, *MATRICES])
def test_projections_and_violations(name: str) -> None:
    build = CONSTRAINTS.get(name) or MATRICES[name]
    plain = build(1.0, 1.0)
    for seed in range(20):
        x = 3.0 * np.random.default_rng(seed).standard_normal(plain.shape)
        x = x + x.T if x.ndim == 2 else x
        for s, _, r in UNITS:
            scaled = build(s, r)
            np.testing.assert_array_equal(scaled.project(s * x), s * plain.project(x))
            assert scaled.violation(s * x) == plain.violation(x)


@pytest.mark.parametrize("kind", ["dense", "operator", "complex", "nonneg", "equality"])
def test_basis_pursuit(kind: str) -> None:
    rng = np.random.default_rng(3)
    A = rng.standard_normal((15, 40))
    x = np.zeros(40)
    x[[3, 17, 30]] = [2.0, 1.0, 1.5]
    noise = 0.0 if kind == "equality" else 0.05
    if kind == "complex":
        A = A + 1j * rng.standard_normal((15, 40))
    y = A @ x + noise * rng.standard_normal(15) / 4.0

    def solve(a: float, b: float) -> lopro.BPDNResult:
        matrix = aslinearoperator(a * A) if kind == "operator" else a * A
        return lopro.bpdn(matrix, b * y, b * noise, nonneg=kind == "nonneg")

    plain = solve(1.0, 1.0)
    for a, b in ((2.0**-40, 1.0), (2.0**40, 1.0), (1.0, 2.0**-40), (1.0, 2.0**40)):
        assert_same(solve(a, b), plain, b / a, b / a)


def test_a_tiny_simplex_and_two_rows() -> None:
    """In small units a violated row remains violated: violations are not compared with ``1 + |x|``."""
    rows = lc.Polyhedron([[1.0, 0.0, 0.0], [1.0, 2.0, 0.0]], [0.2e-13, 0.5e-13])
    both = lc.Intersection(lc.Simplex(3, 1e-13), rows)
    result = lopro.solve(lopro.Problem(lo.Linear(np.array([-3.0, -2.0, -1.0])), both))
    assert result.success
    assert result.x[0] <= 0.2e-13 * (1 + 1e-8) and result.x[0] + 2 * result.x[1] <= 0.5e-13 * (
        1 + 1e-8
    )
    assert result.x == pytest.approx([0.2e-13, 0.15e-13, 0.65e-13], rel=1e-6)
