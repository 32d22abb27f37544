"""Claims on programs of Netlib: feasible and empty ones, with multipliers checked in fractions."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import lopro
import lopro.cvxpy
from lopro import Problem, Status
from lopro.constraints import (
    Affine,
    Intersection,
    Polyhedron,
)
from lopro.objectives import Linear

DATA = Path(os.environ.get("LOPRO_DATA", Path(__file__).parents[4] / "shared" / "data"))


@pytest.fixture
def netlib() -> Path:
    """Return the folder of the linear programs, which are not part of the repository."""
    if not (DATA / "netlib").is_dir():
        pytest.skip(f"no {DATA / 'netlib'}: set LOPRO_DATA to a folder with netlib/")
    return DATA / "netlib"


def program_of_netlib(folder: Path, name: str) -> tuple[Linear, Any, Any]:
    data = scipy.io.loadmat(folder / f"{name}.mat")

    def vector(key: str) -> Any:
        entry = data[key].toarray() if scipy.sparse.issparse(data[key]) else data[key]
        v = np.asarray(entry, dtype=float).ravel()
        return np.where(v >= 1e20, np.inf, np.where(v <= -1e20, -np.inf, v))

    blocks = [(data["A"], "b", "b"), (data["G"], "h_l", "h_u")]
    used = [(scipy.sparse.csr_array(M), vector(a), vector(b)) for M, a, b in blocks if M.shape[0]]
    M = scipy.sparse.vstack([rows for rows, _, _ in used], format="csr")
    lower, upper = (np.concatenate([block[i] for block in used]) for i in (1, 2))
    bounds = vector("x_l"), vector("x_u")
    set_: Any = Affine(M, lower, upper)
    if np.isfinite(bounds).any():
        set_ = Intersection(set_, Polyhedron.box(*bounds))
    return Linear(vector("c")), set_, (M, lower, upper, *bounds)


def test_a_row_of_pilot4_is_not_compared_with_the_norm_of_the_point(netlib: Path) -> None:
    f, set_, (M, lower, upper, *_) = program_of_netlib(netlib / "feasible", "pilot4")
    result = lopro.solve(Problem(f, set_), time_limit=60.0)
    assert result.success and result.fun == pytest.approx(-2581.1393, rel=1e-7)
    excess = np.maximum(M @ result.x - upper, lower - M @ result.x)
    side = np.where(M @ result.x > upper, upper, lower)
    large = np.abs(side) > 0.0
    compared = (abs(M) @ np.abs(result.x) + np.abs(side))[large]
    assert (np.maximum(excess[large], 0.0) / compared).max() <= result.certificate.violation <= 1e-9
    assert result.certificate.absolute_violation == pytest.approx(max(0.0, excess.max()), rel=1e-6)


def exact_support(M: Any, sides: Any, y: Any) -> tuple[Fraction, list[tuple[float, float]]]:
    """Return in fractions the support value of multipliers of rows and of the bounds that cancel them.

    Entries without the required bound remain: they are returned with the sum of their absolute terms.
    """
    lower, upper, least, most = sides
    total = sum(
        (Fraction(v) * Fraction(upper[i] if v > 0.0 else lower[i]) for i, v in enumerate(y) if v),
        Fraction(0),
    )
    columns, left = scipy.sparse.csc_array(M), []
    for k in range(M.shape[1]):
        at = slice(columns.indptr[k], columns.indptr[k + 1])
        pairs = list(zip(columns.data[at], y[columns.indices[at]], strict=True))
        slope = sum((Fraction(a) * Fraction(v) for a, v in pairs), Fraction(0))
        bound = least[k] if slope > 0 else most[k]
        if slope != 0 and np.isinf(bound):
            left.append((abs(float(slope)), math.fsum(abs(a * v) for a, v in pairs)))
        elif slope != 0:
            total -= slope * Fraction(bound)
    return total, left


@pytest.mark.parametrize(
    "name",
    [
        *("bgetam", "bgprtr", "ceria3d", "cplex1", "ex72a", "forest6", "gran", "greenbea"),
        *("itest6", "klein2", "mondou2", "pilot4i", "reactor", "vol1"),
    ],
)
def test_empty_programs_of_netlib_are_proved_to_be_empty(netlib: Path, name: str) -> None:
    """Multipliers are checked in fractions: the residual that no bound absorbs is rounding in each column."""
    f, set_, (M, *sides) = program_of_netlib(netlib / "infeasible", name)
    result = lopro.solve(Problem(f, set_), time_limit=60.0)
    assert result.status is Status.INFEASIBLE
    total, left = exact_support(M, sides, result.ray[0])
    assert total < 0
    assert all(slope <= 1e-13 * size for slope, size in left)
