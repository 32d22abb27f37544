"""A figure for every rate: measured error, the bound above it, and the slope the theory predicts.

    python benchmarks/figure_rates.py [--quick] [--docs]

Every curve comes from problems whose optimal value is known in closed form (T3, T4 and T6 of
docs/theory.md). A measured error above its bound ends the run. Figures and numbers are written to
benchmarks/results; ``--docs`` also renews the figures of the documentation.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict

import matplotlib
from _report import write_json
from _style import save
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from paper.experiments.rates import Curve, measure_rates, slope
from paper.report.rate_figures import rate_figures

matplotlib.use("Agg")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="shorter curves")
    parser.add_argument("--docs", action="store_true", help="renew the figures in docs/images")
    options = parser.parse_args()
    console = Console(width=None if os.isatty(1) else 110)
    with threadpool_limits(limits=1), console.status("measuring") as status:
        rates = measure_rates(options.quick, say=status.update)
    figures = rate_figures(rates)
    for name, figure in figures.items():
        for path in save(figure, name, docs=options.docs and name == "projections"):
            console.print(f"wrote {path}")
    console.print(summary(rates.curves))
    auto = dict(zip(*rates.auto, strict=True))
    numbers = {"curves": [asdict(curve) for curve in rates.curves], "auto": auto}
    console.print(f"numbers in {write_json('rates', numbers)}")


if __name__ == "__main__":
    main()
