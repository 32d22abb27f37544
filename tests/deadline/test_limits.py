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
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import lopro
from deadline.calls import CALLS

ROOT = Path(__file__).parent.parent.parent
DATA = Path(os.environ.get("LOPRO_DATA", ROOT.parent / "shared" / "data"))
pytestmark = pytest.mark.serial


@pytest.mark.parametrize("limit", [0.2, 1.0])
@pytest.mark.parametrize("name", [name for name in CALLS if name != "transport"])
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
    problem = _sdplib(name)
    started = time.perf_counter()
    result = lopro.solve(problem, time_limit=0.5)
    assert time.perf_counter() - started <= 1.1
    assert result.status.name in ("TIME_LIMIT", "CONVERGED"), result


def _netlib(name: str) -> lopro.Problem:
    path = DATA / "netlib" / "feasible" / f"{name}.mat"
    if not path.exists():
        pytest.skip(f"no {path}: set LOPRO_DATA to a folder with netlib/feasible/*.mat")
    data = scipy.io.loadmat(path)
    sides = {key: data[key].ravel().astype(float) for key in ("b", "h_l", "h_u", "x_l", "x_u", "c")}
    sides = {key: np.where(np.abs(v) < 1e20, v, np.copysign(np.inf, v)) for key, v in sides.items()}
    rows = [lopro.constraints.Affine(scipy.sparse.csr_array(data["A"]), sides["b"], sides["b"])]
    if data["G"].shape[0]:
        G = scipy.sparse.csr_array(data["G"])
        rows.append(lopro.constraints.Affine(G, sides["h_l"], sides["h_u"]))
    box = lopro.constraints.Box(sides["x_l"], sides["x_u"])
    f = lopro.objectives.Linear(sides["c"])
    return lopro.Problem(f, lopro.constraints.Intersection(*rows, box))


def _sdplib(name: str) -> lopro.Problem:
    path = DATA / "sdplib" / f"{name}.dat-s"
    if not path.exists():
        pytest.skip(f"no {path}: set LOPRO_DATA to a folder with sdplib/*.dat-s")
    return lopro.read_sdpa(path)


@pytest.mark.parametrize("limit", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("name", ["transport", "pilot87", "truss5"])
def test_programs_return_soon_after_their_limit(name: str, limit: float) -> None:
    """Where the answer is there before the limit, it is the answer; a point with a gap is feasible."""
    problem = {"pilot87": _netlib, "truss5": _sdplib}.get(name, lambda _: None)(name)
    call = CALLS[name]() if problem is None else partial(lopro.solve, problem)
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
@pytest.mark.parametrize("name", ["single", "many", "path", "metric", "polyhedron", "transport"])
def test_an_interrupt_gives_a_result(name: str, repeat: int) -> None:
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
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    statuses = json.loads(output)
    assert set(statuses) <= {"INTERRUPTED", "CONVERGED", "STALLED", "SCHEDULE_DONE"}
