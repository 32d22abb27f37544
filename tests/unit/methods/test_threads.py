"""SciPy's thread pool is limited to one thread inside the block, and restored after it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import lopro
from lopro.core.threads import one_pool, one_thread
from lopro.metric.api import metric_problem
from lopro.metric.loss import PairLoss


def threads(owner: str) -> list[int]:
    found = threadpool_info()
    return [i["num_threads"] for i in found if owner in Path(i["filepath"]).parent.name.lower()]


def test_one_pool_limits_scipy_and_restores() -> None:
    importlib.import_module("scipy.linalg")
    scipys, numpys = threads("scipy"), threads("numpy")
    if not scipys:
        pytest.skip("SciPy brings no thread pool of its own here")
    with one_pool():
        assert threads("scipy") == [1] * len(scipys)
        assert threads("numpy") == numpys
    assert threads("scipy") == scipys


def test_one_thread_limits_all_and_restores() -> None:
    with threadpool_limits(limits=2):
        before = threads("scipy"), threads("numpy")
        with one_thread():
            assert threads("scipy") == [1] * len(before[0])
            assert threads("numpy") == [1] * len(before[1])
        assert (threads("scipy"), threads("numpy")) == before


@pytest.mark.parametrize("first", [one_pool, one_thread])
@pytest.mark.parametrize("second", [one_pool, one_thread])
def test_the_last_block_to_end_restores_the_limits(first: Any, second: Any) -> None:
    """Blocks of two threads may overlap in any way; a limit set by one is never restored by the other."""
    with threadpool_limits(limits=2):
        before = threads("scipy"), threads("numpy")
        a, b = first(), second()
        a.__enter__()
        b.__enter__()
        a.__exit__(None, None, None)
        assert threads("scipy") == [1] * len(before[0])
        b.__exit__(None, None, None)
        assert (threads("scipy"), threads("numpy")) == before


def test_a_run_limits_no_threads_between_its_epochs() -> None:
    """Nor when it is abandoned midway, nor when another run has started in between."""
    X = np.random.default_rng(0).standard_normal((8, 5))
    loss = PairLoss(X, np.triu_indices(8, 1), np.tile([0.0, 2.0], 14))
    problem = metric_problem(loss, 0.01)
    with threadpool_limits(limits=2):
        before = threads("scipy") + threads("numpy")
        method = lopro.FeatureWorkingSet()
        runs = [lopro.iterate(problem, method=method, tol=1e-9) for _ in range(2)]
        for run in runs:
            next(run)
            assert threads("scipy") + threads("numpy") == before
        runs.clear()
        assert threads("scipy") + threads("numpy") == before
