"""Problems and results can be sent to another process and put into a file."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from support.catalogue import CONSTRAINTS
from support.constraint_case import ConstraintCase
from support.driver_cases import BUILDERS

import lopro
from lopro import Problem
from lopro.constraints import Affine, Polyhedron
from lopro.objectives import LeastSquares, Linear, SquaredDistance


def again(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("copied", [again, copy.deepcopy], ids=["pickle", "deepcopy"])
@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_a_problem_and_its_copy_have_the_same_run(build: Any, copied: Any) -> None:
    problem = build(np.random.default_rng(4)).problem
    first = lopro.solve(problem, max_iter=300)
    second = lopro.solve(copied(problem), max_iter=300)  # after a run: cached data are pickled, too
    np.testing.assert_array_equal(first.x, second.x)
    assert (first.fun, first.status, first.iterations) == (
        second.fun,
        second.status,
        second.iterations,
    )
    assert first.certificate == second.certificate


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_a_result_and_its_copy_are_equal(build: Any) -> None:
    result = lopro.solve(build(np.random.default_rng(4)).problem)
    other = again(result)
    np.testing.assert_array_equal(other.x, result.x)
    assert str(other) == str(result)
    assert other.certificate == result.certificate and other.counts == result.counts
    assert repr(other.history.to_dict()) == repr(result.history.to_dict())
    assert other.status is result.status
    if result.multiplier is not None:
        np.testing.assert_array_equal(other.multiplier.direction, result.multiplier.direction)
        assert other.multiplier.support == result.multiplier.support


def test_rays_are_pickled() -> None:
    rows = Polyhedron([[1.0], [-1.0]], [-1.0, -1.0])
    result = lopro.solve(Problem(SquaredDistance(np.zeros(1)), rows))
    np.testing.assert_array_equal(again(result).ray[0], result.ray[0])


def test_sparse_data_are_pickled_sparse() -> None:
    M = scipy.sparse.random(20, 8, 0.2, "csr", rng=np.random.default_rng(0))
    problem = Problem(LeastSquares(M, np.ones(20)), Affine(M, -1.0, 1.0))
    other = again(problem)
    assert scipy.sparse.issparse(other.objective.A.matrix)
    assert scipy.sparse.issparse(other.constraint.M.matrix)


@pytest.mark.parametrize(
    "case",
    [c for c in CONSTRAINTS if c.name != "ball-operator" and "function" not in c.name],
    ids=str,
)
def test_every_set_is_pickled(case: ConstraintCase) -> None:
    """All but those made of functions defined inside another one, which cannot be pickled."""
    c = case.numpy
    other = again(c)
    x = case.point(np.random.default_rng(1), 2.0)
    assert other.value(x) == c.value(x)
    assert repr(other) == repr(c)
    np.testing.assert_array_equal(other.project(x), c.project(x))


def test_methods_and_options_are_pickled() -> None:
    for method in (lopro.Auto(), lopro.NewtonMultipliers(), lopro.ProgramEngines(), lopro.LoPGD()):
        assert again(method) == method
    problem = Problem(Linear(np.ones(2)), Polyhedron.box(-np.ones(2), np.ones(2)), gap_scale=3.0)
    assert again(problem).gap_scale == 3.0
