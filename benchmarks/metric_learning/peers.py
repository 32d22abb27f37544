"""Conic solvers through CVXPY, on the smallest formulation of the problem.

In terms of ``a = A_ij, i <= j``, the upper triangle, the loss is ``1/2 a'Q a - b'a + c`` whatever the number
of pairs; with fewer pairs than entries of the triangle it is ``1/2 |Z a - t|^2`` instead. A textbook
formulation, with a term for each pair, is too large to compile at these sizes.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.metric_learning.adapter import Adapter, Answer, Settings
from benchmarks.metric_learning.problems import Instance
from lopro.metric.loss import PairLoss

__all__ = ["PEERS", "Triangle", "moments"]


class Triangle:
    """The upper triangle of a symmetric matrix as a vector, and back."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.rows, self.columns = np.triu_indices(dim)
        self.off = np.flatnonzero(self.rows != self.columns)
        #: ``<M, A>`` is the product of ``weights * M`` and ``A``, both as vectors.
        self.weights = np.where(self.rows == self.columns, 1.0, 2.0)

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, M: np.ndarray) -> np.ndarray:
        """Return the vector of a matrix, off-diagonal entries twice."""
        return np.asarray(self.weights * M[self.rows, self.columns])

    def of_squares(self, Z: np.ndarray) -> np.ndarray:
        """Return the vectors of ``z z'`` for the rows of ``Z``."""
        return np.asarray(self.weights * Z[:, self.rows] * Z[:, self.columns])

    @property
    def to_matrix(self) -> scipy.sparse.csc_array:
        """The map from the triangle to all entries of the matrix, column by column."""
        d, index = self.dim, np.arange(len(self))
        places = np.concatenate([self.rows + d * self.columns, self.columns + d * self.rows])
        entries = np.concatenate([index, index])
        # The diagonal occurs twice and must count once.
        unique, first = np.unique(places, return_index=True)
        ones = np.ones(len(unique))
        return scipy.sparse.csc_array((ones, (unique, entries[first])), shape=(d * d, len(self)))


def moments(loss: PairLoss, triangle: Triangle) -> tuple[np.ndarray, np.ndarray, float]:
    """Return ``Q, b, c`` of the loss on all pairs of samples, from moments of the samples.

    For samples with mean zero the sum over all pairs of ``vec(zz') vec(zz')'`` is
    ``N sum_i p_i p_i' + g g' + 2 sym(G x G)``, with ``p_i = vec(x_i x_i')``, ``G = sum_i x_i x_i'``,
    ``g = vec(G)``: the pairs are not listed.
    """
    X, n = np.asarray(loss.X), len(loss.targets)
    N = len(X)
    assert n == N * (N - 1) // 2, "the moments are those of all pairs"
    X = X - X.mean(axis=0)
    G = X.T @ X
    P, g = triangle.of_squares(X), triangle.of(G)
    i, j, w = triangle.rows, triangle.columns, triangle.weights
    crossed = G[np.ix_(i, i)] * G[np.ix_(j, j)] + G[np.ix_(i, j)] * G[np.ix_(j, i)]
    Q = (N * (P.T @ P) + np.outer(g, g) + w[:, None] * crossed * w) / n
    t = np.asarray(loss.targets)
    return 0.5 * (Q + Q.T), triangle.of(loss.adjoint(t)) / n, float(t @ t) / (2 * n)


class Cvxpy(Adapter):
    """CVXPY with a conic solver; the time includes forming Q and compiling."""

    def __init__(self, solver: str, most_features: int, **options: Any) -> None:
        self.solver, self.options, self.most_features = solver, options, most_features
        accuracy = "".join(f" {value:.0e}" for value in set(options.values()))
        self.name = f"CVXPY + {solver}{accuracy}"
        self.requires = ("cvxpy", solver.lower())

    def solve(self, instance: Instance, settings: Settings) -> Answer:
        import cvxpy

        start = time.perf_counter()
        triangle = Triangle(instance.dim)
        a = cvxpy.Variable(len(triangle))
        objective = _loss(cvxpy, instance.loss, triangle, a)
        if instance.dim > 1:
            objective += 2.0 * instance.l1 * cvxpy.norm1(a[triangle.off])
        matrix = cvxpy.reshape(triangle.to_matrix @ a, (instance.dim,) * 2, order="F")
        cone = matrix >> 0
        problem = cvxpy.Problem(cvxpy.Minimize(objective), [cone])
        limit = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}[self.solver]
        left = max(1.0, settings.time_limit - (time.perf_counter() - start))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate answer has its own status
            problem.solve(solver=self.solver, **{limit: left}, **self.options)
        iterations = problem.solver_stats.num_iters
        if a.value is None:
            return Answer(None, status=problem.status, iterations=iterations)
        return Answer(matrix.value, cone.dual_value, status=problem.status, iterations=iterations)


def _loss(cvxpy: Any, loss: PairLoss, triangle: Triangle, a: Any) -> Any:
    n = len(loss.targets)
    if n <= len(triangle):
        X = np.asarray(loss.X)
        Z = triangle.of_squares(X[loss.pairs[0]] - X[loss.pairs[1]]) / np.sqrt(n)
        return 0.5 * cvxpy.sum_squares(Z @ a - np.asarray(loss.targets) / np.sqrt(n))
    Q, b, c = moments(loss, triangle)
    return 0.5 * cvxpy.quad_form(a, cvxpy.psd_wrap(Q)) - b @ a + c


#: Sizes beyond which an iteration takes minutes or exceeds the memory.
PEERS: list[Adapter] = [
    Cvxpy("CLARABEL", 64),
    Cvxpy("SCS", 200, eps_abs=1e-4, eps_rel=1e-4),
    Cvxpy("SCS", 200, eps_abs=1e-6, eps_rel=1e-6),
]
