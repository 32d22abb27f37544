"""Iterative refinement: the number of corrections, and when it ends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lopro.linalg.dense import SingularSystem
from lopro.newton.curvature import Diagonal
from lopro.newton.systems.dense import RowSpaceSystem
from lopro.newton.systems.iterative import refined

PIECES = [Diagonal(np.array([1.0, 2.0, 4.0]))]
RHS = np.array([2.0, 3.0, 5.0])
SOLUTION = RHS / (np.array([1.0, 2.0, 4.0]) + 0.5)


def share(factor: float) -> Callable[[np.ndarray], np.ndarray]:
    """Return a solve that gives this share of the solution."""
    return lambda r: np.asarray(factor * r / (np.array([1.0, 2.0, 4.0]) + 0.5))


@pytest.mark.parametrize(("factor", "products"), [(1.0, 1), (1.0 - 1e-6, 2), (0.9, 10), (0.6, 26)])
def test_refinement_ends_where_the_residual_is_small(factor: float, products: int) -> None:
    """Each correction removes its share of the error, and each check takes one product."""
    system = RowSpaceSystem(3)
    x = refined(system, share(factor), PIECES, 0.5, RHS)
    np.testing.assert_allclose(x, (1.0 - (1.0 - factor) ** products) * SOLUTION, rtol=1e-13)
    assert system.products == products


def test_a_correction_that_does_not_halve_the_residual_is_the_last() -> None:
    """The second solve removes 95 % of the error, the third 40 % of the rest: it is not applied."""
    system, shares = RowSpaceSystem(3), iter([0.9, 0.95, 0.4])
    x = refined(system, lambda r: share(next(shares))(r), PIECES, 0.5, RHS)
    np.testing.assert_allclose(x, (1.0 - 0.1 * 0.05) * SOLUTION, rtol=1e-13)
    assert system.products == 3


@pytest.mark.parametrize("factor", [0.0, 0.4, 3.0, np.nan])
def test_a_residual_that_does_not_decrease_raises_an_error(factor: float) -> None:
    with pytest.raises(SingularSystem, match="does not reduce the residual"):
        refined(RowSpaceSystem(3), share(factor), PIECES, 0.5, RHS)
