"""Record what the library does, and compare two records (PYTHONPATH=src:tests).

    python -m traces record FILE [--only paper,catalogue,...]
    python -m traces compare OLD NEW [--only ...] [--allow-bits] [--allow-names] [--details N]
    python -m traces paths [--details N]
    python -m traces inventory

A trace is what one call does: its status, counts, method, value, bound and hashes of its arrays; for the
methods of the paper also every iterate. Two records of one machine agree exactly unless behaviour changed.
`compare` exits with 1 where a status, a count or a certification differs, and, without --allow-bits, where
only numbers do. `paths` says how many files and functions some calls pass and what they build; `inventory`
prints the numbers of the source beside those of `reference/inventory.json`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Sums in one order: one thread of linear algebra, set before NumPy is imported.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"


def main(arguments: list[str]) -> int:
    """Run the command."""
    options = _parser().parse_args(arguments)
    run = {"record": _record, "compare": _compare, "paths": _paths, "inventory": _inventory}
    return run[options.command](options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m traces",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="run the sections and write FILE")
    record.add_argument("file", type=Path)
    compare = commands.add_parser("compare", help="compare two records")
    compare.add_argument("old", type=Path)
    compare.add_argument("new", type=Path)
    compare.add_argument("--allow-bits", action="store_true", help="only counts matter")
    compare.add_argument("--allow-names", action="store_true", help="methods may have new names")
    compare.add_argument("--details", type=int, default=20, help="traces listed of each kind")
    for command in (record, compare):
        command.add_argument("--only", type=_names, help="names of sections, separated by commas")
    paths = commands.add_parser("paths", help="files and functions on the way of some calls")
    paths.add_argument("--details", type=int, default=0, help="functions listed for each call")
    commands.add_parser("inventory", help="numbers of the source, before and now")
    return parser


def _names(text: str) -> list[str]:
    return text.split(",")


def _record(options: argparse.Namespace) -> int:
    from traces.record import record, write

    write(record(options.only), options.file)
    return 0


def _compare(options: argparse.Namespace) -> int:
    from traces.compare import compare
    from traces.record import read

    sections, notes = compare(read(options.old), read(options.new), options.allow_names)
    sections = [s for s in sections if s.name in (options.only or [s.name])]
    for part in sections:
        print(*part.lines(options.details), sep="\n")
    print(*notes, sep="\n", end="\n" if notes else "")
    different = sum(len(s.different) for s in sections)
    bits = sum(len(s.other_bits) for s in sections)
    print(f"{different} different, {bits} with other bits")
    return 1 if different or (bits and not options.allow_bits) else 0


def _paths(options: argparse.Namespace) -> int:
    from traces.paths import report

    print(*report(options.details), sep="\n")
    return 0


def _inventory(options: argparse.Namespace) -> int:
    from traces.inventory import before, inventory, report

    print(*report(inventory(), before()), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
