"""Problems for the tests of the Newton kernels."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lopro.newton import Composite
from lopro.newton.parts import Interval
from lopro.newton.smooth import LeastSquares, Linear, Logistic, Quadratic, SquaredDistance, Sum
from lopro.newton.smooth.huber import Huber


def half_spaces(rng, d=12, m=60, slack=1.0):
    """Least squares over half-spaces with an interior point; about half of the dimensions are tight."""
    B, b = rng.standard_normal((2 * d, d)), 3.0 * rng.standard_normal(2 * d)
    A = rng.standard_normal((m, d))
    upper = A @ rng.standard_normal(d) * 0.1 + slack * rng.uniform(0.5, 1.0, m)
    return B, b, A, upper


def linear_program(rng, d=8, m=40):
    """A bounded linear program: its gradient is a positive combination of rows."""
    A = rng.standard_normal((m, d))
    upper = A @ rng.standard_normal(d) + rng.uniform(0.1, 1.0, m)
    return -(rng.uniform(size=m) @ A), A, upper


def differences(n):
    """The rows ``x_{i+1} - x_i``."""
    ones = np.ones(n - 1)
    return scipy.sparse.diags_array([-ones, ones], offsets=[0, 1], shape=(n - 1, n)).tocsr()


def isotonic(rng, n=50):
    y = np.linspace(0.0, 1.0, n) + rng.standard_normal(n)
    return Composite(SquaredDistance(y), [(Interval(lower=np.zeros(n - 1)), differences(n))])


def smooth_functions(rng, d=5):
    """One of every kind, with its name."""
    A = rng.standard_normal((9, d))
    labels = np.where(rng.uniform(size=9) < 0.5, -1.0, 1.0)
    P = A.T @ A
    ridge = SquaredDistance(rng.standard_normal(d), rng.uniform(0.5, 2.0, d))
    return {
        "least squares": LeastSquares(A, rng.standard_normal(9)),
        "wide least squares": LeastSquares(A[:3], rng.standard_normal(3)),
        "sparse least squares": LeastSquares(scipy.sparse.csr_array(A), rng.standard_normal(9)),
        "quadratic": Quadratic(P, rng.standard_normal(d), 0.7),
        "sparse quadratic": Quadratic(scipy.sparse.csc_array(P), rng.standard_normal(d)),
        "linear": Linear(rng.standard_normal(d)),
        "squared distance": ridge,
        "logistic": Logistic(A, labels, 1.0 / 9.0),
        "sparse logistic": Logistic(scipy.sparse.csr_array(A), labels),
        "sum": Sum([Logistic(A, labels), ridge, Linear(rng.standard_normal(d))]),
        "huber": Huber(A, rng.standard_normal(9), 0.8, 2.0),
    }
