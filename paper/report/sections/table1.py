"""The section of Table 1: LoPNAG against NESTA, the paper's numbers beside ours."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from paper.experiments.table1 import DEFAULT, FULL, QUICK, Row, Settings, Table1, table1
from paper.experiments.table1_text import verdict
from paper.report.blocks import Table
from paper.report.draft import Draft
from paper.report.order import Order

__all__ = ["parameters", "run"]

SEED = 0


def _settings(order: Order) -> Settings:
    chosen: Settings = order.of(QUICK, DEFAULT, FULL)
    return chosen


def parameters(order: Order) -> dict[str, Any]:
    """Return the parameters that determine the outcome."""
    return {"settings": asdict(_settings(order)), "seed": SEED}


def run(order: Order) -> Draft:
    """Measure the table."""
    chosen = _settings(order)
    table = table1(settings=chosen, seed=SEED, say=order.say)
    size = f"{chosen.m} × {chosen.d}, {chosen.nonzeros} nonzeros"
    draft = Draft("Table 1: sparse recovery", {"instance": size, "seed": str(SEED)})
    draft.paragraph(
        "Basis pursuit denoising, min |x|₁ subject to |Ax − y| ≤ σ, by the paper's recipe: uniform matrix, "
        "uniform nonzeros, uniform noise. Where the paper prints a row, its numbers stand beside ours; its "
        "instance, its λ and its machine are not known, so its numbers compare in order of magnitude only."
    )
    draft.table(_table(table, size).without_empty_end())
    draft.points(verdict(table))
    if table.rows[0].relative_gap > 1e-8:
        draft.failures.append(f"lopro.bpdn: certified gap {table.rows[0].relative_gap:.1e} only")
    return draft


def _table(table: Table1, size: str) -> Table:
    rows, previous = [], ""
    for row in table.rows:
        rows.append(("" if row.method == previous else row.method, *_cells(table, row)))
        previous = row.method
    ours = ("iterations", "projections", "error", "objective", "s", "certified gap")
    return Table(
        f"Table 1 of the paper, measured: {size}",
        ("method", *ours, "above optimum", "error", "objective", "s"),
        tuple(rows),
        groups=(("", 1), ("measured here", 7), ("printed in the paper", 3)),
        note="Error: distance to the signal that was measured. Certified gap: relative, proved by that run "
        "alone. Above optimum: objective minus the best "
        f"lower bound of all runs, {table.lower_bound:.9g}. Times leave out the factorisation that all "
        f"share, {table.factorisation:.2f} s.",
    )


def _cells(table: Table1, row: Row) -> tuple[str, ...]:
    p = row.printed
    printed = (
        (f"{p.recovery_error:.6f}", f"{p.objective:.6f}", f"{p.seconds:.2f}") if p else ("",) * 3
    )
    return (
        f"{row.iterations}",
        f"{row.projections}",
        f"{row.recovery_error:.6f}",
        f"{row.objective:.6f}",
        f"{row.seconds:.2f}",
        f"{row.relative_gap:.1e}",
        f"{table.above_optimum(row):.1e}",
        *printed,
    )
