"""Gap against time and against products, one figure for each problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import _style as style
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.bpdn.measure import Row

__all__ = ["draw"]

#: Gaps below this, which are rounding errors, are drawn here.
FLOOR = 1e-14


def draw(name: str, rows: Sequence[Row], folder: Path) -> Path | None:
    """Draw the curves of one problem; return the path, or None where no method has a curve."""
    curves = {row.method: points for row in rows if (points := _points(row))}
    if not curves:
        return None
    certified = {row.method for row in rows if row.own_lower_bound is not None}
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for ax, column, label in zip(axes, (0, 1), ("seconds", "products with A and A'"), strict=True):
        _panel(ax, curves, column, certified)
        ax.set_xlabel(label)
    axes[0].set_ylabel("relative gap")
    axes[0].set_title(
        f"{name}: certified relative gap (solid: the method's own bound; "
        "dashed: bound from the residual of the projected point)"
    )
    axes[1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"bpdn_{name}.png"
    figure.savefig(path, bbox_inches="tight")
    plt.close(figure)
    return path


def _panel(
    ax: Axes,
    curves: dict[str, list[tuple[float, int, float]]],
    column: int,
    certified: set[str],
) -> None:
    for i, (method, points) in enumerate(curves.items()):
        ax.loglog(
            [point[column] for point in points],
            [max(point[2], FLOOR) for point in points],
            color=style.COLOURS[i % len(style.COLOURS)],
            marker=style.MARKERS[i % len(style.MARKERS)],
            ls="-" if method in certified else "--",
            label=method,
        )
    ax.grid(True, which="major", color="#DDDDDD", lw=0.6)


def _points(row: Row) -> list[tuple[float, int, float]]:
    """Return the finite points of a curve; a method without a curve is shown by its final answer."""
    curve = [point for point in row.curve if math.isfinite(point[2]) and point[1] > 0]
    if curve or row.verdict is None or row.seconds is None or not row.products:
        return curve
    return [(row.seconds, row.products, row.verdict.relative_gap)]
