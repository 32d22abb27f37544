"""Clarabel's answer to a column, on data scaled by powers of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.judge.conic import Program
from fuzz.judge.wide import power_of_two
from fuzz.sparse.column import Array, Column

__all__ = ["Answer", "answer"]


@dataclass(frozen=True)
class Answer:
    """A nearly feasible point, and a nearly feasible dual point."""

    solved: bool
    x: Array
    nu: Array


def answer(column: Column) -> Answer:
    """Solve a column by an interior-point method."""
    unit = power_of_two(float(np.abs(column.A).max()))
    size = power_of_two(float(np.abs(column.y).max()))
    heavy = power_of_two(float(np.abs(column.weights).max()))
    A, y = column.A / unit, column.y / size
    weights, sigma = column.weights / heavy, column.sigma / size
    d, is_complex = A.shape[1], "c" in (A.dtype.kind, y.dtype.kind)
    M, target = (_real(A), np.concatenate([y.real, y.imag])) if is_complex else (A, y)
    M, target = M.astype(np.float64), target.astype(np.float64)
    program = Program(sp.eye_array(M.shape[1], format="csr"))
    _add_objective(program, weights, column.nonneg, d, is_complex)
    at = len(program._rows)
    if sigma == 0.0:
        program.zero([(program.x, M)], -target)
    else:
        head = np.vstack([np.zeros((1, M.shape[1])), M])
        program.second_order([(program.x, head)], np.concatenate([[sigma], -target]))
    found = program.solve()
    point, nu = found.point, -found.multipliers[at][-len(target) :]
    if is_complex:
        point = point[:d] + 1j * point[d:]
        nu = nu[: len(y)] + 1j * nu[len(y) :]
    return Answer(found.solved, point * (size / unit), -nu)


def _real(A: Array) -> Array:
    A = A.astype(np.complex128)
    return np.block([[A.real, -A.imag], [A.imag, A.real]])


def _add_objective(program: Program, w: Any, nonneg: bool, d: int, is_complex: bool) -> None:
    one = sp.eye_array(d, format="csr")
    if nonneg:
        program.minimise(program.x, w)
        program.positive([(program.x, one)], np.zeros(d))
        return
    t = program.lift(d)
    program.minimise(t, w)
    if not is_complex:
        program.positive([(t, one), (program.x, -one)], np.zeros(d))
        program.positive([(t, one), (program.x, one)], np.zeros(d))
        return
    for i in range(d):
        above = sp.csr_array(([1.0], ([0], [i])), shape=(3, d))
        parts = sp.csr_array(([1.0, 1.0], ([1, 2], [i, d + i])), shape=(3, 2 * d))
        program.second_order([(t, above), (program.x, parts)], np.zeros(3))
