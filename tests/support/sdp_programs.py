"""Semidefinite programs for the tests of the kernels: of graphs, and random ones with a known solution."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lopro.newton.sdp import SemidefiniteBlock, SemidefiniteProgram


def unit(n, i, j):
    """The symmetric matrix that picks entry (i, j)."""
    E = np.zeros((n, n))
    E[i, j] += 0.5
    E[j, i] += 0.5
    return E


def theta(n, edges):
    """Lovasz' theta number of a graph, as minus the value."""
    rows = [np.eye(n)] + [unit(n, i, j) for i, j in edges]
    return SemidefiniteProgram.dense(-np.ones((n, n)), rows, [1.0] + [0.0] * len(edges))


def max_cut(n, edges):
    L = np.zeros((n, n))
    for i, j in edges:
        L[i, i], L[j, j] = L[i, i] + 1.0, L[j, j] + 1.0
        L[i, j] -= 1.0
        L[j, i] -= 1.0
    rows = [unit(n, i, i) for i in range(n)]
    return SemidefiniteProgram.dense(-0.25 * L, rows, np.ones(n))


CYCLE = [(i, (i + 1) % 5) for i in range(5)]


def random_program(rng, n=6, m=4):
    """With a strictly feasible X and y, so that both values agree, and a diagonal block."""
    A = [rng.standard_normal((n, n)) for _ in range(m)]
    A = [a + a.T for a in A]
    D = rng.standard_normal((m, 3))
    R = rng.standard_normal((n, n))
    X, x = R @ R.T, rng.uniform(0.5, 1.0, 3)
    Q = rng.standard_normal((n, n))
    y = rng.standard_normal(m)
    C = Q @ Q.T + sum(k * a for k, a in zip(y, A, strict=True))
    rows = scipy.sparse.csr_array(np.array([a.ravel() for a in A]))
    program = SemidefiniteProgram(
        np.array([np.sum(a * X) for a in A]) + D @ x,
        (
            SemidefiniteBlock(n, False, C, rows),
            SemidefiniteBlock(3, True, rng.uniform(0.1, 1.0, 3) + y @ D, scipy.sparse.csr_array(D)),
        ),
    )
    return program, (X, x), y
