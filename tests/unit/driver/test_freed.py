"""The data of a call are freed at once, without the garbage collector."""

import gc
import weakref

import numpy as np
import pytest

import lopro
from lopro.constraints import L1Ball, Polyhedron, ResidualBall
from lopro.objectives import L1Norm, LeastSquares, Linear, Logistic, Quadratic, SquaredDistance

M = np.random.default_rng(0).standard_normal((12, 4))
PROBLEMS = {
    "least squares": lambda: (LeastSquares(M.copy(), M[:, 0]), Polyhedron(M, np.ones(12)), None),
    "quadratic": lambda: (Quadratic(M.T @ M, np.ones(4)), Polyhedron(M, np.ones(12)), None),
    "logistic": lambda: (Logistic(M.copy(), np.sign(M[:, 0])), Polyhedron(M, np.ones(12)), None),
    "ball": lambda: (Linear(np.ones(4)), ResidualBall(M.copy(), M[:, 0], 2.0), None),
    "basis pursuit": lambda: (L1Norm(), ResidualBall(M.T.copy(), M[0], 0.1), None),
    "projections": lambda: (SquaredDistance(np.full(4, 3.0)), L1Ball(4), lopro.LoPGD()),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_the_data_of_a_call_are_freed_with_its_last_reference(kind):
    def called():
        f, c, method = PROBLEMS[kind]()
        result = lopro.solve(lopro.Problem(f, c), method=method, max_iter=200)
        assert np.isfinite(result.fun)
        return [weakref.ref(f), weakref.ref(c)]

    called()  # caches that are made once for all calls are made here
    gc.collect()
    gc.disable()
    try:
        assert [ref() for ref in called()] == [None, None]
    finally:
        gc.enable()
