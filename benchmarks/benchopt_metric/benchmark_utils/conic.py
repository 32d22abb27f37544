"""The problem in CVXPY, in terms of the upper triangle of the matrix and of moments of the pairs.

The loss is a quadratic ``1/2 a'Q a - b'a + c`` of the triangle ``a`` whatever the number of pairs, or, with
fewer pairs than entries, ``1/2 |Z a - t|^2``: nothing that a solver sees grows with the pairs.
"""

import numpy as np
import scipy.sparse


def conic_problem(X, pairs, targets, l1):
    """Return the problem and the expression of the matrix."""
    import cvxpy

    d = X.shape[1]
    i, j = np.triu_indices(d)
    weights = np.where(i == j, 1.0, 2.0)
    a = cvxpy.Variable(len(i))
    loss = _loss(X, pairs, targets, i, j, weights, a)
    norm = 2.0 * l1 * cvxpy.norm1(a[np.flatnonzero(i != j)]) if d > 1 else 0.0
    matrix = cvxpy.reshape(_to_matrix(d, i, j) @ a, (d, d), order="F")
    return cvxpy.Problem(cvxpy.Minimize(loss + norm), [matrix >> 0]), matrix


def _loss(X, pairs, targets, i, j, weights, a):
    import cvxpy

    (first, second), t = pairs, targets
    n, size = len(t), len(i)
    Q, b = np.zeros((size, size)), np.zeros(size)
    # In blocks: the squares of all pairs together may not fit into memory.
    for start in range(0, n, 4096):
        block = slice(start, start + 4096)
        Z = X[first[block]] - X[second[block]]
        Z = weights * Z[:, i] * Z[:, j] / np.sqrt(n)
        if n <= min(size, 4096):
            return 0.5 * cvxpy.sum_squares(Z @ a - t / np.sqrt(n))
        Q += Z.T @ Z
        b += Z.T @ t[block] / np.sqrt(n)
    constant = float(t @ t) / (2 * n)
    return 0.5 * cvxpy.quad_form(a, cvxpy.psd_wrap(Q)) - b @ a + constant


def _to_matrix(d, i, j):
    """Return the map from the triangle to all entries of the matrix, column by column."""
    places = np.concatenate([i + d * j, j + d * i])
    unique, first = np.unique(places, return_index=True)
    entries = np.tile(np.arange(len(i)), 2)[first]
    return scipy.sparse.csc_array((np.ones(len(unique)), (unique, entries)), shape=(d * d, len(i)))
