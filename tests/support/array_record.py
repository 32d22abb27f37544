"""Record the outcome of every case on every array library, for a table of the documentation.

    PYTHONPATH=src:tests python -m support.array_record [--only TEXT] [--library NAME ...]

The record is kept up to date case by case, so that a run can be interrupted and continued; --only runs the
cases whose name contains the text again. An outcome is "answer" (NumPy's, in the library, device and
precision of the data), "refused" (an error that says what to do), or the first line of what went wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

from support.array_answers import CASES, outcome
from support.array_calls import LIBRARIES

FILE = Path(__file__).parents[2] / "docs" / "guide" / "contract.json"
DISTRIBUTIONS = {"numpy": "numpy", "strict": "array-api-strict", "torch": "torch", "jax": "jax"}


def main() -> None:
    """Run the cases that are chosen and are not in the record, or those named by --only."""
    parser = argparse.ArgumentParser(prog="python -m support.array_record", description=__doc__)
    parser.add_argument("--only", default=None, metavar="TEXT", help="run these cases again")
    parser.add_argument("--library", action="append", choices=list(LIBRARIES))
    options = parser.parse_args()
    found = recorded()
    for library in options.library or LIBRARIES:
        for name in CASES:
            known = library in found["outcomes"].get(name, {})
            if options.only in name if options.only else not known:
                start = time.perf_counter()
                result = attempt(name, library)
                print(
                    f"{time.perf_counter() - start:7.1f} s  {library:14s} {name}: {result}",
                    flush=True,
                )
                found["outcomes"].setdefault(name, {})[library] = result
                write(found)


def recorded() -> dict[str, dict]:
    """Return the record, or one without outcomes."""
    if FILE.exists():
        return json.loads(FILE.read_text(encoding="utf-8"))
    return {"versions": {}, "outcomes": {}}


def attempt(name: str, library: str) -> str:
    """Return the outcome of one case."""
    try:
        return outcome(name, *LIBRARIES[library])
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def write(found: dict[str, dict]) -> None:
    """Write the record in the order of the cases, and without those that are gone."""
    libraries = {key.partition("-")[0] for row in found["outcomes"].values() for key in row}
    outcomes = {
        name: {
            key: found["outcomes"][name][key] for key in LIBRARIES if key in found["outcomes"][name]
        }
        for name in CASES
        if name in found["outcomes"]
    }
    versions = {key: version(name) for key, name in DISTRIBUTIONS.items() if key in libraries}
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in outcomes.items())
    text = f'{{"versions": {json.dumps(versions)},\n"outcomes": {{\n{rows}\n}}}}\n'
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
