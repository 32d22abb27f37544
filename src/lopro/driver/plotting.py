"""The picture of a run: bounds that close in on the value, and the gap on a logarithmic axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lopro.core.optional import needing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lopro.driver.result import History

__all__ = ["plot_history"]


def plot_history(history: History, ax: Axes | None = None) -> Axes:
    """Draw the certified relative gap and the violation against the inner iterations.

    Examples
    --------
    >>> import numpy as np, lopro, matplotlib
    >>> matplotlib.use("Agg")
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    >>> lopro.solve(lopro.Problem(f, box)).plot().get_xlabel()
    'inner iterations'
    """
    if len(history) == 0:
        raise ValueError("there is nothing to plot: no epoch was completed")
    if ax is None:
        with needing("plot", "matplotlib", "lopro[plot]"):
            import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
    iterations = np.asarray(history["iterations"], dtype=float)
    for column, label, marker in (
        ("relative_gap", "certified relative gap", "o-"),
        ("violation", "relative violation", "s:"),
    ):
        values = np.asarray(history[column], dtype=float)
        shown = np.isfinite(values) & (values > 0)
        if shown.any():
            ax.semilogy(iterations[shown], values[shown], marker, ms=4, label=label)
    ax.set(xlabel="inner iterations", title=_title(history))
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)
    ax.grid(alpha=0.3)
    return ax


def _title(history: Any) -> str:
    return f"f = {history['fun'][-1]:.8g} after {history['projections'][-1]} projections"
