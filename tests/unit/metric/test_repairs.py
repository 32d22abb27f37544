"""The repairs of dual points (M2), each as an exact number computed by hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from support.metric_cases import (
    CASES,
    badly_scaled,
    heavy_norm,
    narrow,
    only_dead_but_one,
    psd,
    wide,
)
from support.metric_known import all_pairs, by_clarabel, classes, value
from support.theorem_checks import Recorded

import lopro
from lopro.constraints import PSDCone
from lopro.metric import PairMultiplier, SparseMetric
from lopro.metric import dual as dual_module
from lopro.metric.api import metric_problem

Matrix = Any

FEASIBLE, PAID = "dual point of the pairs, feasible", "dual point of the pairs, its slack paid for"


@dataclass
class ByHand:
    """M1 and the three repairs of M2, computed from the differences of the pairs alone."""

    objective: SparseMetric

    def __post_init__(self) -> None:
        loss, self.tau = self.objective.loss, self.objective.l1
        self.X, (first, second) = np.asarray(loss.X), loss.pairs
        self.Z, self.t = self.X[first] - self.X[second], np.asarray(loss.targets)
        self.M1, self.n = self.Z.T @ self.Z, len(self.t)
        self.off = float(np.abs(self.M1 - np.diag(np.diag(self.M1))).max())
        degrees = np.bincount(np.concatenate([first, second]), minlength=len(self.X))
        alive = np.diag(self.M1) > 0.0
        self.root = np.where(alive, 1.0 / np.sqrt(np.where(alive, np.diag(self.M1), 1.0)), 0.0)
        self.cancelling = float(np.max((degrees @ self.X**2)[alive] / np.diag(self.M1)[alive]))

    def slack(self, w: Matrix, guess: Matrix) -> Matrix:
        """``S = Y - M(w)`` with the Y of the box that is nearest to ``M(w) + guess``."""
        M = self.Z.T @ (w[:, None] * self.Z)
        Y = np.clip(M + guess, -self.tau, self.tau)
        np.fill_diagonal(Y, 0.0)
        return Y - M

    def value(self, w: Matrix, most: float = 1.0) -> float:
        """The best ``t'(c w) - n/2 |c w|^2`` for ``0 <= c <= most``."""
        c = np.clip((self.t @ w) / (self.n * (w @ w)), 0.0, most)
        return float(c * (self.t @ w) - 0.5 * self.n * c**2 * (w @ w))

    def feasible(self, S: Matrix, w: Matrix, extra: float = 0.0) -> float:
        """M2.1: ``kappa (w - s 1)`` with ``S + s diag(M1)`` psd."""
        s = self._lift(S) + extra
        return self.value(w - s, self.tau / (self.tau + s * self.off))

    def paid(self, S: Matrix, w: Matrix, f0: float, extra: float = 0.0) -> float:
        """M2.2: the value of w, less ``s (n tbar + n sqrt(2 f0) + m f0 / tau)``."""
        price = self.t.sum() + self.n * np.sqrt(2.0 * f0) + self.off * f0 / self.tau
        value = float(self.t @ w) - 0.5 * self.n * float(w @ w)
        return value - (self._lift(S) + extra) * float(price)

    def _lift(self, S: Matrix) -> float:
        scaled = self.root[:, None] * S * self.root
        return max(0.0, -float(np.linalg.eigvalsh(scaled)[0]))

    def even(self, S: Matrix, w: Matrix) -> float:
        """M2.3: ``w - s 1`` with ``S + s M1`` psd, on the range of M1."""
        V = scipy.linalg.orth(self.M1, rcond=1e-12)
        small = scipy.linalg.eigh(V.T @ S @ V, V.T @ self.M1 @ V, eigvals_only=True)
        return self.value(w - max(0.0, -float(small[0])))


@pytest.mark.parametrize("case", CASES)
def test_each_repair_alone_is_that_of_m2(case: Any, rng: np.random.Generator) -> None:
    """Each bound is valid, and equal to the one computed by hand."""
    objective = case()
    loss, tau, spread, hand = objective.loss, objective.l1, objective.spread, ByHand(objective)
    d, n = objective.shape[0], loss.targets.shape[0]
    optimum, _ = by_clarabel(objective)
    repaired = 0
    for _ in range(100):
        A = 0.3 * psd(rng, d, 2)
        w = 10.0 ** rng.uniform(-4, 0) * rng.standard_normal(n) / n
        G = rng.standard_normal((d, d))
        S, f0 = hand.slack(w, 0.1 * (G + G.T)), value(objective, A)
        repaired += float(np.linalg.eigvalsh(S)[0]) < -1e-6
        found = dual_module._by_diagonal(loss, tau, spread, S, w, f0)
        expected = []
        if tau > 0.0:
            expected += [(hand.feasible(S, w), FEASIBLE), (hand.paid(S, w, f0), PAID)]
        if tau == 0.0 or spread.full_rank:
            found += dual_module._by_sum(loss, tau, spread, S, w)
            expected += [(hand.even(S, w), FEASIBLE)]
        assert [source for _, source in found] == [source for _, source in expected]
        for (bound, _), (by_hand, _) in zip(found, expected, strict=True):
            assert bound == pytest.approx(by_hand, rel=1e-7, abs=1e-12)
            assert bound <= optimum * (1.0 + 1e-7) + 1e-12
    hardly_constrained = case in (only_dead_but_one, heavy_norm)
    assert repaired >= 50 or hardly_constrained  # otherwise repairs were not needed


@pytest.mark.parametrize("case", [narrow, wide, badly_scaled])
def test_the_best_of_the_repairs_is_taken(case: Any, rng: np.random.Generator) -> None:
    """Around a solution, from any distance: what is returned is the largest of the three."""
    objective = case()
    hand, cone = ByHand(objective), PSDCone(objective.shape[0])
    problem = metric_problem(objective.loss, objective.l1)
    recorded = Recorded(lopro.ConsensusADMM())
    result = lopro.solve(problem, method=recorded, tol=1e-7, max_iter=40_000)
    multiplier = recorded.seen[-1].inequality
    winners = set()
    for size in np.geomspace(1e-8, 0.3, 40):
        w = multiplier.weights * (1.0 + size * rng.standard_normal(hand.n))
        guess, f0 = -multiplier.direction, result.fun * (1.0 + size)
        S = hand.slack(w, guess)
        bounds = {"diagonal": hand.feasible(S, w), "price": hand.paid(S, w, f0)}
        if objective.spread.full_rank:
            bounds["even"] = hand.even(S, w)
        found, _ = objective.dual_bound(cone, result.x, PairMultiplier(-guess, 0.0, weights=w), f0)
        best = max(bounds, key=lambda name: bounds[name])
        assert found == pytest.approx(bounds[best], rel=1e-9)
        winners.add(best)
    assert winners >= ({"diagonal"} if case is wide else {"even"})


@pytest.mark.parametrize("offset", [1e3, 3e3])
def test_rounding_of_pairs_that_cancel_is_charged(offset: float) -> None:
    """Samples far from the origin: ``M(w)`` is a small difference of large terms, whose rounding is charged.

    The slack is positive definite by a margin, so that the repairs only lift by rounding:
    ``8 d eps`` times the growth ``sum_i degree_i X_ij^2 / M1_jj`` of the terms.
    """
    X, labels = classes(12, 9, 4)
    objective = SparseMetric(all_pairs(X + offset, labels), 0.05)
    hand = ByHand(objective)
    w = np.where(hand.t > 0.0, 1e-4, -2e-3)
    S = hand.slack(w, 0.0 * hand.M1)
    assert np.linalg.eigvalsh(hand.root[:, None] * S * hand.root)[0] > 1e-4
    rounding = 8.0 * 4 * np.finfo(float).eps * hand.cancelling
    lift, f0 = rounding * float(np.abs(w).max()), 0.3
    found = dual_module._by_diagonal(objective.loss, 0.05, objective.spread, S, w, f0)
    assert found[0][0] == pytest.approx(hand.feasible(S, w, lift), rel=1e-12)
    assert found[1][0] == pytest.approx(hand.paid(S, w, f0, lift), rel=1e-12)
    # What is charged is far above the accuracy of this comparison.
    assert hand.paid(S, w, f0) - found[1][0] > 1e-10 * abs(found[1][0])
    least = float(np.linalg.eigvalsh(hand.root[:, None] * hand.M1 * hand.root)[0])
    even = lift / least / (1.0 - rounding / least)
    (by_sum, _) = dual_module._by_sum(objective.loss, 0.05, objective.spread, S, w)[0]
    assert by_sum == pytest.approx(hand.value(w - even), rel=1e-12)


def test_rounding_of_nearly_equal_features_is_charged() -> None:
    """M1 has a smallest eigenvalue of 8e-13: the rounding error of ``V'M1 V = I`` is a percent.

    The slack is positive definite. With ``error = 8 d eps / least`` even repairs have to lift by
    ``error max|w|``, of which only the share ``1 - error`` is effective.
    """
    X, labels = classes(12, 9, 4)
    X[:, 3] = X[:, 2] + 1e-6 * X[:, 3]
    objective = SparseMetric(all_pairs(X, labels), 0.05)
    hand = ByHand(objective)
    w = np.where(hand.t > 0.0, 1e-4, -2e-3)
    least = float(np.linalg.eigvalsh(hand.root[:, None] * hand.M1 * hand.root)[0])
    error = 8.0 * 4 * np.finfo(float).eps * max(1.0, hand.cancelling) / least
    assert 5e-3 < error < 0.05
    lift = error * float(np.abs(w).max()) / (1.0 - error)
    S = hand.slack(w, 0.0 * hand.M1)
    ((bound, _),) = dual_module._by_sum(objective.loss, 0.05, objective.spread, S, w)
    assert bound == pytest.approx(hand.value(w - lift), rel=1e-3)
    assert bound != pytest.approx(hand.value(w - (1.0 - error) * lift), rel=3e-3)


def test_an_even_repair_needs_pairs_that_span() -> None:
    """With fewer samples than features ``S + s M1`` is not psd for any s: there is no such bound."""
    objective = wide()
    S = -np.eye(objective.shape[0])
    w = 0.0 * objective.loss.targets
    assert dual_module._by_sum(objective.loss, objective.l1, objective.spread, S, w) == []


def unequal(seed: int, l1: float) -> SparseMetric:
    """Two features are so large that the norm has little effect on them; a third one is their sum."""
    X, labels = classes(seed, 12, 5)
    X[:, 4] = X[:, 2] + X[:, 3]
    return SparseMetric(all_pairs(X * [1.0, 0.3, 1e4, 3e4, 1e4], labels), l1)


def test_a_block_repair_is_that_of_m2(rng: np.random.Generator) -> None:
    """M2.4 by hand: ``S + s B`` psd on the range of B, and the largest entry that B lacks."""
    objective = unequal(3, 0.05)
    hand, loss = ByHand(objective), objective.loss
    (block, *_) = [b for b in objective.spread.blocks if list(b.rest) == [0, 1]]
    reached = lopro.solve(metric_problem(loss, 0.05), tol=1e-6, max_iter=20_000)
    B = np.diag(np.diag(hand.M1))
    B[2:, 2:] = hand.M1[2:, 2:]
    lacking = np.abs(hand.M1 - B).max()
    assert block.largest == pytest.approx(lacking)
    units = np.diag(hand.root)
    V = units @ scipy.linalg.orth(units @ B @ units, rcond=1e-10)
    best = 0.0
    for size in (1e-6, 1e-3, 0.1):
        w = (hand.t - 1.0 + size * rng.standard_normal(hand.n)) / (4 * hand.n)
        Y = np.clip(rng.standard_normal((5, 5)), -0.05, 0.05)
        Y = np.triu(Y, 1) + np.triu(Y, 1).T
        Y[2:, 2:] = 0.0
        # Differences are equal in the last feature and in the sum of the two before it, in their units.
        unseen = np.array([1.0, 1.0 / 3.0, -1.0]) / np.sqrt(1.0 + 1.0 / 9.0 + 1.0)
        Y[2:, :2] -= np.outer(unseen, unseen @ Y[2:, :2])
        Y[:2, 2:] = Y[2:, :2].T
        most = np.abs(Y).max()
        S = V.T @ (Y - hand.Z.T @ (w[:, None] * hand.Z)) @ V
        s = max(0.0, -float(scipy.linalg.eigh(S, V.T @ B @ V, eigvals_only=True)[0]))
        expected = hand.value(w - s, 0.05 / (max(0.05, most) + s * lacking))
        found = max(v for v, _ in dual_module._by_blocks(loss, 0.05, objective.spread, Y, w))
        assert found >= expected * (1.0 - 1e-7) and found <= reached.fun
        best = max(best, found)
        slack, taken = block.slack(Y, w)
        assert dual_module.shortfall(slack) == pytest.approx(s, rel=1e-6)
        assert taken == pytest.approx(most, rel=1e-9)
    assert best > 0.0


def test_the_norm_is_kept_where_it_matters() -> None:
    """Without large features there are no blocks, and features that never change are in none."""
    assert narrow().spread.blocks == ()
    objective = unequal(3, 0.05)
    X = np.array(objective.loss.X)
    X[:, 3] = 1.0
    dead = SparseMetric(all_pairs(X, classes(3, 12, 5)[1]), 0.05)
    assert all(3 not in block.rest for block in dead.spread.blocks)
    assert {len(block.rest) for block in dead.spread.blocks} == {2, 3}


@pytest.mark.parametrize("seed", range(3))
def test_rank_deficient_samples_in_units_that_differ_have_a_bound(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without blocks it is negligible."""
    problem = metric_problem(unequal(seed, 1e-3).loss, 1e-3)
    result = lopro.solve(problem, tol=0.03, max_iter=20_000)
    assert result.success, str(result)
    monkeypatch.setattr("lopro.metric.spread.blocks", lambda *arguments: ())
    problem = metric_problem(unequal(seed, 1e-3).loss, 1e-3)
    without = lopro.solve(problem, tol=0.03, max_iter=result.iterations)
    assert not without.success and without.certificate.relative_gap > 0.5
