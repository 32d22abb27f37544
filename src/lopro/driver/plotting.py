"""The plot of a result: the certified gap on a logarithmic axis, values and bounds, or the point."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lopro.core.arrays import to_numpy
from lopro.core.optional import needing
from lopro.driver.printing import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_result"]

#: Gaps and violations below the rounding unit, also zero, are drawn at it: the axis is logarithmic.
ROUNDING = float(np.finfo(np.float64).eps)
#: Nonzero entries of a point that are drawn with a stem each; more are drawn as a line.
STEMS = 200


def plot_result(result: Printed, ax: Axes | None = None) -> Axes:
    """Draw the certified relative gap and the violation against the iterations.

    Runs with several candidates but fewer than two gaps show values and lower bounds. A run with a single
    candidate shows its point, entry by entry or as an image.

    Examples
    --------
    >>> import numpy as np, lopro, matplotlib
    >>> matplotlib.use("Agg")
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    >>> lopro.solve(lopro.Problem(f, box)).plot().get_xlabel()
    'entry of x'
    """
    if not math.isfinite(result.fun):
        raise ValueError(f"there is nothing to plot, no point was found: {result.message}")
    if ax is None:
        with needing("plot", "matplotlib", "lopro[plot]"):
            import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    if len(result.history) < 2:
        _draw_point(ax, result)
        return ax
    names = ("iterations", "fun", "lower_bound", "relative_gap", "violation")
    columns = {name: np.asarray(result.history[name], dtype=float) for name in names}
    if np.isfinite(columns["relative_gap"]).sum() >= 2:
        _draw_gaps(ax, columns)
    else:
        _draw_values(ax, columns)
    shown = f"f = {result.fun:.8g} after {result.counts.projections} projections"
    ax.set(xlabel="iterations", title=shown)
    ax.legend(frameon=False)
    ax.grid(alpha=0.3)
    return ax


def _draw_gaps(ax: Axes, columns: dict[str, Any]) -> None:
    gap, violation = columns["relative_gap"], columns["violation"]
    lines = [("certified relative gap", "o-", gap, np.isfinite(gap))]
    violated = np.isfinite(violation) & (violation > 0.0)
    if violated.any():
        lines.append(("relative violation", "s:", violation, violated))
    for label, style, numbers, shown in lines:
        x, y = columns["iterations"][shown], np.maximum(numbers[shown], ROUNDING)
        ax.semilogy(x, y, style, ms=4, label=label)


def _draw_values(ax: Axes, columns: dict[str, Any]) -> None:
    ax.plot(columns["iterations"], columns["fun"], "o-", ms=4, label="value")
    bounds = columns["lower_bound"]
    if np.isfinite(bounds).any():
        ax.plot(columns["iterations"], bounds, "v--", ms=4, label="lower bound")


def _draw_point(ax: Axes, result: Printed) -> None:
    """Draw the entries of the point, moduli of complex ones; matrices as images."""
    x = to_numpy(result.x)
    x, name = (np.abs(x), "modulus") if np.iscomplexobj(x) else (x, "value")
    if x.ndim == 2 and min(x.shape) > 1:
        image = ax.imshow(x, aspect="auto", interpolation="nearest")
        ax.figure.colorbar(image, ax=ax)
        ax.set(xlabel="column of x", ylabel="row of x")
    else:
        x = x.ravel()
        nonzero = np.flatnonzero(x)
        if 0 < nonzero.size <= STEMS:
            ax.axhline(0.0, color="C7", lw=1.5)
            ax.stem(nonzero, x[nonzero], basefmt=" ")
            ax.set_xlim(-0.5, x.size - 0.5)
        else:
            ax.plot(x, lw=0.8)
        ax.set(xlabel="entry of x", ylabel=name)
        ax.grid(alpha=0.3)
    ax.locator_params(axis="both" if x.ndim == 2 else "x", integer=True)
    gap = result.certificate.relative_gap
    said = f"proved relative gap {gap:.1g}" if math.isfinite(gap) else "no gap proved"
    ax.set_title(f"f = {result.fun:.8g}, {said}")
