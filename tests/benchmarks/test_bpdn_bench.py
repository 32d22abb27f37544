"""The benchmark of basis pursuit denoising runs, and its judge is fair: at toy size, as a command."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.benchmark_runs import needs_benchmarks, run_benchmark

pytestmark = needs_benchmarks
OURS = ["lopro.bpdn", "MatrixFree", "NESTA"]
PEERS = [
    "SPGL1 1e-04",
    "SPGL1 1e-06",
    "celer + root search",
    "lars_path",
    "CVXPY + CLARABEL",
    "CVXPY + SCS",
]


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("bpdn")
    options = [
        "--quick",
        "--problem",
        "paper",
        "dct",
        "--repeats",
        "1",
        "--cap",
        "10",
        "--no-curves",
    ]
    run = run_benchmark("bpdn", *options, "--output", str(folder), "--method", *OURS, *PEERS)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads((folder / "bpdn.json").read_text(encoding="utf-8"))
    return found


def row_of(problems: dict[str, Any], problem: str, method: str) -> dict[str, Any]:
    (row,) = (row for row in problems[problem]["rows"] if row["method"] == method)
    if "not installed" in row["note"]:
        pytest.skip(row["note"])
    return row


def test_every_method_has_a_row(problems: dict[str, Any]) -> None:
    for problem in ("paper", "dct"):
        assert [row["method"] for row in problems[problem]["rows"]] == [*OURS, *PEERS]


def test_our_default_is_certified_and_cheap(problems: dict[str, Any]) -> None:
    row = row_of(problems, "paper", "lopro.bpdn")
    assert row["note"].startswith("converged")
    assert row["own_gap"] <= 1e-8
    assert 2 <= row["products"] <= 20


@pytest.mark.parametrize("method", PEERS)
def test_peers_are_called_correctly(problems: dict[str, Any], method: str) -> None:
    row = row_of(problems, "paper", method)
    # Feasible after the judge's projection, and as accurate as the package's tolerance implies.
    assert row["verdict"]["violation_projected"] <= 1e-9
    assert 0.0 <= row["suboptimality"] <= 1e-4


@pytest.mark.parametrize("method", [*OURS, *PEERS])
def test_lower_bounds_are_below_every_value(problems: dict[str, Any], method: str) -> None:
    row = row_of(problems, "paper", method)
    values = [r["verdict"]["value"] for r in problems["paper"]["rows"] if r["verdict"]]
    assert row["verdict"]["lower_bound"] <= min(values) * (1.0 + 1e-11)
    if row["own_lower_bound"] is not None:
        assert row["own_lower_bound"] <= min(values) * (1.0 + 1e-11)


@pytest.mark.parametrize("method", ["celer + root search", "lars_path", "CVXPY + SCS"])
def test_methods_that_do_not_apply_are_reported(problems: dict[str, Any], method: str) -> None:
    row = row_of(problems, "dct", method)
    assert row["note"] == "needs a matrix"
    assert row["seconds"] is None and row["verdict"] is None


def test_the_table_of_the_guide_is_the_one_that_was_measured() -> None:
    from benchmarks.bpdn.classes import CLASSES
    from benchmarks.bpdn.who_wins import KEPT, PAGE, table, with_table

    rows = json.loads(KEPT.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    assert [row["class"] for row in rows] == list(CLASSES)
    assert table(rows) in page and with_table(page, rows) == page


@pytest.mark.parametrize("name", ["tiny 20x50", "rows 60x150, 5 columns"])
def test_a_class_is_measured(name: str) -> None:
    from benchmarks.bpdn.who_wins import measure, table

    pytest.importorskip("spgl1")
    row = measure(name, 1, 1, 30.0)
    assert row["certified"] == 1 and row["failed"] == []
    assert row["products"] > 0 and row["spgl1 products"] > 0
    assert table([row]).splitlines()[-1].startswith(f"| {name} | ")
