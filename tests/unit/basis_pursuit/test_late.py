"""Calls after the deadline return at once with the status TIME_LIMIT."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import lopro


class Counted(LinearOperator):
    """A matrix that counts its products."""

    def __init__(self, A: Any) -> None:
        self.A, self.products = A, 0
        super().__init__(dtype=A.dtype, shape=A.shape)

    def _matvec(self, x: Any) -> Any:
        self.products += 1
        return self.A @ x.ravel()

    def _rmatvec(self, y: Any) -> Any:
        self.products += 1
        return self.A.T @ y.ravel()


def operator() -> Counted:
    return Counted(np.random.default_rng(0).standard_normal((20, 50)))


@pytest.mark.parametrize("kind", ["path", "many"])
def test_no_product_is_made_when_the_time_is_up(kind: str) -> None:
    A = operator()
    Y = np.random.default_rng(1).standard_normal((20, 30))
    if kind == "path":
        results = lopro.bpdn_path(A, Y[:, 0], np.linspace(0.1, 1.0, 30), time_limit=1e-9)
    else:
        results = lopro.bpdn(A, Y, 0.1, time_limit=1e-9)
    assert A.products == 0
    assert len(results) == 30
    for result in results:
        assert result.status is lopro.Status.TIME_LIMIT and not result.success
        assert math.isnan(result.fun) and math.isinf(result.certificate.violation)
        assert result.certificate.lower_bound == -math.inf and result.dual is None
        assert result.x.shape == (50,) and not result.x.any()


def test_a_late_radius_returns_the_last_solution() -> None:
    """The time runs out after the first radius: the later ones return its point, without a claim about it."""
    A, y = operator(), np.random.default_rng(1).standard_normal(20)
    x0 = np.random.default_rng(2).standard_normal(50)
    (result,) = lopro.bpdn_path(A, y, [0.5], x0=x0, time_limit=1e-9)
    np.testing.assert_array_equal(result.x, x0)
    assert result.x is not x0
