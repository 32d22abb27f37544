"""``lopro methods``: the table of methods with their assumptions and guarantees."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from rich.table import Table

from lopro.cli.answers import console, print_json
from lopro.cli.exit_codes import ExitCode
from lopro.methods.registry import methods

__all__ = ["add", "run"]


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "methods",
        help="all methods with their assumptions and guarantees",
        description="List the methods with their assumptions and guarantees.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the cards of all methods."""
    about = {name: asdict(method.card) for name, method in methods().items()}
    if options.json:
        print_json(about)
        return ExitCode.CONVERGED
    table = Table(title="methods for lopro.solve(problem, method=...)", title_justify="left")
    table.add_column("method", no_wrap=True)
    columns = ("assumptions", "oracles", "projections", "rate")
    for name in columns:
        table.add_column(name, overflow="fold")
    for name, facts in about.items():
        table.add_row(name, *(facts[column] for column in columns))
    table.show_lines = True
    console().print(table)
    return ExitCode.CONVERGED
