"""LogTProjections: epochs of fixed length, growing batches, two projections per iteration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.baseline_runs import Ran, gap, run
from support.theory_problems import Known, t3, t6_ellipsoid, t9
from support.tilted import first_bound, noisy, tilted

import lopro
from lopro.errors import MissingCapabilityError
from lopro.methods.baselines import LogTProjections
from lopro.methods.baselines.projected_gradient import ExtragradientSteps
from lopro.objectives import LeastSquares

EXACT = {"tilted": tilted, "T6": t6_ellipsoid, "T9": t9}


def decay_ratio(known: Known, runs: list[Ran], base: float) -> float:
    """Return the worst mean gap over ``V / base^k``; gaps of the size of rounding are not checked."""
    V = float(np.linalg.norm(known.objective.subgradient(known.x0))) ** 2 / (2.0 * known.mu)
    worst = 0.0
    for k, epochs in enumerate(zip(*(ran.epochs for ran in runs), strict=True), start=1):
        mean = float(np.mean([gap(known, epoch.x) for epoch in epochs]))
        worst = max(worst, (mean - 1e-13) / (V / base**k))
    return worst


@pytest.mark.parametrize("problem", EXACT)
def test_exact_gradients_quarter_the_gap_with_two_projections_per_iteration(problem: str) -> None:
    known = EXACT[problem]()
    ran = run(known, LogTProjections(8))
    M = math.ceil(4.0 * math.sqrt(6.0) * known.Lf / known.mu - 1e-9)
    assert len(ran.epochs) == 8 and ran.result.iterations == 8 * M
    assert ran.projections == 2 * 8 * M
    assert decay_ratio(known, [ran], 4.0) <= 1.0
    assert gap(known, ran.x) <= 1e-7  # closed forms are the independent solution here


def test_iterates_are_those_of_a_plain_implementation() -> None:
    known = tilted()
    project, gradient = known.constraint.project, known.objective.subgradient
    ran = run(known, LogTProjections(2))
    w = known.x0
    for epoch in ran.epochs:
        seen = []
        for _ in range(40):
            seen.append(project(w - gradient(w) / (math.sqrt(6.0) * 4.0)))
            w = project(w - gradient(seen[-1]) / (math.sqrt(6.0) * 4.0))
        w = np.mean(seen, axis=0)
        assert epoch.x == pytest.approx(w, abs=1e-12)


def test_decay_rejects_epochs_that_are_too_short_and_steps_that_are_too_long() -> None:
    known = tilted()
    assert decay_ratio(known, [run(known, LogTProjections(12, mu=40 * known.mu))], 4.0) > 1.0
    assert decay_ratio(known, [run(known, LogTProjections(12, L=known.Lf / 8.0))], 4.0) > 1.0


DEVIATION = 5.0


def sampled_runs(known: Known, batch: int, seeds: int = 4) -> list[Ran]:
    method = LogTProjections(5, batch=batch, stochastic=True)
    return [run(known, method, seed=seed) for seed in range(seeds)]


def test_growing_batches_halve_the_mean_gap() -> None:
    known = noisy(tilted(), DEVIATION)
    eta, M = LogTProjections().schedule(known.problem)
    batch = math.ceil(12.0 * eta * DEVIATION**2 / first_bound(known))
    runs = sampled_runs(known, batch)
    assert decay_ratio(known, runs, 2.0) <= 1.0
    for ran in runs:
        assert ran.projections == 2 * 5 * M
        assert ran.result.counts.gradients == 2 * M * batch * (2**5 - 1)
    assert len({gap(known, ran.x) for ran in runs}) == len(runs)


def test_halving_rejects_batches_that_do_not_grow(monkeypatch: Any) -> None:
    known = noisy(tilted(), 16.0 * DEVIATION)
    init = ExtragradientSteps.__init__
    monkeypatch.setattr(
        ExtragradientSteps, "__init__", lambda self, bench, w, eta, _: init(self, bench, w, eta, 1)
    )
    assert decay_ratio(known, sampled_runs(known, 1), 2.0) > 1.0


def test_agrees_with_the_certified_answer_on_sampled_least_squares(
    rng: np.random.Generator,
) -> None:
    A, b = rng.standard_normal((200, 3)), rng.standard_normal(200)
    box = lopro.constraints.Box(-0.05 * np.ones(3), 0.05 * np.ones(3))
    problem = lopro.Problem(LeastSquares(A, b, batch_size=20), box)
    best = lopro.solve(problem, tol=1e-9)
    exact = lopro.solve(problem, method=LogTProjections(), tol=1e-9)
    assert exact.success and exact.fun == pytest.approx(best.fun, rel=1e-8)
    sampled = lopro.solve(problem, method=LogTProjections(6, stochastic=True), tol=0, seed=0)
    assert best.fun - 1e-9 <= sampled.fun <= best.fun * (1.0 + 1e-3)
    assert sampled.certificate.lower_bound <= best.fun + 1e-9


def test_missing_capabilities_are_named_before_any_work() -> None:
    with pytest.raises(MissingCapabilityError, match="ProjectedSubgradient"):
        lopro.solve(t3().problem, method=LogTProjections())
    wide = lopro.Problem(
        LeastSquares(np.ones((1, 2)), np.ones(1)), lopro.constraints.Box([-1, -1], [1, 1])
    )
    with pytest.raises(MissingCapabilityError, match="mu"):
        lopro.solve(wide, method=LogTProjections())
    assert lopro.solve(wide, method=LogTProjections(1, mu=1.0), tol=0).counts.projections > 0
    with pytest.raises(MissingCapabilityError, match="stochastic_subgradient"):
        lopro.solve(tilted().problem, method=LogTProjections(stochastic=True))
    with pytest.raises(ValueError, match="batch"):
        LogTProjections(batch=0)
