"""Instances of public collections, which are not part of the repository.

LOPRO_DATA names the folder with ``maros_meszaros/*.mat``, ``netlib/*/*.mat`` and ``sdplib/*.dat-s``. Each run
has a time limit, so what is compared is whether it was certified, and its seconds: record them on a machine
that does nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse

import lopro
from lopro import constraints as lc
from lopro import objectives as lo
from traces.entry import measured

__all__ = ["maros", "netlib", "sdplib"]

Calls = Iterator[tuple[str, Callable[[], Any]]]

#: The limit of each run.
SECONDS = 20.0
#: What the files write for no bound, up to rounding.
NO_BOUND = 0.999e20


def _files(collection: str, pattern: str) -> list[Path]:
    default = Path(__file__).parents[3] / "shared" / "data"
    folder = Path(os.environ.get("LOPRO_DATA", default)) / collection
    if not folder.is_dir():
        raise LookupError(f"no {folder}: set LOPRO_DATA to a folder with {collection}/{pattern}")
    return sorted(folder.glob(pattern))


def maros() -> Calls:
    """Convex quadratic programs of Maros and Meszaros."""
    for path in _files("maros_meszaros", "*.mat"):
        yield path.stem, partial(_timed, partial(_quadratic_program, path), tol=1e-6)


def netlib() -> Calls:
    """Linear programs of Netlib, those without a solution as well."""
    for path in _files("netlib", "*/*.mat"):
        name = f"{path.parent.name}/{path.stem}"
        yield name, partial(_timed, partial(_linear_program, path), tol=1e-6)


def sdplib() -> Calls:
    """Semidefinite programs of SDPLIB."""
    for path in _files("sdplib", "*.dat-s"):
        name = path.name.removesuffix(".dat-s")
        yield name, partial(_timed, partial(_semidefinite_program, path), tol=1e-4)


def _timed(make: Callable[[], Any], tol: float) -> Any:
    """Return the entry of a run with a time limit; posing the problem is part of the time."""
    run = partial(lopro.solve, tol=tol, time_limit=SECONDS, seed=0)
    return {"timed": True} | measured(lambda: run(make()))


def _bounds(values: Any) -> Any:
    values = np.asarray(values, dtype=float).ravel()
    return np.where(np.abs(values) >= NO_BOUND, np.copysign(np.inf, values), values)


def _over(f: Any, sets: list[Any]) -> Any:
    return lopro.Problem(f, sets[0] if len(sets) == 1 else lc.Intersection(*sets))


def _quadratic_program(path: Path) -> Any:
    """Return ``1/2 x'Px + q'x + r`` over ``l <= Ax <= u``; rows of the identity at the end are a box."""
    content = scipy.io.loadmat(path)
    low, high = _bounds(content["l"]), _bounds(content["u"])
    A = scipy.sparse.csr_array(content["A"], dtype=float)
    P = scipy.sparse.csc_array(content["P"], dtype=float)
    n, rows = P.shape[0], A.shape[0]
    box = rows - n
    if box < 0 or abs(A[box:] - scipy.sparse.eye_array(n)).sum() != 0:
        box = rows
    sets: list[Any] = [lc.Affine(A[:box], low[:box], high[:box])] if box else []
    bounded = np.isfinite(low[box:]).any() or np.isfinite(high[box:]).any()
    sets += [lc.Box(low[box:], high[box:])] if bounded else []
    f = lo.Quadratic(P, content["q"].ravel().astype(float), float(content["r"].ravel()[0]))
    return _over(f, sets)


def _linear_program(path: Path) -> Any:
    """Return ``c'x`` over ``A x = b, h_l <= G x <= h_u, x_l <= x <= x_u``."""
    content = scipy.io.loadmat(path)
    sets: list[Any] = []
    for matrix, left, right in (("A", "b", "b"), ("G", "h_l", "h_u")):
        if matrix in content and content[matrix].shape[0]:
            M = scipy.sparse.csr_array(content[matrix], dtype=float)
            sets.append(lc.Affine(M, _bounds(content[left]), _bounds(content[right])))
    low, high = _bounds(content["x_l"]), _bounds(content["x_u"])
    if np.isfinite(low).any() or np.isfinite(high).any():
        sets.append(lc.Box(low, high))
    return _over(lo.Linear(content["c"].ravel().astype(float)), sets)


def _semidefinite_program(path: Path) -> Any:
    return replace(lopro.read_sdpa(path), gap_scale=0.0)
