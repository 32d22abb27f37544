"""Conic forms of objectives and sets.

Objectives: `add_objective` adds the conic form of each term, a method of its atom. Sets: `set_rows` is a
generic function with one implementation per type.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.affine import Affine
from lopro.constraints.base import Constraint
from lopro.constraints.polyhedron import Polyhedron
from lopro.constraints.psd import PSDCone
from lopro.constraints.residual_ball import ResidualBall
from lopro.constraints.second_order_cone import SecondOrderCone
from lopro.constraints.simplex import Simplex
from lopro.constraints.spectrahedron import Spectrahedron
from lopro.core.arrays import Array, is_complex, to_numpy
from lopro.core.real_vectors import Vector, to_real_vector
from lopro.engines import ConicProgram, require_room
from lopro.engines.cones import (
    ConeRows,
    Nonnegative,
    PSDTriangle,
    Zero,
    ball_rows,
    halfspace_rows,
    triangle,
)
from lopro.errors import MissingCapabilityError
from lopro.functions.cone_program import RealImage
from lopro.functions.term import Term
from lopro.maps import LinearMap
from lopro.objectives import Objective
from lopro.projections.halfspaces import HalfSpaces, row_norms

__all__ = ["ConeRows", "ConicProgram", "add_objective", "real_matrix", "real_vector", "set_rows"]


@singledispatch
def set_rows(set_: Constraint, complex_points: bool = False) -> list[ConeRows]:
    """Return a set as rows of cones on the real vector of a point.

    Register a function for a type of your own with ``set_rows.register``. An intersection is its
    ``members()``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.conic_forms import set_rows
    >>> from lopro.constraints import Polyhedron
    >>> [half] = set_rows(Polyhedron(np.array([[2.0, 0.0]]), np.array([4.0])))
    >>> half.rows.toarray(), half.bounds, half.cone
    (array([[1., 0.]]), array([2.]), Nonnegative(size=1))
    """
    raise MissingCapabilityError(
        f"the constraint {set_!r} has no conic form: register one with lopro.conic_forms.set_rows.register, "
        "or use lopro.Auto(), which does not need one"
    )


@set_rows.register
def _(set_: Polyhedron, complex_points: bool = False) -> list[ConeRows]:
    return [halfspace_rows(set_.halfspaces.normals, set_.halfspaces.bounds)]


@set_rows.register
def _(set_: Affine, complex_points: bool = False) -> list[ConeRows]:
    """Keep equations as equations: pairs of inequalities would have no interior."""
    rows = HalfSpaces.from_system(_host(set_.M), np.zeros(set_.M.shape[0]))
    lengths = row_norms(_host(set_.M))
    if (lengths == 0.0).any():
        return [halfspace_rows(set_.halfspaces.normals, set_.halfspaces.bounds)]
    lower, upper = set_.lower / lengths, set_.upper / lengths
    equal = np.flatnonzero(lower == upper)
    above, below = (np.flatnonzero((lower < upper) & np.isfinite(s)) for s in (upper, lower))
    N = scipy.sparse.csr_array(rows.normals)
    found = []
    if len(equal):
        found.append(ConeRows(N[equal].tocsc(), upper[equal], Zero(len(equal))))
    if len(above) + len(below):
        sides = scipy.sparse.vstack([N[above], -N[below]])
        found.append(halfspace_rows(sides, np.concatenate([upper[above], -lower[below]])))
    return found


def _host(M: LinearMap) -> Any:
    return M.matrix if scipy.sparse.issparse(M.matrix) else to_numpy(M.matrix)


@set_rows.register
def _(set_: ResidualBall, complex_points: bool = False) -> list[ConeRows]:
    A, y = real_matrix(set_.A, complex_points), real_vector(set_.y, complex_points)
    if set_.sigma == 0.0:
        return [ConeRows(scipy.sparse.csc_matrix(A), y, Zero(len(y)))]
    return [ball_rows(A, y, set_.sigma)]


@set_rows.register
def _(set_: SecondOrderCone, complex_points: bool = False) -> list[ConeRows]:
    return [set_.cone_rows]


@set_rows.register
def _(set_: PSDCone, complex_points: bool = False) -> list[ConeRows]:
    """Require that the matrix is symmetric (Hermitian) and positive semidefinite.

    A Hermitian matrix is positive semidefinite if and only if ``[[Re, -Im], [Im, Re]]`` is.
    """
    d = set_.dim
    entries = _Entries(d, complex_points)
    require_room(PSDTriangle(entries.order))
    i, j = triangle(entries.order)
    weight = np.where(i == j, -1.0, -np.sqrt(0.5))
    rows = entries.pick(i, j, weight)
    off = i != j
    rows = rows + entries.pick(j[off], i[off], weight[off], at=np.flatnonzero(off), count=len(i))
    above, below = np.triu_indices(entries.order, 1)
    ones = np.ones(len(above))
    skew = entries.pick(above, below, ones) - entries.pick(below, above, ones)
    # In the complex case every equation is trivial or occurs twice: keep one of each.
    keep = _distinct_rows(skew)
    equations = ConeRows(skew[keep].tocsc(), np.zeros(len(keep)), Zero(len(keep)))
    cone = ConeRows(rows.tocsc(), np.zeros(len(i)), PSDTriangle(entries.order))
    return [equations, cone] if len(keep) else [cone]


@set_rows.register
def _(set_: Simplex, complex_points: bool = False) -> list[ConeRows]:
    signs = halfspace_rows(-scipy.sparse.identity(set_.dim), np.zeros(set_.dim))
    return [signs, _total(np.ones((1, set_.dim)), set_.total, set_.equality)]


@set_rows.register
def _(set_: Spectrahedron, complex_points: bool = False) -> list[ConeRows]:
    diagonal = np.eye(set_.dim).reshape(1, -1)
    row = np.hstack([diagonal, 0.0 * diagonal]) if complex_points else diagonal
    return [*set_rows(PSDCone(set_.dim), complex_points), _total(row, set_.trace, set_.equality)]


def _total(row: Any, total: float, equality: bool) -> ConeRows:
    """Return ``row z <= total``, or the equation."""
    cone = Zero(1) if equality else Nonnegative(1)
    return ConeRows(scipy.sparse.csc_matrix(row), np.array([total]), cone)


class _Entries:
    """Positions, in the real vector, of the entries of the real form of a Hermitian matrix."""

    def __init__(self, d: int, complex_points: bool) -> None:
        self._d, self._double = d, complex_points
        self.order = 2 * d if complex_points else d
        self._size = (2 if complex_points else 1) * d * d

    def pick(self, i: Any, j: Any, weight: Any, at: Any = None, count: int | None = None) -> Any:
        """Return ``count`` rows, of which the rows ``at`` select ``weight`` times entry ``(i, j)``."""
        at = np.arange(len(i)) if at is None else at
        d = self._d
        column = (i % d) * d + j % d
        if self._double:
            imaginary = (i < d) != (j < d)
            column = column + d * d * imaginary
            weight = np.where(imaginary & (i < d), -weight, weight)
        shape = (len(i) if count is None else count, self._size)
        return scipy.sparse.csr_matrix((weight, (at, column)), shape)


def _distinct_rows(rows: Any) -> Any:
    """Return the indices of nonzero rows, without those that repeat an earlier one up to the sign."""
    rows.eliminate_zeros()
    rows.sort_indices()
    seen: dict[tuple[int, ...], int] = {}
    for k in range(rows.shape[0]):
        where = slice(rows.indptr[k], rows.indptr[k + 1])
        values = rows.data[where]
        if len(values):
            same_sign = int(len(values) > 1 and values[0] * values[-1] > 0.0)
            seen.setdefault((same_sign, *rows.indices[where].tolist()), k)
    return np.array(sorted(seen.values()), dtype=int)


def real_matrix(A: LinearMap, complex_points: bool) -> Any:
    """Return the matrix that acts on real vectors; real parts come first, then imaginary ones.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.conic_forms import real_matrix
    >>> from lopro.maps import linear_map
    >>> real_matrix(linear_map(np.array([[1.0 + 2.0j]])), True)
    array([[ 1., -2.],
           [ 2.,  1.]])
    """
    if not A.explicit:
        raise MissingCapabilityError(
            f"{A!r} is an operator, and a conic form needs the entries of a matrix"
        )
    M = A.matrix if scipy.sparse.issparse(A.matrix) else to_numpy(A.matrix)
    if not complex_points:
        return M.astype(np.float64)
    stack = scipy.sparse.block_array if scipy.sparse.issparse(M) else np.block
    return stack([[M.real, -M.imag], [M.imag, M.real]]).astype(np.float64)


def real_vector(y: Any, complex_points: bool) -> Vector:
    """Return a vector of images as real numbers, in the order of `real_matrix`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.conic_forms import real_vector
    >>> real_vector(np.array([1.0 + 2.0j, 3.0]), True)
    array([1., 3., 2., 0.])
    """
    host = to_numpy(y)
    if not complex_points:
        assert not is_complex(host)
        return np.array(host, dtype=np.float64)
    return np.concatenate([host.real, host.imag]).astype(np.float64)


def add_objective(f: Objective, program: ConicProgram, zero: Array) -> None:
    """Add an objective to a cone program; its constant goes to ``program.constant``.

    Parameters
    ----------
    f : Objective
        An objective whose atoms have conic forms.
    program : ConicProgram
        The program that it is added to; modified.
    zero : array
        The origin, of the shape, library and dtype of the points.

    Raises
    ------
    MissingCapabilityError
        Where an atom has no conic form.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.conic_forms import ConicProgram, add_objective
    >>> from lopro.objectives import L1Norm, SquaredDistance
    >>> program, zero = ConicProgram(2), np.zeros(2)
    >>> add_objective(SquaredDistance(np.array([3.0, 0.5])) + L1Norm(), program, zero)
    >>> program.solve(1e-9).x[:2].round(5) + 0.0
    array([2., 0.])
    """
    for term in f.terms:
        term.atom.add_to_cone_program(program, _real_image(term, zero), term.scale)


def _real_image(term: Term, zero: Array) -> RealImage:
    """Return the image of a term as a matrix on real vectors."""
    twofold = is_complex(zero)
    if term.map is None:
        size = to_real_vector(zero).size
        b = np.zeros(size) if term.offset is None else _real_offset(term.offset, twofold)
        return RealImage(scipy.sparse.eye_array(size, format="csr"), b, twofold, True)
    D = real_matrix(term.map, twofold)
    b = np.zeros(D.shape[0]) if term.offset is None else _real_offset(term.offset, twofold)
    return RealImage(D, b, twofold)


def _real_offset(b: Array, twofold: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return real_vector(b.reshape(-1) if b.ndim > 1 else b, twofold)
