"""The first part of ``make reproduce``: three problems, certified answers, few projections.

Run it with ``python -m paper.experiments.demo``. It takes seconds, needs no data, prints a table and
draws how the certified gaps close. The exit status is 1 if a gap is neither certified nor, for the
schedule of a theorem, claimed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from lopro.core.arrays import Array
from lopro.driver.result import Result
from lopro.methods import Auto, LoPGD, LoPNAG
from lopro.methods.paper.theorems import Theorem2
from lopro.methods.theory import constants_of, epochs_needed
from lopro.problem import Problem
from lopro.protocol import Method
from lopro.solving import solve
from paper.experiments.instances import compressive_sensing, metric_learning, sharp_polyhedron
from paper.report.curves import Named, curves_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Case", "Outcome", "cases", "figure", "main", "run_all"]


@dataclass(frozen=True)
class Case:
    """A problem, a method, and the certified relative gap to reach."""

    name: str
    method_name: str
    problem: Problem
    method: Method
    tol: float
    start: Array | None = None

    def run(self) -> Outcome:
        """Solve it, and compute the number of projections in the paper's theorems for the same gap."""
        result = solve(self.problem, self.start, self.method, tol=self.tol, time_limit=60.0)
        first = self.problem.constraint.project(self.problem.start(self.start))
        eps0 = self.problem.objective.value(first) - result.certificate.lower_bound
        gap = result.certificate.gap if result.claim is None else result.claim.gap
        # Theorems 2 and 3 promise an error of 2 eps; a gap below rounding would make that meaningless.
        eps = max(gap, 1e-15 * abs(result.fun)) / 2.0
        return Outcome(self, result, epochs_needed(eps0, eps))


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case, and the number of projections in the paper's theorems for that gap."""

    case: Case
    result: Result
    projections_in_theory: int

    @property
    def reached(self) -> bool:
        """Whether the gap is proved, or claimed by a theorem with the constants of the problem."""
        claim, unit = self.result.claim, abs(self.result.fun)
        return self.result.success or (claim is not None and claim.gap <= self.case.tol * unit)

    @property
    def gap(self) -> str:
        """The relative gap that is proved, or what a theorem claims."""
        claim, unit = self.result.claim, abs(self.result.fun)
        if claim is None:
            return f"{self.result.certificate.relative_gap:.1e}"
        return f"{claim.gap / unit:.1e} (claimed)"

    @property
    def cells(self) -> tuple[str, ...]:
        """The outcome as a row of a table."""
        result = self.result
        return (
            self.case.name,
            self.case.method_name,
            f"{result.fun:.8g}",
            self.gap,
            str(result.counts.projections),
            str(self.projections_in_theory),
            str(result.iterations),
            f"{result.seconds:.2f}",
        )


def cases() -> list[Case]:
    """Return the demonstration's cases.

    Examples
    --------
    >>> from paper.experiments.demo import cases
    >>> len(cases())
    5
    """
    bpdn = compressive_sensing()
    sharp = sharp_polyhedron()
    theorem = Theorem2(constants_of(sharp.problem), sharp.eps0, 1e-6, sharp.sigma, theta=1.0)
    sensing, polyhedral = "BPDN, 200 x 1000", "half-space, d = 20"
    return [
        Case(sensing, "Auto", bpdn, Auto(), 1e-6),
        Case(sensing, "LoPNAG, adaptive", bpdn, LoPNAG(), 1e-6),
        Case(polyhedral, "Auto", sharp.problem, Auto(), 1e-6, sharp.start),
        Case(polyhedral, "LoPGD, Theorem 2", sharp.problem, LoPGD(theorem), 1e-5, sharp.start),
        Case("psd metric, 15 x 15", "Auto", metric_learning(), Auto(), 1e-6),
    ]


def table(outcomes: Sequence[Outcome]) -> Table:
    """Return the outcomes as a table."""
    shown = Table(title="lopro: certified answers", title_justify="left")
    shown.caption_justify = "left"
    columns = (
        "problem",
        "method",
        "value",
        "relative gap",
        "projections",
        "theory",
        "iterations",
        "s",
    )
    for name in columns:
        shown.add_column(name, justify="left" if name in columns[:2] else "right")
    for outcome in outcomes:
        shown.add_row(*outcome.cells)
    shown.caption = (
        "relative gap: certified, (value - lower bound) / value, or what a theorem claims for the "
        "constants of the problem. theory: the paper's "
        "ceil(log2(eps0 / eps)) projections (Thm 2, Thm 3) for an error of 2 eps = that gap, from the "
        "same start. A method that projects at each step makes one projection per iteration."
    )
    return shown


def draw(outcomes: Sequence[Outcome], folder: Path) -> Path | None:
    """Draw the certified gaps; return the path, or None without matplotlib."""
    try:
        drawn = figure(outcomes)
    except ImportError:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "convergence.png"
    drawn.savefig(path, dpi=150)
    return path


def figure(outcomes: Sequence[Outcome]) -> Figure:
    """Return the certified gaps as a figure; needs matplotlib."""
    curves = [
        Named(f"{outcome.case.name}: {outcome.case.method_name}", *_positive(outcome.result))
        for outcome in outcomes
    ]
    iterations = "inner iterations (each marker is a certified point)"
    return curves_figure(curves, "The gaps close", iterations, "certified relative gap")


def _positive(result: Result) -> tuple[list[Any], list[Any]]:
    """Return iterations and gaps of the epochs that a logarithmic axis can show."""
    rows = [r for r in result.history if 0.0 < r["relative_gap"] < float("inf")]
    return [r["iterations"] for r in rows], [r["relative_gap"] for r in rows]


def run_all(say: Callable[[str], Any]) -> list[Outcome]:
    """Run all cases, with a message for each."""
    outcomes, todo = [], cases()
    for number, case in enumerate(todo, start=1):
        say(f"[{number}/{len(todo)}] {case.name}, {case.method_name} ...")
        outcomes.append(case.run())
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m paper.experiments.demo", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--output", type=Path, default=Path("report"), help="folder of the figure")
    options = parser.parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 118)
    outcomes = run_all(lambda line: console.print(line, markup=False, highlight=False))
    console.print(table(outcomes))
    path = draw(outcomes, options.output)
    console.print(
        f"figure: {path}" if path else "no figure: matplotlib is missing, pip install 'lopro[plot]'"
    )
    failed = [o for o in outcomes if not o.reached]
    for outcome in failed:
        console.print(f"NOT CERTIFIED: {outcome.case.name}: {outcome.result.message}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
