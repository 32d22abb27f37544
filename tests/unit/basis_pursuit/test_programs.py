"""Quadratic programs for points of the path: solutions, their use, and when programs are solved."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.basis_pursuit import programs
from lopro.basis_pursuit.application import bpdn_problem
from lopro.basis_pursuit.columns.search import ColumnSearch
from lopro.basis_pursuit.problem import SparseProblem
from lopro.basis_pursuit.programs import Pair, optimal_pair
from lopro.protocol import Target


def make_problem(
    m: int, d: int, share: float, *, unit: float = 1.0
) -> tuple[Any, SparseProblem, Any]:
    rng = np.random.default_rng(1)
    A, w = unit * rng.standard_normal((m, d)), rng.uniform(0.5, 2.0, d)
    y = 7.0 * rng.standard_normal(m)
    problem = bpdn_problem(A, y, share * float(np.linalg.norm(y)), weights=w)
    return A, SparseProblem.of(problem, np.zeros(d)), y


@pytest.mark.parametrize("unit", [1.0, 1e-5, 1e5])
@pytest.mark.parametrize("share", [0.5, 0.05])
def test_a_program_finds_the_point_of_the_path(unit: float, share: float) -> None:
    A, sparse, y = make_problem(20, 60, 0.1, unit=unit)
    w = np.asarray(sparse.weights)
    alpha = share * float((np.abs(A.T @ y) / w).max())
    pair = optimal_pair(sparse, A, alpha)
    assert pair is not None and pair.alpha == alpha
    # alpha w'|x| + |A x - y|^2 / 2 is stationary, and the residual is alpha times the dual point.
    r = y - A @ pair.x
    np.testing.assert_allclose(alpha * pair.dual, r, atol=1e-7 * np.linalg.norm(y))
    used = pair.signs != 0.0
    np.testing.assert_allclose((A.T @ r / w)[used], alpha * pair.signs[used], rtol=1e-6)
    assert (np.abs(A.T @ r / w)[~used] < alpha).all()
    assert (np.sign(pair.x[used]) == pair.signs[used]).all()


def test_signs_determine_the_point_at_the_given_radius() -> None:
    A, sparse, y = make_problem(20, 60, 0.1)
    solved = lopro.bpdn(A, y, sparse.ball.sigma, weights=np.asarray(sparse.weights), tol=1e-12)
    pair = Pair(solved.x, solved.dual, np.sign(solved.x), alpha=1.0)
    candidate = pair.candidate(sparse, A, y)
    assert candidate is not None
    np.testing.assert_allclose(candidate.x, solved.x, rtol=1e-9, atol=1e-12)
    length = float(np.linalg.norm(A @ candidate.x - y))
    assert sparse.ball.sigma * (1.0 - 1e-11) <= length <= sparse.ball.sigma
    bound = -candidate.evidence.inequality.support
    assert solved.fun * (1.0 - 1e-9) <= bound <= solved.fun * (1.0 + 1e-12)
    # Without one of the columns, or with the opposite sign of one, there is no solution.
    for change in (0.0, -1.0):
        signs = pair.signs.copy()
        signs[np.flatnonzero(signs)[0]] *= change
        other = dataclasses.replace(pair, signs=signs).candidate(sparse, A, y)
        if other is not None:
            assert -other.evidence.inequality.support < solved.fun * (1.0 - 1e-6)
            assert (other.x * signs >= 0.0).all()


def test_a_radius_below_the_least_residual_of_the_columns_has_no_point() -> None:
    A, sparse, y = make_problem(20, 60, 0.1)
    signs = np.zeros(60)
    signs[:3] = 1.0
    assert Pair(np.zeros(60), y, signs, alpha=1.0).candidate(sparse, A, y) is None


def many_nonzeros(seed: int) -> tuple[Any, Any, float]:
    """Columns of different lengths, and as many nonzeros as rows."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((120, 240)) * np.exp(rng.uniform(-2.0, 2.0, 240))
    y = A[:, :24] @ rng.choice([-1.0, 1.0], 24)
    e = rng.standard_normal(120)
    e *= 1e-4 * np.linalg.norm(y) / np.linalg.norm(e)
    return A, y + e, float(np.linalg.norm(e))


@pytest.fixture
def parameters(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the list of parameters for which programs are solved."""
    alphas: list[float] = []
    original = programs.optimal_pair

    def optimal_pair(sparse: Any, A: Any, alpha: float = 0.0) -> Any:
        alphas.append(alpha)
        return original(sparse, A, alpha)

    monkeypatch.setattr(programs, "optimal_pair", optimal_pair)
    return alphas


@pytest.mark.parametrize("seed", range(4))
def test_programs_solve_problems_on_which_the_path_stalls(
    seed: int, parameters: list[float]
) -> None:
    A, y, sigma = many_nonzeros(seed)
    result = lopro.bpdn(A, y, sigma, tol=1e-8, time_limit=30.0)
    assert result.success
    assert result.counts.rmatvecs <= 100
    if len(parameters) > 1:
        # The last parameter is close to that of the solution, whose residual is alpha times the dual point.
        assert parameters[-1] == pytest.approx(sigma / np.linalg.norm(result.dual), rel=0.05)


@pytest.mark.parametrize("seed", [8, 22])
def test_a_tiny_radius_is_approached_from_the_vertex(seed: int, parameters: list[float]) -> None:
    A, y, sigma = many_nonzeros(seed)
    assert 0.0 < sigma <= 1e-4 * np.linalg.norm(y)
    result = lopro.bpdn(A, y, sigma, tol=1e-8, time_limit=30.0)
    assert result.success and result.counts.rmatvecs <= 30
    assert parameters[0] == 0.0 and len(parameters) == 2
    assert parameters[1] == pytest.approx(sigma / np.linalg.norm(result.dual), rel=0.05)


def test_some_problems_require_several_programs(parameters: list[float]) -> None:
    found = []
    for seed in range(4):
        parameters.clear()
        lopro.bpdn(*many_nonzeros(seed), time_limit=30.0)
        found.append(len(parameters))
    assert max(found) == 2
    assert min(parameters) > 0.0


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_do_not_matter(unit: float) -> None:
    A, y, sigma = many_nonzeros(1)
    expected, result = lopro.bpdn(A, y, sigma), lopro.bpdn(unit * A, y, sigma)
    assert expected.success and result.success
    assert unit * result.fun == pytest.approx(expected.fun, rel=2e-6)


def test_a_path_is_ended_after_some_rounds_with_a_full_support() -> None:
    A, y, sigma = many_nonzeros(1)
    search = ColumnSearch(bpdn_problem(A, y, sigma), Target(1e-6, 0.0))
    search.serve(search.begin(np.zeros(A.shape[1]), None))
    stuck = {}
    for share in (0.0, 0.9):
        search.follow_path(0.7, (share, 2))
        stuck[share] = []
        for _ in range(3):
            search.round()
            stuck[share].append(search.stuck)
            search.add_missing()
    assert stuck == {0.0: [False, False, True], 0.9: [False, False, False]}


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("seed", [0, 22])
def test_other_libraries_do_the_same(library: str, seed: int, parameters: list[float]) -> None:
    xp = pytest.importorskip(library)
    A, y, sigma = many_nonzeros(seed)
    device = "cuda" if library == "torch" and xp.cuda.is_available() else None
    place = {} if device is None else {"device": device}
    result = lopro.bpdn(xp.asarray(A, **place), xp.asarray(y, **place), sigma, tol=1e-8)
    assert result.success and parameters
    assert result.fun == pytest.approx(lopro.bpdn(A, y, sigma, tol=1e-8).fun, rel=2e-8)
