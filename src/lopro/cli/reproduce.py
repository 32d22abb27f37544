"""``lopro reproduce``: the paper's tables and rates, measured again on this machine."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lopro
from lopro.cli.answers import console
from lopro.cli.exit_codes import BadInput, ExitCode

__all__ = ["PARTS", "Part", "add", "run"]


@dataclass(frozen=True)
class Part:
    """An experiment: a module of lopro, or a script of a checkout where there is no such module."""

    about: str
    module: str
    script: str = ""
    sizes: tuple[str, ...] = ("quick", "full")

    def command(self) -> list[str] | None:
        """Return how to run it, or None where it is not installed."""
        if find_spec(self.module) is not None:
            return [sys.executable, "-m", self.module]
        path = Path(lopro.__file__).parents[2] / self.script
        return [sys.executable, str(path)] if self.script and path.is_file() else None


PARTS = {
    "table1": Part("LoPNAG against NESTA on basis pursuit denoising", "lopro.experiments.table1"),
    "table2": Part("sparse metric learning", "lopro.experiments.table2"),
    "rates": Part(
        "error against iterations for every rate, with its bound",
        "lopro.experiments.rates",
        "benchmarks/figure_rates.py",
        sizes=("quick",),
    ),
}


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "reproduce", help="the paper's tables and rates, measured again", description=__doc__
    )
    parser.add_argument("part", nargs="?", choices=[*PARTS, "all"], default="all")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small instances, for a first look")
    size.add_argument("--full", action="store_true", help="the paper's full scale")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the parts one after the other; return the exit status of the first that fails."""
    chosen = PARTS if options.part == "all" else {options.part: PARTS[options.part]}
    ready = {name: command for name, part in chosen.items() if (command := part.command())}
    if options.part != "all" and not ready:
        raise BadInput(
            f"{options.part} is not part of this installation: run it from a checkout of lopro"
        )
    out = console()
    for name, command in ready.items():
        flags = [f"--{size}" for size in PARTS[name].sizes if getattr(options, size)]
        out.print(f"== {name}: {PARTS[name].about}")
        sys.stdout.flush()  # what the child prints comes after this line, in a pipe too
        code = subprocess.call([*command, *flags])
        if code != 0:
            return code if code > 0 else ExitCode.INTERRUPTED
    return ExitCode.CONVERGED
