"""Five checks of projections onto 1000 random sublevel sets given by values and subgradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from support.projection_judges import assert_optimal, assert_stands_still, farthest_feasible, size

import lopro
from lopro.constraints import FunctionConstraint
from lopro.errors import InfeasibleError, ProjectionError
from lopro.projections.cuts import Cut, project_by_cuts
from lopro.projections.generic import project_sublevel

CASES = 1000


@dataclass(frozen=True)
class Case:
    value: Callable[[Any], float]
    slope: Callable[[Any], Any]
    smooth: bool
    inside: Any
    x: Any
    #: The result of another method.
    reference: Callable[[Any], Any]

    def project(self, x: Any) -> Any:
        return project_sublevel(x, self.value, self.slope, smooth=self.smooth)


def ellipsoid_reference(A: Any, y: Any, sigma: float) -> Callable[[Any], Any]:
    """Bisection on the multiplier of |A z - y|^2 <= sigma^2 with dense solves."""

    def reference(x: Any) -> Any:
        if np.linalg.norm(A @ x - y) <= sigma:
            return x
        low, high = -40.0, 60.0
        for _ in range(70):
            middle = 0.5 * (low + high)
            root = math.exp(0.5 * middle)
            stacked = np.vstack([np.eye(len(x)), root * A])
            z = np.linalg.lstsq(stacked, np.concatenate([x, root * y]), rcond=None)[0]
            low, high = (middle, high) if np.linalg.norm(A @ z - y) > sigma else (low, middle)
        return z

    return reference


def l1_reference(radius: float) -> Callable[[Any], Any]:
    """Bisection on the threshold."""

    def reference(x: Any) -> Any:
        low, high = 0.0, float(np.abs(x).max())
        if np.abs(x).sum() <= radius:
            return x
        for _ in range(200):
            t = 0.5 * (low + high)
            low, high = (t, high) if np.maximum(np.abs(x) - t, 0.0).sum() > radius else (low, t)
        return np.sign(x) * np.maximum(np.abs(x) - high, 0.0)

    return reference


def make(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 11)) if seed % 20 else int(rng.integers(20, 31))
    x = rng.standard_normal(d) * 10.0 ** rng.uniform(-1, 2)
    kind = seed % 4
    if kind == 0:  # an ellipsoid, smooth
        A, y = rng.standard_normal((d, d)) + np.eye(d), rng.standard_normal(d)
        s = 0.1 + rng.random()
        return Case(
            lambda z: float(np.sum((A @ z - y) ** 2)) - s**2,
            lambda z: 2.0 * A.T @ (A @ z - y),
            True,
            np.linalg.solve(A, y),
            x,
            ellipsoid_reference(A, y, s),
        )
    if kind == 1:  # the same through a norm, which has a kink at the centre
        A, y = rng.standard_normal((d, d)) + np.eye(d), rng.standard_normal(d)
        s = 0.1 + rng.random()
        return Case(
            lambda z: float(np.linalg.norm(A @ z - y)) - s,
            lambda z: A.T @ (A @ z - y) / max(float(np.linalg.norm(A @ z - y)), 1e-300),
            False,
            np.linalg.solve(A, y),
            x,
            ellipsoid_reference(A, y, s),
        )
    if kind == 2:  # the l1 ball: kinks everywhere that matters
        R = 0.1 + rng.exponential()
        return Case(
            lambda z: float(np.abs(z).sum()) - R, np.sign, False, np.zeros(d), x, l1_reference(R)
        )
    low, high = -rng.random(d), rng.random(d)  # a box by its largest violation

    def slope(z: Any) -> Any:
        g, over, under = np.zeros(d), z - high, low - z
        i = int(np.argmax(np.maximum(over, under)))
        g[i] = 1.0 if over[i] >= under[i] else -1.0
        return g

    return Case(
        lambda z: float(np.maximum(z - high, low - z).max()),
        slope,
        False,
        0.5 * (low + high),
        x,
        lambda v: np.clip(v, low, high),
    )


@pytest.mark.parametrize("block", range(10))
def test_feasibility_optimality_and_a_reference(block: int) -> None:
    for seed in range(block, CASES, 10):
        case, rng = make(seed), np.random.default_rng(40_000 + seed)
        p = case.project(case.x)
        outside = max(0.0, case.value(p)) / max(float(np.linalg.norm(case.slope(p))), 1e-300)
        assert outside <= 1e-10 * size(case.x), seed
        u = rng.standard_normal(len(p))
        edge = farthest_feasible(lambda z, c=case: c.value(z) <= 0.0, case.inside, u)
        assert edge is not None
        assert_optimal(case.x, p, [case.inside, edge, 0.5 * (case.inside + edge)])
        for z in (case.inside, edge):
            assert_stands_still(case.project, z, 0.0)
        assert np.linalg.norm(p - case.reference(case.x)) <= 1e-8 * size(case.x, p), seed


@pytest.mark.parametrize("seed", range(30))
def test_another_solver(seed: int) -> None:
    """SLSQP on a smooth set without a closed form: a level set of log-sum-exp."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    C, x = rng.standard_normal((d + 2, d)), 5.0 * rng.standard_normal(d)

    def value(z: Any) -> float:
        a = C @ z
        return float(a.max() + np.log(np.exp(a - a.max()).sum())) - math.log(d + 2) - 0.3

    def slope(z: Any) -> Any:
        weights = np.exp(C @ z - (C @ z).max())
        return C.T @ (weights / weights.sum())

    p = project_sublevel(x, value, slope, smooth=True)
    answer = scipy.optimize.minimize(
        lambda z: 0.5 * float((z - x) @ (z - x)),
        np.zeros(d),
        jac=lambda z: z - x,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda z: -value(z), "jac": lambda z: -slope(z)}],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert value(p) <= 1e-12
    assert np.linalg.norm(p - answer.x) <= 1e-5 * size(x)


def test_complex_points_and_matrices() -> None:
    x = np.array([[3.0 + 4.0j, 0.0], [0.0, 0.0]])
    p = project_sublevel(
        x, lambda z: float(np.vdot(z, z).real) - 1.0, lambda z: 2.0 * z, smooth=True
    )
    assert np.linalg.norm(p - x / 5.0) <= 1e-12


def test_large_smooth_problem_uses_products_only(rng: Any) -> None:
    """Beyond the size of a dense Hessian, conjugate gradients solve the Newton equations."""
    d = 150
    scale, x = 1.0 + rng.random(d), 3.0 * rng.standard_normal(d)
    p = project_sublevel(
        x, lambda z: float(np.sum(scale * z**2)) - 1.0, lambda z: 2.0 * scale * z, smooth=True
    )
    reference = ellipsoid_reference(np.diag(np.sqrt(scale)), np.zeros(d), 1.0)(x)
    assert np.linalg.norm(p - reference) <= 1e-8 * size(x)


def test_smooth_flag_is_not_trusted_blindly() -> None:
    """A kink declared smooth: Newton's method fails, and cuts compute the projection."""
    x = np.array([3.0, 1.0, -2.0])
    p = project_sublevel(x, lambda z: float(np.abs(z).sum()) - 1.0, np.sign, smooth=True)
    assert np.linalg.norm(p - l1_reference(1.0)(x)) <= 1e-9


@pytest.mark.parametrize("smooth", [False, True])
def test_empty_sets(smooth: bool) -> None:
    with pytest.raises(InfeasibleError) as caught:
        project_sublevel(
            np.array([2.0, 1.0]),
            lambda z: float(z @ z) + 1.0,
            lambda z: 2.0 * z,
            smooth=smooth,
        )
    assert caught.value.radius == math.inf
    with pytest.raises(InfeasibleError, match="positive everywhere"):
        project_sublevel(np.ones(2), lambda z: 1.0, lambda z: 0.0 * z, smooth=smooth)


@pytest.mark.parametrize("d", [3, 40, 90])
def test_empty_sets_of_smooth_functions_are_proved_empty(d: int) -> None:
    """The least logarithm of the sum of exponentials is above the level; its gradient is not exactly zero."""
    rng = np.random.default_rng(d)
    A = rng.standard_normal((5 * d, d))
    level = math.log(5 * d) - 1.0

    def value(z: Any) -> float:
        return float(np.logaddexp.reduce(A @ z)) - level

    def slope(z: Any) -> Any:
        a = A @ z
        return A.T @ np.exp(a - np.logaddexp.reduce(a))

    lowest = scipy.optimize.minimize(value, np.zeros(d), jac=slope, method="BFGS").fun
    for x in (np.zeros(d), 5.0 * rng.standard_normal(d)):
        with pytest.raises(InfeasibleError, match="contradict each other") as caught:
            project_sublevel(x, value, slope, smooth=True)
        assert caught.value.radius == math.inf and lowest > 0.1
    level += lowest + 1e-3
    z = project_sublevel(x, value, slope, smooth=True)
    assert abs(value(z)) <= 1e-9


def test_an_infimum_that_no_point_attains_excludes_points_up_to_a_radius() -> None:
    def value(z: Any) -> float:
        return 1.0 + math.exp(-z[0]) + float(z[1] ** 2)

    def slope(z: Any) -> Any:
        return np.array([-math.exp(-z[0]), 2.0 * z[1]])

    with pytest.raises(InfeasibleError, match="of zero is feasible") as caught:
        project_sublevel(np.array([1.0, 2.0]), value, slope, smooth=True)
    radius = caught.value.radius
    assert 1e8 < radius < math.inf
    rows = FunctionConstraint(value, slope, smooth=True, shape=(2,))
    result = lopro.solve(lopro.Problem(lopro.objectives.SquaredDistance(np.ones(2)), rows))
    assert result.status is lopro.Status.STALLED
    assert result.certificate.empty_within > 1e8
    # A little lower, the set is not empty, and far away.
    far = project_sublevel(
        np.array([1.0, 2.0]), lambda z: value(z) - 1.0 - 1e-6, slope, smooth=True
    )
    np.testing.assert_allclose(far, [-math.log(1e-6), 0.0], atol=1e-3)


def test_cuts_that_do_not_converge_are_an_error() -> None:
    def oracle(z: Any) -> list[Cut]:
        return [Cut(z, 0.5 * float(z @ z))]  # always halves the way: converges to the origin

    with pytest.raises(ProjectionError, match="iterations"):
        project_by_cuts(np.array([1.0, 1.0]), oracle, tol=1e-12, max_cuts=20)


def test_cuts_that_contradict_each_other_by_rounding_end_the_iteration() -> None:
    """``z <= 0`` and ``z >= 1e-11``: no other point is nearer to both, and no cut changes it."""
    asked = []

    def oracle(z: Any) -> list[Cut]:
        asked.append(z)
        cuts = [Cut(np.array([1.0]), 0.0), Cut(np.array([-1.0]), -1e-11)]
        return [cut for cut in cuts if cut.depth(z) > 0.0]

    z = project_by_cuts(np.array([1.0]), oracle, tol=1e-12)
    assert -1e-14 <= z[0] <= 1.01e-11
    assert len(asked) <= 4


def test_projections_of_nearby_points_start_from_the_last_result() -> None:
    """On an ellipsoid: the same point as from scratch, for a third of the slopes or less."""
    rng = np.random.default_rng(5)
    axes, slopes = 10.0 ** rng.uniform(-1, 1, 12), [0]

    def slope(z: Any) -> Any:
        slopes[0] += 1
        return 2.0 * axes * z

    ellipsoid = FunctionConstraint(lambda z: float(axes @ z**2) - 1.0, slope, smooth=True)
    x = rng.standard_normal(12)
    shift = 1e-2 * rng.standard_normal(12)
    project = ellipsoid.projector()
    project(x)
    slopes[0] = 0
    followed, first = project(x + shift), slopes[0]
    scratch = ellipsoid.project(x + shift)
    assert followed == pytest.approx(scratch, rel=1e-11, abs=1e-12)
    assert 3 * first <= slopes[0] - first
    far = -50.0 * x  # the last answer is of no use: on the other side
    assert project(far) == pytest.approx(ellipsoid.project(far), rel=1e-11, abs=1e-12)
    assert project(0.0 * x) == pytest.approx(0.0 * x)
