"""The comparison of all methods at toy size: each runs on every problem or reports why it does not."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.benchmark_runs import ROOT, needs_benchmarks, run_benchmark

import lopro
from lopro.methods.registry import methods

pytestmark = needs_benchmarks
for _module in ("sklearn", "matplotlib"):
    pytest.importorskip(_module, reason='the comparison needs more: pip install "lopro[bench]"')

PROBLEMS = ["polyhedron", "fairness", "residual_ball", "psd", "stochastic"]
SHORT_NAMES = [name.rpartition(".")[2] for name in methods()]
FEASIBLE = 1e-9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare")
    run = run_benchmark("compare", "--quick", "--output", str(folder))
    assert run.returncode == 0, run.stderr
    return folder


@pytest.fixture(scope="module")
def records(folder: Path) -> dict[str, Any]:
    return {
        name: json.loads((folder / f"compare_{name}.json").read_text(encoding="utf-8"))
        for name in PROBLEMS
    }


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return lambda name: importlib.import_module(f"benchmarks.compare.{name}")


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_method_runs_or_reports_why_it_does_not(
    records: dict[str, Any], problem: str
) -> None:
    curves = {curve["method"]: curve for curve in records[problem]["curves"]}
    assert set(SHORT_NAMES) <= set(curves)
    assert {name: c["failed"] for name, c in curves.items() if c["failed"]} == {}
    for name, curve in curves.items():
        if curve["refused"] is not None:
            assert curve["points"] == [] and len(curve["refused"]) > 20, name
        else:
            assert curve["points"] and curve["violation"] <= FEASIBLE, name


@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_lower_bound_is_above_a_feasible_value(records: dict[str, Any], problem: str) -> None:
    runs = [curve for curve in records[problem]["curves"] if curve["points"]]
    least = min(point["fun"] for curve in runs for point in curve["points"])
    for curve in runs:
        if curve["lower_bound"] is not None:
            assert curve["lower_bound"] <= least + 1e-9 * abs(least), curve["method"]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_reference_is_certified(records: dict[str, Any], problem: str) -> None:
    reference = records[problem]["reference"]
    assert reference["fun"] - reference["lower_bound"] <= 1e-8 * abs(reference["fun"])


def test_most_methods_apply_somewhere(records: dict[str, Any]) -> None:
    ran = {c["method"] for record in records.values() for c in record["curves"] if c["points"]}
    # Programs and operators are not among these problems: benchmarks.general and benchmarks.bpdn have them.
    elsewhere = {
        "AlternatingDirections",
        "ByProducts",
        "LowRankFactors",
        "NearestPoint",
        "NearestSemidefinite",
        "ProgramEngines",
        "SemidefiniteEngines",
        "WorkingSetNewton",
    }
    assert set(SHORT_NAMES) - elsewhere <= ran
    sampled = {c["method"] for c in records["stochastic"]["curves"] if "sampled" in c["method"]}
    assert {"OPGD (sampled)", "EproSGD (sampled)", "LogTProjections (sampled)"} <= sampled <= ran


@pytest.mark.parametrize(
    "problem, method, missing",
    [
        ("polyhedron", "NESTA", "ResidualBall"),
        ("polyhedron", "LoPNAG", "smooth constraint"),
        ("polyhedron", "FrankWolfe", "smooth objective"),
        ("fairness", "EproSGD", "strongly convex"),
        ("residual_ball", "ConsensusADMM", "PSDCone"),
        ("psd", "ProjectedGradient", "smooth objective"),
    ],
)
def test_methods_that_do_not_apply_are_reported(
    records: dict[str, Any], folder: Path, problem: str, method: str, missing: str
) -> None:
    (curve,) = (c for c in records[problem]["curves"] if c["method"] == method)
    assert missing in curve["refused"]
    (row,) = (
        line
        for line in (folder / "refusals.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| {method} |") and problem in line
    )
    assert missing in row and "object at" not in row


@pytest.mark.parametrize("problem", PROBLEMS)
def test_there_is_a_figure_and_a_table(folder: Path, problem: str) -> None:
    assert 20_000 < (folder / f"{problem}.png").stat().st_size < 200_000
    table = (folder / f"{problem}.md").read_text(encoding="utf-8")
    assert table.startswith("| Method |") and "| InteriorPoint |" in table


class Broken:
    """A method that raises a given error after its first projection."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def check(self, problem: lopro.Problem) -> None:
        """Accept every problem."""

    def run(self, bench: Any, x0: Any) -> Any:
        bench.project(x0)
        yield from ()
        raise self.error


@pytest.mark.parametrize(
    "error, shown",
    [(ZeroDivisionError("x"), "ZeroDivision"), (lopro.MissingCapabilityError("late"), "midway")],
)
def test_a_method_that_fails_midway_is_not_hidden(
    compare: Any, error: Exception, shown: str
) -> None:
    run, instance = compare("run"), compare("problems").polyhedron(True)
    method = compare("methods").Method("Broken", lambda T: Broken(error))
    curve = run.measure(instance, method, run.Limits(seconds=1.0, max_iter=10))
    assert curve.refused is None and shown in curve.failed


def test_families_name_methods_that_exist(compare: Any) -> None:
    named = [name for names in compare("methods").FAMILIES.values() for name in names]
    schedules = {"LogScaleGrid", "ApproximateSharpness"}
    assert set(named) <= set(SHORT_NAMES) | schedules
    assert len(named) == len(set(named))


@pytest.mark.parametrize("problem", ["polyhedron", "fairness", "stochastic"])
def test_regularity_constants_hold(compare: Any, problem: str) -> None:
    instance = compare("problems").PROBLEMS[problem](True)
    c, rho = instance.problem.constraint, instance.constants.rho
    rng = np.random.default_rng(0)
    for x in 3.0 * rng.standard_normal((30, *instance.problem.shape)):
        assert np.linalg.norm(x - c.project(x)) <= max(c.value(x), 0.0) / rho * (1 + 1e-9)


def test_convexity_of_the_metric_problem_holds(compare: Any) -> None:
    instance = compare("problems").psd(True)
    f, mu = instance.problem.objective.loss, instance.constants.mu
    rng = np.random.default_rng(0)
    for _ in range(20):
        A, B = (M + M.T for M in rng.standard_normal((2, *f.shape)))
        slope = np.sum((f.subgradient(A) - f.subgradient(B)) * (A - B))
        assert slope >= mu * np.sum((A - B) ** 2) * (1 - 1e-9)
    best = lopro.solve(instance.problem, tol=1e-6)
    assert np.linalg.norm(best.x) <= instance.problem.solution_norm
