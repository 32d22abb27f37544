"""``lopro reproduce``: the paper's experiments, which live in the repository and not in the package."""

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
    "Run the paper's experiments and write one page about them. Parts that are finished are kept: an "
    "interrupted job resumes where it stopped."
)


def add(commands: Any) -> None:
    """Add the command's parser; its arguments are those of the checkout it finds."""
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
    """Raise an error that says where the experiments are."""
    raise BadInput(
        "the experiments are a part of the repository, not of the installed package: clone it, and run "
        "'make reproduce' there"
    )


def _checkout() -> Path | None:
    """Return the root of the repository: around the package, or where the command was called."""
    for root in (Path(lopro.__file__).resolve().parents[2], Path.cwd()):
        if (root / "paper" / "command.py").is_file() and (root / "src" / "lopro").is_dir():
            return root
    return None
