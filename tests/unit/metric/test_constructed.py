"""The default method on a hundred problems whose solution is known by construction."""

from __future__ import annotations

import numpy as np
import pytest
from support.metric_known import Known, constructed, value

import lopro
from lopro.constraints import PSDCone
from lopro.metric import PairMultiplier

#: Features of the problem, features and rank of the solution, and how many of them.
SIZES = [(2, 1, 1, 10), (4, 3, 2, 25), (8, 4, 2, 30), (15, 6, 3, 20), (25, 6, 2, 10), (40, 8, 3, 5)]


def check(known: Known, result: lopro.result.Result) -> None:
    assert result.success, str(result)
    assert abs(result.fun - known.optimum) <= 1e-6 * known.optimum
    assert result.certificate.lower_bound <= known.optimum * (1.0 + 1e-12)
    assert np.linalg.norm(result.x - known.A) <= 1e-4 * np.linalg.norm(known.A)
    assert np.linalg.eigvalsh(result.x)[0] >= -1e-12
    assert result.fun == pytest.approx(value(known.problem.objective, result.x), rel=1e-12)


@pytest.mark.parametrize(("d", "features", "rank", "count"), SIZES)
def test_constructed_optima_are_found(d: int, features: int, rank: int, count: int) -> None:
    """100 instances: value to 1e-6, matrix to 1e-4, with tau over two decades.

    Where no metric fits the pairs, the value determines the matrix poorly: hence the small gap required.
    """
    for seed in range(count):
        rng = np.random.default_rng([d, seed])
        known = constructed(rng, d, features, rank, tau=10.0 ** rng.uniform(-2.0, 0.0))
        check(known, lopro.solve(known.problem, method=lopro.FeatureWorkingSet(), tol=1e-10))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("d", "features", "join"), [(12, 4, 1), (20, 5, 4), (40, 8, 8)])
def test_from_a_working_set_that_starts_small(d: int, features: int, join: int, seed: int) -> None:
    """Features are found by their prices, and the multiplier is completed to those left out."""
    known = constructed(np.random.default_rng([d, seed]), d, features, 2)
    method = lopro.FeatureWorkingSet(all_below=0, join=join)
    check(known, lopro.solve(known.problem, method=method, tol=1e-7))


@pytest.mark.parametrize("seed", range(3))
def test_by_admm_on_all_features(seed: int) -> None:
    known = constructed(np.random.default_rng(seed), 8, 4, 2)
    check(known, lopro.solve(known.problem, method=lopro.ConsensusADMM(), tol=1e-8))


def test_the_construction_is_right(rng: np.random.Generator) -> None:
    """The known multiplier certifies the known solution, and no nearby point is better."""
    known = constructed(rng, 8, 4, 2)
    objective, cone = known.problem.objective, PSDCone(8)
    multiplier = PairMultiplier(-known.S, 0.0, weights=known.w)
    bound, _ = objective.dual_bound(cone, known.A, multiplier, known.optimum)
    assert bound == pytest.approx(known.optimum, rel=1e-10)
    assert value(objective, known.A) == pytest.approx(known.optimum, rel=1e-12)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(50):
            G = size * rng.standard_normal((8, 8))
            near = cone.project(known.A + G + G.T)
            assert value(objective, near) >= known.optimum


def test_few_features_are_examined(rng: np.random.Generator) -> None:
    """The purpose of a working set: only the proof decomposes the full matrix."""
    known = constructed(rng, 40, 5, 2)
    method = lopro.FeatureWorkingSet(all_below=0, join=4)
    result = lopro.solve(known.problem, method=method, tol=1e-4)
    check_features = np.flatnonzero(np.diag(known.A))
    assert result.success
    assert set(check_features) == set(np.flatnonzero(np.diag(result.x) > 1e-6))
    assert result.counts.projections == 0
