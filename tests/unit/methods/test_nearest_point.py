"""A squared distance over a set that is easy to project on: one projection, and a bound that is tight."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lopro
from lopro import NearestPoint, Problem, constraints
from lopro.objectives import L1Norm, SquaredDistance

RNG = np.random.default_rng(0)
Z = 3.0 * RNG.standard_normal(40)
G = RNG.standard_normal((6, 6))
SETS: list[tuple[Any, Any]] = [
    (constraints.L1Ball(40, 2.0), Z),
    (constraints.Simplex(40, 2.0), Z),
    (constraints.Box(-np.ones(40), np.ones(40)), Z),
    (constraints.Spectrahedron(6, 1.5), G + G.T),
]


@pytest.mark.parametrize(("set_", "z"), SETS, ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("unit", [1.0, 2.0**-40])
def test_one_projection_gives_a_tight_bound(set_: Any, z: Any, unit: float) -> None:
    problem = Problem((3.0 * unit) * SquaredDistance(z), set_)
    result = lopro.solve(problem, tol=1e-12)
    np.testing.assert_array_equal(result.x, set_.project(z))
    assert result.success and "NearestPoint" in result.method
    assert result.counts.projections == 1 and result.iterations == 1
    exact = 1.5 * unit * np.linalg.norm(set_.project(z) - z) ** 2
    assert result.fun == pytest.approx(exact, rel=1e-14)
    # The bound is the value, up to rounding.
    assert result.certificate.lower_bound == pytest.approx(exact, rel=1e-12)
    assert lopro.explain(problem).splitlines()[1].startswith("1. NearestPoint()")


def test_a_point_of_the_set_is_its_own_nearest() -> None:
    inside = np.full(40, 0.01)
    result = lopro.solve(Problem(SquaredDistance(inside), constraints.L1Ball(40)))
    np.testing.assert_array_equal(result.x, inside)
    assert result.success and result.fun == 0.0


def test_a_wrong_projection_is_not_proved() -> None:
    class Wrong(constraints.L1Ball):
        def project(self, x: Any) -> Any:
            return 0.5 * super().project(x)

    problem = Problem(SquaredDistance(Z), Wrong(40))
    result = lopro.solve(problem, method=NearestPoint(), tol=1e-6)
    true = 0.5 * np.linalg.norm(constraints.L1Ball(40).project(Z) - Z) ** 2
    assert not result.success and result.certificate.lower_bound <= true


@pytest.mark.parametrize(
    ("f", "set_"),
    [
        (SquaredDistance(Z) + L1Norm(), constraints.L1Ball(40)),
        (L1Norm(), constraints.L1Ball(40)),
        (SquaredDistance(Z), constraints.Box(np.zeros(40), np.full(40, np.inf))),
        (SquaredDistance(Z), constraints.Affine(np.eye(40), np.zeros(40), np.ones(40))),
    ],
    ids=["sum", "other", "unbounded", "rows"],
)
def test_unsupported_problems_are_refused(f: Any, set_: Any) -> None:
    with pytest.raises(lopro.MissingCapabilityError, match="NearestPoint needs SquaredDistance"):
        NearestPoint().check(Problem(f, set_))


def ellipsoid(smooth: bool, project: Any = None) -> Any:
    """Return ``{x : 4 x1^2 + x2^2 <= 4}`` as functions of a user."""
    H = np.diag([4.0, 1.0])

    def value(x: Any) -> float:
        return float(x @ H @ x) - 4.0 if smooth else float(np.sqrt(x @ H @ x)) - 2.0

    def subgradient(x: Any) -> Any:
        return 2.0 * H @ x if smooth else H @ x / np.sqrt(x @ H @ x)

    return constraints.FunctionConstraint(value, subgradient, project, smooth=smooth, shape=(2,))


@pytest.mark.parametrize("smooth", [True, False])
def test_a_set_of_your_own_takes_one_projection(smooth: bool) -> None:
    """(1, 0) is nearest to (3, 0): c increases along z - x there, so the linearised constraint proves it."""
    calls = []

    def project(x: Any) -> Any:
        calls.append(x)
        return np.array([1.0, 0.0])

    z = np.array([3.0, 0.0])
    problem = Problem(2.0 * SquaredDistance(z), ellipsoid(smooth, project))
    result = lopro.solve(problem, tol=1e-12)
    assert result.success and result.method == "Auto() -> NearestPoint()"
    assert len(calls) == result.counts.projections == 1
    assert result.fun == pytest.approx(4.0, rel=1e-14)
    assert result.certificate.lower_bound == pytest.approx(4.0, rel=1e-12)
    assert "1. NearestPoint(): a squared distance over a set is one projection" in lopro.explain(
        problem
    )


def test_a_projection_of_your_own_is_not_trusted() -> None:
    """(0, 2) is feasible, and the nearest point to (0.1, 3) is not: Auto tries other methods."""
    z = np.array([0.1, 3.0])
    wrong = ellipsoid(True, lambda x: np.array([0.0, 2.0]))
    alone = lopro.solve(Problem(SquaredDistance(z), wrong), method=NearestPoint(), tol=1e-6)
    best = lopro.solve(Problem(SquaredDistance(z), ellipsoid(True)), tol=1e-9)
    assert best.success and not alone.success
    assert alone.certificate.lower_bound <= best.fun < alone.fun
    said = lopro.explain(Problem(L1Norm(shape=(2,)), ellipsoid(True)))
    assert "the set is given by smooth functions" in said
