"""Norms of images, and Huber's function, as parts of a conic program."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.cones.cones import Nonnegative, PSDTriangle, triangle
from lopro.conic_forms.objectives import add_objective
from lopro.conic_forms.sets import real_matrix
from lopro.core.arrays import Array, is_complex, to_numpy
from lopro.core.real_vectors import to_real_vector
from lopro.engines import ConicProgram, require_room
from lopro.errors import MissingCapabilityError
from lopro.objectives import Huber, LInfNorm, NuclearNorm
from lopro.objectives.of_image import OfImage

__all__: list[str] = []


@add_objective.register
def _(f: LInfNorm, program: ConicProgram, factor: float, zero: Array) -> None:
    """Add ``t`` with ``|(D x)_i| <= t`` for all i."""
    D = _map(f, zero)
    m = D.shape[0]
    t = program.new_variables(1)
    program.add_linear(np.array([factor]), t)
    top = scipy.sparse.csr_array(-np.ones((m, 1)))
    program.add_rows(np.zeros(m), Nonnegative(m), (D, 0), (top, t))
    program.add_rows(np.zeros(m), Nonnegative(m), (-D, 0), (top, t))


@add_objective.register
def _(f: Huber, program: ConicProgram, factor: float, zero: Array) -> None:
    """Add ``|r|^2 / 2 + delta sum t`` with ``|D x - b - r| <= t``: a share for squares, one for values."""
    D = _map(f, zero)
    m = D.shape[0]
    b = np.zeros(m) if f.b is None else np.asarray(to_numpy(f.b), dtype=np.float64).ravel()
    r, t = program.new_variables(m), program.new_variables(m)
    one = scipy.sparse.eye_array(m, format="csr")
    program.add_quadratic(factor * one, r)
    program.add_linear(np.full(m, factor * f.delta), t)
    program.add_rows(b, Nonnegative(m), (D, 0), (-one, r), (-one, t))
    program.add_rows(-b, Nonnegative(m), (-D, 0), (one, r), (-one, t))


@add_objective.register
def _(f: NuclearNorm, program: ConicProgram, factor: float, zero: Array) -> None:
    """Add ``(tr V + tr W) / 2`` with ``[[V, Z], [Z', W]]`` positive semidefinite, ``Z`` the matrix."""
    D = _map(f, zero)
    rows, columns = f.matrix_shape
    order = rows + columns
    empty = D.shape[0] - int(np.count_nonzero(np.diff(D.indptr)))
    require_room(PSDTriangle(order), order * (order + 1) // 2 - empty)
    i, j = triangle(order)
    weight = np.where(i == j, -1.0, -np.sqrt(2.0))
    across = (i < rows) & (j >= rows)
    own = np.flatnonzero(~across)
    first = program.new_variables(len(own))
    program.add_linear(factor * np.where(i[own] == j[own], 0.5, 0.0), first)
    shape = (len(i), len(own))
    pick = scipy.sparse.csr_array((weight[own], (own, np.arange(len(own)))), shape)
    at = np.flatnonzero(across)
    places = i[at] * columns + (j[at] - rows)
    spread = scipy.sparse.csr_array((weight[at], (at, places)), (len(i), rows * columns))
    Z = scipy.sparse.csr_array(spread @ D)
    program.add_rows(np.zeros(len(i)), PSDTriangle(order), (pick, first), (Z, 0))


def _map(f: OfImage, zero: Array) -> Any:
    """Return the map of a function of an image as a sparse matrix on real vectors."""
    if is_complex(zero):
        raise MissingCapabilityError(f"{f!r} has a conic form for real points only")
    if f.D is not None:
        return scipy.sparse.csr_array(real_matrix(f.D, False))
    return scipy.sparse.eye_array(to_real_vector(zero).size, format="csr")
