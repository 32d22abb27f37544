"""Rules of both splitting methods: when they certify and end, how penalties change, the cost of residuals."""

from __future__ import annotations

import numpy as np
import pytest

import lopro
from lopro import ADMM, AlternatingDirections
from lopro.methods.splitting import bound
from lopro.methods.splitting.base import balancing_factor
from lopro.methods.splitting.parts import SplitTerms
from lopro.methods.stalling import StallCheck


@pytest.mark.parametrize("kind", [ADMM, AlternatingDirections])
def test_options_are_checked(kind: type) -> None:
    for bad in ({"every": 0}, {"patience": 0}, {"relaxation": 0.5}, {"relaxation": 2.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            kind(**bad)
    assert kind(every=10).next_certificate(8, 0.5) == 18
    assert kind(every=10).next_certificate(80, 0.5) == 120


def test_certificates_that_do_not_reduce_the_gap_by_a_tenth_end_a_run() -> None:
    progress = StallCheck(2)
    gaps = [1.0, 0.95, 0.89, 0.85, 0.82, 0.81]
    assert [progress.stalled(gap) for gap in gaps] == [False] * 5 + [True]


@pytest.mark.parametrize(
    ("primal", "dual", "factor"),
    [
        (4.0, 1.0, 2.0),
        (1.0, 4.0, 0.5),
        (1e6, 1.0, 5.0),
        (1.0, 1e6, 0.2),
        (0.0, 1.0, 1.0),
        (1.0, 0.0, 1.0),
    ],
)
def test_penalties_grow_with_the_primal_residual(primal: float, dual: float, factor: float) -> None:
    assert balancing_factor(primal, dual) == pytest.approx(factor, rel=1e-15)


def test_bounds_of_variables_absorb_the_dual_residual() -> None:
    """A bounded box has a finite support function everywhere: its multiplier takes all of the residual."""
    box = lopro.constraints.Box(-np.ones(4), np.ones(4))
    parts = SplitTerms.of(lopro.Problem(lopro.objectives.TotalVariation(4), box), (4,))
    images = tuple(0.0 * w for w in parts.images(np.zeros(4)))
    r = np.array([1.0, -2.0, 0.5, 3.0])
    found = bound._absorbed(parts, bound._Dual(images, (), r, 0.0))
    assert not found.r.any() and 0.0 < found.error < 1e-14
    np.testing.assert_array_equal(parts.pullback(found.v), -r)
