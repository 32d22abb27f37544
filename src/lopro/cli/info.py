"""``lopro info``: versions, machine and threads, for reports of problems and of measurements."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from lopro.cli.answers import console, print_json
from lopro.cli.exit_codes import ExitCode
from lopro.cli.machine import facts

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "info",
        help="versions, machine, threads",
        description="Print versions, machine and threads, for bug reports and measurements.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print versions, machine and threads."""
    found = facts()
    if options.json:
        print_json(found)
        return ExitCode.CONVERGED
    out = console()
    for name, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v if v is not None else '(absent)'}" for k, v in value.items())
        elif isinstance(value, list):
            value = "; ".join(value)
        out.print(f"{name:<16}{value}", soft_wrap=True)
    out.print(f"{'executable':<16}{sys.executable}", soft_wrap=True)
    return ExitCode.CONVERGED
