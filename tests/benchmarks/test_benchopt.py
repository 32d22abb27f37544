"""The benchopt benchmarks at toy size: they run with plain pip, and their columns are correct."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.exists():
    pytest.skip("a source distribution has tests but no benchmarks", allow_module_level=True)
pytest.importorskip("benchopt", reason='needs benchopt: pip install "lopro[bench]"')
pd = pytest.importorskip("pandas", reason="benchopt's results are tables of pandas")

SOLVERS = ["lopro[method=default]", "lopro[method=MatrixFree]", "NESTA", "SPGL1"]
METRIC_SOLVERS = ["lopro[method=default]", "projected subgradient", "SCS by CVXPY"]


def results(name, folder, dataset, solvers):
    """Run a benchmark small; it writes beside itself, so a copy of it runs."""
    copy = folder / name
    shutil.copytree(BENCHMARKS / name, copy, ignore=shutil.ignore_patterns("outputs", "__*__"))
    command = [sys.executable, "-m", "benchopt", "run", str(copy), "--no-plot", "--output", "toy"]
    command += ["-d", dataset, "-n", "7", "-r", "1", "--timeout", "60"]
    command += [part for solver in solvers for part in ("-s", solver)]
    # Its settings and caches stay in the folder of the test.
    env = os.environ | {"HOME": str(folder)}
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, env=env)
    (found,) = list(copy.glob("outputs/*.parquet")) or pytest.fail(run.stdout + run.stderr)
    return pd.read_parquet(found)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("benchopt")
    return results("benchopt_bpdn", folder, "uniform[m=20,d=60,nonzeros=3]", SOLVERS)


@pytest.fixture(scope="module")
def metric_table(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("benchopt")
    return results("benchopt_metric", folder, "planted[d=6,samples=20]", METRIC_SOLVERS)


def rows_of(table, solver):
    rows = table[table["solver_name"] == solver]
    if rows.empty:
        pytest.skip(f"{solver} is not installed")
    return rows.sort_values("stop_val", ascending=False)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_error_falls(table, solver):
    errors = rows_of(table, solver)["objective_value"].to_numpy()
    assert errors[-1] <= (2e-2 if solver == "NESTA" else 1e-4)
    assert errors[-1] <= errors[0]


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_error_is_the_larger_one_of_its_two_parts(table, solver):
    rows = rows_of(table, solver)
    parts = rows[["objective_suboptimality", "objective_violation"]].max(axis=1)
    assert (rows["objective_value"] == parts).all()
    assert (parts >= 0.0).all()


@pytest.mark.parametrize("solver", SOLVERS[:3])
def test_points_of_methods_that_project_are_feasible_and_projections_are_counted(table, solver):
    rows = rows_of(table, solver)
    assert (rows["objective_violation"] <= 1e-9).all()
    few = solver != "NESTA"
    assert (rows["objective_projections"] <= 3).all() == few
    assert (rows["objective_products"] > 0).all()


def test_all_points_are_measured_against_one_bound_and_none_is_below_it(table):
    feasible = table[(table["objective_violation"] == 0.0) & (table["objective_suboptimality"] > 0)]
    bounds = feasible["objective_l1_norm"] / (1.0 + feasible["objective_suboptimality"])
    assert len(bounds) >= 5
    assert bounds.max() - bounds.min() <= 1e-12 * bounds.max()
    lowest = table.loc[table["objective_violation"] == 0.0, "objective_l1_norm"].min()
    assert lowest >= bounds.max() * (1.0 - 1e-12)


def test_for_spgl1_products_are_counted_and_projections_are_not_reported(table):
    rows = rows_of(table, "SPGL1")
    assert rows["objective_projections"].isna().all()
    assert rows["objective_products"].iloc[-1] > rows["objective_products"].iloc[0] >= 1


@pytest.mark.parametrize(
    ("solver", "error"), [*zip(METRIC_SOLVERS, (1e-6, 0.05, 1e-4), strict=True)]
)
def test_metrics_get_better(metric_table, solver, error):
    errors = rows_of(metric_table, solver)["objective_value"].to_numpy()
    assert errors[-1] <= min(errors[0], error)


def test_metrics_of_methods_that_project_are_feasible_and_projections_are_counted(metric_table):
    ours, steps = (rows_of(metric_table, solver) for solver in METRIC_SOLVERS[:2])
    for rows in (ours, steps):
        assert (rows["objective_violation"] <= 1e-9).all()
        assert (rows["objective_eigendecompositions"] > 0).all()
    assert (ours["objective_projections"] <= 1).all()
    assert steps["objective_projections"].iloc[-1] >= 100


def test_another_solver_agrees_about_the_optimal_metric(metric_table):
    scs = rows_of(metric_table, "SCS by CVXPY")["objective_f"].iloc[-1]
    ours = rows_of(metric_table, "lopro[method=default]")["objective_f"].iloc[-1]
    assert ours == pytest.approx(scs, rel=1e-4)
