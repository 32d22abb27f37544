"""The benchmark of images: its primal-dual method solves the same problem."""

from __future__ import annotations

import numpy as np
import pytest

import lopro
from benchmarks.general import imaging


@pytest.mark.parametrize("form", ["ball", "penalised"])
def test_the_peer_solves_the_same_problem(form: str) -> None:
    data = imaging.Blurred.of(16)
    result = lopro.solve(data.problem(form), tol=1e-4)
    x = imaging.primal_dual(data, form, 6000)
    assert result.success
    assert data.problem(form).objective.value(x) == pytest.approx(result.fun, rel=2e-2)
    # The blur is symmetric, as the operator claims.
    u, v = np.random.default_rng(0).standard_normal((2, 256))
    assert u @ data.apply(v) == pytest.approx(v @ data.apply(u))
