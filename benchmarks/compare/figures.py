"""One figure for each problem: the gap against time, against gradients and against projections."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import _style as style
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks.compare.methods import FAMILIES
from benchmarks.compare.records import Record
from benchmarks.compare.run import Curve, Point

__all__ = ["draw"]

COLOURS = dict(
    zip(
        FAMILIES,
        (
            style.BLUE,
            "#56B4E9",
            style.GREEN,
            style.VERMILION,
            style.PURPLE,
            style.ORANGE,
            "#111111",
        ),
        strict=True,
    )
)
MARKERS = "osD^vPX<>*"
#: The number of methods with a colour and a name; the others are thin grey lines, and rows of the table.
NAMED = 12
#: Gaps below this are rounding errors, and are drawn here.
FLOOR = 1e-12
#: The last marker is filled if the proved gap is below this.
PROVED = 1e-6
#: On the logarithmic axis a count of zero is drawn at the smallest other count times this.
ZERO = 0.2


def draw(record: Record, path: Path) -> Path:
    """Draw the curves of one problem."""
    curves = record.ranked(once=True)
    named, others = curves[:NAMED], curves[NAMED:]
    figure, axes = plt.subplots(1, 3, figsize=(13.5, 5.0), sharey=True)
    markers = _markers(named)
    for ax, (label, exact_count) in zip(axes, _panels(record), strict=True):
        zero = ZERO * min(
            [1.0, *(exact_count(p) for c in curves for p in c.points if exact_count(p))]
        )
        count = functools.partial(_or_zero, exact_count, zero)
        for curve in others:
            _line(ax, record, curve, count, color="#C4C4C4", lw=0.8, zorder=1)
        for curve in reversed(named):
            _line(
                ax, record, curve, count, color=COLOURS[curve.family], marker=markers[curve.method]
            )
        _dress(ax, label, zero)
    axes[0].set_ylabel("$(f(x) - f_*)\\ /\\ |f_*|$ at the best feasible point")
    figure.suptitle(record.title, x=0.06, ha="left", fontsize=12)
    _legends(figure, record, named, markers, bool(others))
    figure.subplots_adjust(left=0.06, right=0.8, bottom=0.2, top=0.9, wspace=0.06)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path


def _panels(record: Record) -> list[tuple[str, Callable[[Point], float]]]:
    gradients = ("gradients of f and c, and proxes", lambda point: point.first_order)
    if record.sampled:
        gradients = ("passes over the data (gradients of f)", lambda point: point.gradients)
    return [
        ("seconds of processor time", lambda point: point.seconds),
        gradients,
        ("projections (Frank-Wolfe: linear minimisations)", lambda point: point.projected),
    ]


def _or_zero(count: Callable[[Point], float], zero: float, point: Point) -> float:
    return count(point) or zero


def _markers(named: Sequence[Curve]) -> dict[str, str]:
    """Assign different markers to the methods of a family."""
    cycles = {family: itertools.cycle(MARKERS) for family in FAMILIES}
    return {curve.method: next(cycles[curve.family]) for curve in named}


def _line(
    ax: Axes,
    record: Record,
    curve: Curve,
    count: Callable[[Point], float],
    *,
    color: str,
    lw: float = 1.4,
    marker: str | None = None,
    zorder: float = 2,
) -> None:
    """Draw a curve; its last marker is filled where the gap there is proved."""
    x = [count(point) for point in curve.points]
    y = [max(record.reference.gap(point.fun), FLOOR) for point in curve.points]
    ax.plot(x, y, color=color, lw=lw, ls=(0, (3, 1.5)) if curve.horizon else "-", zorder=zorder)
    end = y.index(min(y))
    if marker is None:
        ax.plot(x[end], y[end], ".", color=color, ms=3, zorder=zorder)
        return
    face = color if record.reference.relative(curve.certified) <= PROVED else "white"
    ax.plot(
        x[end], y[end], marker, color=color, markerfacecolor=face, ms=6.5, mew=1.3, zorder=zorder + 1,
        clip_on=False,
    )  # fmt: skip


def _dress(ax: Axes, label: str, zero: float) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(label)
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, 0.4 * FLOOR), min(high, 30.0))
    ax.grid(True, which="major", color="#E4E4E4", lw=0.6)
    ax.minorticks_off()
    left, right = ax.get_xlim()
    if any(zero in line.get_xdata() for line in ax.lines):
        decades = range(math.ceil(math.log10(2.0 * zero)), math.floor(math.log10(right)) + 1)
        ax.set_xticks(
            [zero, *(10.0**k for k in decades)], ["0", *(f"$10^{{{k}}}$" for k in decades)]
        )
        ax.set_xlim(left, right)


def _legends(
    figure: Figure, record: Record, named: Sequence[Curve], markers: dict[str, str], others: bool
) -> None:
    """Name the methods at the right, best first; below, what colours and markers mean."""
    handles = []
    for curve in named:
        colour = COLOURS[curve.family]
        proved = record.reference.relative(curve.certified) <= PROVED
        handles.append(
            Line2D(
                [], [], color=colour, ls="--" if curve.horizon else "-", marker=markers[curve.method],
                markerfacecolor=colour if proved else "white", label=record.label(curve), lw=1.4,
            )
        )  # fmt: skip
    if others:
        handles.append(Line2D([], [], color="#C4C4C4", lw=0.8, label="the others: see the table"))
    legend = figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=(0.805, 0.91), frameon=False, fontsize=9,
        handlelength=2.4, labelspacing=0.7, title="best first", alignment="left",
    )  # fmt: skip
    legend.get_title().set_fontsize(9)
    present = [f for f in FAMILIES if any(curve.family == f for curve in named)]
    families = [Line2D([], [], color=COLOURS[family], lw=4, label=family) for family in present]
    figure.legend(
        handles=families, loc="lower left", bbox_to_anchor=(0.055, 0.035), frameon=False, fontsize=9,
        ncols=len(families), handlelength=1.2, columnspacing=1.6,
    )  # fmt: skip
    figure.text(
        0.06, 0.02,
        "Filled marker: the method has proved a gap below 1e-6 itself.  Dashed: each point is a run of "
        "its own, with a fixed number of steps.",
        fontsize=8.5, color=style.GREY,
    )  # fmt: skip
