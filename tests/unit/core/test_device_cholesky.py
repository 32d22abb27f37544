"""Inverses of many positive definite matrices on NumPy and PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from lopro.core.device_cholesky import inverses_of_definite


def definite(rows: int) -> np.ndarray:
    """Return five positive definite matrices with condition numbers of about 1e3."""
    rng = np.random.default_rng(rows)
    B = rng.standard_normal((5, rows, rows))
    return B @ B.swapaxes(1, 2) / rows + 1e-2 * np.eye(rows)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("rows", [1, 2, 16, 17, 33, 50])
def test_inverses_in_blocks_are_inverses(library, rows):
    """Sizes below, at and above that of one block, and of blocks of blocks."""
    xp = pytest.importorskip(library)
    K = definite(rows)
    inverses = np.asarray(inverses_of_definite(xp.asarray(K), 1e-6))
    np.testing.assert_allclose(inverses @ K, np.broadcast_to(np.eye(rows), K.shape), atol=1e-10)


@pytest.mark.parametrize("rows", [2, 40])
@pytest.mark.parametrize("place", [0, -1])
def test_torch_shifts_only_matrices_that_are_singular(rows, place):
    """The zero is in the first or in the last block."""
    torch = pytest.importorskip("torch")
    K = definite(rows)
    K[3, place, :] = K[3, :, place] = 0.0
    inverses = inverses_of_definite(torch.asarray(K), 1e-6).numpy()
    shifted = K[3] + 1e-6 * np.eye(rows)
    np.testing.assert_allclose(inverses[3] @ shifted, np.eye(rows), atol=1e-9)
    others = [0, 1, 2, 4]
    np.testing.assert_allclose(inverses[others], np.linalg.inv(K[others]), rtol=1e-9, atol=1e-9)
