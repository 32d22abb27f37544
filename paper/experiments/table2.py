"""Table 2 of the paper, measured again: LoPGD against OPGD and PGD on a metric for colon-cancer data.

Run it with ``python -m paper.experiments.table2``. The default takes the first 200 features (about two
minutes), ``--full`` all 2000 and every row of the paper (hours on a CPU: PGD decomposes a matrix in each
of its iterations), ``--device cuda`` puts the arrays on a GPU.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lopro.constraints import PSDCone
from lopro.core.arrays import Array
from lopro.driver.result import Iterate
from lopro.metric import SparseMetric
from lopro.metric.api import learn_metric
from lopro.metric.loss import PairLoss
from lopro.problem import Problem
from lopro.solving import solve
from paper.experiments.colon import Samples, load_colon
from paper.experiments.table2_data import DEFAULT, FULL, PAPER, QUICK, Row, Settings, Table2, Trial
from paper.experiments.table2_methods import METHODS, Method
from paper.experiments.table2_text import shown, tuning_shown, verdict
from paper.experiments.tables import announcer, publish, terminal

__all__ = ["main", "paper_problem", "table2"]


def table2(
    full: bool = False,
    *,
    data: Samples | None = None,
    settings: Settings | None = None,
    device: str = "cpu",
    say: Callable[[str], Any] | None = None,
    progress: bool = False,
) -> Table2:
    """Measure Table 2.

    Parameters
    ----------
    full : bool
        All features and every row of the paper; otherwise the first 200 features.
    data : Samples, optional
        By default what `load_colon` finds.
    settings : Settings, optional
        Sizes and lengths of your own; then ``full`` has no effect.
    device : str
        "cpu" for NumPy arrays, otherwise a device of PyTorch.
    say : callable, optional
        Called with the name of what runs next.
    progress : bool
        Show the progress of each run on the terminal.

    Examples
    --------
    >>> from paper.experiments.colon import stand_in
    >>> from paper.experiments.table2 import table2
    >>> from paper.experiments.table2_data import Settings
    >>> tiny = Settings(5, 6, 1e-3, 10.0, 20, (20, 40), 5, 20, 1e-3)
    >>> [(row.method, row.iterations) for row in table2(data=stand_in(), settings=tiny).rows[:3]]
    [('lopro.learn_metric', ...), ('LoPGD', 20), ('LoPGD', 40)]
    """
    chosen = settings or (FULL if full else DEFAULT)
    data = load_colon() if data is None else data
    tell = say or (lambda line: None)
    tell("lopro.learn_metric")
    rows = [_default(data, chosen, device)]
    trials = list(_tuned(data, chosen, device, tell))
    problem, L = paper_problem(data, chosen, device)
    table = Table2(chosen, data.name, data.origin, device, tuple(rows), tuple(trials), L)
    for method in METHODS:
        multiple = table.best_multiple(method.step_of or method.name)
        tell(f"{method.name}, step {multiple:g} / L_f")
        rows += _measured(method, multiple / L, chosen, problem, progress)
    return replace(table, rows=tuple(rows))


def _default(data: Samples, chosen: Settings, device: str) -> Row:
    """Run the default of `lopro.learn_metric`."""
    X, labels = data.X[: chosen.samples, : chosen.features], data.labels[: chosen.samples]
    result = learn_metric(
        _on(device, X), labels, l1=chosen.l1, tol=chosen.tol, time_limit=chosen.time_limit
    )
    return Row(
        "lopro.learn_metric",
        result.iterations,
        result.counts.projections,
        result.fun,
        result.seconds,
        result.certificate.lower_bound,
    )


def paper_problem(data: Samples, chosen: Settings, device: str) -> tuple[Problem, float]:
    """Return the paper's problem (its eq. for distance metric learning) and ``L_f`` of its loss."""
    X, labels = data.X[: chosen.samples, : chosen.features], data.labels[: chosen.samples]
    first, second = np.triu_indices(len(X), 1)
    targets = np.where(labels[first] == labels[second], 0.0, 2.0)
    loss = PairLoss(_on(device, X), (first, second), targets)
    d = loss.X.shape[1]
    # A step of LoPGD is a few products: exact eigenpairs would be most of its time.
    cone = PSDCone(d, accuracy=0.1)
    return Problem(SparseMetric(loss, chosen.l1), cone), loss.smoothness().value


def _on(device: str, X: np.ndarray[Any, Any]) -> Array:
    if device == "cpu":
        return X
    try:
        import torch
    except ImportError:
        raise SystemExit(f"--device {device} needs PyTorch: pip install 'lopro[torch]'") from None
    return torch.asarray(np.array(X), device=device)


def _tuned(
    data: Samples, chosen: Settings, device: str, tell: Callable[[str], Any]
) -> Iterator[Trial]:
    """Try every step of every method on the problem with the first features."""
    small = replace(chosen, features=min(chosen.features, chosen.tuning_features))
    problem, L = paper_problem(data, small, device)
    for method in METHODS:
        if method.multiples:
            tell(f"tuning {method.name}, {chosen.tuning_iterations} iterations")
        for multiple in method.multiples:
            scheme = method.scheme(multiple / L, chosen.lam, chosen.tuning_iterations, None)
            result = solve(problem, None, scheme, tol=0)
            # A step that is too long overflows, which rejects it.
            objective = result.fun if math.isfinite(result.fun) else math.inf
            yield Trial(method.name, multiple, objective)


def _measured(
    method: Method, eta: float, chosen: Settings, problem: Problem, progress: bool
) -> list[Row]:
    """Run a method; its iterates at the checkpoints become rows."""
    rows = []
    for last in chosen.checkpoints if method.one_run_per_row else chosen.checkpoints[-1:]:
        iterates: list[Iterate] = []
        scheme = method.scheme(eta, chosen.lam, last, chosen.steps)
        solve(problem, None, scheme, tol=0, callback=iterates.append, progress=progress)
        reported = {last} if method.one_run_per_row else set(chosen.checkpoints)
        rows += [
            _row(method, iterate, chosen) for iterate in iterates if iterate.iterations in reported
        ]
    return rows


def _row(method: Method, iterate: Iterate, chosen: Settings) -> Row:
    full_size = (chosen.features, chosen.samples) == (FULL.features, FULL.samples)
    return Row(
        method=method.name,
        iterations=iterate.iterations,
        projections=iterate.projections,
        objective=iterate.fun,
        seconds=iterate.seconds,
        lower_bound=iterate.lower_bound,
        printed=PAPER.get((method.name.split(",")[0], iterate.iterations)) if full_size else None,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the table and print it; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m paper.experiments.table2", description=(__doc__ or "").splitlines()[0]
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--full", action="store_true", help="all features, every row of the paper")
    size.add_argument("--quick", action="store_true", help="20 features, for a first try")
    parser.add_argument("--colon", type=Path, help="the colon-cancer file in LIBSVM's format")
    parser.add_argument("--device", default="cpu", help="cpu, or a device of PyTorch such as cuda")
    parser.add_argument(
        "--iterations", type=int, help="leave out the rows after so many iterations"
    )
    parser.add_argument("--json", type=Path, help="write the rows to this file too")
    options = parser.parse_args(arguments)
    console = terminal()
    settings = QUICK if options.quick else FULL if options.full else DEFAULT
    if options.iterations is not None:
        settings = settings.up_to(options.iterations)
    table = table2(
        data=load_colon(options.colon),
        settings=settings,
        device=options.device,
        say=announcer(console),
        progress=sys.stderr.isatty(),
    )
    publish(
        console, [tuning_shown(table), shown(table)], verdict(table), table.to_dict(), options.json
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
