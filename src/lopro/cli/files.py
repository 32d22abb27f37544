"""Reading and writing of files: arrays (npy, npz, Matrix Market, text) and tables of samples."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.cli.exit_codes import BadInput

__all__ = ["Samples", "check_writable", "read_array", "read_samples", "read_vector", "write_array"]

_TEXT = {".csv": ",", ".tsv": "\t", ".txt": None}


def read_array(name: str) -> Any:
    """Return the array in a file: a NumPy array, or a scipy.sparse matrix if the file holds one.

    ``name`` is a path; for an ``npz`` with several arrays, ``path:key``.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from lopro.cli.files import read_array
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/A.npy", np.eye(2))
    ...     read_array(f"{folder}/A.npy").shape
    (2, 2)
    """
    path, key = _split(name)
    if not path.is_file():
        raise BadInput(f"there is no file {path}" if not path.exists() else f"{path} is a folder")
    reader = _reader(path)
    try:
        found = reader(path, key)
    except BadInput:
        raise
    except Exception as error:
        # The readers raise different exceptions; the message is one line with the file and the reason.
        reason = str(error).splitlines() or [type(error).__name__]
        raise BadInput(f"{path} could not be read: {reason[0]}") from None
    return found


def read_vector(name: str) -> Any:
    """Return the array in a file; a single row or column is returned as a vector."""
    found = read_array(name)
    if scipy.sparse.issparse(found):
        found = found.toarray()
    return found.reshape(-1) if found.ndim == 2 and 1 in found.shape else found


def _split(name: str) -> tuple[Path, str | None]:
    head, colon, key = name.rpartition(":")
    if colon and head.endswith(".npz"):
        return Path(head), key
    return Path(name), None


def _reader(path: Path) -> Callable[[Path, str | None], Any]:
    readers = {".npy": _read_npy, ".npz": _read_npz, ".mtx": _read_mtx}
    readers |= dict.fromkeys(_TEXT, _read_text)
    suffix = ".mtx" if path.name.endswith(".mtx.gz") else path.suffix
    if suffix not in readers:
        known = ", ".join(readers)
        raise BadInput(f"{path} has an unknown suffix; known are {known}")
    return readers[suffix]


def _read_npy(path: Path, key: str | None) -> Any:
    with path.open("rb") as file:
        if file.read(6) != np.lib.format.MAGIC_PREFIX:
            raise ValueError("it is not in the format of numpy.save")
    return np.load(path, allow_pickle=False)


def _read_npz(path: Path, key: str | None) -> Any:
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
        if key is None and "format" in names and "shape" in names:
            return scipy.sparse.load_npz(path)
        if key is None and len(names) == 1:
            key = names[0]
        if key not in names:
            problem = "name one of its arrays" if key is None else f"it has no array {key!r}"
            raise BadInput(
                f"{path}: {problem}, as in {path}:{names[0]} (it has {', '.join(names)})"
            )
        return archive[key]


def _read_mtx(path: Path, key: str | None) -> Any:
    found = scipy.io.mmread(path, spmatrix=False)
    return found.tocsr() if scipy.sparse.issparse(found) else found


def _delimiter_of(path: Path) -> str | None:
    """Return the separator of the columns of a text file with this suffix (None: white space)."""
    return _TEXT.get(path.suffix, ",")


def _read_text(path: Path, key: str | None) -> Any:
    text = path.read_text(encoding="utf-8-sig")
    if not text.strip():
        raise BadInput(f"{path} is empty")
    delimiter = _delimiter_of(path)
    first = text.lstrip().splitlines()[0]
    header = not all(_is_number(cell) for cell in first.split(delimiter) if cell.strip())
    if header and len(text.strip().splitlines()) == 1:
        raise BadInput(f"{path} has no row of numbers, only the line {first[:40]!r}")
    dtype = np.complex128 if "j" in text else np.float64
    return np.loadtxt(io.StringIO(text), delimiter=delimiter, skiprows=int(header), dtype=dtype)


def _is_number(cell: str) -> bool:
    try:
        complex(cell.strip())
    except ValueError:
        return False
    return True


def write_array(path: Path, **arrays: Any) -> None:
    """Write arrays: all of them to an ``npz``, only the first to other formats.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> from lopro.cli.files import read_array, write_array
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "x.csv"
    ...     write_array(path, x=np.array([1.0, 2.5]))
    ...     read_array(str(path))
    array([1. , 2.5])
    """
    first = np.asarray(next(iter(arrays.values())))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".npy":
        np.save(path, first)
    elif path.suffix == ".mtx":
        scipy.io.mmwrite(path, scipy.sparse.coo_array(np.atleast_2d(first.T).T))
    else:
        np.savetxt(path, first, delimiter=_delimiter_of(path) or " ", fmt="%.17g")


def check_writable(path: Path | None) -> None:
    """Raise `BadInput` if the output file cannot be written; called before the computation."""
    if path is None:
        return
    known = [".npy", ".npz", ".mtx", *_TEXT]
    if path.suffix not in known:
        raise BadInput(f"the output {path} must end in one of {', '.join(known)}")
    if path.is_dir():
        raise BadInput(f"the output {path} is a folder")


@dataclass(frozen=True)
class Samples:
    """Samples with their labels and the names of the features."""

    X: np.ndarray
    labels: np.ndarray
    features: list[str]


def read_samples(path: Path, label: str, ignore: Sequence[str] = ()) -> Samples:
    r"""Return the samples in a text file with a line of names, one line per sample and a column of labels.

    ``label`` and ``ignore`` are names of columns or their indices from 0 (negative ones from the end).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from lopro.cli.files import read_samples
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.csv"
    ...     _ = path.write_text("height,weight,kind\n1,2,cat\n3,4,dog\n")
    ...     read_samples(path, "kind").X
    array([[1., 2.],
           [3., 4.]])
    """
    names, rows = _table(path)
    chosen = _column(names, label, path)
    dropped = {chosen, *(_column(names, name, path) for name in ignore)}
    kept = [j for j in range(len(names)) if j not in dropped]
    if not kept:
        raise BadInput(f"{path} has no feature left beside the label {names[chosen]!r}")
    X = np.array([[_as_number(row[j], path, line, names[j]) for j in kept] for line, row in rows])
    return Samples(X, np.array([row[chosen].strip() for _, row in rows]), [names[j] for j in kept])


def _table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    if path.suffix in {".npy", ".npz", ".mtx"}:
        raise BadInput(
            f"{path} has no columns with names: give the labels as a file, --labels FILE"
        )
    with path.open(newline="", encoding="utf-8-sig") as file:
        delimiter = _delimiter_of(path)
        reader = csv.reader(file, delimiter=delimiter or " ", skipinitialspace=True)
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    if len(rows) < 2:
        raise BadInput(f"{path} must have a line of names and at least one sample below it")
    names = [name.strip() for name in rows[0][1]]
    for line, row in rows[1:]:
        if len(row) != len(names):
            raise BadInput(f"{path}, line {line}: {len(row)} cells, but {len(names)} columns")
    return names, rows[1:]


def _column(names: list[str], column: str, path: Path) -> int:
    """Return the index of a column, given by its name or index."""
    if column in names:
        return names.index(column)
    try:
        return range(len(names))[int(column)]
    except (ValueError, IndexError):
        shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
        raise BadInput(f"{path} has no column {column!r}; its columns are {shown}") from None


def _as_number(cell: str, path: Path, line: int, name: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise BadInput(
            f"{path}, line {line}, column {name!r}: {cell!r} is not a number (leave a column out "
            f"with --ignore {name!r})"
        ) from None
