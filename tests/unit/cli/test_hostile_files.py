"""Malicious or damaged files: one clear line, status 2, and no code is run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lopro.cli import main


def npy(header: str) -> bytes:
    """Return a file of `numpy.save` with the given header and ten numbers of data."""
    text = header.encode()
    text += b" " * (64 - (11 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(80)


def described(descr: str, shape: str) -> bytes:
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")


CODE = "__import__('pathlib').Path('done').touch()"
MARKET = "%%MatrixMarket matrix coordinate real general\n"
#: Versions of NumPy have two messages for a truncated file.
SHORT = ("could not be read: Failed to read", "could not be read: cannot reshape")
RAW = {
    "code.npy": (described(CODE, "(3, 3)"), "could not be read: malformed"),
    "more_than_memory.npy": (described("'<f8'", "(1000000, 1000000000)"), "Unable to allocate"),
    "negative.npy": (described("'<f8'", "(-1, 3)"), "could not be read"),
    "less_than_promised.npy": (described("'<f8'", "(30, 30)"), SHORT),
    "objects.npy": (described("'|O'", "(3, 3)"), "could not be read: Object arrays"),
    "endless_header.npy": (npy("{'descr': '" + 60000 * "9" + "', }"), "could not be read: Header"),
    "outside.mtx": ((MARKET + "3 3 2\n9 9 1.0\n1 1 1.0\n").encode(), "could not be read"),
    "more_than_memory.mtx": (
        (MARKET + "1000000000000 1000000000000 1\n1 1 1.0\n").encode(),
        "Unable to allocate",
    ),
    "pickle.npz": (b"cos\nsystem\n(S'touch done'\ntR.", "could not be read"),
}
ARRAYS = {
    "words.npy": (np.array(["a", "b", "c"]), "A must hold float32"),
    "dates.npy": (np.array(["2020-01-01"] * 3, dtype="M8[D]"), "A must hold float32"),
    "nan.npy": (np.full((3, 3), np.nan), "A must be finite"),
    "inf.npy": (np.full((3, 3), np.inf), "A must be finite"),
    "cube.npy": (np.zeros((3, 3, 3)), "2 dimension"),
    "nothing.npy": (np.zeros((0, 3)), "must not be empty"),
    "too_few_rows.npy": (np.eye(2), "shape"),
}


@pytest.mark.parametrize("name", [*RAW, *ARRAYS])
def test_a_hostile_file_is_one_line_and_status_2(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("y.npy", np.ones(3))
    if name in RAW:
        content, words = RAW[name]
        Path(name).write_bytes(content)
    else:
        array, words = ARRAYS[name]
        np.save(name, array)
    assert main(["bpdn", name, "y.npy", "--sigma", "1"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1
    assert any(w in shown.err for w in ((words,) if isinstance(words, str) else words))
    assert not Path("done").exists()
