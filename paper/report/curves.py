"""Named curves on logarithmic axes, for several parts of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paper.report.style import (
    GREY,
    INK,
    SERIES,
    logarithmic,
    one_axes,
    plain_decades,
    tick_short_ranges,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Named", "curves_figure"]

_MARKERS = "osD^vP"


@dataclass(frozen=True)
class Named:
    """A curve and its name; ``y`` must be positive to be shown."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


def curves_figure(
    curves: Sequence[Named], title: str, xlabel: str, ylabel: str, *, from_zero: bool = False
) -> Figure:
    """Draw curves with markers and their names below.

    Parameters
    ----------
    curves : sequence of Named
        At most six.
    title, xlabel, ylabel : str
        Names of the figure and its axes.
    from_zero : bool
        Whether the horizontal axis starts at 0 and is logarithmic from 1 on only.

    Examples
    --------
    >>> from paper.report.curves import Named, curves_figure
    >>> figure = curves_figure([Named("a", [1, 10], [1.0, 0.1])], "title", "x", "y")
    >>> len(figure.axes[0].lines)
    1
    """
    figure, ax = one_axes(title, xlabel, ylabel, size=(4.8, 4.0))
    for curve, colour, marker in zip(curves, SERIES, _MARKERS, strict=False):
        points = [(a, b) for a, b in zip(curve.x, curve.y, strict=True) if b > 0.0]
        every = max(1, len(points) // 12)
        xs, ys = [a for a, _ in points], [b for _, b in points]
        ax.plot(xs, ys, color=colour, marker=marker, markevery=every, ms=5, label=curve.name)
    logarithmic(ax, "y")
    if from_zero:
        _counting_axis(ax)
    else:
        logarithmic(ax, "x")
    tick_short_ranges(ax)
    ax.grid(color=GREY, alpha=0.25, lw=0.6)
    short = max(len(curve.name) for curve in curves) <= 24
    figure.legend(
        loc="outside lower left",
        ncols=2 if short else 1,
        frameon=False,
        fontsize=8,
        labelcolor=INK,
    )
    return figure


def _counting_axis(ax: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    ax.set_xscale("symlog", linthresh=1.0)
    most = ax.dataLim.xmax
    ax.set_xlim(-0.15, max(1.5, 1.3 * most))
    ticks = [0.0] + [10.0**k for k in range(7) if 10.0**k <= 1.3 * most]
    ax.set_xticks(ticks)
    ax.xaxis.set_major_formatter(FuncFormatter(plain_decades))
    ax.xaxis.set_minor_locator(NullLocator())
