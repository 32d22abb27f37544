"""Table 2 for a terminal, and its results in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.table import Table

from paper.experiments.tables import add_grouped

if TYPE_CHECKING:
    from paper.experiments.table2_data import Row, Table2

__all__ = ["shown", "tuning_shown", "verdict"]


def shown(table: Table2) -> Table:
    """Return the rows as a table with the paper's numbers."""
    s = table.settings
    out = Table(
        title=f"Table 2 of the paper, measured: {table.data}, first {s.samples} samples and "
        f"{s.features} features, l1 = {s.l1:g}, arrays on {table.device}",
        title_justify="left",
        caption_justify="left",
    )
    out.add_column("method")
    for name in ("iterations", "projections", "objective", "s", "certified gap"):
        out.add_column(name, justify="right")
    out.add_column("paper: objective, h", justify="right")
    add_grouped(out, table.rows, lambda row: _cells(table, row))
    out.caption = (
        "certified gap: (objective - lower bound) / objective, with the best bound that any run has "
        f"proved, {table.lower_bound:.6g}. All start at zero, where the objective is twice the share "
        "of pairs from different classes. The paper's start, its 40 examples and its machine are "
        f"not known, so its column compares in order of magnitude only. Data: {table.origin}."
    )
    return out


def _cells(table: Table2, row: Row) -> list[str]:
    p = row.printed
    return [
        str(row.iterations),
        str(row.projections),
        f"{row.objective:.6f}",
        f"{row.seconds:.2f}",
        f"{100 * table.relative_gap(row):.3g} %",
        "" if p is None else f"{p.objective:.4f}, {p.hours:.2f}",
    ]


def tuning_shown(table: Table2) -> Table:
    """Return the steps of the tuning, the chosen one marked by a star."""
    s = table.settings
    out = Table(
        title=f"Tuning: objective after {s.tuning_iterations} iterations with the first "
        f"{min(s.features, s.tuning_features)} features, by step in units of 1 / L_f",
        title_justify="left",
    )
    multiples = sorted({trial.multiple for trial in table.trials})
    out.add_column("method")
    for multiple in multiples:
        out.add_column(f"{multiple:g}", justify="right")
    for method in dict.fromkeys(trial.method for trial in table.trials):
        tried = {t.multiple: t.objective for t in table.trials if t.method == method}
        best = table.best_multiple(method)
        cells = [_tried(tried.get(m), m == best) for m in multiples]
        out.add_row(method, *cells)
    return out


def _tried(objective: float | None, best: bool) -> str:
    if objective is None:
        return ""
    shown = f"{objective:.4f}" if objective < 100.0 else "diverged"
    return f"{shown} *" if best else shown


def verdict(table: Table2) -> list[str]:
    """Return the results of the comparison with the measured numbers."""
    return [
        _about_time(table),
        _about_values(table, "PGD", "each with its own tuned step"),
        _about_values(table, "PGD, step of LoPGD", "all with the step of LoPGD, as in the paper"),
        _about_last_iterates(table),
        _about_default(table),
    ]


def _about_time(table: Table2) -> str:
    fast, slow = table.of("LoPGD")[0], table.of("PGD")[0]
    ratio = slow.seconds / fast.seconds
    return (
        f"For {fast.iterations} iterations LoPGD takes {fast.seconds:.3g} s and {fast.projections} "
        f"projection, PGD {slow.seconds:.3g} s and {slow.projections}: {ratio:.1f} times as long "
        "(36 times in the paper)."
    )


def _about_values(table: Table2, rival: str, setting: str) -> str:
    pairs = list(zip(table.of("LoPGD"), table.of(rival), strict=True))
    ahead = [str(a.iterations) for a, b in pairs if a.objective < b.objective]
    named = f"after {', '.join(ahead)} iterations" if ahead else "at no row"
    a, b = pairs[0]
    return (
        f"At equal iterations, {setting}, the mean as the answer, LoPGD is below PGD {named} "
        f"({a.objective:.4g} against {b.objective:.4g} at the first row)."
    )


def _about_last_iterates(table: Table2) -> str:
    a, b = table.of("LoPGD, last iterate")[0], table.of("PGD, last iterate")[0]
    side = "below" if a.objective < b.objective else "NOT below"
    return (
        f"With the last iterate instead of the mean LoPGD is {side} PGD ({a.objective:.4g} against "
        f"{b.objective:.4g} after {a.iterations} iterations). PGD then takes first steps of "
        f"{table.best_multiple('PGD, last iterate'):g} / L_f (stable from 2 / L_f on), which the paper's "
        "common step size did not allow it."
    )


def _about_default(table: Table2) -> str:
    best = min(row.objective for row in table.rows[1:])
    default = table.rows[0]
    gap = table.relative_gap(default)
    known = f"certified to {100 * gap:.2g} %" if math.isfinite(gap) else "without a certificate"
    return (
        f"{default.method} needs neither step nor weight: {default.objective:.6g} in "
        f"{default.seconds:.3g} s, {known}; the best of the other rows is {best / default.objective:.3g} "
        "times that."
    )
