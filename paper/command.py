"""The command behind ``make reproduce``: the paper's tables and rates, measured again on this machine."""

from __future__ import annotations

import argparse
from pathlib import Path

from lopro.cli.exit_codes import BadInput, ExitCode
from paper.report.parts import TITLES

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "part", nargs="?", choices=[*TITLES, "all"], default="all", help="part of the report"
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--short", action="store_true", help="small instances, about a minute")
    size.add_argument("--full", action="store_true", help="the paper's full scale, hours")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("report"),
        metavar="FOLDER",
        help="where the report is written",
    )
    parser.add_argument(
        "--colon", type=Path, metavar="FILE", help="the colon-cancer data in LIBSVM's format"
    )
    parser.add_argument("--fresh", action="store_true", help="run finished parts again")


def run(options: argparse.Namespace) -> int:
    """Run the parts and print the path of the page; return 1 if a required result was not reached."""
    from paper.report.job import reproduce
    from paper.report.order import Order, Scale

    if options.colon is not None and not options.colon.is_file():
        raise BadInput(f"there is no file {options.colon}")
    if options.out.exists() and not options.out.is_dir():
        raise BadInput(f"--out must be a folder, and {options.out} is a file")
    scale = Scale.SHORT if options.short else Scale.FULL if options.full else Scale.USUAL
    names = list(TITLES) if options.part == "all" else [options.part]
    try:
        done = reproduce(names, Order(scale, options.colon), options.out, fresh=options.fresh)
    except KeyboardInterrupt:
        print(f"\nfinished parts are kept in {options.out / 'parts'}: run it again")
        raise
    failures = [f"{n}: {failure}" for n in names for failure in done[n].section.failures]
    for failure in failures:
        print(f"NOT REACHED: {failure}")
    print(f"the report: {options.out / 'index.html'}")
    return ExitCode.NOT_CONVERGED if failures else ExitCode.CONVERGED
