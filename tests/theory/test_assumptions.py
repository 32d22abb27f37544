"""Assumptions A1 and A2, and Lemma 1, on every problem with known constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.theorem_checks import (
    SLACK,
    error_bound_ratio,
    lipschitz_ratio,
    regularity_ratio,
    samples,
    size,
)
from support.theory_problems import (
    Known,
    all_problems,
    solution_ball,
    t2,
    t3,
    t4,
    t5,
    t6_box,
    t6_ellipsoid,
)
from support.theory_problems import t9 as psd

from lopro.constraints import FunctionConstraint, ResidualNorm

PROBLEMS = [pytest.param(known, id=known.name) for known in all_problems()]


@pytest.mark.parametrize("known", PROBLEMS)
def test_a1_regularity(known: Known, rng: Any) -> None:
    """A1 (i), eq. (3): ``rho dist(x, Omega) <= c(x)`` for points outside, at scales 1e-3 to 1e3."""
    assert regularity_ratio(known, known.rho, samples(known, rng)) <= SLACK


@pytest.mark.parametrize("known", PROBLEMS)
def test_a1_regularity_is_attained(known: Known, rng: Any) -> None:
    """A1 (i): the constants are the best ones, a tenth of a percent more is rejected."""
    points = samples(known, rng, scales=(1e-5, 1e-4, 1e-3))
    assert regularity_ratio(known, 1.001 * known.rho, points) > 1.0


@pytest.mark.parametrize("known", PROBLEMS)
def test_a1_slater(known: Known) -> None:
    """A1 (ii): some point has ``c < 0``."""
    inside = [known.x0, 0.5 * known.x0, 0.5 * (known.x0 + known.solution), 2.0 * known.x0]
    if known.name == "T8":
        A, y = known.constraint.A.matrix, known.constraint.y
        inside.append(np.linalg.lstsq(A, y)[0])
    assert min(known.constraint.value(x) for x in inside) < -1e-3


@pytest.mark.parametrize("known", PROBLEMS)
def test_a1_lipschitz(known: Known, rng: Any) -> None:
    """A1 (iii): f and c are G- and Gc-Lipschitz over near and far pairs, wherever they claim it."""
    points = list(samples(known, rng, count=10))
    if not known.mu:
        assert lipschitz_ratio(known.objective.value, known.G, points) <= SLACK
    if math.isfinite(known.Gc):
        assert lipschitz_ratio(known.constraint.value, known.Gc, points) <= SLACK
        assert lipschitz_ratio(known.constraint.value, 0.3 * known.Gc, points) > 1.0


def test_a1_lipschitz_fails_for_squares(rng: Any) -> None:
    """E3, E9: neither a strongly convex f nor the squared residual is Lipschitz on the whole space."""
    quadratic = t4()
    on_boundary = 2.0 * math.sqrt(quadratic.Lc / 2.0)
    far = list(samples(quadratic, rng, count=10))
    assert lipschitz_ratio(quadratic.constraint.value, 10.0 * on_boundary, far) > 1.0
    near = t6_box()
    assert lipschitz_ratio(near.objective.value, near.G, list(samples(near, rng, count=10))) > 1.0


def test_a1_lipschitz_on_the_ball_of_c1(rng: Any) -> None:
    """C1': on the ball around a feasible point the strongly convex f of T6 is G-Lipschitz."""
    known = t6_box()
    z = known.x0 - known.objective.subgradient(known.x0)
    ball, G = solution_ball(z, known.x0)
    assert pytest.approx(known.G) == G
    steps = rng.standard_normal((300, 4))
    steps *= (ball.radius * rng.uniform(0.0, 1.0, 300) / np.linalg.norm(steps, axis=1))[:, None]
    points = [known.x0 + step for step in steps]
    assert lipschitz_ratio(known.objective.value, known.G, points) <= SLACK
    assert size(known.solution - known.x0) <= ball.radius


SHARP = [t2(), t3(), t4(), t4(form=ResidualNorm()), t5(), t6_box(), t6_ellipsoid(), psd()]


@pytest.mark.parametrize("known", [pytest.param(k, id=k.name) for k in SHARP])
def test_a2_error_bound(known: Known, rng: Any) -> None:
    """A2 (iii): ``dist(x, x*) <= sigma (f(x) - f_*)^theta`` on sampled sublevel sets."""
    eps = math.inf if known.theta == 1.0 or known.mu else known.eps0
    assert error_bound_ratio(known, known.sigma, known.theta, eps, rng) <= SLACK


@pytest.mark.parametrize(
    "known", [pytest.param(k, id=k.name) for k in (t4(), t5(), t6_ellipsoid())]
)
def test_a2_rejects_theta_one_on_curved_sets(known: Known, rng: Any) -> None:
    """A2, negative control: with ``theta = 1`` not even a hundredfold sigma holds on a curved set."""
    assert error_bound_ratio(known, 100.0 * known.sigma, 1.0, known.eps0, rng) > 1.0


@pytest.mark.parametrize("known", [pytest.param(k, id=k.name) for k in (t2(), t3())])
def test_a2_rejects_a_smaller_sigma(known: Known, rng: Any) -> None:
    """A2, negative control: on the polyhedral problems a third of sigma is too little."""
    assert error_bound_ratio(known, known.sigma / 3.0, 1.0, math.inf, rng) > 1.0


CURVED = [t4(), t4(form=ResidualNorm()), t5(), t6_ellipsoid()]


@pytest.mark.parametrize("known", [pytest.param(k, id=k.name) for k in CURVED])
def test_lemma_1(known: Known, rng: Any) -> None:
    """Lemma 1: the least slope on the boundary (eq. (2)) is at least rho, and it implies eq. (3)."""
    boundary = [
        known.constraint.project(x) for x in samples(known, rng) if known.constraint.value(x) > 0
    ]
    slopes = [size(known.constraint.subgradient(z)) for z in boundary]
    assert min(slopes) >= known.rho * (1.0 - 1e-9)
    assert regularity_ratio(known, min(slopes), samples(known, rng)) <= 1.0 + 1e-3


@pytest.mark.parametrize("known", [pytest.param(k, id=k.name) for k in CURVED])
def test_lemma_1_optimality_of_the_projection(known: Known, rng: Any) -> None:
    """Lemma 1: ``x - P x`` points along the gradient of c at ``P x``, which lies on the boundary."""
    for x in samples(known, rng, scales=(1e-2, 1.0, 1e2)):
        if known.constraint.value(x) > 1e-6:
            z = known.constraint.project(x)
            away, slope = x - z, known.constraint.subgradient(z)
            cosine = float(away @ slope) / (size(away) * size(slope))
            assert cosine >= 1.0 - 1e-9
            assert abs(known.constraint.value(z)) <= 1e-9


def test_lemma_1_optimality_of_the_projection_on_the_cone(rng: Any) -> None:
    """Lemma 1 on T9: ``P X - X`` is positive semidefinite and orthogonal to ``P X``."""
    known = psd()
    for X in samples(known, rng, scales=(1e-2, 1.0, 1e2)):
        Z = known.constraint.project(X)
        unit = 1e-12 * (1.0 + size(X)) ** 2
        assert np.linalg.eigvalsh(Z - X)[0] >= -unit
        assert abs(float(np.vdot(Z - X, Z))) <= unit


def test_lemma_1_is_strict() -> None:
    """Remark to A1: for ``c = max(x, 2x)`` eq. (2) gives rho = 1 while eq. (3) holds with rho = 2."""
    c = FunctionConstraint(
        lambda x: max(float(x[0]), 2.0 * float(x[0])),
        lambda x: np.ones(1) * (2.0 if x[0] > 0 else 1.0),
    )
    assert size(c.subgradient(np.zeros(1))) == 1.0  # in the subdifferential [1, 2] at the boundary
    points = [np.array([s]) for s in np.geomspace(1e-3, 1e3, 20)]
    ratios = [size(x - np.minimum(x, 0.0)) / c.value(x) for x in points]
    assert max(ratios) == pytest.approx(0.5)
