"""Record what the library does, and compare two records (PYTHONPATH=src:tests).

    python -m traces record FILE [--only paper,catalogue,...]
    python -m traces compare OLD NEW [--only ...] [--allow-bits] [--allow-names] [--rounding FILE]
    python -m traces reference [--only ...]
    python -m traces paths [--details N]
    python -m traces inventory

A trace is what one call does: its status, counts, method, value, bound and hashes of its arrays; for the
methods of the paper also every iterate. Two records of one machine agree exactly unless behaviour changed.
`compare` exits with 1 where a status, a count or a certification differs, and, without --allow-bits, where
only numbers do. Some counts depend on rounding: a record of the old code that was made with another kernel
(OPENBLAS_CORETYPE=Haswell, for instance) shows which, and --rounding sets them apart. `reference` writes the
small records in `reference/` again, which a test compares with. `paths` says how many files and functions
some calls pass and what they build, `inventory` prints numbers of the source, both beside those from before.
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
    run = {
        "record": _record, "compare": _compare, "reference": _reference, "paths": _paths,
        "inventory": _inventory,
    }  # fmt: skip
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
    compare.add_argument(
        "--allow-bits", action="store_true", help="ignore differences in numbers alone"
    )
    compare.add_argument("--allow-names", action="store_true", help="methods may have new names")
    compare.add_argument(
        "--rounding", type=Path, action="append", default=[], metavar="FILE",
        help="record of the old code with another kernel: what differs there as well is set apart",
    )  # fmt: skip
    compare.add_argument("--details", type=int, default=20, help="traces listed of each kind")
    reference = commands.add_parser("reference", help="write the records of the repository again")
    for command in (record, compare, reference):
        command.add_argument("--only", type=_names, help="names of sections, separated by commas")
    paths = commands.add_parser("paths", help="files and functions on the way of some calls")
    paths.add_argument("--details", type=int, default=0, help="functions listed for each call")
    commands.add_parser("inventory", help="numbers of the source, before and now")
    return parser


def _names(text: str) -> list[str]:
    return text.split(",")


def _record(options: argparse.Namespace) -> int:
    from traces.record import record

    record(options.only, options.file)
    return 0


def _compare(options: argparse.Namespace) -> int:
    from traces.compare import compare, set_apart
    from traces.record import read

    records = [read(path) for path in (options.old, options.new, *options.rounding)]
    for record in records:
        kept = options.only or record["sections"]
        record["sections"] = {k: v for k, v in record["sections"].items() if k in kept}
    sections, notes = compare(records[0], records[1], options.allow_names)
    for other in records[2:]:
        set_apart(sections, compare(records[0], other, options.allow_names)[0])
    for part in sections:
        print(*part.lines(options.details), sep="\n")
    print(*notes, sep="\n", end="\n" if notes else "")
    different = sum(len(s.different) for s in sections)
    bits = sum(len(s.other_bits) for s in sections)
    print(f"{different} different, {bits} with other bits")
    return 1 if different or (bits and not options.allow_bits) else 0


def _reference(options: argparse.Namespace) -> int:
    from traces.reference import make

    make(options.only)
    return 0


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
