"""Right-hand sides and radii that share passes: the number of passes is that of one problem."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.basis_pursuit.columns import shared_passes
from lopro.basis_pursuit.columns.shared_passes import shares_passes
from lopro.core.counting import Counts, counting
from lopro.maps import StoredMap, linear_map

ROWS, COLUMNS, MANY = 80, 800, 6
RNG = np.random.default_rng(3)
A = RNG.standard_normal((ROWS, COLUMNS)) / ROWS**0.5
X = np.zeros((COLUMNS, MANY))
for j in range(MANY):
    X[RNG.choice(COLUMNS, 3 + j, replace=False), j] = RNG.uniform(1.0, 2.0, 3 + j)
E = 0.02 * RNG.standard_normal((ROWS, MANY))
Y, RADII = A @ X + E, np.linalg.norm(E, axis=0)


class Watched(StoredMap):
    """A matrix that counts all reads."""

    def __init__(self, matrix: Any) -> None:
        super().__init__(matrix)
        self.read_in_all = 0

    def fetch(self, place: Any) -> Any:
        block = super().fetch(place)
        self.read_in_all += block.nbytes
        return block


@pytest.mark.parametrize("order", ["C", "F"])
def test_many_right_hand_sides_cost_the_passes_of_one(order: str) -> None:
    stored = Watched(np.asarray(A, order=order))
    found = lopro.bpdn(stored, Y, RADII, tol=1e-8)
    expected = [lopro.bpdn(A, Y[:, j], RADII[j], tol=1e-8) for j in range(MANY)]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine.success and mine.fun == pytest.approx(theirs.fun, rel=1e-10)
        np.testing.assert_array_equal(mine.support, theirs.support)
        assert "passes shared" in mine.method
    # The last problem to end took part in every pass, and there were no other reads.
    alone = [lopro.bpdn(StoredMap(stored.source), Y[:, j], RADII[j], tol=1e-8) for j in range(MANY)]
    longest = max(r.counts.bytes_read for r in found)
    assert stored.read_in_all == longest
    assert max(r.counts.passes for r in found) == {"C": 9, "F": 5}[order]
    assert sum(r.counts.passes for r in alone) == {"C": 50, "F": 28}[order]


def test_products_are_counted_for_each_and_passes_for_all_that_share_them() -> None:
    found = lopro.bpdn(StoredMap(A), Y, RADII, tol=1e-8)
    for result in found:
        assert result.counts.rmatvecs == result.iterations + 1
        assert result.counts.matvecs == result.counts.projections == 0
        assert result.certificate_counts.bytes_read == 0
        assert result.counts.bytes_read == result.counts.passes * A.nbytes


@pytest.mark.parametrize("order", ["C", "F"])
def test_radii_share_passes_too(order: str) -> None:
    radii = [0.1, 1.5, 0.5, 50.0, 0.25]
    stored = Watched(np.asarray(A, order=order))
    found = lopro.bpdn_path(stored, Y[:, 3], radii, tol=1e-8)
    for sigma, mine in zip(radii, found, strict=True):
        theirs = lopro.bpdn(A, Y[:, 3], sigma, tol=1e-8)
        assert mine.success and mine.fun == pytest.approx(theirs.fun, rel=1e-10, abs=1e-12)
    assert found[3].fun == 0.0 and found[3].counts.passes == 0
    passes = {"C": 11, "F": 6}[order]
    assert max(r.counts.passes for r in found) == passes
    assert stored.read_in_all <= (passes + 1) * A.nbytes


def test_options_apply_to_every_right_hand_side() -> None:
    weights = np.linspace(0.5, 2.0, COLUMNS)
    positive = np.abs(Y)
    found = lopro.bpdn(StoredMap(A), positive, 2.0, weights=weights, nonneg=True, tol=1e-8)
    for j, mine in enumerate(found):
        theirs = lopro.bpdn(A, positive[:, j], 2.0, weights=weights, nonneg=True, tol=1e-8)
        assert mine.success and mine.fun == pytest.approx(theirs.fun, rel=1e-9)
        assert (mine.x >= 0.0).all()


def test_one_that_fails_does_not_stop_the_others() -> None:
    tall = RNG.standard_normal((40, 10))
    Y = np.column_stack([tall[:, 0], RNG.standard_normal(40)])
    found = lopro.bpdn(StoredMap(tall), Y, [0.1, 1e-3], tol=1e-8)
    assert found[0].success
    assert found[1].status is lopro.Status.INFEASIBLE


def test_batches_of_right_hand_sides_give_the_same_solutions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = lopro.bpdn(StoredMap(A), Y, RADII, tol=1e-8)
    monkeypatch.setattr(
        shared_passes, "SETTINGS", dataclasses.replace(shared_passes.SETTINGS, searches=2)
    )
    stored = Watched(A)
    found = lopro.bpdn(stored, Y, RADII, tol=1e-8)
    assert [r.success for r in found] == [True] * MANY
    for mine, theirs in zip(found, whole, strict=True):
        assert mine.fun == pytest.approx(theirs.fun, rel=1e-10)
    batches = [max(r.counts.bytes_read for r in found[j : j + 2]) for j in (0, 2, 4)]
    assert stored.read_in_all == sum(batches)


def test_limits_hold_for_each_and_end_shared_passes() -> None:
    found = lopro.bpdn(StoredMap(A), Y[:, :2], RADII[:2], tol=1e-8, max_iter=1)
    assert [r.status.name for r in found] == ["MAX_ITER"] * 2
    late = lopro.bpdn(StoredMap(A), Y[:, :2], RADII[:2], tol=1e-8, time_limit=1e-9)
    assert [r.status.name for r in late] == ["TIME_LIMIT"] * 2


def test_a_device_shares_products_where_the_matrix_is_wide() -> None:
    """For other shapes, columns kept on the device save more time than fewer products with all columns."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    high = lopro.bpdn(torch.asarray(A), torch.asarray(Y), RADII, tol=1e-8)
    wide, several = torch.asarray(A[:16]), torch.asarray(Y[:16])
    radii = 0.3 * np.linalg.norm(Y[:16], axis=0)
    shared = lopro.bpdn(wide, several, radii, tol=1e-8)
    for j, (mine, theirs) in enumerate(zip(high, shared, strict=True)):
        assert mine.success and theirs.success and isinstance(theirs.x, torch.Tensor)
        assert "passes shared" not in mine.method and "passes shared" in theirs.method
        alone = lopro.bpdn(A, Y[:, j], RADII[j], tol=1e-8)
        assert mine.fun == pytest.approx(alone.fun, rel=1e-10)
        alone = lopro.bpdn(A[:16], Y[:16, j], radii[j], tol=1e-8)
        assert theirs.fun == pytest.approx(alone.fun, rel=1e-8)


def test_which_problems_share_passes() -> None:
    problems = [lopro.basis_pursuit.bpdn_problem(A, Y[:, j], 1.0) for j in range(2)]
    assert shares_passes(StoredMap(A), problems)
    assert not shares_passes(StoredMap(A), problems[:1])
    assert not shares_passes(linear_map(A), problems)
    complex_problems = [lopro.basis_pursuit.bpdn_problem(A, Y[:, j] + 0j, 1.0) for j in range(2)]
    assert not shares_passes(StoredMap(A), complex_problems)
    with counting(Counts()) as counts:
        shares_passes(StoredMap(A), problems)
    assert counts == Counts()
