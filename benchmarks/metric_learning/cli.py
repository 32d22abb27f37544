"""The command line: which problems, which methods, how long; then tables, JSON and figures."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from _report import DOCS_IMAGES, RESULTS
from rich.console import Console

from benchmarks.metric_learning.adapter import Adapter, Settings
from benchmarks.metric_learning.knn import run_knn
from benchmarks.metric_learning.knn_methods import METRICS
from benchmarks.metric_learning.measure import Row, measure_problem, warm_up
from benchmarks.metric_learning.ours import OURS
from benchmarks.metric_learning.peers import PEERS
from benchmarks.metric_learning.problems import PROBLEMS, Instance
from benchmarks.metric_learning.report import add_to_json, table

METHODS: dict[str, Adapter] = {adapter.name: adapter for adapter in [*OURS, *PEERS]}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.metric_learning", description=__doc__
    )
    parser.add_argument("--quick", action="store_true", help="toy sizes, as a test")
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of linear algebra, for all methods"
    )
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for each method")
    parser.add_argument(
        "--tol", type=float, default=1e-6, help="certified gap that lopro has to reach"
    )
    parser.add_argument("--colon", type=Path, help="colon-cancer file; or set LOPRO_COLON")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for JSON and figures")
    parser.add_argument("--docs", action="store_true", help="also write the figures to docs/images")
    knn = parser.add_argument_group("kNN accuracy (instead of the optimisation problems)")
    knn.add_argument("--knn", action="store_true", help="measure kNN accuracy of learned metrics")
    knn.add_argument("--metric", nargs="+", choices=METRICS, default=list(METRICS))
    knn.add_argument(
        "--splits", type=int, default=10, help="stratified splits, 70 %% to learn from"
    )
    knn.add_argument("--neighbors", type=int, default=3)
    knn.add_argument(
        "--environment",
        type=Path,
        help="folder of the environment for metric-learn, made if it is not there; a temporary one "
        "that is removed afterwards by default",
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    console = Console(width=190)
    if options.knn:
        run_knn(options, console)
        return 0
    adapters = [METHODS[name] for name in options.method]
    failed = warm_up(adapters)
    settings = Settings(options.time_limit, options.tol, 20 if options.quick else 200)
    for name in options.problem:
        instance = PROBLEMS[name](options.colon, options.quick)
        before = os.getloadavg()[0]
        rows = measure_problem(
            instance,
            adapters,
            settings,
            failed,
            say=lambda line: console.print(f"running {line}", markup=False, highlight=False),
        )
        load = [before, os.getloadavg()[0]]
        console.print(table(instance, rows))
        console.print(f"load average before and after: {load[0]:.1f}, {load[1]:.1f}")
        told = {key: str(value) for key, value in vars(options).items()} | {"load": load}
        add_to_json(options.output / "metric_learning.json", instance, rows, told)
        _draw(instance, rows, options, console)
    return 0


def _draw(
    instance: Instance, rows: list[Row], options: argparse.Namespace, console: Console
) -> None:
    # Imported here, so that without matplotlib there are still a table and a file.
    try:
        from benchmarks.metric_learning.figures import draw
    except ImportError as error:
        console.print(f"no figure: {error}", markup=False)
        return
    folders = [options.output, *([DOCS_IMAGES] if options.docs else [])]
    title = f"{instance.name}: {instance.dim} features, {instance.pairs} pairs"
    for path in draw(instance.name, title, rows, folders):
        console.print(f"figure: {path}", markup=False, highlight=False)
