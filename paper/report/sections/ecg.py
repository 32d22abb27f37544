"""The section of the electrocardiogram, recovered from half as many measurements as samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lopro import bpdn
from paper.report.blocks import Table
from paper.report.draft import Draft, Drawing
from paper.report.examples import example
from paper.report.order import Order, Scale
from paper.report.style import BLUE, GREY, INK, VERMILION, grid_of_axes, logarithmic, name_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["parameters", "run"]


def parameters(order: Order) -> dict[str, Any]:
    """Return the parameters that determine the outcome."""
    return {"quarter": order.scale is Scale.SHORT}


def run(order: Order) -> Draft:
    """Measure and recover the signal of ``examples/ecg.py``."""
    ecg = example("ecg")
    quarter = order.scale is Scale.SHORT
    signal = ecg.pywt.data.ecg().astype(float)[: 256 if quarter else None]
    e = ecg.measure(signal, signal.size // 2)
    order.say(f"lopro.bpdn, {e.A.shape[0]} measurements of {e.A.shape[1]} samples")
    result = bpdn(e.A, e.y, e.sigma, tol=ecg.TOL)
    recovered, truth = e.W.T @ result.x, e.W @ e.signal
    draft = Draft("A recovered electrocardiogram", {"seed": "2017", "wavelet": ecg.WAVELET})
    m, n = e.A.shape
    draft.paragraph(
        f"A heartbeat of {n} samples is measured through {m} random combinations of its samples, with "
        f"{ecg.NOISE:.0%} noise. Of all wavelet coefficients that explain the measurements, lopro.bpdn finds "
        "those of least l1 norm, and proves it."
    )
    draft.pictures(
        [
            Drawing(
                "ecg",
                _signals(e, recovered, ecg.snr(e.signal, recovered)),
                "Three panels: the electrocardiogram, the recovered one, and their small difference.",
                "Signal, recovered signal and error on one scale.",
            ),
            Drawing(
                "ecg_coefficients",
                _sorted_sizes(truth, result.x),
                "Sizes of the wavelet coefficients, sorted: the recovered ones end early.",
                f"{np.count_nonzero(result.x)} of {n} coefficients are recovered as nonzero.",
            ),
        ]
    )
    least_squares = e.W.T @ (np.linalg.pinv(e.A) @ e.y)
    snrs = ecg.snr(e.signal, least_squares), ecg.snr(e.signal, recovered)
    draft.table(_table(result, snrs, float(np.abs(truth).sum())))
    if not result.success:
        draft.failures.append(f"lopro.bpdn: {result.message}")
    return draft


def _table(result: Any, snrs: tuple[float, float], truth: float) -> Table:
    c = result.certificate
    return Table(
        "The electrocardiogram in numbers",
        ("", "value"),
        (
            ("signal-to-noise ratio of least squares", f"{snrs[0]:.1f} dB"),
            ("signal-to-noise ratio of lopro.bpdn", f"{snrs[1]:.1f} dB"),
            ("l1 norm of the true coefficients", f"{truth:.6f}"),
            ("l1 norm of the answer", f"{result.fun:.6f}"),
            ("certified lower bound", f"{c.lower_bound:.6f}"),
            ("relative gap", f"{c.relative_gap:.1e}"),
            (
                "products with A and its adjoint",
                f"{result.counts.matvecs + result.counts.rmatvecs}",
            ),
            ("projections", f"{result.counts.projections}"),
            ("seconds", f"{result.seconds:.2f}"),
        ),
    )


def _signals(e: Any, recovered: Any, snr: float) -> Figure:
    figure, axes = grid_of_axes(3, 1, (4.8, 4.2), sharex=True)
    panels = (
        ("electrocardiogram", e.signal, INK),
        (f"recovered: {snr:.1f} dB", recovered, BLUE),
        ("error, on the same scale", recovered - e.signal, VERMILION),
    )
    spread = max(np.ptp(values) for _, values, _ in panels)
    for ax, (title, values, colour) in zip(axes, panels, strict=True):
        ax.plot(values, color=colour, lw=1.0)
        middle = 0.5 * (values.max() + values.min())
        ax.set_ylim(middle - 0.56 * spread, middle + 0.56 * spread)
        ax.set_xlim(0, len(values) - 1)
        name_axes(ax, title, "", "")
    axes[-1].set_xlabel("sample")
    return figure


def _sorted_sizes(truth: Any, x: Any) -> Figure:
    figure, (ax,) = grid_of_axes(1, 1, (4.8, 4.2))
    name_axes(ax, "wavelet coefficients, sorted by size", "rank", "size")
    for values, colour, name in ((truth, GREY, "true"), (x, BLUE, "recovered")):
        size = np.sort(np.abs(values[values != 0.0]))[::-1]
        ax.plot(np.arange(1, size.size + 1), size, color=colour, lw=1.8, label=name)
    logarithmic(ax, "y")
    ax.set_ylim(bottom=0.05)
    ax.legend(frameon=False, fontsize=8, labelcolor=INK)
    return figure
