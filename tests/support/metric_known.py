"""Metric learning problems whose optimum is known, by construction or from an interior-point solver.

Construction: choose the solution ``A`` (low rank, with zeros), a slack ``S`` psd with ``A S = 0`` and a
slope ``Y`` of the norm. The weights of the pairs solve ``M(w) = Y - S``, and the targets that make all of
it optimal are ``t = n w + dist(A)``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.metric import SparseMetric
from lopro.metric.api import metric_problem
from lopro.metric.loss import PairLoss

Matrix = Any


@dataclass(frozen=True)
class Known:
    """A problem with its unique solution, its slack and the dual weights."""

    Z: Matrix
    targets: Matrix
    tau: float
    A: Matrix
    S: Matrix
    w: Matrix
    optimum: float

    @property
    def problem(self) -> lopro.Problem:
        return metric_problem(PairLoss.from_differences(self.Z, self.targets), self.tau)


def packed(d: int) -> tuple[Matrix, Matrix, Matrix]:
    """Return rows, columns and factors of the vector form in which inner products agree."""
    i, j = np.triu_indices(d)
    return i, j, np.where(i == j, 1.0, np.sqrt(2.0))


def constructed(
    rng: np.random.Generator,
    d: int,
    features: int,
    rank: int,
    tau: float = 0.1,
    slack: float = 1.0,
) -> Known:
    used = rng.choice(d, features, replace=False)
    L = np.zeros((rank, d))
    L[:, used] = rng.standard_normal((rank, features)) * (rng.random((rank, features)) < 0.6)
    L[0, used[0]] = 1.0  # never the zero matrix
    A = L.T @ L
    null = np.linalg.svd(A)[0][:, np.linalg.matrix_rank(A) :]
    B = null @ rng.standard_normal((null.shape[1], null.shape[1]))
    S = slack * B @ B.T / null.shape[1]
    Y = np.triu(tau * rng.uniform(-0.9, 0.9, (d, d)), 1)
    Y = np.where(A != 0.0, tau * np.sign(A), Y + Y.T)
    np.fill_diagonal(Y, 0.0)
    i, j, unit = packed(d)
    # Half as many pairs again as entries: M(w) can be any matrix, and the loss is strongly convex.
    Z = rng.standard_normal((int(0.75 * d * (d + 1)) + 2, d))
    rows = Z[:, i] * Z[:, j] * unit
    w = np.linalg.lstsq(rows.T, (Y - S)[i, j] * unit, rcond=None)[0]
    n = len(w)
    targets = n * w + np.einsum("ei,ij,ej->e", Z, A, Z)
    optimum = 0.5 * n * float(w @ w) + tau * float(np.abs(A).sum() - np.trace(A))
    return Known(Z, targets, tau, A, S, w, optimum)


def classes(
    seed: int, N: int, d: int, *, groups: int = 2, shift: float = 1.5
) -> tuple[Matrix, Matrix]:
    """Return samples of which two features determine the class, and labels."""
    rng = np.random.default_rng(seed)
    labels = np.arange(N) % groups
    X = rng.standard_normal((N, d))
    X[:, 0] += shift * labels
    X[:, 1 % d] -= shift * (labels == 1)
    return X, labels


def all_pairs(X: Matrix, labels: Matrix) -> PairLoss:
    i, j = np.triu_indices(len(X), 1)
    return PairLoss(X, (i, j), np.where(labels[i] == labels[j], 0.0, 2.0))


def value(objective: SparseMetric, A: Matrix) -> float:
    """The objective pair by pair, from its definition alone."""
    loss = objective.loss.listed()
    i, j = loss.pairs
    X = np.asarray(loss.X, dtype=np.float64)
    Z = X[i] - X[j]
    misfit = np.asarray(loss.targets, dtype=np.float64) - np.einsum("ei,ij,ej->e", Z, A, Z)
    norm = np.abs(A).sum() - np.abs(np.diag(A)).sum()
    rest = objective.l1 * norm + objective.trace * np.trace(A)
    rest += objective.features * np.linalg.norm(A, axis=1).sum()
    return float(misfit @ misfit / (2 * len(misfit)) + rest)


def by_clarabel(objective: SparseMetric) -> tuple[float, Matrix]:
    """Return optimum and solution by CVXPY and Clarabel, the loss compressed by a QR factorisation."""
    import cvxpy as cp

    loss = objective.loss.listed()
    first, second = loss.pairs
    Z = loss.X[first] - loss.X[second]
    n, d = Z.shape
    i, j, unit = packed(d)
    rows = np.column_stack([Z[:, i] * Z[:, j] * unit, loss.targets]) / np.sqrt(2 * n)
    R = np.linalg.qr(rows, mode="r")
    A = cp.Variable((d, d), PSD=True)
    a = cp.multiply(unit, cp.hstack([A[p, q] for p, q in zip(i, j, strict=True)]))
    off = 1.0 - np.eye(d)
    f = cp.sum_squares(R[:, :-1] @ a - R[:, -1])
    f += objective.l1 * cp.sum(cp.abs(cp.multiply(off, A))) + objective.trace * cp.trace(A)
    if objective.features > 0.0:
        f += objective.features * cp.sum(cp.norm(A, 2, axis=1))
    problem = cp.Problem(cp.Minimize(f))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    # The solver's point is feasible up to its tolerance only: what counts is its value, and the
    # value of the nearest feasible point.
    assert A.value is not None, problem.status
    return float(problem.value), 0.5 * (A.value + A.value.T)


def check(result: lopro.MetricResult, X: Matrix, labels: Matrix, l1: float) -> None:
    """Check an answer: psd, with the right value, loss and factor, and a true bound."""
    A = np.asarray(result.x)
    objective = SparseMetric(all_pairs(np.asarray(X, dtype=np.float64), labels), l1)
    assert np.array_equal(A, A.T) and np.linalg.eigvalsh(A)[0] >= -1e-12
    assert result.fun == pytest.approx(value(objective, A), rel=1e-9, abs=1e-14)
    assert result.loss == pytest.approx(objective.loss.value(A), rel=1e-9, abs=1e-14)
    L = np.asarray(result.factor)
    np.testing.assert_allclose(L.T @ L, A, atol=1e-10 * max(1.0, abs(A).max()))
    assert result.certificate.violation <= 1e-12
    assert result.certificate.lower_bound <= result.fun * (1.0 + 1e-12) + 1e-15
