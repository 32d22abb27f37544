"""The table and the JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _report import write_entry
from rich.table import Table

from benchmarks.bpdn.measure import Row
from benchmarks.bpdn.problems import Instance

__all__ = ["add_to_json", "summary", "table"]

#: The comparison with a target: ratio of times to SPGL1.
OURS, THEIRS, TARGET = "lopro.bpdn", "SPGL1 1e-04", 3.0


def table(instance: Instance, rows: Sequence[Row]) -> Table:
    """Return the rows of one problem as a table for the terminal."""
    m, d = instance.A.shape
    shown = Table(
        title=f"{instance.name}: {m} x {d}, {instance.y.dtype}, sigma = {instance.sigma:.4g}",
        caption="time: median, without the judge's projection; gap and f - f_best: relative, at the "
        "projected point; violation: relative, as returned; gap: dual from the residual, the same code for "
        "all; own gap: with the bound the method proved itself",
        title_justify="left",
    )
    shown.add_column("method", no_wrap=True)
    for name in ("time", "A, A'", "proj.", "f - f_best", "violation", "gap", "own gap"):
        shown.add_column(name, justify="right", no_wrap=True)
    shown.add_column("note", overflow="fold")
    for row in rows:
        v = row.verdict
        shown.add_row(
            row.method,
            "" if row.seconds is None else f"{row.seconds:.3f} s",
            _count(row, row.products),
            _count(row, row.projections),
            _small(row.suboptimality),
            _small(None if v is None else v.violation),
            _small(None if v is None else v.relative_gap),
            _small(row.own_gap),
            row.note,
        )
    return shown


def _count(row: Row, number: int | None) -> str:
    if row.verdict is None:
        return ""
    return "-" if number is None else str(number)


def _small(number: float | None) -> str:
    if number is None:
        return ""
    return "0" if number == 0.0 else f"{number:.1e}"


def summary(name: str, rows: Sequence[Row]) -> str | None:
    """Return the sentence on the speed of our default against SPGL1, where both have answers."""
    found = {row.method: row for row in rows if row.verdict is not None}
    ours, theirs = found.get(OURS), found.get(THEIRS)
    if ours is None or theirs is None or not ours.seconds or not theirs.seconds:
        return None
    assert ours.verdict is not None and theirs.verdict is not None
    ratio = theirs.seconds / ours.seconds
    return (
        f"{name}: {OURS} takes {ours.seconds:.3f} s for a certified gap of "
        f"{ours.own_gap:.0e}, {THEIRS} {theirs.seconds:.3f} s for "
        f"{theirs.verdict.relative_gap:.0e}: {ratio:.2f} times as fast (target {TARGET:g})."
    )


def add_to_json(
    path: Path, instance: Instance, rows: Sequence[Row], settings: dict[str, Any]
) -> None:
    """Write the rows of a problem with a description of the machine; other problems are kept."""
    entry = {
        "shape": list(instance.A.shape),
        "dtype": str(instance.y.dtype),
        "sigma": instance.sigma,
        "rows": [row.to_dict() for row in rows],
    }
    write_entry(path, instance.name, entry, settings)
