"""Tables of what was recorded on every array library (`tests/support/array_record.py`)."""

from __future__ import annotations

import json
from pathlib import Path

RECORD = Path(__file__).parents[1] / "guide" / "contract.json"
#: Names of the libraries and precisions of the record.
LIBRARIES = {
    "numpy-single": "NumPy float32",
    "strict": "array-api-strict float64",
    "strict-single": "array-api-strict float32",
    "torch": "PyTorch float64",
    "torch-single": "PyTorch float32",
    "jax": "JAX float64",
    "jax-single": "JAX float32",
}


def contract_tables() -> str:
    """Return the tables of the record, and the versions it was made with."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    kinds: dict[str, dict[str, dict[str, str]]] = {}
    for name, row in record["outcomes"].items():
        kind, _, case = name.partition(": ")
        kinds.setdefault(kind, {})[case] = row
    answers = sum(v == "answer" for row in record["outcomes"].values() for v in row.values())
    total = sum(len(row) for row in record["outcomes"].values())
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    return "\n\n".join(
        [
            f"{answers} of {total} combinations give NumPy's answer. Recorded with {versions}.",
            "Objectives over sets:",
            _grid(kinds["pairs"]),
            "Methods:",
            _table(kinds["methods"]),
            "Applications:",
            _table(kinds["applications"]),
            "",
        ]
    )


def _grid(pairs: dict[str, dict[str, str]]) -> str:
    """Return a table with a row for each objective and a column for each set."""
    cells = {tuple(name.split(" over ")): _summary(row) for name, row in pairs.items()}
    objectives = list(dict.fromkeys(pair[0] for pair in cells))
    sets = list(dict.fromkeys(pair[1] for pair in cells))
    rows = [[f, *(cells.get((f, s), "") for s in sets)] for f in objectives]
    return _lines(["", *sets], rows)


def _table(cases: dict[str, dict[str, str]]) -> str:
    """Return a table with a row for each case."""
    return _lines(["", "outcome"], [[name, _summary(row)] for name, row in cases.items()])


def _summary(row: dict[str, str]) -> str:
    """Return "yes" where every library gives the answer, else the libraries that do not."""
    others: dict[str, list[str]] = {}
    for library, outcome in row.items():
        if outcome != "answer":
            others.setdefault(outcome, []).append(LIBRARIES[library])
    if not others:
        return "yes"
    if others.keys() == {"refused"} and len(others["refused"]) == len(row) - 1:
        return "on the host only: elsewhere an error says what to do"
    return "; ".join(f"{outcome} by {', '.join(names)}" for outcome, names in others.items())


def _lines(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in lines)
