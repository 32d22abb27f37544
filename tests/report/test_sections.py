"""The sections: they show the paper's numbers, name random data as such, and report failures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paper.experiments import table1 as experiment1
from paper.experiments import table2_data as experiment2
from paper.experiments.colon import stand_in
from paper.experiments.table2 import table2 as measure2
from paper.report.blocks import Section, Table
from paper.report.order import Order, Scale

pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "lopro[plot]"')

from paper.report.sections import metric, table1, table2

TOY1 = experiment1.Settings(30, 100, 4, 300, 2, 1, (100, 300), (100,), mu=1e-4, mu_finer=1e-6)
TOY2 = experiment2.Settings(
    features=8, samples=7, steps=20, checkpoints=(20, 40), tuning_iterations=20, tol=1e-3
)
SHORT = Order(Scale.SHORT)


def tables(section: Section) -> list[Table]:
    return [block for block in section.blocks if isinstance(block, Table)]


def row(table: Table, name: str) -> tuple[str, ...]:
    (found,) = [row for row in table.rows if row[0] == name]
    return found


def test_table_1_has_the_paper_s_numbers_beside_ours(monkeypatch):
    measured = experiment1.table1(settings=TOY1)
    first = measured.of("LoPNAG, lam = 2 zeta")[0]
    rows = tuple(
        replace(r, printed=experiment1.PAPER["LoPNAG", 5000]) if r is first else r
        for r in measured.rows
    )
    monkeypatch.setattr(table1, "table1", lambda **options: replace(measured, rows=rows))
    section = table1.run(SHORT).section()
    (shown,) = tables(section)
    assert shown.groups[-1] == ("printed in the paper", 3)
    line = row(shown, "LoPNAG, lam = 2 zeta")
    assert line[4] == f"{first.objective:.6f}"
    assert line[-3:] == ("0.018017", "52.042878", "18.04")
    assert section.failures == ()


def test_table_1_without_printed_rows_has_no_empty_columns(monkeypatch):
    measured = experiment1.table1(settings=TOY1)
    poor = replace(measured.rows[0], relative_gap=0.5)
    changed = replace(measured, rows=(poor, *measured.rows[1:]))
    monkeypatch.setattr(table1, "table1", lambda **options: changed)
    section = table1.run(SHORT).section()
    assert [name for name, _ in tables(section)[0].groups] == ["", "measured here"]
    assert section.failures == ("lopro.bpdn: certified gap 5.0e-01 only",)


def test_table_2_names_its_data_and_has_the_paper_s_numbers(monkeypatch):
    monkeypatch.setattr(table2, "colon_data", lambda order: stand_in())
    monkeypatch.setattr(table2, "_settings", lambda order: TOY2)
    section = table2.run(SHORT).section()
    assert "STAND-IN" in section.facts["data"] and "STAND-IN" in tables(section)[0].caption
    measured = measure2(data=stand_in(), settings=TOY2)
    longer = tuple(replace(r, iterations=50 * r.iterations) for r in measured.rows)
    monkeypatch.setattr(table2, "table2", lambda **options: replace(measured, rows=longer))
    shown = tables(table2.run(SHORT).section())[0]
    assert row(shown, "LoPGD")[-2:] == ("0.0953", "0.22")
    assert row(shown, "PGD")[-2:] == ("0.1491", "7.97")
    assert row(shown, "PGD, last iterate")[-2:] == ("", "")


def test_our_metric_stands_above_the_last_rows_of_the_paper(monkeypatch):
    monkeypatch.setattr(metric, "colon_data", lambda order: stand_in())
    monkeypatch.setattr(metric, "_size", lambda order: metric._Size(10, 1e-2, 20.0))
    (shown,) = tables(metric.run(SHORT).section())
    assert shown.rows[0][0] == "lopro.learn_metric" and float(shown.rows[0][3]) > 0.0
    assert row(shown, "LoPGD in the paper, 8000 iterations")[1:4] == ("1.89 h", "", "0.0405")
    assert row(shown, "PGD in the paper, 8000 iterations")[1] == "57.43 h"


def test_a_file_of_colon_cancer_data_changes_what_the_parts_depend_on(tmp_path):
    path = tmp_path / "data.libsvm"
    path.write_text(
        "\n".join(f"{1 - 2 * (i % 2)} 1:{i} 2:{i * i % 7}" for i in range(50)), encoding="utf-8"
    )
    with_file = Order(Scale.SHORT, path)
    assert table2.parameters(with_file) != table2.parameters(SHORT)
    assert "NOT the published" in table2.parameters(with_file)["data"]
