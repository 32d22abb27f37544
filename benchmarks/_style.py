"""The style of figures, which is that of the report, and the function that writes them."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
from _report import DOCS_IMAGES, RESULTS
from matplotlib.figure import Figure

from paper.report.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RC, VERMILION, label_ends

__all__ = [
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "MARKERS",
    "ORANGE",
    "PURPLE",
    "VERMILION",
    "label_ends",
    "save",
]

#: Colours and markers of the methods of a figure.
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, GREY, "#56B4E9", "#332288", "#000000", "#CC79A7")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")

# Larger fonts than in the report: these figures are shown alone.
plt.rcParams.update(RC | {"font.size": 10, "axes.titlesize": 11})


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
