"""The picture of a run: the certified gap on a logarithmic axis, or value and lower bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lopro.core.optional import needing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lopro.driver.result import Result

__all__ = ["plot_result"]

#: A gap of 0 has no place on a logarithmic axis; it is drawn as the rounding unit.
ZERO = float(np.finfo(np.float64).eps)


def plot_result(result: Result, ax: Axes | None = None) -> Axes:
    """Draw the certified relative gap and the violation against the iterations.

    A run with fewer than two gaps has no curve: then the values and the lower bounds are drawn.

    Examples
    --------
    >>> import numpy as np, lopro, matplotlib
    >>> matplotlib.use("Agg")
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    >>> lopro.solve(lopro.Problem(f, box)).plot().get_xlabel()
    'iterations'
    """
    columns = _columns(result)
    if not np.isfinite(columns["fun"]).any():
        raise ValueError("there is nothing to plot: no point was found")
    if ax is None:
        with needing("plot", "matplotlib", "lopro[plot]"):
            import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    if np.isfinite(columns["relative_gap"]).sum() >= 2:
        _draw_gaps(ax, columns)
    else:
        _draw_values(ax, columns)
    shown = f"f = {result.fun:.8g} after {result.counts.projections} projections"
    ax.set(xlabel="iterations", title=shown)
    ax.legend(frameon=False)
    ax.grid(alpha=0.3)
    return ax


def _columns(result: Result) -> dict[str, Any]:
    """Return the columns of the history, or the certificate where a run has recorded nothing."""
    names = ("iterations", "fun", "lower_bound", "relative_gap", "violation")
    if len(result.history):
        return {name: np.asarray(result.history[name], dtype=float) for name in names}
    c = result.certificate
    row = (result.iterations, result.fun, c.lower_bound, c.relative_gap, c.violation)
    return {name: np.array([float(number)]) for name, number in zip(names, row, strict=True)}


def _draw_gaps(ax: Axes, columns: dict[str, Any]) -> None:
    gap, violation = columns["relative_gap"], columns["violation"]
    shown = np.isfinite(gap)
    ax.semilogy(
        columns["iterations"][shown],
        np.maximum(gap[shown], ZERO),
        "o-",
        ms=4,
        label="certified relative gap",
    )
    shown = np.isfinite(violation) & (violation > 0.0)
    if shown.any():
        ax.semilogy(
            columns["iterations"][shown], violation[shown], "s:", ms=4, label="relative violation"
        )


def _draw_values(ax: Axes, columns: dict[str, Any]) -> None:
    ax.plot(columns["iterations"], columns["fun"], "o-", ms=4, label="value")
    bounds = columns["lower_bound"]
    if np.isfinite(bounds).any():
        ax.plot(columns["iterations"], bounds, "v--", ms=4, label="lower bound")
    if math.isclose(float(columns["iterations"][0]), float(columns["iterations"][-1])):
        ax.set_xticks([columns["iterations"][0]])
