"""The methods and conic solvers of the benchopt benchmark of metric learning, at toy size."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "benchopt_metric"
if not FOLDER.exists():
    pytest.skip("a source distribution has tests but no benchmarks", allow_module_level=True)
pytest.importorskip("benchopt", reason='needs benchopt: pip install "lopro[bench]"')
pd = pytest.importorskip("pandas", reason="benchopt's results are tables of pandas")

CERTIFIED = ["lopro[method=default]", "lopro[method=ConsensusADMM]"]
DESCENT = ["descent[method=LoPGD]", "descent[method=PGD]"]
CONIC = ["CVXPY on moments[solver=CLARABEL]", "CVXPY on moments[solver=SCS]"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory):
    """Return the results; the benchmark writes beside itself, so a copy of it runs."""
    copy = tmp_path_factory.mktemp("benchopt") / "metric"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("outputs", "__*__"))
    command = [sys.executable, "-m", "benchopt", "run", str(copy), "--no-plot", "--output", "toy"]
    command += ["-d", "simulated[samples=16,features=4]", "-n", "8", "-r", "1", "--timeout", "60"]
    command += [part for solver in (*CERTIFIED, *DESCENT, *CONIC) for part in ("-s", solver)]
    env = os.environ | {"HOME": str(copy.parent)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, env=env)
    (found,) = list(copy.glob("outputs/*.parquet")) or pytest.fail(run.stdout + run.stderr)
    return pd.read_parquet(found)


def rows_of(table, solver):
    rows = table[table["solver_name"] == solver]
    if rows.empty:
        pytest.skip(f"{solver} is not installed")
    # Certified and conic ones go through falling tolerances, descent through more iterations.
    return rows.sort_values("stop_val", ascending=solver in DESCENT)


@pytest.mark.parametrize("solver", [*CERTIFIED, *CONIC])
def test_certified_and_conic_ones_find_the_optimum(table, solver):
    assert 0.0 <= rows_of(table, solver)["objective_value"].iloc[-1] <= 1e-5


@pytest.mark.parametrize("solver", DESCENT)
def test_descent_gets_better_with_iterations(table, solver):
    errors = rows_of(table, solver)["objective_value"].to_numpy()
    assert len(errors) >= 3
    assert errors[-1] < 0.5 * errors[0]


def test_projections_are_counted_where_they_are_made(table):
    last = {name: rows_of(table, name).iloc[-1] for name in (*CERTIFIED, *DESCENT)}
    assert last[CERTIFIED[0]]["objective_projections"] <= 1
    assert last[CERTIFIED[1]]["objective_projections"] >= 10
    assert last[DESCENT[0]]["objective_projections"] <= 5
    assert last[DESCENT[1]]["objective_projections"] == last[DESCENT[1]]["stop_val"]
    assert rows_of(table, CONIC[0])["objective_projections"].isna().all()


def test_points_of_methods_that_project_are_feasible_as_they_are(table):
    for solver in (*CERTIFIED, *DESCENT):
        assert (rows_of(table, solver)["objective_violation"] <= 1e-12).all()
