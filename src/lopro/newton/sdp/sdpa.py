"""Semidefinite programs in SDPA's sparse format."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from lopro.newton.sdp.program import SemidefiniteBlock, SemidefiniteProgram

__all__ = ["read_sdpa"]

#: Separators between and around numbers.
_PUNCTUATION = re.compile(r"[,(){}]")


def _numbers(line: str) -> list[str]:
    return _PUNCTUATION.sub(" ", line).split()


def read_sdpa(path: str | Path) -> SemidefiniteProgram:
    r"""Read ``min c'x, sum x_i F_i - F_0 psd`` and return its dual, ``min <-F_0, Y>, <F_i, Y> = c_i, Y psd``.

    The value of the program that is returned is minus the one that SDPA calls optimal.

    Parameters
    ----------
    path : str or Path
        A ``.dat-s`` file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from lopro.newton.sdp import read_sdpa
    >>> text = '"one variable\n1 = m\n1 = blocks\n2\n1.0\n0 1 1 2 1.0\n1 1 1 1 1.0\n1 1 2 2 1.0\n'
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "tiny.dat-s"
    >>> _ = file.write_text(text)
    >>> program = read_sdpa(file)
    >>> program.b, [block.size for block in program.blocks]
    (array([1.]), [2])
    """
    text = Path(path).read_text(
        encoding="utf-8", errors="replace"
    )  # comments may be in any encoding
    lines = [line for line in text.splitlines() if line.strip()]
    start = next(i for i, line in enumerate(lines) if line.lstrip()[0] not in '"*')
    rows = int(_numbers(lines[start])[0])
    blocks = int(_numbers(lines[start + 1])[0])
    sizes = [int(float(s)) for s in _numbers(lines[start + 2])[:blocks]]
    rest = [number for line in lines[start + 3 :] for number in _numbers(line)]
    b = np.array(rest[:rows], dtype=np.float64)
    entries = np.array(rest[rows:], dtype=np.float64).reshape(-1, 5)
    return SemidefiniteProgram(
        b,
        tuple(_block(entries[entries[:, 1] == k + 1], size, rows) for k, size in enumerate(sizes)),
    )


def _block(entries: np.ndarray, size: int, rows: int) -> SemidefiniteBlock:
    """Return a matrix block, or a diagonal one if the size is negative."""
    matrix, i, j = (
        entries[:, 0].astype(int),
        entries[:, 2].astype(int) - 1,
        entries[:, 3].astype(int) - 1,
    )
    values = entries[:, 4]
    cost = matrix == 0
    return SemidefiniteBlock.of(
        abs(size), size < 0, rows, (i[cost], j[cost], -values[cost]),
        (matrix[~cost] - 1, i[~cost], j[~cost], values[~cost]),
    )  # fmt: skip
