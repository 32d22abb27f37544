"""A figure for every rate: measured error, the bound above it, and the slope the theory predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from paper.experiments.rates import Curve, Rates
from paper.report.style import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    VERMILION,
    label_ends,
    logarithmic,
    one_axes,
    slope_guide,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["rate_figures"]

ITERATIONS = "iterations"
ERROR = "error  f(x) − f⋆"


def rate_figures(rates: Rates) -> dict[str, Figure]:
    """Return the figures by name; needs matplotlib.

    Examples
    --------
    >>> from paper.experiments.rates import measure_rates
    >>> from paper.report.rate_figures import rate_figures
    >>> len(rate_figures(measure_rates(quick=True)))
    7
    """
    return {
        "rate_cor1": _log_log(
            "Cor 1: strongly convex f, one projection",
            rates.corollary_1,
            [BLUE, VERMILION],
            Guide((300.0, 0.0012), -1.0, 1.0, "slope −1"),
        ),
        "rate_cor2a": _log_log(
            "Cor 2a: smooth f and c, one projection",
            rates.corollary_2a,
            [BLUE, VERMILION],
            Guide((200.0, 2e-6), -1.0, 1.0, "slope −1"),
        ),
        "rate_cor2b_p4": _log_log(
            "Cor 2b and P4: smooth, strongly convex, one projection",
            rates.corollary_2b,
            [ORANGE, GREEN, BLUE, VERMILION],
            Guide((300.0, 1e-4), -2.0, 0.8, "slope −2"),
        ),
        "rate_thm2_sharp": _halving(rates.theorem_2_sharp),
        "rate_thm2_curved": _log_log(
            "Thm 2, θ = 1/2",
            [rates.theorem_2_curved],
            [BLUE],
            Guide((3e4, 2e-3), -1.0, 0.9, "slope −1, up to log"),
        ),
        "rate_thm3": _log_log(
            "Thm 3, θ = 1/2: smooth f and c",
            [rates.theorem_3_curved],
            [BLUE],
            Guide((4000.0, 1e-4), -2.0, 0.9, "slope −2, up to log"),
        ),
        "projections": _projections(rates),
    }


@dataclass(frozen=True)
class Guide:
    """A line of predicted slope: its start, slope, length and name."""

    start: tuple[float, float]
    power: float
    decades: float
    text: str


def _draw(
    ax: Axes, curves: Sequence[Curve], colours: Sequence[str], guide: Guide | None = None
) -> None:
    """Draw errors as solid lines with markers and their bounds dashed, with names at their ends."""
    names = []
    for curve, colour, shape in zip(curves, colours, "os^D", strict=False):
        ax.plot(curve.iterations, curve.error, color=colour, marker=shape)
        ax.plot(curve.iterations, curve.bound, color=colour, ls=(0, (5, 2)), lw=1.2)
        names.append((curve.error[-1], curve.label, colour))
        names.append((curve.bound[-1], "its bound", colour))
    if guide is not None:
        slope_guide(ax, guide.start, guide.power, guide.decades, guide.text)
    label_ends(ax, names)


def _log_log(title: str, curves: list[Curve], colours: list[str], guide: Guide) -> Figure:
    figure, ax = one_axes(title, ITERATIONS, ERROR)
    logarithmic(ax, "x", "y")
    _draw(ax, curves, colours, guide)
    return figure


def _halving(curve: Curve) -> Figure:
    figure, ax = one_axes("Thm 2, θ = 1: every epoch halves the error", ITERATIONS, ERROR)
    logarithmic(ax, "y")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    _draw(ax, [curve], [BLUE])
    return figure


def _projections(rates: Rates) -> Figure:
    figure, ax = one_axes(
        "Projections grow with the logarithm of the accuracy",
        "required halvings of the error,  log₂(ε₀/ε)",
        "projections",
    )
    schedules = [rates.theorem_2_counts, rates.theorem_2_curved, rates.theorem_3_curved]
    most = max(max(_halvings(curve)) for curve in schedules)
    ax.plot([0, most], [0, most], color=GREY, lw=1.2, ls=(0, (5, 2)), zorder=1)
    styles = [(BLUE, "o"), (GREEN, "s"), (PURPLE, "^")]
    for curve, (colour, shape) in zip(schedules, styles, strict=True):
        x, y = _halvings(curve), curve.projections
        ax.plot(x, y, shape, color=colour, mfc="none", ms=6, label=curve.label)
    ax.plot(*rates.auto, color=VERMILION, marker="D")
    ax.set(xlim=(0, None), ylim=(0, None))
    figure.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=8, labelcolor=INK)
    label_ends(
        ax,
        [(most, "⌈log₂(ε₀/ε)⌉, proved", GREY), (rates.auto[1][-1], "Auto, certified", VERMILION)],
    )
    return figure


def _halvings(curve: Curve) -> list[float]:
    """Return ``log2(eps0 / eps)`` for the required accuracies."""
    return [float(np.log2(curve.eps0 / eps)) for eps in curve.eps]
