"""The look of the figures: a colour-blind-safe palette, few lines, names beside the curves."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from _report import DOCS_IMAGES, RESULTS
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette, in an order that also differs in lightness.
BLUE, VERMILION, GREEN, PURPLE, ORANGE = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#B8860B"
GREY = "#6B6B6B"

plt.rcParams.update(
    {
        "figure.dpi": 100,
        "savefig.dpi": 160,
        "font.size": 10,
        "axes.titlesize": 11,
        "axes.titlelocation": "left",
        "axes.titlepad": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": GREY,
        "axes.labelcolor": "#222222",
        "xtick.color": GREY,
        "ytick.color": GREY,
        "xtick.labelcolor": "#222222",
        "ytick.labelcolor": "#222222",
        "axes.axisbelow": True,
        "lines.linewidth": 1.6,
        "lines.markersize": 4.5,
        "svg.hashsalt": "lopro",
    }
)


def label_ends(ax: Axes, names: list[tuple[float, str, str]], gap: float = 0.06) -> None:
    """Write (height, text, colour) to the right of the axes, moved apart where they would touch."""
    to_axes = ax.transData + ax.transAxes.inverted()
    x = ax.get_xlim()[0]
    heights = [to_axes.transform((x, y))[1] for y, _, _ in names]
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
        ax.text(1.015, place, text, color=colour, transform=ax.transAxes, va="center", fontsize=9)


def slope_guide(
    ax: Axes, start: tuple[float, float], power: float, decades: float, text: str
) -> None:
    """Draw a short grey line of slope ``power`` on logarithmic axes, and name it."""
    x = np.array([start[0], start[0] * 10.0**decades])
    y = start[1] * (x / x[0]) ** power
    ax.plot(x, y, color=GREY, lw=1.2, ls=(0, (1, 1.5)))
    ax.annotate(
        text, (x[0], y[0]), color=GREY, fontsize=9, ha="right", va="center", xytext=(-4, 0),
        textcoords="offset points",
    )  # fmt: skip


def save(figure: Figure, name: str, *, docs: bool = False) -> list[Path]:
    """Write PNG and SVG to the results, and the PNG that documents show where ``docs`` is set."""
    RESULTS.mkdir(exist_ok=True)
    paths = [RESULTS / f"{name}.png", RESULTS / f"{name}.svg"]
    if docs:
        DOCS_IMAGES.mkdir(exist_ok=True)
        paths.append(DOCS_IMAGES / f"{name}.png")
    for path in paths:
        # Without a date the same run gives the same file.
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, bbox_inches="tight", metadata=metadata)
    plt.close(figure)
    return paths
