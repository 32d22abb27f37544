"""Theorem CS: the exponent 1/2 of basis pursuit denoising, on T7 (closed form) and T8."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.theorem_checks import size
from support.theory_problems import Known, t7, t8

import lopro
from lopro.constraints import ResidualBall


@pytest.mark.parametrize("known", [t7(), t8()], ids=lambda k: k.name)
def test_solutions_are_optimal(known: Known) -> None:
    """T7, T8: primal and dual values agree, so that the reference solutions are optimal.

    ``nu = 2 zeta (y - A x)`` is feasible for ``|A' nu|_inf <= 1``, with the value ``f_*``.
    """
    A, y = known.constraint.A.matrix, known.constraint.y
    nu = 2.0 * known.zeta * (y - A @ known.solution)
    assert np.abs(A.T @ nu).max() <= 1.0 + 1e-9
    dual = float(y @ nu) - known.constraint.sigma * size(nu)
    assert dual == pytest.approx(known.optimum, abs=1e-10)
    assert known.gap(known.solution) == pytest.approx(0.0, abs=1e-10)
    assert abs(known.constraint.value(known.solution)) <= 1e-12
    assert known.zeta <= known.G / known.rho


def test_t7_is_a_soft_threshold() -> None:
    """T7: the closed form is what the solver finds."""
    known = t7()
    result = lopro.solve(known.problem, known.x0, tol=1e-9)
    assert result.success
    assert size(result.x - known.solution) <= 1e-4
    assert result.fun == pytest.approx(known.optimum, abs=1e-8)


def boundary_samples(known: Known, scale: float, rng: Any, count: int = 60) -> list[Any]:
    """Return feasible points near the solution, half of them on the face where f is flattest.

    Those keep the support and lie on the boundary: there, to first order, f does not grow.
    """
    support = known.solution != 0.0
    A, y = known.constraint.A.matrix[:, support], known.constraint.y
    points = []
    for i in range(count):
        step = rng.standard_normal(known.x0.shape)
        if i % 2:
            points.append(known.constraint.project(known.solution + scale * step / size(step)))
            continue
        flat = A.T @ (y - A @ known.solution[support])  # the slope of c within the support
        inside = step[support] - (step[support] @ flat) / (flat @ flat) * flat
        x = known.solution[support] + scale * inside / size(inside)
        # Back to the boundary along the slope: a quadratic equation for the length.
        r, move = A @ x - y, A @ flat
        p, q, rest = float(move @ move), float(r @ move), float(r @ r) - known.constraint.sigma**2
        x = x + (-q - math.sqrt(max(0.0, q * q - p * rest))) / p * flat
        z = np.zeros_like(known.solution)
        z[support] = x
        points.append(z)
    return [x for x in points if known.constraint.value(x) <= 1e-13]


def growth(known: Known, theta: float, rng: Any) -> list[float]:
    """Return ``sup dist / gap^theta`` at each of several scales, from the coarsest to the finest."""
    found = []
    for scale in (1e-1, 1e-2, 1e-3, 1e-4):
        ratios = []
        for x in boundary_samples(known, scale, rng):
            gap = known.gap(x)
            if gap > 1e-13:
                ratios.append(size(x - known.solution) / gap**theta)
        assert len(ratios) >= 20
        found.append(max(ratios))
    return found


@pytest.mark.parametrize("known", [t7(), t8()], ids=lambda k: k.name)
def test_theorem_cs(known: Known, rng: Any) -> None:
    """Thm CS: ``dist <= sigma gap^(1/2)`` with one sigma at all scales; theta = 1 and 0.6 are rejected.

    The ratio stays bounded for 1/2, and grows by orders of magnitude for the larger exponents.
    """
    half = growth(known, 0.5, rng)
    assert max(half) <= 3.0 * half[0]
    for theta in (1.0, 0.6):  # negative controls
        ratios = growth(known, theta, rng)
        assert ratios[-1] > 3.0 * ratios[0]


@pytest.mark.parametrize("known", [t7(), t8()], ids=lambda k: k.name)
def test_theorem_cs_slope(known: Known, rng: Any) -> None:
    """Thm CS: along the flattest face the slope of log distance over log gap is 1/2."""
    rows = []
    for scale in np.geomspace(1e-4, 1e-1, 13):
        x = max(
            boundary_samples(known, scale, rng),
            key=lambda x: size(x - known.solution) / known.gap(x),
        )
        rows.append((math.log(known.gap(x)), math.log(size(x - known.solution))))
    gaps, distances = np.array(rows).T
    slope = float(np.polyfit(gaps, distances, 1)[0])
    assert slope == pytest.approx(0.5, abs=0.05)


def test_theorem_cs_without_constraint(rng: Any) -> None:
    """Thm CS, the case it excludes: for ``|y|^2 <= tau`` the solution is 0 and theta = 1, sigma = 1."""
    known = t7()
    y = known.constraint.y
    loose = replace(
        known,
        constraint=ResidualBall(np.eye(6), y, 1.1 * size(y)),
        solution=np.zeros(6),
        optimum=0.0,
    )
    for scale in (1e-3, 1e-1, 1.0, 10.0):
        for _ in range(30):
            x = loose.constraint.project(scale * rng.standard_normal(6))
            assert size(x) <= loose.gap(x)
