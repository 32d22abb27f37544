"""The style of the figures: a colour-blind-safe palette, few lines, names beside the curves.

`paper.report.svg` replaces these colours by those of the page's theme; in files they are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "ORANGE",
    "PURPLE",
    "SERIES",
    "SIZE",
    "VERMILION",
    "grid_of_axes",
    "label_ends",
    "one_axes",
    "plain_decades",
    "slope_guide",
]

# Okabe and Ito's palette, in an order of alternating lightness.
BLUE, VERMILION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#B8860B"
GREY, INK = "#6B6B6B", "#222222"
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, INK)

#: Inches: on a telephone a point is then about a pixel, and the text can be read.
SIZE = (4.8, 3.5)

RC: Any = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.size": 9,
    "text.color": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.axisbelow": True,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "svg.hashsalt": "lopro",
}

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def grid_of_axes(
    rows: int, columns: int, size: tuple[float, float], **options: Any
) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row, without opening a window.

    Examples
    --------
    >>> from paper.report.style import grid_of_axes
    >>> len(grid_of_axes(1, 2, (6.0, 3.0))[1])
    2
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(RC):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
        # Titles and tick labels take their colours from the settings when they are created.
        figure.canvas.draw()
    return figure, list(axes.ravel())


def one_axes(
    title: str = "", xlabel: str = "", ylabel: str = "", size: tuple[float, float] = SIZE
) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes and their names."""
    figure, (ax,) = grid_of_axes(1, 1, size)
    name_axes(ax, title, xlabel, ylabel)
    return figure, ax


def name_axes(ax: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Set title and labels in this style."""
    ax.set_title(title, loc="left", fontsize=10, color=INK)
    ax.set(xlabel=xlabel, ylabel=ylabel)


def plain_decades(value: float, position: int = 0) -> str:
    """Return a power of ten in plain characters; fonts differ, formulas need their own.

    Examples
    --------
    >>> from paper.report.style import plain_decades
    >>> plain_decades(1e-3), plain_decades(100.0), plain_decades(0.0), plain_decades(2e-5)
    ('10⁻³', '100', '0', '2e-05')
    """
    exponent = round(np.log10(value)) if value > 0.0 else 0
    if 0 <= exponent <= 3 or not np.isclose(value, 10.0**exponent):
        return f"{value:g}"
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def logarithmic(ax: Axes, *sides: str) -> None:
    """Make axes logarithmic, with ticks at powers of ten only."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for side in sides:
        ax.set(**{f"{side}scale": "log"})
        axis = ax.xaxis if side == "x" else ax.yaxis
        axis.set_major_locator(LogLocator(numticks=8))
        axis.set_major_formatter(FuncFormatter(plain_decades))
        axis.set_minor_formatter(NullFormatter())


def tick_short_ranges(ax: Axes) -> None:
    """Add ticks to logarithmic axes whose range has too few powers of ten."""
    from matplotlib.ticker import LogLocator

    ax.autoscale_view()
    for axis, limits in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() == "log" and limits[1] < 30.0 * limits[0]:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def label_ends(ax: Axes, names: Sequence[tuple[float, str, str]], gap: float = 0.06) -> None:
    """Write (height, text, colour) to the right of the axes, moved apart where they would touch."""
    to_axes = ax.transData + ax.transAxes.inverted()
    x = ax.get_xlim()[0]
    heights = [float(to_axes.transform((x, y))[1]) for y, _, _ in names]
    order = sorted(range(len(names)), key=lambda i: heights[i])
    spread = [heights[i] for i in order]
    for _ in range(50):
        for a in range(len(spread) - 1):
            short = gap - (spread[a + 1] - spread[a])
            if short > 1e-9:
                spread[a] -= short / 2
                spread[a + 1] += short / 2
    for place, i in zip(spread, order, strict=True):
        _, text, colour = names[i]
        ax.text(1.015, place, text, color=colour, transform=ax.transAxes, va="center", fontsize=8)


def slope_guide(
    ax: Axes, start: tuple[float, float], power: float, decades: float, text: str
) -> None:
    """Draw a short grey line of slope ``power`` on logarithmic axes, and name it."""
    x = np.array([start[0], start[0] * 10.0**decades])
    y = start[1] * (x / x[0]) ** power
    ax.plot(x, y, color=GREY, lw=1.2, ls=(0, (1, 1.5)))
    ax.annotate(
        text,
        (float(x[0]), float(y[0])),
        color=GREY,
        fontsize=8,
        ha="right",
        va="center",
        xytext=(-4, 0),
        textcoords="offset points",
    )
