"""Conjugate gradients: answers, and how many numbers they take from a device."""

from __future__ import annotations

import numpy as np
import pytest

from lopro.linalg import conjugate_gradients as module
from lopro.linalg.conjugate_gradients import conjugate_gradients

H = np.diag([1.0, 2.0, 5.0])
RHS = np.array([1.0, -1.0, 2.0])


@pytest.mark.parametrize("preconditioner", [None, 1.0 / np.diag(H), np.array([3.0, 1.0, 2.0])])
@pytest.mark.parametrize("unit", [1.0, 1e-60, 1e60])
def test_a_system_is_solved_in_any_unit(preconditioner, unit):
    x, products = conjugate_gradients(lambda p: H @ p, unit * RHS, 1e-10, preconditioner)
    np.testing.assert_allclose(x / unit, np.linalg.solve(H, RHS), rtol=1e-9)
    assert products <= 3


def test_without_a_preconditioner_an_iteration_takes_two_inner_products(monkeypatch):
    """Curvature and squared residual; the norm of the residual is not computed as well."""
    taken, inner, norm = [], module.inner, module.norm
    monkeypatch.setattr(module, "inner", lambda x, y: taken.append("inner") or inner(x, y))
    monkeypatch.setattr(module, "norm", lambda x: taken.append("norm") or norm(x))
    _, products = conjugate_gradients(lambda p: H @ p, RHS, 1e-10)
    assert products == 3
    assert taken.count("inner") == 1 + 2 * products
    assert taken.count("norm") <= 2, "of the right-hand side, and of a residual of rounding"
