"""A limit holds for the whole call, and Ctrl-C always gives a result."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from deadline.calls import CALLS, DATA, LARGE, semidefinite

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.serial


@pytest.mark.parametrize("limit", [0.2, 1.0])
@pytest.mark.parametrize("name", [name for name in CALLS if name not in (*LARGE, "genes")])
def test_a_call_returns_soon_after_its_limit(name: str, limit: float) -> None:
    call = CALLS[name]()
    started = time.perf_counter()
    found = call(time_limit=limit)
    elapsed = time.perf_counter() - started
    results = found if isinstance(found, list) else [found]
    for result in results:
        assert np.isfinite(result.x).all()
        assert result.status.name in ("TIME_LIMIT", "CONVERGED"), result
        assert result.success == (result.status.name == "CONVERGED")
    assert elapsed <= 1.2 * limit + 0.5


@pytest.mark.parametrize("name", ["mcp500-1", "maxG11", "arch0", "qap7", "theta3"])
def test_semidefinite_programs_return_soon_after_their_limit(name: str) -> None:
    call = semidefinite(name)
    started = time.perf_counter()
    result = call(time_limit=0.5)
    assert time.perf_counter() - started <= 1.1
    assert result.status.name in ("TIME_LIMIT", "CONVERGED"), result


@pytest.mark.parametrize("limit", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("name", LARGE)
def test_programs_return_soon_after_their_limit(name: str, limit: float) -> None:
    """An answer found before the limit is returned as proved; a point with a gap is feasible."""
    call = CALLS[name]()
    started = time.perf_counter()
    result = call(time_limit=limit)
    assert time.perf_counter() - started <= 1.2 * limit + 0.5
    assert result.status.name in ("TIME_LIMIT", "CONVERGED"), result
    assert np.isfinite(result.x).all()
    assert result.certificate.violation <= 1e-9 or result.certificate.gap == np.inf


@pytest.mark.parametrize("limit", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("l1", [1e-3, "auto"])
def test_a_metric_of_thousands_of_genes_is_fitted_within_its_limit(
    l1: object, limit: float
) -> None:
    """72 samples of 7129 features: a single eigendecomposition of full size takes half a minute."""
    path = DATA / "genes" / "ALLAML.mat"
    if not path.exists():
        pytest.skip(f"no {path}: set LOPRO_DATA to a folder with genes/ALLAML.mat")
    learners = pytest.importorskip("lopro.sklearn")
    data = scipy.io.loadmat(path)
    X, y = np.asarray(data["X"], float), np.asarray(data["Y"]).ravel()
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0.0, X.std(axis=0), 1.0)
    learner = learners.SparseMetricLearner(l1, time_limit=limit)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nothing is proved
        learner.fit(X, y)
    assert time.perf_counter() - started <= 1.2 * limit + 0.5


@pytest.mark.parametrize("repeat", range(10))
@pytest.mark.parametrize(
    "name", ["single", "many", "path", "metric", "polyhedron", "genes", *LARGE]
)
def test_an_interrupt_gives_a_result(name: str, repeat: int) -> None:
    if name in ("pilot87", "truss5", "genes"):
        CALLS[name]()  # skips where there are no data
    wait = random.Random(f"{name} {repeat}").uniform(0.05, 2.0)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
    process = subprocess.Popen(
        [sys.executable, "-m", "deadline.interrupted", name],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "begin"
    time.sleep(wait)
    process.send_signal(signal.SIGINT)
    sent = time.perf_counter()
    output = process.stdout.readline()
    elapsed = time.perf_counter() - sent
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    statuses = json.loads(output)
    assert set(statuses) <= {"INTERRUPTED", "CONVERGED", "STALLED", "SCHEDULE_DONE"}
    assert elapsed <= 1.0
