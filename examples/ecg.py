"""Recover an electrocardiogram from half as many random measurements as it has samples.

The problem
-----------
A heartbeat ``s`` of n = 1024 samples is not recorded directly. The data are m = 512 random combinations
of its samples with 1 % of noise, ``y = Phi s + e``: fewer equations than unknowns. The missing
information is that few wavelets (here Daubechies' db4) suffice to represent an ECG: ``s = W' x``, where
W is orthogonal and most entries of x are tiny. So, of all coefficients that explain
the measurements to within the noise, take those of least l1 norm:

    minimise |x|_1   subject to   |A x - y|_2 <= sigma,   A = Phi W'.

The call
--------
``lopro.bpdn(A, y, sigma, tol=1e-6)``. As A is an explicit matrix, lopro reads single columns and works
on the few with nonzero coefficients. That takes a dozen products with all of A; where this makes no
progress, as for some draws of Phi, a first-order method takes over and needs a few hundred. The answer
is certified in the same way.

How to choose sigma: it is a bound on the *norm* of the noise. Gaussian noise of standard deviation
``std`` has a norm of about ``std * sqrt(m)``; the ``sqrt(m + 2 sqrt(2m))`` used here is two standard
deviations more (of its square), so that the true ECG is very likely to be feasible.

How to read the certificate
---------------------------
``result.fun`` is ``|x|_1`` of the answer, which is feasible. ``result.certificate.lower_bound`` is a
lower bound on the norm of every feasible vector. It comes from a dual point and can be checked without
the solver: ``nu = result.dual`` has

    abs(A.T @ nu).max() <= 1            # up to rounding, and for every such nu
    y @ nu - sigma * norm(nu)           # is a lower bound

The optimum lies between bound and value. With a relative gap of 1e-6 or less the solver is done: the
remaining error against the true ECG is due to noise and missing measurements, and more iterations
would not reduce it. (The true coefficients are feasible as well, and their l1 norm is
*larger*: the table shows it.) That error is a matter of the model; the certificate says nothing about
it.

Run
---
    python examples/ecg.py                  # the table
    python examples/ecg.py --save           # and examples/figures/ecg.png
    python examples/ecg.py --save my.png    # or a file of your choice
    python examples/ecg.py --quick          # a quarter of the signal

It needs ``pip install "lopro[examples]"`` (PyWavelets includes the ECG) and takes about a second.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pywt

import lopro

FIGURE = Path(__file__).parent / "figures" / "ecg.png"
WAVELET = "db4"
NOISE = 0.01  # norm of the noise relative to that of the clean measurements
TOL = 1e-6
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#8A8A8A"


@dataclass(frozen=True)
class Experiment:
    """A signal, the orthogonal matrix of its wavelet transform, and its measurements."""

    signal: np.ndarray
    W: np.ndarray  # coefficients = W @ signal
    scales: list[int]  # number of coefficients of each scale, coarse to fine
    A: np.ndarray  # measurements = A @ coefficients + noise
    y: np.ndarray
    sigma: float


def wavelet_matrix(n: int) -> tuple[np.ndarray, list[int]]:
    """Return the matrix of the periodic wavelet transform, and the sizes of its scales."""
    level = pywt.dwt_max_level(n, WAVELET)
    # Periodic extension makes the transform orthogonal: its inverse is its transpose.
    scales = pywt.wavedec(np.eye(n), WAVELET, mode="periodization", level=level, axis=0)
    return np.vstack(scales), [len(scale) for scale in scales]


def measure(signal: np.ndarray, m: int) -> Experiment:
    """Take ``m`` random noisy measurements of the signal."""
    rng = np.random.default_rng(2017)
    W, scales = wavelet_matrix(signal.size)
    Phi = rng.standard_normal((m, signal.size)) / np.sqrt(m)
    clean = Phi @ signal
    std = NOISE * np.linalg.norm(clean) / np.sqrt(m)
    y = clean + std * rng.standard_normal(m)
    sigma = std * np.sqrt(m + 2.0 * np.sqrt(2.0 * m))
    return Experiment(signal, W, scales, Phi @ W.T, y, float(sigma))


def snr(signal: np.ndarray, estimate: np.ndarray) -> float:
    """Return the signal-to-noise ratio in decibels."""
    return float(20.0 * np.log10(np.linalg.norm(signal) / np.linalg.norm(signal - estimate)))


def print_table(e: Experiment, result: lopro.BPDNResult) -> None:
    """Print the quality of the answer, its certificate, and its cost."""
    c, counts = result.certificate, result.counts
    m, n = e.A.shape
    least_squares = e.W.T @ (np.linalg.pinv(e.A) @ e.y)
    rows = [
        ("measurements", f"{m} of {n} samples, {NOISE:.0%} noise"),
        ("SNR of least squares", f"{snr(e.signal, least_squares):.1f} dB (for comparison)"),
        ("SNR of lopro.bpdn", f"{snr(e.signal, e.W.T @ result.x):.1f} dB"),
        ("nonzero coefficients", f"{result.support.size}"),
        ("l1 norm of the truth", f"{np.abs(e.W @ e.signal).sum():.6f}"),
        ("l1 norm of the answer", f"{result.fun:.6f}"),
        ("certified lower bound", f"{c.lower_bound:.6f}"),
        ("relative gap", f"{c.relative_gap:.1e} (tolerance: {TOL:.0e})"),
        ("residual / sigma", f"{np.linalg.norm(e.A @ result.x - e.y) / e.sigma:.9f}"),
        ("products with A, A'", f"{counts.matvecs}, {counts.rmatvecs}"),
        ("columns of A read", f"{counts.columns}"),
        ("projections", f"{counts.projections}"),
        ("time", f"{result.seconds:.2f} s"),
        ("status", result.status.name),
    ]
    for name, value in rows:
        print(f"{name:<24}{value}")


def draw(e: Experiment, result: lopro.BPDNResult, path: Path) -> None:
    """Draw signal, reconstruction and error, and beside them the coefficients."""
    from matplotlib.figure import Figure  # without pyplot, so that no window opens

    figure = Figure(figsize=(11.5, 6.4), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.08)
    grid = figure.add_gridspec(3, 2, width_ratios=(1.5, 1.0))
    draw_signals([figure.add_subplot(grid[row, 0]) for row in range(3)], e, e.W.T @ result.x)
    halves = grid[:, 1].subgridspec(2, 1)
    draw_scales(figure.add_subplot(halves[0]), e, result.x)
    draw_sorted(figure.add_subplot(halves[1]), e, result.x)
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    print(f"figure: {path}")


def draw_signals(axes: list, e: Experiment, estimate: np.ndarray) -> None:
    m, n = e.A.shape
    panels = [
        (f"electrocardiogram, {n} samples", e.signal, "black"),
        (f"recovered from {m} measurements: {snr(e.signal, estimate):.1f} dB", estimate, BLUE),
        ("error, on the same scale", estimate - e.signal, VERMILION),
    ]
    spread = max(np.ptp(values) for _, values, _ in panels)
    for ax, (title, values, colour) in zip(axes, panels, strict=True):
        ax.plot(values, color=colour, lw=1.0)
        # The same scale in all three panels.
        middle = 0.5 * (values.max() + values.min())
        ax.set_ylim(middle - 0.56 * spread, middle + 0.56 * spread)
        ax.set_xlim(0, n - 1)
        ax.set_title(title, loc="left", fontsize=10)
        ax.tick_params(labelbottom=ax is axes[-1])
    axes[-1].set_xlabel("sample")


def draw_scales(ax, e: Experiment, x: np.ndarray) -> None:
    """Draw the coefficients scale by scale, each scale with the same width."""
    places = np.concatenate([k + (np.arange(s) + 0.5) / s for k, s in enumerate(e.scales)])
    widths = np.repeat([max(0.5, min(2.5, 40.0 / s)) for s in e.scales], e.scales)
    ax.vlines(places, 0.0, e.W @ e.signal, color=GREY, lw=widths, alpha=0.7, label="true")
    shown = x != 0.0
    ax.plot(places[shown], x[shown], ".", color=BLUE, ms=3.0, label="recovered")
    ax.set_yscale("symlog", linthresh=30.0)
    ax.set_yticks([-1000, -100, 0, 100, 1000], ["−1000", "−100", "0", "100", "1000"])
    for k in range(1, len(e.scales)):
        ax.axvline(k, color="#DDDDDD", lw=0.8, zorder=0)
    ax.set_xticks(np.arange(len(e.scales)) + 0.5, [str(s) for s in e.scales])
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(0, len(e.scales))
    ax.set_xlabel("coefficients per scale, coarse to fine")
    ax.set_title(f"{WAVELET} coefficients", loc="left", fontsize=10)
    ax.legend(
        frameon=False, fontsize=9, ncols=2, loc="lower right", bbox_to_anchor=(1, 0.98), borderpad=0
    )


def draw_sorted(ax, e: Experiment, x: np.ndarray) -> None:
    for values, colour, name in ((e.W @ e.signal, GREY, "true"), (x, BLUE, "recovered")):
        size = np.sort(np.abs(values))[::-1]
        size = size[size > 0.0]
        ax.semilogy(np.arange(1, size.size + 1), size, color=colour, lw=1.8, label=name)
    zeros = np.count_nonzero(x == 0.0)
    ax.set_ylim(bottom=0.05)
    ax.set_xlim(0, x.size)
    ax.set_xlabel("rank")
    ax.set_title(f"sorted by size: {zeros} of {x.size} recovered as 0", loc="left", fontsize=10)
    ax.legend(frameon=False, fontsize=9)


def main(arguments: list[str] | None = None) -> int:
    """Run the example; the exit status is 0 if the answer is certified."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="use a quarter of the signal")
    parser.add_argument(
        "--save", nargs="?", type=Path, const=FIGURE, metavar="PNG", help="write the figure"
    )
    options = parser.parse_args(arguments)
    signal = pywt.data.ecg().astype(float)
    experiment = measure(signal[:256] if options.quick else signal, 128 if options.quick else 512)
    result = lopro.bpdn(experiment.A, experiment.y, experiment.sigma, tol=TOL)
    print_table(experiment, result)
    if options.save is not None:
        draw(experiment, result, options.save)
    return 0 if result.success else 1


if __name__ == "__main__":
    raise SystemExit(main())
