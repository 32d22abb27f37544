"""Table 1 of the paper, measured again: LoPNAG against NESTA, with additional columns.

Run it with ``python -m paper.experiments.table1``. The default leaves out the long tails (about two
minutes), ``--full`` has every row of the paper, ``--quick`` a small instance.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lopro.basis_pursuit.application import BasisPursuit
from lopro.core.arrays import Array
from lopro.driver.result import Iterate, Result
from lopro.methods import Auto, LoPNAG
from lopro.methods.baselines import NESTA
from lopro.methods.paper.theorems import HalvingSmoothing
from lopro.protocol import Method
from lopro.solving import solve
from paper.experiments.instances import SensingProblem, sparse_recovery
from paper.experiments.table1_text import shown, verdict
from paper.experiments.tables import announcer, publish, terminal

__all__ = ["PAPER", "Printed", "Row", "Settings", "Table1", "main", "table1"]


@dataclass(frozen=True)
class Printed:
    """The numbers that the paper prints for a row (its instance and its machine are others)."""

    recovery_error: float
    objective: float
    seconds: float


#: The paper's Table 1 by method and iterations.
PAPER = {
    ("LoPNAG", 5000): Printed(0.018017, 52.042878, 18.04),
    ("LoPNAG", 10000): Printed(0.018038, 52.042418, 35.88),
    ("LoPNAG", 15000): Printed(0.018043, 52.042358, 53.09),
    ("LoPNAG", 20000): Printed(0.018043, 52.042358, 70.24),
    ("LoPNAG", 25000): Printed(0.018043, 52.042358, 87.32),
    ("NESTA", 1000): Printed(0.137798, 52.703275, 48.49),
    ("NESTA", 3000): Printed(0.018669, 52.050051, 93.84),
    ("NESTA", 5000): Printed(0.018659, 52.050046, 245.23),
    ("NESTA", 8000): Printed(0.018657, 52.050045, 404.72),
    ("NESTA", 10000): Printed(0.018657, 52.050044, 501.65),
}


@dataclass(frozen=True)
class Settings:
    """Sizes and lengths of the runs."""

    m: int = 1000
    d: int = 5000
    nonzeros: int = 100
    #: LoPNAG: iterations of an epoch, and epochs with the tuned and with the theoretical weight.
    steps: int = 5000
    epochs: int = 2
    epochs_in_theory: int = 1
    #: NESTA: the iterations after which a row is written, with the paper's smoothing and a finer one.
    checkpoints: tuple[int, ...] = (1000, 3000)
    checkpoints_finer: tuple[int, ...] = (1000,)
    mu: float = 1e-5
    mu_finer: float = 1e-7


DEFAULT = Settings()
FULL = Settings(
    epochs=5,
    epochs_in_theory=5,
    checkpoints=(1000, 3000, 5000, 8000, 10000),
    checkpoints_finer=(1000, 3000, 5000, 8000, 10000),
)
QUICK = Settings(200, 1000, 20, 1000, 2, 1, (500, 1000), (500,))


@dataclass(frozen=True)
class Row:
    """One row: the result of a method after a number of iterations and projections."""

    method: str
    iterations: int
    projections: int
    recovery_error: float
    objective: float
    seconds: float
    #: (objective - lower bound proved by the run itself) / objective.
    relative_gap: float
    lower_bound: float
    printed: Printed | None = None


@dataclass(frozen=True)
class Table1:
    """The rows, and the data common to all."""

    settings: Settings
    rows: tuple[Row, ...]
    #: Seconds for the factorisation that all methods share; not in the times of the rows.
    factorisation: float
    lam_tuned: float
    lam_theory: float

    @property
    def lower_bound(self) -> float:
        """The best bound that any of the methods has proved: it holds for all rows."""
        return max(row.lower_bound for row in self.rows)

    def above_optimum(self, row: Row) -> float:
        """Return a certified bound of ``objective - f_*``."""
        return max(0.0, row.objective - self.lower_bound)

    def of(self, method: str) -> list[Row]:
        """Return the rows of one method."""
        return [row for row in self.rows if row.method == method]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data; numbers that are not finite become None."""
        plain = asdict(self)
        for row, data in zip(self.rows, plain["rows"], strict=True):
            data["above_optimum"] = self.above_optimum(row)
            for name, value in data.items():
                if isinstance(value, float) and not math.isfinite(value):
                    data[name] = None
        return plain | {"lower_bound": self.lower_bound, "verdict": verdict(self)}


@dataclass(frozen=True)
class _Entry:
    """A method, its start, and the iterates that become rows (None: the last)."""

    name: str
    method: Method
    start: Array | None
    checkpoints: tuple[int, ...] | None
    family: str = ""  # the paper's name of the method where it has these rows
    tol: float = 0.0  # 0: the whole schedule


def table1(
    full: bool = False,
    *,
    settings: Settings | None = None,
    seed: int = 0,
    say: Callable[[str], Any] | None = None,
    progress: bool = False,
) -> Table1:
    """Measure Table 1.

    Parameters
    ----------
    full : bool
        Every row of the paper; otherwise the long tails are left out.
    settings : Settings, optional
        Sizes and lengths of your own; then ``full`` has no effect.
    seed : int
        Of the instance.
    say : callable, optional
        Called with the name of what runs next.
    progress : bool
        Show the progress of each run on the terminal.

    Examples
    --------
    >>> from paper.experiments.table1 import Settings, table1
    >>> table = table1(settings=Settings(20, 60, 3, 50, 1, 1, (20,), (20,)))
    >>> [(row.method, row.iterations, row.projections) for row in table.rows[2:4]]
    [('LoPNAG, lam = 2 zeta', 50, 1), ('LoPNAG, lam = G / rho', 50, 1)]
    """
    chosen = settings or (FULL if full else DEFAULT)
    instance = sparse_recovery(chosen.m, chosen.d, chosen.nonzeros, seed)
    ball: Any = instance.problem.constraint
    began = time.perf_counter()
    s, U = ball.A.left_spectrum
    factorisation = time.perf_counter() - began
    # NESTA starts at the least-norm solution of A x = y; it is feasible and costs no projection.
    start = ball.A.adjoint(U @ ((U.T @ ball.y) / s))
    tell = say or (lambda line: None)
    tell("our defaults")
    front_door = _Entry("lopro.bpdn", BasisPursuit().choose(instance.problem), None, None, tol=1e-8)
    rows, reference = _run(front_door, instance, progress)
    rows += _run(_Entry("lopro.Auto", Auto(), None, None, tol=1e-8), instance, progress)[0]
    tuned, theory = 2.0 * multiplier(instance, reference.x), weight_in_theory(instance)
    for entry in _entries(chosen, start, tuned, theory):
        tell(entry.name)
        rows += _run(entry, instance, progress)[0]
    return Table1(chosen, tuple(rows), factorisation, tuned, theory)


def multiplier(instance: SensingProblem, x: Array) -> float:
    """Return zeta of ``|A x - y|^2 <= sigma^2`` at a solution: ``1 / (2 |A'r|_inf)``."""
    ball: Any = instance.problem.constraint
    return 0.5 / float(np.abs(ball.A.adjoint(ball.A.forward(x) - ball.y)).max())


def weight_in_theory(instance: SensingProblem) -> float:
    """Return ``G / rho``, the weight of Theorem 1 with the sharper rho."""
    G, rho = instance.problem.objective.lipschitz(), instance.problem.constraint.regularity()
    assert G is not None and rho is not None  # a matrix of full rank, a norm with a shape
    return G.value / rho.value


def _entries(chosen: Settings, start: Array, tuned: float, theory: float) -> Iterator[_Entry]:
    for name, lam, epochs in (
        ("LoPNAG, lam = 2 zeta", tuned, chosen.epochs),
        ("LoPNAG, lam = G / rho", theory, chosen.epochs_in_theory),
    ):
        schedule = HalvingSmoothing(lam, gamma=1e-3, steps=chosen.steps, epochs=epochs)
        rows = tuple(chosen.steps * k for k in range(1, epochs + 1))
        yield _Entry(name, LoPNAG(schedule), start, rows, "LoPNAG" if lam == tuned else "")
    for mu, checkpoints, family in (
        (chosen.mu, chosen.checkpoints, "NESTA"),
        (chosen.mu_finer, chosen.checkpoints_finer, ""),
    ):
        report = math.gcd(*checkpoints)
        plain = NESTA(mu, stages=1, variation=None, max_iter=checkpoints[-1], report=report)
        yield _Entry(f"NESTA, mu = {mu:.0e}", plain, start, checkpoints, family)
        staged = NESTA(mu, stages=5, variation=1e-8)
        yield _Entry(f"NESTA, mu = {mu:.0e}, continuation", staged, start, None)


def _run(entry: _Entry, instance: SensingProblem, progress: bool) -> tuple[list[Row], Result]:
    """Run an entry; its iterates at the checkpoints become rows."""
    iterates: list[Iterate] = []
    result = solve(
        instance.problem,
        entry.start,
        entry.method,
        tol=entry.tol,
        callback=iterates.append,
        progress=progress,
    )
    if entry.checkpoints is None:
        chosen = iterates[-1:]
    else:
        chosen = [iterate for iterate in iterates if iterate.iterations in entry.checkpoints]
    return [_row(entry, iterate, instance) for iterate in chosen], result


def _row(entry: _Entry, iterate: Iterate, instance: SensingProblem) -> Row:
    printed = None
    if instance.signal.shape == (DEFAULT.d,):
        printed = PAPER.get((entry.family, iterate.iterations))
    return Row(
        method=entry.name,
        iterations=iterate.iterations,
        projections=iterate.projections,
        recovery_error=float(np.linalg.norm(iterate.x - instance.signal)),
        objective=iterate.fun,
        seconds=iterate.seconds,
        # The gap of this point; that of the run belongs to its best point.
        relative_gap=max(0.0, iterate.fun - iterate.lower_bound) / iterate.fun,
        lower_bound=iterate.lower_bound,
        printed=printed,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the table and print it; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m paper.experiments.table1", description=(__doc__ or "").splitlines()[0]
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="every row of the paper")
    size.add_argument("--quick", action="store_true", help="a small instance, for a first try")
    parser.add_argument("--seed", type=int, default=0, help="of the instance")
    parser.add_argument("--json", type=Path, help="write the rows to this file too")
    options = parser.parse_args(arguments)
    console = terminal()
    table = table1(
        options.full,
        settings=QUICK if options.quick else None,
        seed=options.seed,
        say=announcer(console),
        progress=sys.stderr.isatty(),
    )
    publish(console, [shown(table)], verdict(table), table.to_dict(), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
