"""Memory traffic and kernels of a step of a batch on a device, counted on tensors of PyTorch's CPU."""

from __future__ import annotations

import numpy as np
import pytest
from support.traffic import Traffic

import lopro
from lopro.batch import QuadraticPrograms
from lopro.batch.interior_point import Settings, advance, start
from lopro.batch.scaled import ScaledPrograms

torch = pytest.importorskip("torch")


def programs(rng, count=40, n=50, m=100, below=False):
    B, A = rng.standard_normal((count, n, n)), rng.standard_normal((count, m, n))
    P = B.transpose(0, 2, 1) @ B / n + 0.1 * np.eye(n)
    P = 0.5 * (P + P.transpose(0, 2, 1))
    upper = (A @ rng.standard_normal((count, n, 1)))[..., 0] + rng.uniform(0.1, 1.0, (count, m))
    lower = upper - 1e3 if below else None
    given = (None if a is None else torch.asarray(a) for a in (P, A, lower, upper))
    P, A, lower, upper = given
    q = torch.asarray(rng.standard_normal((count, n)))
    return QuadraticPrograms(q, P, A, lower=lower, upper=upper)


@pytest.mark.parametrize(("below", "times"), [(False, 21.0), (True, 24.0)])
def test_memory_traffic_of_a_step_is_limited(rng, below, times):
    """Products read the data ten times; the rest of the traffic is that of the systems and of vectors.

    Inverses by blocks move more than those of whole matrices (2.9 times the data), in less time.
    """
    scaled = ScaledPrograms.of(programs(rng, below=below).subset(slice(None)))
    assert scaled.two_sided is below
    at = start(scaled, Settings())
    with Traffic() as traffic:
        advance(scaled, at, scaled.cost * 1e-6, Settings())
    data = (scaled.P.numel() + scaled.G.numel()) * 8
    assert 10.0 * data < traffic.bytes <= times * data
    assert traffic.kernels <= 225
    assert traffic.reads <= 1, "one read from the device: whether a factorisation has failed"


def test_missing_and_distant_lower_sides_give_the_same_answers(rng):
    """Sides far away have no effect: systems with both sides give the same answers."""
    one = programs(np.random.default_rng(3))
    other = programs(np.random.default_rng(3), below=True)
    found, expected = lopro.solve_many(one, tol=1e-8), lopro.solve_many(other, tol=1e-8)
    assert found.success.all() and expected.success.all()
    np.testing.assert_allclose(found.fun, expected.fun, rtol=1e-7)
