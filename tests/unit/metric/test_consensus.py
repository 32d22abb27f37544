"""ADMM for metric learning equals a plain implementation of its description."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.metric_known import constructed, packed

from lopro.metric import PairLoss, SparseMetric
from lopro.metric.consensus import Consensus

Matrix = Any


def loss_step(Z: Matrix, t: Matrix, V: Matrix, beta: float) -> Matrix:
    """``argmin 1/(2n) sum (t_e - z_e'A z_e)^2 + beta |A - V|^2`` as one linear system in the entries."""
    i, j, unit = packed(Z.shape[1])
    rows = Z[:, i] * Z[:, j] * unit
    system = rows.T @ rows / len(t) + 2.0 * beta * np.eye(len(i))
    a = np.linalg.solve(system, rows.T @ t / len(t) + 2.0 * beta * V[i, j] * unit) / unit
    A = np.empty_like(V)
    A[i, j] = A[j, i] = a
    return A


def cone(A: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T


@pytest.mark.parametrize("factor", [1.0, 2.0, 0.5])
@pytest.mark.parametrize("l1", [0.05, 0.0])
@pytest.mark.parametrize("iterations", [1, 2, 24])
def test_it_equals_a_plain_implementation(iterations: int, l1: float, factor: float) -> None:
    """Over-relaxed by 1.7, in units in which features are of about one size. No balancing yet.

    Half-way beta is changed by a factor, which leaves the multipliers ``beta U`` and ``beta W`` as they are.
    """
    known = constructed(np.random.default_rng(3), 4, 2, 1)  # its multiplier of the cone is not zero
    Z, t = known.Z, known.targets
    Z = Z * np.array([1.0, 1e-3, 40.0, 1e5])
    loss = PairLoss.from_differences(Z, t)
    sizes = 2.0 ** np.round(np.log2(np.sqrt(np.square(Z).mean(axis=0))))
    unit = np.outer(sizes, sizes)
    start = (0.1 * np.eye(4) + 0.01) / unit
    admm = Consensus(SparseMetric(loss, l1), start)
    beta = admm.beta
    B = C = start * unit
    U = W = np.zeros((4, 4))
    for k in range(iterations):
        if k == iterations // 2:
            admm.rescale(factor)
            beta, U, W = factor * beta, U / factor, W / factor
        A = loss_step(Z / sizes, t, 0.5 * (B - U + C - W), beta)
        to_B, to_C = (1.7 * A - 0.7 * copy + dual for copy, dual in ((B, U), (C, W)))
        most = l1 / beta / unit
        B = np.sign(to_B) * np.maximum(np.abs(to_B) - most, 0.0)
        np.fill_diagonal(B, np.diag(to_B))
        C = cone(to_C)
        U, W = to_B - B, to_C - C
        admm.step()
    assert iterations < 24 or min(np.abs(W).max(), np.abs(U).max() + (l1 == 0.0)) > 1e-3
    for found, expected in ((admm.A, A), (admm.B, B), (admm.C, C)):
        np.testing.assert_allclose(found * unit, expected, atol=1e-9)
    multiplier = admm.multiplier()
    np.testing.assert_allclose(multiplier.direction / unit, beta * W, atol=1e-9)
    residuals = t - np.einsum("ei,ij,ej->e", Z, A / unit, Z)
    np.testing.assert_allclose(multiplier.weights, residuals / len(t), atol=1e-9)


def test_the_returned_matrix_is_psd_in_any_units() -> None:
    """Rounding of large entries exceeds small ones: in units of its diagonal C has negative eigenvalues."""
    rng = np.random.default_rng(0)
    objective = SparseMetric(
        PairLoss.from_differences(rng.standard_normal((9, 6)), np.ones(9)), 0.1
    )
    admm = Consensus(objective, np.eye(6))
    worst = 0.0
    for _ in range(50):
        roots = rng.standard_normal((6, 2)) * 10.0 ** np.array(
            [[0.0], [-1], [-3], [-4], [-5], [-6]]
        )
        admm._C = roots @ roots.T
        admm._C[3] = admm._C[:, 3] = 0.0  # an unused feature stays unused
        found = admm.settled() * admm._unit
        assert (found[3] == 0.0).all() and np.abs(found - admm._C).max() <= 1e-13
        used = np.arange(6) != 3
        np.linalg.cholesky(found[np.ix_(used, used)])  # would raise
        C = admm._C[np.ix_(used, used)]
        size = np.sqrt(C.diagonal())
        worst = min(worst, float(np.linalg.eigvalsh(C / np.outer(size, size))[0]))
    assert worst < 0.0
