"""Table 1 at toy size: rows match the runs of the methods, and the text matches the numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lopro
from paper.experiments import table1 as module
from paper.experiments.instances import sparse_recovery
from paper.experiments.table1 import FULL, PAPER, Settings, Table1, table1
from paper.experiments.table1_text import verdict

TOY = Settings(30, 100, 4, 300, 2, 1, (100, 300), (100,), mu=1e-4, mu_finer=1e-6)


@pytest.fixture(scope="module")
def table() -> Table1:
    return table1(settings=TOY)


def test_rows_have_the_iterations_and_projections_of_their_methods(table):
    lopnag = table.of("LoPNAG, lam = 2 zeta")
    assert [(r.iterations, r.projections) for r in lopnag] == [(300, 1), (600, 2)]
    assert [r.iterations for r in table.of("LoPNAG, lam = G / rho")] == [300]
    nesta = [row for row in table.rows if row.method.startswith("NESTA")]
    assert all(row.projections == 2 * row.iterations for row in nesta)
    assert [r.iterations for r in table.of("NESTA, mu = 1e-04")] == [100, 300]


def test_every_row_is_within_what_is_certified(table):
    best = lopro.solve(sparse_recovery(30, 100, 4).problem, tol=1e-10)
    assert table.lower_bound <= best.fun + 1e-9
    for row in table.rows:
        assert row.objective >= best.fun - 1e-9
        assert table.above_optimum(row) <= row.relative_gap * row.objective + 1e-12
    assert all(row.relative_gap <= 1e-8 for row in table.rows[:2])


def test_the_weights_are_the_multiplier_and_the_theorem_s(table):
    problem = sparse_recovery(30, 100, 4).problem
    A, y, sigma = problem.constraint.A.matrix, problem.constraint.y, problem.constraint.sigma
    r = A @ lopro.solve(problem, tol=1e-10).x - y
    assert table.lam_tuned == pytest.approx(1.0 / np.abs(A.T @ r).max(), rel=1e-2)
    smallest = np.linalg.svd(A, compute_uv=False)[-1]
    assert table.lam_theory == pytest.approx(10.0 / (2 * sigma * smallest), rel=1e-9)
    assert table.lam_theory > table.lam_tuned / 2  # never below the multiplier


def test_the_words_follow_the_numbers(table):
    first, last = table.of("LoPNAG, lam = 2 zeta")[0], table.of("NESTA, mu = 1e-04")[-1]
    for shift, word in ((-1.0, "is below"), (1.0, "is NOT below")):
        moved = replace(first, objective=last.objective + shift)
        rows = tuple(moved if row is first else row for row in table.rows)
        assert f"{word} NESTA" in verdict(replace(table, rows=rows))[0]
    bias = TOY.d * TOY.mu / 2
    for above, word in ((0.5 * bias, "this bias"), (2 * bias, "not converged")):
        moved = replace(last, objective=table.lower_bound + above)
        rows = tuple(moved if row is last else row for row in table.rows)
        assert word in verdict(replace(table, rows=rows))[1]


def test_all_rows_of_the_paper_belong_to_the_full_table():
    checkpoints = {("LoPNAG", FULL.steps * k) for k in range(1, FULL.epochs + 1)}
    assert checkpoints | {("NESTA", n) for n in FULL.checkpoints} == set(PAPER)


def test_the_command_prints_the_table_and_writes_json(
    table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(module, "QUICK", TOY)
    path = tmp_path / "new" / "table1.json"
    assert module.main(["--quick", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert "running: our defaults" in out and "above optimum" in out and "tuning parameter" in out
    data = json.loads(path.read_text(encoding="utf-8"))
    assert [row["objective"] for row in data["rows"]] == [row.objective for row in table.rows]
    assert len(data["verdict"]) == 5
