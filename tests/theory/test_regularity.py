"""Sources of rho: Hoffman constants (P6), the polyhedral error bound, residual balls (E1)."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from support.theorem_checks import SLACK, constraint_ratio, size

from lopro.constraints import (
    MaxForm,
    NormForm,
    Polyhedron,
    ResidualBall,
    ResidualNorm,
    SquaredResidual,
)

FORMS = [MaxForm(), NormForm()]


def gaussian_points(rng: Any, d: int, count: int = 60) -> list[Any]:
    """Return points of sizes 1e-3 to 1e3."""
    return [10.0**s * rng.standard_normal(d) for s in range(-3, 4) for _ in range(count // 7 + 1)]


def wedge(e: float) -> Any:
    """Return the rows of E8 (b): a wedge that gets flatter as e falls."""
    return np.array([[e, 1.0], [e, -1.0], [-1.0, 0.0]])


def printed_hoffman(C: Any) -> float:
    """The paper's rho: the smallest nonzero eigenvalue of ``C'C`` (wrong, E8)."""
    values = np.linalg.eigvalsh(C.T @ C)
    return float(values[values > 1e-12 * values[-1]][0])


@pytest.mark.parametrize("form", FORMS, ids=repr)
@pytest.mark.parametrize("seed", range(6))
def test_hoffman_on_random_systems(form: Any, seed: int, rng: Any) -> None:
    """P6, both forms: ``rho dist <= c`` for random polyhedra with interior, thin and redundant rows."""
    rng = np.random.default_rng(seed)
    d, rows = 2 + seed % 3, 4 + seed % 4
    C = rng.standard_normal((rows, d))
    C[-1] = C[0] + (0.0 if seed % 2 else 1e-2) * rng.standard_normal(d)
    b = rng.uniform(0.0, 1.0, rows) * (seed % 3 > 0)
    P = Polyhedron(C, b, form)
    assert constraint_ratio(P, P.regularity().value, gaussian_points(rng, d)) <= 1.0 + 1e-7


@pytest.mark.parametrize("form", FORMS, ids=repr)
@pytest.mark.parametrize("seed", range(4))
def test_hoffman_is_the_brute_force_minimum(form: Any, seed: int) -> None:
    """P6: the enumeration agrees with ``|C_J' v|`` on a grid of directions v of every row set J."""
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((5, 3))
    least = math.inf
    for k in (1, 2, 3):
        v = rng.dirichlet(np.ones(k), 20000)
        v /= np.linalg.norm(v, ord=1 if isinstance(form, MaxForm) else 2, axis=1, keepdims=True)
        for J in combinations(range(5), k):
            least = min(least, float(np.linalg.norm(v @ C[list(J)], axis=1).min()))
    rho = Polyhedron(C, np.ones(5), form).regularity().value
    assert rho * (1.0 - 1e-9) <= least <= 1.02 * rho


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_hoffman_is_attained_on_the_wedge(form: Any, rng: Any) -> None:
    """P6 on E8 (b): equality at ``x = (1, 0)``, where the distance is 1 and the residual is tiny."""
    P = Polyhedron(wedge(0.01), np.array([0.0, 0.0, 10.0]), form)
    rho = P.regularity().value
    assert rho == pytest.approx(0.01 * (math.sqrt(2.0) if isinstance(form, NormForm) else 1.0))
    points = [np.array([s, 0.0]) for s in np.geomspace(1e-3, 1e3, 20)]
    assert constraint_ratio(P, rho, points) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_hoffman_rejects_the_eigenvalue(power: float, rng: Any) -> None:
    """E8, negative control: the paper's eigenvalue of ``C'C``, and its root, claim too much."""
    C = wedge(0.01)
    flat = Polyhedron(C, np.array([0.0, 0.0, 10.0]), NormForm())
    axis = [np.array([s, 0.0]) for s in np.geomspace(1e-3, 1e3, 20)]
    assert constraint_ratio(flat, printed_hoffman(C) ** power, axis) > 1.0
    if power == 1.0:
        row = Polyhedron(np.array([[2.0]]), np.zeros(1), NormForm())
        line = [np.array([s]) for s in np.geomspace(1e-3, 1e3, 20)]
        assert constraint_ratio(row, printed_hoffman(np.array([[2.0]])), line) == pytest.approx(2.0)
        assert constraint_ratio(row, row.regularity().value, line) <= SLACK


def test_hoffman_for_equations(rng: Any) -> None:
    """P6, remark: for ``C x = b`` in norm form rho is the smallest nonzero singular value of C."""
    C = rng.standard_normal((2, 3))
    C = np.vstack([C, C[0] + C[1]])  # dependent equations
    b = C @ np.ones(3)
    ball = ResidualBall(C, b, 0.0, ResidualNorm())
    singular = np.linalg.svd(C)[1]
    rho = ball.regularity().value
    assert rho == pytest.approx(singular[1])
    assert constraint_ratio(ball, rho, gaussian_points(rng, 3)) <= 1.0 + 1e-6
    assert (
        constraint_ratio(
            ball, 1.5 * rho, [np.ones(3) + s * np.linalg.svd(C)[2][1] for s in range(1, 20)]
        )
        > 1.0
    )


@pytest.mark.parametrize("seed", range(4))
def test_polyhedral_error_bound(seed: int) -> None:
    """PEB, eq. (13): ``dist(x, argmin h) <= (h(x) - min h) / rho`` for polyhedral h, with rho from P6."""
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((6, 3))
    C -= C.mean(axis=0)  # zero is a convex combination of the rows: h is bounded below
    b = rng.uniform(0.0, 1.0, 6)
    least = minimum_of_max(C, b)
    minimisers = Polyhedron(C, b + least + 1e-10)
    rho = minimisers.regularity().value
    assert constraint_ratio(minimisers, rho, gaussian_points(rng, 3)) <= 1.0 + 1e-6
    assert constraint_ratio(minimisers, 30.0 * rho, gaussian_points(rng, 3)) > 1.0


def minimum_of_max(C: Any, b: Any) -> float:
    """Return ``min_x max_i (c_i x - b_i)`` by linear programming."""
    from scipy.optimize import linprog

    d = C.shape[1]
    A = np.hstack([C, -np.ones((len(C), 1))])
    found = linprog(np.append(np.zeros(d), 1.0), A_ub=A, b_ub=b, bounds=[(None, None)] * (d + 1))
    return float(found.fun)


# Residual balls.


def residual_ball(kind: str, form: Any) -> tuple[ResidualBall, float, Any]:
    """Return a ball, the paper's rho for the square (twice it is right), and the critical direction."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((3, 5)) if kind == "wide" else rng.standard_normal((6, 3))
    if kind == "rank deficient":
        A[:, 2] = A[:, 0] + A[:, 1]
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    keep = s > 1e-10 * s[0]
    U, s, Vt = U[:, keep], s[keep], Vt[keep]
    y = rng.standard_normal(A.shape[0])
    misfit = size(y - U @ (U.T @ y))
    sigma = math.sqrt(misfit**2 + 0.7)
    center = Vt.T @ ((U.T @ y) / s)
    edge = center + math.sqrt(0.7) / s[-1] * Vt[-1]
    return ResidualBall(A, y, sigma, form), math.sqrt(0.7) * s[-1], (edge, Vt[-1])


@pytest.mark.parametrize("kind", ["wide", "tall", "rank deficient"])
@pytest.mark.parametrize("form", [SquaredResidual(), ResidualNorm()], ids=repr)
def test_residual_ball(kind: str, form: Any, rng: Any) -> None:
    """E1: ``rho = 2 s_min sqrt(tau - e^2)`` (squared) holds, rank-deficient or not, and is attained."""
    ball, printed, (edge, direction) = residual_ball(kind, form)
    rho = ball.regularity().value
    squared = isinstance(form, SquaredResidual)
    assert rho == pytest.approx(2.0 * printed if squared else printed / ball.sigma)
    far = [edge + x for x in gaussian_points(rng, len(edge))]
    assert constraint_ratio(ball, rho, far) <= 1.0 + 1e-7
    critical = [edge + s * direction for s in np.geomspace(1e-6, 1e-4, 12)]
    assert 1.0 - 1e-3 <= constraint_ratio(ball, rho, critical) <= 1.0 + 1e-3


@pytest.mark.parametrize("kind", ["wide", "tall", "rank deficient"])
def test_residual_ball_rejects_more(kind: str) -> None:
    """E1, negative control: 2.001 times the printed rho is 1.0005 times the true one, and is rejected."""
    ball, printed, (edge, direction) = residual_ball(kind, SquaredResidual())
    critical = [edge + s * direction for s in np.geomspace(1e-5, 1e-4, 12)]
    assert constraint_ratio(ball, 1.999 * printed, critical) <= 1.0
    assert constraint_ratio(ball, 2.001 * printed, critical) > 1.0
