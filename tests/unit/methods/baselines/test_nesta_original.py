"""NESTA is the original, iterate by iterate: compared with outputs of the authors' version 1.1."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from support.nesta_runs import bpdn_problem, huber, iterates, run_to_the_end

from lopro import Problem
from lopro.constraints import ResidualBall
from lopro.methods.baselines import NESTA, nesta


def shared_folder() -> Path:
    """Where the outputs of the original are kept: they are not part of the project."""
    default = Path(__file__).resolve().parents[5] / "shared"
    return Path(os.environ.get("LOPRO_SHARED", default)) / "data" / "nesta"


def fixture_file(name: str) -> dict[str, np.ndarray]:
    path = shared_folder() / name
    if not path.is_file():
        pytest.skip(f"outputs of the original NESTA not found at {path}; set LOPRO_SHARED")
    with np.load(path) as data:
        return dict(data)


@pytest.fixture(scope="module")
def instance() -> dict[str, np.ndarray]:
    return fixture_file("bpdn_m100_d500.npz")


@pytest.fixture(scope="module")
def original() -> dict[str, np.ndarray]:
    return fixture_file("nesta_octave_fixtures.npz")


def distance_to_trace(problem: Problem, mu: float, trace: np.ndarray) -> float:
    """The original records the point at which an iteration starts; lopro the one at which it ends."""
    ours = iterates(problem, mu, len(trace) - 1)
    return float(np.abs(ours - trace[1:]).max())


TRACES = {"general": ("trace_x", "trace_res"), "tight frame": ("traceB_x", "traceB_res")}


def traced(case: str, instance, original) -> Problem:
    if case == "general":
        return bpdn_problem(instance["A"], instance["y"], instance["eps"])
    return bpdn_problem(original["B"], original["yb"], original["eb"])


@pytest.mark.parametrize("case", TRACES)
def test_iterates_are_those_of_the_original(case, instance, original):
    problem, mu = traced(case, instance, original), float(original["trace_mu"])
    points, records = (original[name] for name in TRACES[case])
    assert distance_to_trace(problem, mu, points) <= 1e-9
    ours = iterates(problem, mu, len(points) - 1)
    A, y = problem.constraint.A.matrix, problem.constraint.y
    residuals = [np.linalg.norm(A @ x - y) for x in ours]
    np.testing.assert_allclose(residuals, records[1:, 0], rtol=0, atol=1e-8)
    np.testing.assert_allclose([huber(x, mu) for x in ours], records[1:, 1], rtol=1e-9)


def test_the_point_after_the_trace_too(instance, original):
    problem, mu = traced("general", instance, original), float(original["trace_mu"])
    last = iterates(problem, mu, len(original["trace_x"]))[-1]
    np.testing.assert_allclose(last, original["trace_final"], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "broken"),
    [("blend", lambda k: 2.0 / (k + 2)), ("slope_weight", lambda k: (k + 2) / 2.0)],
)
def test_the_comparison_rejects_broken_weights(name, broken, instance, original, monkeypatch):
    problem, mu = traced("general", instance, original), float(original["trace_mu"])
    monkeypatch.setattr(nesta, name, broken)
    assert distance_to_trace(problem, mu, original["trace_x"]) > 1e-3


@pytest.mark.parametrize("digits", [5, 8])
@pytest.mark.parametrize("power", [3, 4, 5])
def test_final_answers_with_continuation(power, digits, instance):
    problem = bpdn_problem(instance["A"], instance["y"], instance["eps"])
    method = NESTA(10.0**-power, variation=10.0**-digits)
    result, x = run_to_the_end(problem, method)
    np.testing.assert_allclose(x, instance[f"x_mu{power}_tol{digits}"], rtol=0, atol=1e-9)
    # The original counts the check that ends each of the five stages as well.
    assert result.iterations == int(instance[f"n_mu{power}_tol{digits}"]) - method.stages
    assert result.counts.projections == 2 * result.iterations


@pytest.mark.parametrize(
    ("matrix", "data", "radius", "mu", "answer", "count"),
    [("A", "y0", 0.0, 1e-6, "x0", "n0"), ("B", "yb", None, 1e-5, "xB", "nB")],
    ids=["delta=0", "tight frame"],
)
def test_final_answers_of_other_kinds(matrix, data, radius, mu, answer, count, instance, original):
    A = instance["A"] if matrix == "A" else original["B"]
    sigma = original["eb"] if radius is None else radius
    problem = bpdn_problem(A, original[data], sigma)
    result, x = run_to_the_end(problem, NESTA(mu, variation=1e-8))
    np.testing.assert_allclose(x, original[answer], rtol=0, atol=1e-12)
    assert result.iterations == int(original[count]) - 5
    assert result.certificate.relative_gap < 0.02


@pytest.mark.parametrize("number", range(1, 7))
def test_projections_agree_with_the_original(number, original):
    A, b, sigma, point, answer = (
        original[f"p{number}_{name}"] for name in ("A", "b", "eps", "y", "x")
    )
    ours = ResidualBall(A, b, float(sigma)).project(point)
    assert np.linalg.norm(ours - answer) <= 1e-8 * np.linalg.norm(answer)
