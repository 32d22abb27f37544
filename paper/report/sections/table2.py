"""The section of Table 2: LoPGD against OPGD and PGD on a metric for the colon-cancer data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from paper.experiments.table2 import table2
from paper.experiments.table2_data import DEFAULT, FULL, PAPER, QUICK, Row, Settings, Table2
from paper.experiments.table2_text import verdict
from paper.report.blocks import Table
from paper.report.draft import Draft
from paper.report.order import Order
from paper.report.sections.data import colon_data, data_key

__all__ = ["parameters", "run"]


def _settings(order: Order) -> Settings:
    chosen: Settings = order.of(QUICK, DEFAULT, FULL)
    return chosen


def parameters(order: Order) -> dict[str, Any]:
    """Return the parameters that determine the outcome."""
    return {"settings": asdict(_settings(order))} | data_key(order)


def run(order: Order) -> Draft:
    """Measure the table."""
    table = table2(data=colon_data(order), settings=_settings(order), say=order.say)
    s = table.settings
    size = f"first {s.samples} samples, first {s.features} features"
    facts = {"data": table.data, "where it came from": table.origin, "instance": size}
    draft = Draft("Table 2: sparse metric learning", facts)
    draft.paragraph(
        "A positive semidefinite matrix with few off-diagonal entries that brings samples of one class "
        f"together: squared loss over pairs, l1 norm off the diagonal with weight {s.l1:g}. "
        f"Data: {table.data}; {size}."
    )
    draft.table(_table(table).without_empty_end())
    draft.points(verdict(table))
    draft.table(_tuning(table))
    return draft


def _table(table: Table2) -> Table:
    rows, previous = [], ""
    for row in table.rows:
        rows.append(("" if row.method == previous else row.method, *_cells(table, row)))
        previous = row.method
    ours = ("iterations", "projections", "objective", "s", "certified gap")
    return Table(
        f"Table 2 of the paper, measured: {table.data}",
        ("method", *ours, "objective", "hours"),
        tuple(rows),
        groups=(("", 1), ("measured here", 5), (f"paper, {FULL.features} features", 2)),
        note="Certified gap: (objective − lower bound) / objective, with the best bound that any run has "
        f"proved, {table.lower_bound:.6g}. All start at zero, where the objective is twice the share of "
        "pairs from different classes. The paper's start, its 40 examples and its machine are not known: "
        "its columns compare in order of magnitude only.",
    )


def _cells(table: Table2, row: Row) -> tuple[str, ...]:
    p = PAPER.get((row.method, row.iterations))
    return (
        f"{row.iterations}",
        f"{row.projections}",
        f"{row.objective:.6f}",
        f"{row.seconds:.2f}",
        f"{100 * table.relative_gap(row):.3g} %",
        *((f"{p.objective:.4f}", f"{p.hours:.2f}") if p else ("", "")),
    )


def _tuning(table: Table2) -> Table:
    s = table.settings
    multiples = sorted({trial.multiple for trial in table.trials})
    rows = []
    for method in dict.fromkeys(trial.method for trial in table.trials):
        tried = {t.multiple: t.objective for t in table.trials if t.method == method}
        best = table.best_multiple(method)
        rows.append((method, *(_tried(tried.get(m), m == best) for m in multiples)))
    return Table(
        f"Tuning: objective after {s.tuning_iterations} iterations with the first "
        f"{min(s.features, s.tuning_features)} features, by step in units of 1 / L",
        ("method", *(f"{m:g}" for m in multiples)),
        tuple(rows),
        note="A star marks the step that was chosen.",
    )


def _tried(objective: float | None, best: bool) -> str:
    if objective is None:
        return ""
    shown = f"{objective:.4f}" if objective < 100.0 else "diverged"
    return f"{shown} ★" if best else shown
