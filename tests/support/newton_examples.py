"""Problems for the tests of the Newton kernels, and short ways to write their parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from lopro.functions import atoms
from lopro.functions.term import Term
from lopro.maps import LinearMap, linear_map
from lopro.newton import Composite
from lopro.newton.losses import Loss, SquaredLoss
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.smooth import SmoothSum


def least_squares(B, b, scale=1.0):
    return SquaredLoss(Term(atoms.HalfSquare(), linear_map(B), np.asarray(b), scale))


def linear(q):
    return QuadraticForm(None, q)


def quadratic(P, q, constant=0.0):
    return QuadraticForm(P, q, constant)


def squared_distance(center, scale=1.0):
    return Composite.of([Term(atoms.HalfSquare(), None, center, scale)], len(center)).smooth


def logistic(A, labels, total=None):
    """The mean loss, or its sum times a number."""
    scale = 1.0 if total is None else total * len(labels)
    return Loss(Term(atoms.Logistic(labels), linear_map(A), scale=scale))


def huber(A, b, delta, scale=1.0):
    return Loss(Term(atoms.Huber(delta), linear_map(A), b, scale))


def interval(lower=None, upper=None, size=None):
    low = np.asarray(-np.inf if lower is None else lower, dtype=float)
    high = np.asarray(np.inf if upper is None else upper, dtype=float)
    shape = np.broadcast_shapes(low.shape, high.shape, () if size is None else (size,))
    return Term(atoms.Interval(np.broadcast_to(low, shape), np.broadcast_to(high, shape)))


def composed(smooth: Any, pairs: Any) -> Composite:
    """Return ``f + sum of g(Dx)`` of pairs of terms and matrices, None for the identity."""
    return Composite(smooth, [replace(term, map=as_map(D)) for term, D in pairs])


def as_map(D: Any) -> LinearMap | None:
    return None if D is None else linear_map(D)


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
    return composed(squared_distance(y), [(interval(lower=np.zeros(n - 1)), differences(n))])


def smooth_functions(rng, d=5):
    """One of every kind, with its name."""
    A = rng.standard_normal((9, d))
    labels = np.where(rng.uniform(size=9) < 0.5, -1.0, 1.0)
    counts = rng.poisson(2.0, 9).astype(float)
    P = A.T @ A
    ridge = squared_distance(rng.standard_normal(d), 1.3)
    sparse = scipy.sparse.csr_array
    return {
        "least squares": least_squares(A, rng.standard_normal(9), 0.7),
        "wide least squares": least_squares(A[:3], rng.standard_normal(3), 0.7),
        "sparse least squares": least_squares(sparse(A), rng.standard_normal(9)),
        "quadratic": quadratic(P, rng.standard_normal(d), 0.7),
        "sparse quadratic": quadratic(scipy.sparse.csc_array(P), rng.standard_normal(d)),
        "linear": linear(rng.standard_normal(d)),
        "squared distance": ridge,
        "logistic": logistic(A, labels),
        "sparse logistic": logistic(sparse(A), labels, 1.0),
        "sum": SmoothSum([logistic(A, labels, 1.0), ridge, linear(rng.standard_normal(d))]),
        "huber": huber(A, rng.standard_normal(9), 0.8, 2.0),
        "squared hinge": Loss(Term(atoms.SquaredHinge(labels), linear_map(A), scale=3.0)),
        "poisson": Loss(Term(atoms.Poisson(counts), linear_map(0.5 * A))),
    }
