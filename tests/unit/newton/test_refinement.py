"""Corrections by the residual: how many, and when they are given up."""

from __future__ import annotations

import numpy as np
import pytest

from lopro.linalg.dense import SingularSystem
from lopro.newton.curvature import Diagonal
from lopro.newton.systems.dense import RowSpaceSystem
from lopro.newton.systems.iterative import refined

PIECES = [Diagonal(np.array([1.0, 2.0, 4.0]))]
RHS = np.array([2.0, 3.0, 5.0])
SOLUTION = RHS / (np.array([1.0, 2.0, 4.0]) + 0.5)


@pytest.mark.parametrize(
    ("tolerance", "products", "error"), [(0.2, 1, 0.1), (0.05, 2, 0.01), (0.0, 4, 1e-4)]
)
def test_each_correction_takes_its_share_of_the_error(
    tolerance: float, products: int, error: float
) -> None:
    """A solve that is off by a tenth: the error is its power, and one product is made for each check."""
    system = RowSpaceSystem(3)

    def solve(r: np.ndarray) -> np.ndarray:
        return np.asarray(0.9 * r / (np.array([1.0, 2.0, 4.0]) + 0.5))

    x = refined(system, solve, PIECES, 0.5, RHS, corrections=3, tolerance=tolerance)
    np.testing.assert_allclose(x, (1.0 - error) * SOLUTION, rtol=1e-12)
    assert system.products == products


@pytest.mark.parametrize("factor", [0.0, 3.0, np.nan])
def test_a_residual_that_does_not_fall_is_told(factor: float) -> None:
    with pytest.raises(SingularSystem, match="does not fall"):
        refined(
            RowSpaceSystem(3),
            lambda r: factor * r,
            PIECES,
            0.5,
            RHS,
            corrections=3,
            tolerance=1e-8,
        )
