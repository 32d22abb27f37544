"""Gap against time, one figure for each problem."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import _style as style
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.metric_learning.measure import Row, best_bound, relative

__all__ = ["draw"]

#: Gaps below this, which are rounding errors, are drawn here.
FLOOR = 1e-12

Point = tuple[float, float]


def draw(name: str, title: str, rows: Sequence[Row], folders: Sequence[Path]) -> list[Path]:
    """Draw the curves of one problem into every folder; return the paths."""
    judged = [(i, row) for i, row in enumerate(rows) if row.verdict is not None]
    if not judged:
        return []
    bound = best_bound(rows)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for i, row in judged:
        known, own = _curves(row, bound)
        _line(axes[0], i, row.method, known)
        _line(axes[1], i, row.method, own)
    for ax, panel in zip(
        axes, ("to the best bound of all", "to the method's own bound"), strict=True
    ):
        ax.set(xlabel="seconds", title=f"{title if ax is axes[0] else ''}\ncertified gap {panel}")
        ax.grid(True, which="major", color="#DDDDDD", lw=0.6)
    axes[0].set_ylabel("(objective - bound) / objective")
    handles, labels = axes[0].get_legend_handles_labels()
    axes[1].legend(
        handles, labels, frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    paths = [folder / f"metric_{name}.png" for folder in folders]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, bbox_inches="tight")
    plt.close(figure)
    return paths


def _line(ax: Axes, i: int, label: str, points: list[Point]) -> None:
    ax.loglog(
        [seconds for seconds, _ in points],
        [max(gap, FLOOR) for _, gap in points],
        color=style.COLOURS[i % len(style.COLOURS)],
        marker=style.MARKERS[i % len(style.MARKERS)],
        ls="-" if len(points) > 1 else "none",
        label=label,
    )


def _curves(row: Row, bound: float) -> tuple[list[Point], list[Point]]:
    """Return both curves; a method without snapshots is shown by its final answer."""
    assert row.verdict is not None and row.seconds is not None
    assert row.gap is not None and row.own_gap is not None
    known = [(snapshot.seconds, relative(snapshot.objective, bound)) for snapshot in row.snapshots]
    own = [
        (snapshot.seconds, relative(snapshot.objective, max(snapshot.lower_bound, 0.0)))
        for snapshot in row.snapshots
        if snapshot.lower_bound is not None
    ]
    return known or [(row.seconds, row.gap)], own or [(row.seconds, row.own_gap)]
