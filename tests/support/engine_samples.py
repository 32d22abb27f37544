"""Programs with every kind of row and bound, and the optimality conditions of their answers."""

import numpy as np
import scipy.sparse

from lopro.engines import QuadraticProgram

__all__ = ["assert_optimal", "program"]


def program(rng, quadratic=True, sparse=False, n=8, m=12):
    """Equalities, one- and two-sided rows, a fixed variable, variables with and without bounds."""
    M = rng.standard_normal((n, n))
    P = M @ M.T + 0.1 * np.eye(n) if quadratic else None
    A = rng.standard_normal((m, n))
    x = rng.uniform(0.2, 0.8, n)
    lower, upper = A @ x - rng.uniform(0.1, 1, m), A @ x + rng.uniform(0.1, 1, m)
    lower[:4], upper[4:6] = -np.inf, np.inf
    lower[6] = upper[6] = A[6] @ x
    least, most = np.zeros(n), np.ones(n)
    least[0], most[1] = -np.inf, np.inf
    least[2] = most[2] = x[2]
    if not quadratic:
        least[0] = -5.0
        most[1] = 5.0
    if sparse:
        A, P = scipy.sparse.csr_array(A), None if P is None else scipy.sparse.csc_array(P)
    return QuadraticProgram.of(P, 5.0 * rng.standard_normal(n), A, lower, upper, least, most)


def assert_optimal(p, answer, atol=1e-6):
    """Stationarity, feasibility and complementarity, with the documented signs of `Answer`."""
    Px = np.zeros(len(p.q)) if p.P is None else p.P @ answer.x
    np.testing.assert_allclose(Px + p.q + p.A.T @ answer.rows + answer.box, 0.0, atol=atol)
    for y, lower, upper, v in (
        (p.A @ answer.x, p.lower, p.upper, answer.rows),
        (answer.x, p.least, p.most, answer.box),
    ):
        assert np.all(y >= lower - atol) and np.all(y <= upper + atol)
        up, down = v > atol, v < -atol
        np.testing.assert_allclose(y[up], upper[up], atol=atol)
        np.testing.assert_allclose(y[down], lower[down], atol=atol)
