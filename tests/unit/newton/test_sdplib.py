"""Programs of SDPLIB and files in the SDPA format."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from lopro.newton.sdp import Status, read_sdpa, solve


def test_sdpa_files(tmp_path):
    """Signs, triangles, diagonal blocks and punctuation."""
    text = '"a comment\n2 = mDIM\n2 = nBLOCK\n(2, -2) = bLOCKsTRUCT\n{1.0, 2.0}\n'
    text += "0 1 1 2 3.0\n0 2 1 1 -1.0\n1 1 1 1 1.0\n1 2 2 2 4.0\n2 1 1 2 0.5\n"
    path = tmp_path / "small.dat-s"
    path.write_text(text, encoding="utf-8")
    program = read_sdpa(path)
    matrix, numbers = program.blocks
    assert np.array_equal(program.b, [1.0, 2.0])
    assert np.array_equal(matrix.C, [[0.0, -3.0], [-3.0, 0.0]])
    assert np.array_equal(numbers.C, [1.0, 0.0]) and numbers.diagonal
    assert np.array_equal(matrix.A.toarray(), [[1, 0, 0, 0], [0, 0.5, 0.5, 0]])
    assert np.array_equal(numbers.A.toarray(), [[0, 4], [0, 0]])


DATA = Path(os.environ.get("LOPRO_DATA", Path(__file__).parents[4] / "shared" / "data")) / "sdplib"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mcp100", 226.1574), ("mcp124-1", 141.9905), ("truss1", -8.999996), ("truss3", -9.109996),
        ("theta1", 23.0), ("qap5", -436.0), ("hinf1", 2.0326), ("hinf9", 236.25), ("control3", 13.63327),
        ("infd1", Status.INFEASIBLE), ("infp1", Status.UNBOUNDED),
    ],
)  # fmt: skip
def test_sdplib(name, value):
    path = DATA / f"{name}.dat-s"
    if not path.exists():
        pytest.skip(f"no {path}: set LOPRO_DATA to a folder with sdplib/*.dat-s")
    found = solve(read_sdpa(path), 1e-4, scale=0.0)
    if isinstance(value, Status):
        assert found.status is value
        return
    assert found.status is Status.CONVERGED
    assert -found.fun == pytest.approx(value, rel=1e-4)
    assert found.lower_bound <= -value * (1.0 - 1e-6 * math.copysign(1.0, value))


def test_hinf1_without_diagonal_blocks():
    """All its blocks are matrices: the least entry of an empty diagonal block is not used."""
    path = DATA / "hinf1.dat-s"
    if not path.exists():
        pytest.skip(f"no {path}: set LOPRO_DATA to a folder with sdplib/*.dat-s")
    found = solve(read_sdpa(path), seconds=5.0)
    assert np.isfinite(found.fun)
