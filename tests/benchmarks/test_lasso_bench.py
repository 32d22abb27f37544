"""Gaps at points and expansions into monomials, which `benchmarks.lasso` uses."""

from math import comb

import numpy as np

import lopro
from benchmarks.lasso import instance, logistic_gap, polynomials


def test_the_gap_of_logistic_regression_is_that_of_the_certificate():
    A, y = instance(60, 200)
    b = np.sign(y)
    result = lopro.sparse_logistic(A, b, 3.0, tol=1e-10)
    assert abs(logistic_gap(A, b, result.x, 3.0)) <= 1e-10
    assert logistic_gap(A, b, np.zeros(200), 3.0) > 0.1
    off = result.x + 1e-3 * (result.x != 0.0)
    fun = np.logaddexp(0.0, -b * (A @ off)).sum() + 3.0 * np.abs(off).sum()
    assert logistic_gap(A, b, off, 3.0) >= (fun - result.fun) / fun > 0.0


def test_every_monomial_is_there_once():
    A, _ = polynomials(40, 3, 4)
    assert A.shape == (40, comb(7, 4) - 1)
    assert np.linalg.matrix_rank(A) == A.shape[1]
