"""The command ``lopro``: argument parsing, and messages and exit statuses for errors."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence

import lopro
from lopro.cli import bench, bpdn, info, methods, metric, reproduce
from lopro.cli.exit_codes import EXPLANATION, ExitCode
from lopro.errors import ProjectionError

__all__ = ["main"]

_COMMANDS = (bpdn, metric, reproduce, bench, methods, info)

#: Exceptions that the library raises for bad data, files and options.
_USER_ERRORS = (ValueError, TypeError, OSError, MemoryError, ProjectionError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status.

    Examples
    --------
    >>> from lopro.cli import main
    >>> main(["bpdn", "no_such_file.npy", "y.npy", "--sigma", "1"])
    2
    """
    options = _parser().parse_args(arguments)
    return int(_guarded(options))


def _guarded(options: argparse.Namespace) -> int:
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("lopro: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe; this prevents a message of Python at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.CONVERGED
    except Exception as error:
        return _explained(error, options.traceback)


def _explained(error: Exception, show_traceback: bool) -> ExitCode:
    if show_traceback:
        traceback.print_exception(error)
    expected = isinstance(error, _USER_ERRORS)
    text = str(error) or type(error).__name__
    print(f"lopro: {text if expected else f'{type(error).__name__}: {text}'}", file=sys.stderr)
    if expected:
        return ExitCode.BAD_INPUT
    print(
        "lopro: this is a defect; please report it with the output of lopro --traceback",
        file=sys.stderr,
    )
    return ExitCode.INTERNAL


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lopro",
        description="Convex optimisation with a certificate for each answer.",
        epilog=EXPLANATION,
    )
    parser.add_argument("--version", action="version", version=f"lopro {lopro.__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add(commands)
    return parser
