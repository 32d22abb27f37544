"""The command line: which problems, which methods, how long; then JSON, tables and figures."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from _report import RESULTS
from rich.console import Console

from benchmarks.compare.problems import PROBLEMS
from benchmarks.compare.records import Record
from benchmarks.compare.report import reached, refusals
from benchmarks.compare.run import Limits, refer, run_all

DOCS = Path(__file__).parents[2] / "docs" / "comparison"


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--method", nargs="+", help="names as in the tables; all by default")
    parser.add_argument(
        "--time-limit",
        type=float,
        help="seconds of processor time for each run; 3, or 0.25 if quick",
    )
    parser.add_argument("--quick", action="store_true", help="toy sizes, as a test")
    parser.add_argument("--redraw", action="store_true", help="from the files of an earlier run")
    parser.add_argument("--output", type=Path, default=RESULTS, help="folder for JSON and figures")
    parser.add_argument(
        "--docs",
        type=Path,
        help=f"folder of the documentation; {DOCS.name} unless quick or partial",
    )
    options = parser.parse_args(arguments)
    if options.time_limit is None:
        options.time_limit = 0.25 if options.quick else 3.0
    return options


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    console = Console(width=120, highlight=False, markup=False)
    for name in options.problem:
        if not options.redraw:
            _run(name, options, console)
        for folder in _folders(options):
            _show(Record.read(options.output / f"compare_{name}.json"), folder, console)
    files = [options.output / f"compare_{name}.json" for name in PROBLEMS]
    records = [Record.read(path) for path in files if path.exists()]
    for folder in _folders(options):
        (folder / "refusals.md").write_text(refusals(records), encoding="utf-8")
    return 0


def _folders(options: argparse.Namespace) -> list[Path]:
    """Return where figures and tables go: the results, and the documentation of a full run."""
    if options.docs is not None:
        return [options.output, options.docs]
    whole = not options.quick and options.method is None and options.output == RESULTS
    return [options.output, DOCS] if whole else [options.output]


def _run(name: str, options: argparse.Namespace, console: Console) -> None:
    instance = PROBLEMS[name](options.quick)
    instance.prepare()
    limits = Limits(options.time_limit, max_iter=200 if options.quick else None)
    reference = refer(instance, 5.0 * options.time_limit)
    before = os.getloadavg()[0]
    curves = run_all(instance, limits, options.method, console.print)
    record = Record.of(instance, reference, limits, curves)
    record.environment["load_average"] = [before, os.getloadavg()[0]]
    record.write(options.output)
    console.print(reached(record))
    best = record.reference
    console.print(
        f"f_* = {best.fun:.12g} by {best.found_by}, relative gap {best.certified:.1e} by {best.proved_by}"
    )


def _show(record: Record, folder: Path, console: Console) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{record.name}.md").write_text(reached(record), encoding="utf-8")
    # Imported here, so that without matplotlib there are still a table and a file.
    try:
        from benchmarks.compare.figures import draw
    except ImportError as error:
        console.print(f"no figure: {error}")
        return
    console.print(f"figure: {draw(record, folder / f'{record.name}.png')}")
