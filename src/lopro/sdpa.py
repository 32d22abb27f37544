"""Semidefinite programs from files in SDPA's sparse format, as problems for `lopro.solve`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints import Affine, Intersection, PSDCone
from lopro.newton.sdp import read_sdpa as read_program
from lopro.objectives import Linear
from lopro.problem import Problem

__all__ = ["read_sdpa"]


def read_sdpa(path: str | Path) -> Problem:
    r"""Read ``min c'x, sum x_i F_i - F_0 psd`` and return its dual, ``min <-F_0, Y>, <F_i, Y> = c_i, Y psd``.

    Blocks are on the diagonal of one matrix Y, whose entries between blocks are free; `lopro.solve` finds the
    blocks again. The optimal value is minus the one that SDPA's tables give.

    Parameters
    ----------
    path : str or Path
        A ``.dat-s`` file.

    Examples
    --------
    >>> import tempfile, pathlib, lopro
    >>> text = '"one variable\n1 = m\n1 = blocks\n2\n1.0\n0 1 1 2 1.0\n1 1 1 1 1.0\n1 1 2 2 1.0\n'
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "tiny.dat-s"
    >>> _ = file.write_text(text)
    >>> problem = lopro.read_sdpa(file)
    >>> problem.shape, round(lopro.solve(problem).fun, 5)
    ((2, 2), -1.0)
    """
    program = read_program(path)
    n = sum(block.size for block in program.blocks)
    cost = np.zeros((n, n))
    rows, columns, values, start = [], [], [], 0
    for block in program.blocks:
        at = np.arange(start, start + block.size)
        start += block.size
        entries = scipy.sparse.coo_array(block.A)
        k, place = entries.coords
        if block.diagonal:
            cost[at, at] = block.C
            columns.append(at[place] * n + at[place])
        else:
            cost[np.ix_(at, at)] = block.C
            columns.append(at[place // block.size] * n + at[place % block.size])
        rows.append(k)
        values.append(entries.data)
    places = np.concatenate(rows), np.concatenate(columns)
    M = scipy.sparse.csr_array((np.concatenate(values), places), (len(program.b), n * n))
    fixed = Affine(M, program.b, program.b, shape=(n, n))
    return Problem(Linear(cost), Intersection(PSDCone(n), fixed))
