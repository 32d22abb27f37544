"""Table 2 at toy size: rows match the runs of the methods, and the text matches the numbers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lopro
from paper.experiments import table2 as module
from paper.experiments.colon import stand_in
from paper.experiments.table2 import paper_problem, table2
from paper.experiments.table2_data import DEFAULT, FULL, PAPER, Settings, Table2, Trial
from paper.experiments.table2_methods import METHODS
from paper.experiments.table2_text import shown, tuning_shown, verdict

TOY = Settings(
    features=8,
    samples=7,
    steps=40,
    checkpoints=(40, 80),
    tuning_features=5,
    tuning_iterations=30,
    tol=1e-3,
)


@pytest.fixture(scope="module")
def table() -> Table2:
    return table2(data=stand_in(), settings=TOY)


def test_rows_have_the_iterations_and_projections_of_their_methods(table):
    for method in METHODS:
        rows = table.of(method.name)
        assert [row.iterations for row in rows] == [40, 80]
        reference = {"LoPGD": [1, 2], "OPGD": [1, 1], "PGD": [40, 80]}[method.name.split(",")[0]]
        assert [row.projections for row in rows] == reference
    assert table.rows[0].method == "lopro.learn_metric"
    assert len(table.rows) == 1 + 2 * len(METHODS)


def test_the_problem_is_the_paper_s(table):
    data = stand_in()
    problem, L = paper_problem(data, TOY, "cpu")
    A = np.diag(np.arange(8.0)) + 0.1
    X, labels, loss, pairs = data.X[:7, :8], data.labels[:7], 0.0, 0
    for i in range(7):
        for j in range(i):
            z, y = X[i] - X[j], 1.0 if labels[i] == labels[j] else -1.0
            loss, pairs = loss + (1.0 - y - z @ A @ z) ** 2, pairs + 1
    reference = loss / (2 * pairs) + 1e-3 * 56 * 0.1
    assert problem.objective.value(A) == pytest.approx(reference, rel=1e-12)
    assert table.smoothness == L


def test_every_row_is_feasible_value_above_what_is_certified(table):
    assert math.isfinite(table.lower_bound) and table.lower_bound > 0.0
    assert all(row.objective >= table.lower_bound for row in table.rows)
    assert table.relative_gap(table.rows[0]) <= TOY.tol * (1 + 1e-9)
    assert table.lower_bound == table.rows[0].lower_bound
    assert min(row.objective for row in table.rows) == table.rows[0].objective


def test_each_method_runs_with_the_step_that_its_tuning_has_chosen(table):
    small, L = paper_problem(stand_in(), replace(TOY, features=5), "cpu")
    tuned = [method for method in METHODS if method.multiples]
    assert {trial.method for trial in table.trials} == {method.name for method in tuned}
    for method in tuned:
        trials = [trial for trial in table.trials if trial.method == method.name]
        assert tuple(trial.multiple for trial in trials) == method.multiples
        best = min(trials, key=lambda trial: trial.objective)
        assert table.best_multiple(method.name) == best.multiple
        again = lopro.solve(small, None, method.scheme(best.multiple / L, 10.0, 30, None), tol=0)
        assert again.fun == pytest.approx(best.objective, rel=1e-12)
    problem, L = paper_problem(stand_in(), TOY, "cpu")
    eta = table.best_multiple("LoPGD") / L
    by_hand = lopro.baselines.OPGD(10.0, lopro.inner.SqrtStep(eta), 80)
    found = lopro.solve(problem, None, by_hand, tol=0).fun
    assert table.of("OPGD, step of LoPGD")[-1].objective == pytest.approx(found, rel=1e-12)


def test_steps_that_diverge_are_shown_and_never_chosen(table):
    best = table.best_multiple("LoPGD")
    trials = tuple(
        Trial(t.method, t.multiple, math.inf if t.multiple == best else t.objective)
        for t in table.trials
    )
    changed = replace(table, trials=trials)
    assert changed.best_multiple("LoPGD") != best
    column = next(c for c in tuning_shown(changed).columns if c.header == f"{best:g}")
    assert next(iter(column.cells)) == "diverged"
    plain = changed.to_dict()["trials"]
    assert all(t["objective"] is None for t in plain if t["multiple"] == best)


def test_the_words_follow_the_numbers(table):
    def moved(method: str, factor: float) -> Table2:
        rows = tuple(
            replace(row, objective=factor * row.objective) if row.method == method else row
            for row in table.rows
        )
        return replace(table, rows=rows)

    assert "below PGD after 40, 80 iterations" in verdict(moved("PGD", 1e6))[1]
    assert "below PGD at no row" in verdict(moved("PGD", 1e-6))[1]
    assert "below PGD at no row" in verdict(moved("PGD, step of LoPGD", 1e-6))[2]
    assert "LoPGD is below PGD" in verdict(moved("PGD, last iterate", 1e6))[3]
    assert "LoPGD is NOT below PGD" in verdict(moved("PGD, last iterate", 1e-6))[3]


def test_a_stand_in_is_named_in_the_table(table):
    assert "STAND-IN" in shown(table).title and "LOPRO_COLON" in shown(table).caption


def test_the_paper_s_numbers_stand_beside_full_size_only(table):
    assert all(row.printed is None for row in table.rows)
    checkpoints = {(m.name, n) for m in METHODS for n in FULL.checkpoints if "," not in m.name}
    assert checkpoints == set(PAPER)
    assert (FULL.features, FULL.samples, FULL.l1, FULL.lam, FULL.steps) == (
        2000,
        40,
        1e-3,
        10,
        1000,
    )


def test_tables_can_be_cut_short():
    assert FULL.up_to(4000).checkpoints == (1000, 2000, 4000)
    with pytest.raises(ValueError, match="iterations must be at least 1000, got 10"):
        DEFAULT.up_to(10)


def test_the_command_prints_the_table_and_writes_json(
    table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(module, "QUICK", TOY)
    monkeypatch.setattr(module, "load_colon", lambda path: stand_in())
    path = tmp_path / "new" / "table2.json"
    assert module.main(["--quick", "--iterations", "40", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert "STAND-IN" in out and "tuning LoPGD" in out and "needs neither step nor weight" in out
    data = json.loads(path.read_text(encoding="utf-8"))
    expected = [row.objective for row in table.rows[1:] if row.iterations <= 40]
    assert [row["objective"] for row in data["rows"]][1:] == expected
    assert len(data["verdict"]) == 5


def differences(first: Table2, second: Table2, projected: bool) -> list[float]:
    """Return how far the values of two tables are apart, of projected gradients or of the others."""
    pairs = zip(first.rows[1:], second.rows[1:], strict=True)
    return [
        abs(a.objective / b.objective - 1.0)
        for a, b in pairs
        if a.method.startswith("PGD") is projected
    ]


def test_arrays_of_torch_give_the_same_table(table, rng):
    """Early iterates are singular: rounding decides whether the hinge is active, and with it each step.

    So the methods that evaluate the hinge may differ from NumPy by as much as a change of the last digits of
    the data makes them differ from themselves, 1 % here; projected gradients may not differ at all.
    """
    pytest.importorskip("torch")
    data = stand_in()
    other = table2(data=data, settings=TOY, device="cpu:0")
    rounded = []
    for _ in range(4):
        X = data.X * (1.0 + 2.0**-52 * rng.integers(-1, 2, data.X.shape))
        changed = table2(data=replace(data, X=X), settings=TOY)
        rounded += differences(changed, table, projected=False)
    assert max(differences(other, table, projected=True)) < 1e-9
    assert max(differences(other, table, projected=False)) < 3.0 * max(rounded) < 0.1
