"""A table of samples from a text file: columns with names, one of which may hold labels."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lopro.cli.exit_codes import BadInput
from lopro.cli.files import delimiter_of

__all__ = ["Samples", "read_samples"]


@dataclass(frozen=True)
class Samples:
    """Samples with their labels, and the names of the features."""

    X: np.ndarray
    labels: np.ndarray
    features: list[str]


def read_samples(path: Path, label: str, ignore: Sequence[str] = ()) -> Samples:
    r"""Read a text file with a line of names, one line per sample, and a column of labels.

    ``label`` and ``ignore`` are names of columns, or their numbers counted from 0 (negative ones from
    the end).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from lopro.cli.tables import read_samples
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.csv"
    ...     _ = path.write_text("height,weight,kind\n1,2,cat\n3,4,dog\n")
    ...     read_samples(path, "kind").X
    array([[1., 2.],
           [3., 4.]])
    """
    names, rows = _lines(path)
    chosen = _column(names, label, path)
    dropped = {chosen, *(_column(names, name, path) for name in ignore)}
    kept = [j for j in range(len(names)) if j not in dropped]
    if not kept:
        raise BadInput(f"{path} has no feature left beside the label {names[chosen]!r}")
    X = np.array([[_number(row[j], path, line, names[j]) for j in kept] for line, row in rows])
    return Samples(X, np.array([row[chosen].strip() for _, row in rows]), [names[j] for j in kept])


def _lines(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    if path.suffix in {".npy", ".npz", ".mtx"}:
        raise BadInput(
            f"{path} has no columns with names: give the labels as a file, --labels FILE"
        )
    with path.open(newline="", encoding="utf-8-sig") as file:
        delimiter = delimiter_of(path)
        reader = csv.reader(file, delimiter=delimiter or " ", skipinitialspace=True)
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise BadInput(f"{path} must have a line of names and at least one sample below it")
    names = [name.strip() for name in rows[0][1]]
    for line, row in rows[1:]:
        if len(row) != len(names):
            raise BadInput(f"{path}, line {line}: {len(row)} cells, but {len(names)} columns")
    return names, rows[1:]


def _column(names: list[str], asked: str, path: Path) -> int:
    if asked in names:
        return names.index(asked)
    try:
        return range(len(names))[int(asked)]
    except (ValueError, IndexError):
        shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise BadInput(f"{path} has no column {asked!r}; its columns are {shown}") from None


def _number(cell: str, path: Path, line: int, name: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise BadInput(
            f"{path}, line {line}, column {name!r}: {cell!r} is not a number (leave a column out "
            f"with --ignore {name!r})"
        ) from None
