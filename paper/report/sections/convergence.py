"""The section on convergence: gap against time and against projections, both applications."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from paper.experiments.convergence import Race, metric_race, recovery_race
from paper.experiments.table2_data import DEFAULT, FULL, QUICK
from paper.report.blocks import Table
from paper.report.curves import Named, curves_figure
from paper.report.draft import Draft, Drawing
from paper.report.order import Order
from paper.report.sections.data import colon_data, data_key

__all__ = ["parameters", "run"]

SEED = 0


def _sizes(order: Order) -> tuple[tuple[int, int, int], Any, float]:
    """Return the size of the recovery problem, the settings of the metric, and seconds for each run."""
    chosen: tuple[tuple[int, int, int], Any, float] = order.of(
        ((200, 1000, 20), QUICK, 1.0),
        ((1000, 5000, 100), DEFAULT, 6.0),
        ((1000, 5000, 100), replace(FULL, features=500), 120.0),
    )
    return chosen


def parameters(order: Order) -> dict[str, Any]:
    """Return the parameters that determine the outcome."""
    size, settings, seconds = _sizes(order)
    return {"size": size, "settings": asdict(settings), "seconds": seconds} | data_key(order)


def run(order: Order) -> Draft:
    """Run both races."""
    size, settings, seconds = _sizes(order)
    data = colon_data(order)
    recovery = recovery_race(*size, seconds=seconds, seed=SEED, say=order.say)
    metric = metric_race(data, settings, seconds=seconds, say=order.say)
    draft = Draft(
        "Convergence", {"seed": str(SEED), "data": data.name, "time": f"{seconds:g} s each"}
    )
    draft.paragraph(
        f"Every method gets {seconds:g} s from the same start. The gap is the best value so far minus the "
        "best lower bound that any of the runs has proved, relative to the value: a certified bound on "
        "the error of the value. Each marker is a feasible point; not all points have one."
    )
    name = f"Sparse recovery, {size[0]} × {size[1]}"
    draft.pictures(_drawings(recovery, "recovery", name))
    draft.table(_table(recovery, name))
    name = f"Metric learning, {settings.features} features, {data.name}"
    draft.pictures(_drawings(metric, "metric", f"Metric learning, {settings.features} features"))
    draft.table(_table(metric, name))
    return draft


def _drawings(race: Race, name: str, title: str) -> list[Drawing]:
    against_time = [Named(t.name, t.seconds, t.gap) for t in race.traces]
    against_count = [Named(t.name, t.projections, t.gap) for t in race.traces]
    gap = "relative gap"
    return [
        Drawing(
            f"{name}_time",
            curves_figure(against_time, f"{title}: time", "seconds", gap),
            f"{title}: relative gap of six methods against seconds, on logarithmic axes.",
            "Gap against time.",
        ),
        Drawing(
            f"{name}_projections",
            curves_figure(
                against_count, f"{title}: projections", "projections", gap, from_zero=True
            ),
            f"{title}: relative gap of six methods against the number of projections.",
            "Gap against projections.",
        ),
    ]


def _table(race: Race, title: str) -> Table:
    rows = [
        (
            t.name,
            f"{t.objective:.6g}",
            f"{t.gap[-1]:.1e}" if t.gap else "",
            f"{t.own_gap:.1e}" if t.own_gap < float("inf") else "none",
            f"{t.projections[-1]}" if t.projections else "",
            f"{t.iterations}",
            f"{t.seconds[-1]:.2f}" if t.seconds else "",
        )
        for t in race.traces
    ]
    return Table(
        f"{title}: where each run ended",
        ("method", "objective", "gap", "certified by itself", "projections", "iterations", "s"),
        tuple(rows),
        note=f"Best lower bound: {race.lower_bound:.8g}.",
    )
