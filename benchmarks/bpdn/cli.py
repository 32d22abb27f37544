"""The command line: which problems, which methods, how often; then tables, JSON and figures."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from _report import RESULTS
from rich.console import Console

from benchmarks.bpdn.adapter import Adapter
from benchmarks.bpdn.measure import measure_problem, warm_up
from benchmarks.bpdn.ours import OURS
from benchmarks.bpdn.peers import PEERS
from benchmarks.bpdn.problems import PROBLEMS
from benchmarks.bpdn.report import add_to_json, summary, table

METHODS: dict[str, Adapter] = {adapter.name: adapter for adapter in [*OURS, *PEERS]}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bpdn", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="toy sizes, as a test")
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--method", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--threads", type=int, default=1, help="threads of linear algebra, for all methods"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cap", type=float, default=60.0, help="seconds for each method")
    parser.add_argument(
        "--no-curves", action="store_true", help="skip the extra runs that curves of peers need"
    )
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for JSON and figures")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    console = Console(width=140)
    adapters = [METHODS[name] for name in options.method]
    failed = warm_up(adapters)
    settings = {key: str(value) for key, value in vars(options).items()}
    for name in options.problem:
        instance = PROBLEMS[name](options.quick)
        before = os.getloadavg()[0]
        rows = measure_problem(
            instance,
            adapters,
            repeats=options.repeats,
            cap=options.cap,
            curves=not options.no_curves,
            failed=failed,
            say=lambda line: console.print(f"running {line}", markup=False, highlight=False),
        )
        load = [before, os.getloadavg()[0]]
        console.print(table(instance, rows))
        console.print(f"load average before and after: {load[0]:.1f}, {load[1]:.1f}")
        sentence = summary(name, rows)
        if sentence is not None:
            console.print(sentence, highlight=False)
        add_to_json(options.output / "bpdn.json", instance, rows, {**settings, "load": load})
        _draw(name, rows, options.output, console)
    return 0


def _draw(name: str, rows: list, folder: Path, console: Console) -> None:
    # Imported here, so that without matplotlib there are still a table and a file.
    try:
        from benchmarks.bpdn.figures import draw
    except ImportError as error:
        console.print(f"no figure: {error}", markup=False)
        return
    path = draw(name, rows, folder)
    if path is not None:
        console.print(f"figure: {path}", markup=False, highlight=False)
