"""Options that several commands share, and the conversion of their values."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from lopro.cli.exit_codes import BadInput
from lopro.methods.registry import methods

__all__ = ["add_output", "add_solver", "budget_of", "method_named"]


def add_solver(parser: argparse.ArgumentParser, tol: float) -> None:
    """Add the options for tolerance, method and budgets."""
    group = parser.add_argument_group("solver")
    group.add_argument(
        "--tol", type=float, default=tol, help="certified relative gap to reach (%(default)g)"
    )
    group.add_argument(
        "--method", help="a name listed by 'lopro methods'; by default chosen by structure"
    )
    group.add_argument(
        "--max-iter", type=int, metavar="N", help="largest number of inner iterations"
    )
    group.add_argument(
        "--max-projections", type=int, metavar="N", help="largest number of projections"
    )
    group.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="limit of the wall time of the whole call",
    )


def add_output(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the options for the output file and the format."""
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help=what)
    group.add_argument("--json", action="store_true", help="print JSON")
    group.add_argument("--quiet", action="store_true", help="show no progress, even on a terminal")


def budget_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the budgets as arguments of `lopro.solve`."""
    names = ("tol", "max_iter", "max_projections", "time_limit")
    return {name: getattr(options, name) for name in names}


def method_named(name: str | None) -> Any:
    """Return the method with this name, in any case, with its default parameters; None for None.

    Examples
    --------
    >>> from lopro.cli.arguments import method_named
    >>> type(method_named("lopnag")).__name__
    'LoPNAG'
    """
    if name is None:
        return None
    found = {full.rpartition(".")[2].lower(): (full, make) for full, make in methods().items()}
    try:
        full, make = found[name.rpartition(".")[2].lower()]
    except KeyError:
        known = ", ".join(sorted(full.rpartition(".")[2] for full, _ in found.values()))
        raise BadInput(f"there is no method {name!r}; there are {known}") from None
    try:
        return make()
    except TypeError:
        raise BadInput(
            f"{full} requires arguments: use it from Python, lopro.solve(..., method=...)"
        ) from None
