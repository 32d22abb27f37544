"""Table 1 for a terminal, and its results in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from paper.experiments.tables import add_grouped

if TYPE_CHECKING:
    from paper.experiments.table1 import Row, Table1

__all__ = ["shown", "verdict"]


def shown(table: Table1) -> Table:
    """Return the rows as a table with the paper's numbers."""
    s = table.settings
    out = Table(
        title=f"Table 1 of the paper, measured: {s.m} x {s.d}, {s.nonzeros} nonzeros",
        title_justify="left",
        caption_justify="left",
    )
    out.add_column("method")
    for name in ("iterations", "projections", "recovery error", "objective", "s"):
        out.add_column(name, justify="right")
    for name in ("certified gap", "above optimum", "paper: error, objective, s"):
        out.add_column(name, justify="right")
    add_grouped(out, table.rows, lambda row: _cells(table, row))
    out.caption = (
        "certified gap: relative, proved by that run alone. above optimum: objective minus the best "
        f"lower bound of all runs, {table.lower_bound:.9g}. Times leave out the factorisation that all "
        f"share, {table.factorisation:.2f} s. The paper's instance, tau and machine are not known, "
        "so its columns compare in order of magnitude only."
    )
    return out


def _cells(table: Table1, row: Row) -> list[str]:
    p = row.printed
    return [
        str(row.iterations),
        str(row.projections),
        f"{row.recovery_error:.6f}",
        f"{row.objective:.6f}",
        f"{row.seconds:.2f}",
        f"{row.relative_gap:.1e}",
        f"{table.above_optimum(row):.1e}",
        "" if p is None else f"{p.recovery_error:.6f}, {p.objective:.6f}, {p.seconds:.2f}",
    ]


def verdict(table: Table1) -> list[str]:
    """Return the results of the comparison with the measured numbers."""
    s = table.settings
    first, last = table.of("LoPNAG, lam = 2 zeta")[0], table.of(f"NESTA, mu = {s.mu:.0e}")[-1]
    side = "below" if first.objective < last.objective else "NOT below"
    default = table.rows[0]
    return [
        f"LoPNAG after {first.iterations} iterations and {_count(first)} is {side} NESTA "
        f"after {last.iterations} ({first.objective:.6f} against {last.objective:.6f}), in "
        f"{first.seconds / last.seconds:.2f} of its time.",
        _about_smoothing(table, last),
        _about_weight(table, first),
        f"The cost of an iteration: {_ms(first):.2g} ms for LoPNAG, two products with A or A'; "
        f"{_ms(last):.2g} ms for NESTA, two projections of three products each (one of them checks the "
        "result). The paper's times amount to 3.5 ms and 31 to 50 ms: part of its ratio is its projection.",
        f"lopro.bpdn needs neither lam nor mu: {_count(default)}, "
        f"{default.seconds:.2g} s, certified to {default.relative_gap:.1g}.",
    ]


def _about_smoothing(table: Table1, last: Row) -> str:
    s = table.settings
    bias, above = s.d * s.mu / 2, table.above_optimum(last)
    finer = table.of(f"NESTA, mu = {s.mu_finer:.0e}, continuation")[-1]
    reason = (
        "within it: the plateau of the paper's column is this bias, not slow convergence"
        if above <= bias
        else "more than that: it has not converged yet"
    )
    return (
        f"NESTA minimises a smoothed norm, which costs up to d mu / 2 = {bias:.3g} however long it runs. "
        f"After {last.iterations} iterations it is {above:.2g} above the optimum, {reason}. At "
        f"mu = {s.mu_finer:.0e} with continuation it comes within {table.above_optimum(finer):.1g} in "
        f"{finer.iterations} iterations and {finer.seconds:.1f} s."
    )


def _about_weight(table: Table1, first: Row) -> str:
    theory = table.of("LoPNAG, lam = G / rho")[0]
    return (
        f"lam is the tuning parameter of LoPNAG. Twice the multiplier, {table.lam_tuned:.3g}, is known only "
        f"afterwards; with it one epoch ends {table.above_optimum(first):.2g} above the optimum. The "
        f"theorem's G / rho = {table.lam_theory:.3g} ends {table.above_optimum(theory):.2g} above it. The "
        "paper reports its fastest choice."
    )


def _count(row: Row) -> str:
    return f"{row.projections or 'no'} projection{'' if row.projections == 1 else 's'}"


def _ms(row: Row) -> float:
    return 1e3 * row.seconds / row.iterations
