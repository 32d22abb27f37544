"""A figure for every rate: measured error, the bound above it, and the slope the theory predicts.

    python benchmarks/figure_rates.py [--quick] [--docs]

Every curve comes from problems whose optimal value is known in closed form (T3, T4 and T6 of
docs/theory.md). A measured error above its bound ends the run. Figures and numbers are written to
benchmarks/results; ``--docs`` also renews the figures that the README shows.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict, dataclass

import _rates as rates
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from _rates import Curve
from _report import write_json
from _style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, label_ends, save, slope_guide
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

matplotlib.use("Agg")

ITERATIONS = "iterations"
ERROR = r"error  $f(x) - f_\star$"


def axes(title: str, xlabel: str = ITERATIONS, ylabel: str = ERROR) -> tuple[Figure, Axes]:
    figure, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    ax.set(title=title, xlabel=xlabel, ylabel=ylabel)
    return figure, ax


@dataclass(frozen=True)
class Guide:
    """A line of predicted slope: where it starts, how steep and how long it is, its name."""

    start: tuple[float, float]
    power: float
    decades: float
    text: str


def draw(ax: Axes, curves: list[Curve], colours: list[str], guide: Guide | None = None) -> None:
    """Draw errors as solid lines with markers, their bounds dashed, and name them at their ends."""
    names = []
    for curve, colour, shape in zip(curves, colours, "os^D", strict=False):
        ax.plot(curve.iterations, curve.error, color=colour, marker=shape)
        ax.plot(curve.iterations, curve.bound, color=colour, ls=(0, (5, 2)), lw=1.2)
        names.append((curve.error[-1], curve.label, colour))
        names.append((curve.bound[-1], "its bound", colour))
    if guide is not None:
        slope_guide(ax, guide.start, guide.power, guide.decades, guide.text)
    label_ends(ax, names)


def log_log(title: str, curves: list[Curve], colours: list[str], guide: Guide) -> Figure:
    figure, ax = axes(title)
    ax.set(xscale="log", yscale="log")
    draw(ax, curves, colours, guide)
    return figure


def figure_corollary_1(curves: list[Curve]) -> Figure:
    guide = Guide((300.0, 0.0012), -1.0, 1.0, "slope −1")
    title = "Cor 1: strongly convex f, one projection"
    return log_log(title, curves, [BLUE, VERMILION], guide)


def figure_corollary_2a(curves: list[Curve]) -> Figure:
    guide = Guide((200.0, 2e-6), -1.0, 1.0, "slope −1")
    title = "Cor 2a: smooth f and c, one projection"
    return log_log(title, curves, [BLUE, VERMILION], guide)


def figure_corollary_2b(curves: list[Curve]) -> Figure:
    guide = Guide((300.0, 1e-4), -2.0, 0.8, "slope −2")
    title = "Cor 2b and P4: smooth, strongly convex, one projection"
    return log_log(title, curves, [ORANGE, GREEN, BLUE, VERMILION], guide)


def figure_theorem_2(sharp: Curve, curved: Curve) -> Figure:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.0), layout="constrained")
    left.set(title="Thm 2, θ = 1: every epoch halves the error", xlabel=ITERATIONS, ylabel=ERROR)
    left.set_yscale("log")
    left.xaxis.set_major_formatter("{x:,.0f}")
    draw(left, [sharp], [BLUE])
    right.set(title="Thm 2, θ = 1/2", xlabel=ITERATIONS, ylabel=ERROR, xscale="log", yscale="log")
    draw(right, [curved], [BLUE], Guide((3e4, 2e-3), -1.0, 0.9, "slope −1, up to log"))
    return figure


def figure_theorem_3(curve: Curve) -> Figure:
    guide = Guide((4000.0, 1e-4), -2.0, 0.9, "slope −2, up to log")
    return log_log("Thm 3, θ = 1/2: smooth f and c", [curve], [BLUE], guide)


def figure_projections(schedules: list[Curve], auto: tuple[list[float], list[int]]) -> Figure:
    figure, ax = axes(
        "Projections grow with the logarithm of the accuracy",
        r"halvings of the error asked for,  $\log_2(\epsilon_0/\epsilon)$",
        "projections",
    )
    most = max(max(halvings(curve)) for curve in schedules)
    ax.plot([0, most], [0, most], color=GREY, lw=1.2, ls=(0, (5, 2)), zorder=1)
    looks = [(BLUE, "o"), (GREEN, "s"), (PURPLE, "^")]
    for curve, (colour, shape) in zip(schedules, looks, strict=True):
        ax.plot(
            halvings(curve), curve.projections, shape, color=colour, mfc="none", ms=7,
            label=curve.label,
        )  # fmt: skip
    ax.plot(*auto, color=VERMILION, marker="D")
    names = [
        (most, r"$\lceil\log_2(\epsilon_0/\epsilon)\rceil$, as proved", GREY),
        (auto[1][-1], "Auto, gap certified", VERMILION),
    ]
    ax.set(xlim=(0, None), ylim=(0, None))
    legend = ax.legend(
        frameon=False,
        loc="upper left",
        fontsize=9,
        title="Schedules of the theorems",
        alignment="left",
    )
    legend.get_title().set_fontsize(9)
    label_ends(ax, names)
    return figure


def halvings(curve: Curve) -> list[float]:
    """Return ``log2(eps0 / eps)`` for the accuracies that were asked for."""
    return [float(np.log2(curve.eps0 / eps)) for eps in curve.eps]


def summary(curves: list[Curve]) -> Table:
    """Return the last point of every curve, and how fast error and bound fall."""
    table = Table(title="Rates, measured and proved (slopes over the second half of each curve)")
    for name in ("curve", "iterations", "projections", "error", "bound", "slope", "of the bound"):
        table.add_column(name, justify="left" if name == "curve" else "right")
    for curve in curves:
        table.add_row(
            curve.label,
            str(curve.iterations[-1]),
            str(curve.projections[-1]),
            f"{curve.error[-1]:.1e}",
            f"{curve.bound[-1]:.1e}",
            f"{slope(curve.iterations, curve.error):.2f}",
            f"{slope(curve.iterations, curve.bound):.2f}",
        )
    return table


def slope(iterations: list[int], error: list[float]) -> float:
    """Return the slope on logarithmic axes over the second half."""
    half = len(error) // 2
    x, y = np.log(iterations[half:]), np.log(np.maximum(error[half:], 1e-300))
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter curves")
    parser.add_argument("--docs", action="store_true", help="renew the figures in docs/images")
    options = parser.parse_args()
    console = Console(width=None if os.isatty(1) else 110)
    last, deep = (1000, 4) if options.quick else (10000, 8)
    with threadpool_limits(limits=1), console.status("one projection"):
        cor_1, cor_2a = rates.corollary_1(last), rates.corollary_2a(last)
        cor_2b = rates.corollary_2b(3 * last)
    with threadpool_limits(limits=1), console.status("logarithmically many projections"):
        sharp = rates.theorem_2_sharp(1e-3 if options.quick else 1e-9)
        counted = rates.theorem_2_sharp_runs(range(3, 13 if options.quick else 28, 3))
        curved = rates.theorem_2_curved(range(1, deep))
        smooth = rates.theorem_3_curved(range(1, 2 * deep))
        auto = rates.auto_projections(range(2, 31, 2))
    figures = {
        "rate_cor1": figure_corollary_1(cor_1),
        "rate_cor2a": figure_corollary_2a(cor_2a),
        "rate_cor2b_p4": figure_corollary_2b(cor_2b),
        "rate_thm2": figure_theorem_2(sharp, curved),
        "rate_thm3": figure_theorem_3(smooth),
        "projections": figure_projections([counted, curved, smooth], auto),
    }
    for name, figure in figures.items():
        for path in save(figure, name, docs=options.docs and name == "projections"):
            console.print(f"wrote {path}")
    curves = [*cor_1, *cor_2a, *cor_2b, sharp, counted, curved, smooth]
    console.print(summary(curves))
    numbers = {"curves": [asdict(c) for c in curves], "auto": dict(zip(*auto, strict=True))}
    console.print(f"numbers in {write_json('rates', numbers)}")


if __name__ == "__main__":
    main()
