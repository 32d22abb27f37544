"""The tables and the JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _report import write_entry
from rich.table import Table

from benchmarks.metric_learning.measure import TARGETS, Row, best_bound
from benchmarks.metric_learning.problems import Instance

__all__ = ["add_to_json", "table"]

COUNTERS = {"proj.": "projections", "eigenpairs": "eigenpairs", "eigendec.": "eigendecompositions"}


def table(instance: Instance, rows: Sequence[Row]) -> Table:
    """Return the rows of one problem as a table for the terminal."""
    shown = Table(
        title=f"{instance.name}: {len(instance.X)} samples, {instance.dim} features, "
        f"{instance.pairs} pairs, l1 = {instance.l1:g} ({instance.data})",
        caption="objective: at the psd projection of the answer; gap: (objective - bound) / objective with "
        f"the best bound that any method proved, {best_bound(rows):.8g}; own gap: with the method's own; "
        "s to a gap: when a snapshot of the method was that good; eigendecompositions: of any size, without "
        "those of certificates",
        title_justify="left",
        caption_justify="left",
    )
    shown.add_column("method", no_wrap=True)
    targets = [f"s to {target:g}" for target in TARGETS]
    for name in ("objective", "gap", "own gap", "violation", "s", *targets, "iter.", *COUNTERS):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("note", overflow="fold")
    for row in rows:
        shown.add_row(row.method, *_cells(row), row.note)
    return shown


def _cells(row: Row) -> list[str]:
    if row.verdict is None:
        return [""] * (6 + len(TARGETS) + len(COUNTERS))
    counts = row.counts or {}
    return [
        f"{row.verdict.objective:.7g}",
        _small(row.gap),
        _small(row.own_gap),
        _small(row.verdict.violation),
        _seconds(row.seconds),
        *(_seconds(row.seconds_to.get(f"{target:g}")) for target in TARGETS),
        "" if row.iterations is None else str(row.iterations),
        *(str(counts.get(counter, "-")) for counter in COUNTERS.values()),
    ]


def _seconds(number: float | None) -> str:
    return "-" if number is None else f"{number:.3g}"


def _small(number: float | None) -> str:
    if number is None:
        return ""
    return "0" if number == 0.0 else f"{number:.1e}"


def add_to_json(
    path: Path, instance: Instance, rows: Sequence[Row], settings: dict[str, Any]
) -> None:
    """Write the rows of a problem with a description of the machine; other problems are kept."""
    entry = {
        "data": instance.data,
        "samples": len(instance.X),
        "features": instance.dim,
        "pairs": instance.pairs,
        "l1": instance.l1,
        "lower_bound": best_bound(rows),
        "rows": [row.to_dict() for row in rows],
    }
    write_entry(path, instance.name, entry, settings)
