"""``lopro info``: versions, machine and threads, for reports of problems and of measurements."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import lopro
from lopro.cli.answers import console, print_json
from lopro.cli.exit_codes import ExitCode

__all__ = ["add", "facts", "run"]

_NEEDED = ("numpy", "scipy", "array-api-compat", "clarabel", "rich", "threadpoolctl")
_OPTIONAL = ("scikit-learn", "matplotlib", "torch", "cupy", "spgl1", "celer", "cvxpy", "benchopt")


def add(commands: Any) -> None:
    """Add the command's parser."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "info", help="versions, machine, threads", description=__doc__
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def facts() -> dict[str, Any]:
    """Return what a measurement should be published with.

    Examples
    --------
    >>> from lopro.cli.info import facts
    >>> sorted(facts())
    ['cores', 'linear algebra', 'lopro', 'machine', 'optional', 'packages', 'python']
    """
    import scipy.linalg  # noqa: F401  (its thread pool shows once it is loaded)
    from threadpoolctl import threadpool_info

    pools = [
        f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
        for pool in threadpool_info()
    ]
    return {
        "lopro": lopro.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "linear algebra": pools,
        "packages": {name: _version(name) for name in _NEEDED},
        "optional": {name: _version(name) for name in _OPTIONAL},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def run(options: argparse.Namespace) -> int:
    """Print the facts."""
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
