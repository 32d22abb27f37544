"""``lopro bench``: all methods on a random problem, compared by certified gaps."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from rich.table import Table

from lopro.basis_pursuit import bpdn_problem
from lopro.cli.answers import console, print_json, progress_wanted, summary
from lopro.cli.arguments import method_named
from lopro.cli.exit_codes import ExitCode
from lopro.cli.instances import sharp_polyhedron, sparse_recovery
from lopro.driver.result import Result, Status
from lopro.methods.registry import methods
from lopro.metric.api import metric_problem
from lopro.metric.loss import PairLoss
from lopro.metric.pairs import DIFFERENT, SAME
from lopro.problem import Problem
from lopro.solving import solve

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "bench",
        help="all methods on a random problem",
        description="Run all methods that can solve a random problem and compare certified gaps.",
        epilog="Against other packages: python -m benchmarks.bpdn in a checkout of lopro.",
    )
    parser.add_argument(
        "--problem",
        choices=["bpdn", "polyhedron", "metric"],
        default="bpdn",
        help="kind of problem (%(default)s)",
    )
    parser.add_argument("--rows", type=int, default=200, help="measurements, or samples")
    parser.add_argument("--size", type=int, help="variables (metric: features)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--method", nargs="+", metavar="NAME", help="run only these methods")
    which.add_argument("--baselines", action="store_true", help="run the baselines, too")
    parser.add_argument("--tol", type=float, default=1e-6, help="certified relative gap to reach")
    parser.add_argument(
        "--time-limit",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="limit of the wall time of each method",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quiet", action="store_true", help="show no progress, even on a terminal")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the methods and print a table; the exit status is 0 if some answer is certified."""
    problem = _problem(options)
    rows: dict[str, Result] = {}
    for name, method in _methods_to_run(problem, options):
        rows[name] = solve(
            problem,
            method=method,
            tol=options.tol,
            time_limit=options.time_limit,
            progress=progress_wanted(options.quiet),
            seed=options.seed,
        )
        if rows[name].status is Status.INTERRUPTED:
            break  # Ctrl-C during one method ends the command
    if options.json:
        print_json({name: summary(result) for name, result in rows.items()})
    else:
        console().print(_table(options, rows))
    if any(result.status is Status.INTERRUPTED for result in rows.values()):
        return ExitCode.INTERRUPTED
    certified = any(result.success for result in rows.values())
    return ExitCode.CONVERGED if certified else ExitCode.NOT_CONVERGED


def _problem(options: argparse.Namespace) -> Problem:
    if options.problem == "polyhedron":
        return sharp_polyhedron(options.size or 20, options.seed).problem
    if options.problem == "metric":
        return _metric(options.rows, options.size or 50, options.seed)
    d = options.size or 1000
    nonzeros = max(1, options.rows // 10)
    ball: Any = sparse_recovery(options.rows, d, nonzeros, options.seed).problem.constraint
    return bpdn_problem(ball.A, ball.y, ball.sigma)


def _metric(samples: int, d: int, seed: int) -> Problem:
    """Return a metric learning problem with two classes that differ in a tenth of ``d`` features."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, samples)
    X = rng.standard_normal((samples, d))
    X[:, : max(1, d // 10)] += 2.0 * labels[:, None]
    pairs = np.triu_indices(samples, 1)
    targets = np.where(labels[pairs[0]] == labels[pairs[1]], SAME, DIFFERENT)
    return metric_problem(PairLoss(X, pairs, targets), l1=1e-2)


def _methods_to_run(problem: Problem, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Yield the requested methods; by default, all that need no arguments and can solve the problem."""
    if options.method is not None:
        for name in options.method:
            yield name, method_named(name)
        return
    for name, make in methods().items():
        if name.startswith("lopro.baselines.") and not options.baselines:
            continue
        with suppress(TypeError):  # arguments are required, or the problem lacks a capability
            method = make()
            method.check(problem)
            yield name, method


def _table(options: argparse.Namespace, rows: dict[str, Result]) -> Table:
    table = Table(
        title=f"{options.problem}, tol {options.tol:g}, at most {options.time_limit:g} s each",
        title_justify="left",
        caption="gap: relative and certified. products: with A and its adjoint.",
        caption_justify="left",
    )
    table.add_column("method", no_wrap=True)
    for name in ("value", "gap", "projections", "products", "iterations", "s"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("status", no_wrap=True)
    for name, result in rows.items():
        c = result.counts
        table.add_row(
            name.removeprefix("lopro."),
            f"{result.fun:.8g}",
            f"{result.certificate.relative_gap:.1e}",
            str(c.projections),
            str(c.matvecs + c.rmatvecs),
            str(result.iterations),
            f"{result.seconds:.3f}",
            result.status.name,
        )
    return table
