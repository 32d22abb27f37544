"""``lopro reproduce``: the experiments of the paper, which are part of the repository, not of the package."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import Any

import lopro
from lopro.cli.exit_codes import BadInput

__all__ = ["add", "run"]

_DESCRIPTION = (
    "Run the experiments of the paper and write a report of one page. Completed parts are stored: an "
    "interrupted run resumes after them."
)


def add(commands: Any) -> None:
    """Add the command's parser, with the arguments defined in the checkout."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "reproduce", help="the paper's tables and rates, measured again", description=_DESCRIPTION
    )
    root = _checkout()
    if root is None:
        parser.add_argument("anything", nargs="*", help=argparse.SUPPRESS)
        parser.set_defaults(run=run)
        return
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    command = importlib.import_module("paper.command")
    command.add_arguments(parser)
    parser.set_defaults(run=command.run)


def run(options: argparse.Namespace) -> int:
    """Raise `BadInput`: there is no checkout with the experiments."""
    raise BadInput(
        "the experiments are part of the repository, not of the installed package: clone it and run "
        "'make reproduce' there"
    )


def _checkout() -> Path | None:
    """Return the root of the repository that contains the package or the working directory; None without."""
    for root in (Path(lopro.__file__).resolve().parents[2], Path.cwd()):
        if (root / "paper" / "command.py").is_file() and (root / "src" / "lopro").is_dir():
            return root
    return None
