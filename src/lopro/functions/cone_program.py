"""Interface between atoms and cone programs: a builder, and the image of the variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import is_complex, to_numpy
from lopro.core.real_vectors import Vector
from lopro.errors import MissingCapabilityError
from lopro.linalg.dense import Array, Matrix
from lopro.maps.base import LinearMap

__all__ = [
    "ConeBuilder",
    "RealImage",
    "add_half_square",
    "place_rows",
    "real_matrix",
    "real_vector",
]


class ConeBuilder(Protocol):
    """A cone program ``min 1/2 v'Pv + q'v + constant`` under construction.

    A piece is a matrix with the index of the first variable it acts on. Each method that adds rows requires
    that ``bounds`` minus the sum of the pieces lies in a cone.
    """

    constant: float

    def new_variables(self, count: int) -> int:
        """Add auxiliary variables; return the index of the first."""
        ...

    def add_linear(self, q: Array, at: int = 0) -> None:
        """Add ``q'v`` on the variables from ``at`` on."""
        ...

    def add_quadratic(self, P: Matrix, at: int = 0) -> None:
        """Add ``1/2 v'P v`` on the variables from ``at`` on."""
        ...

    def add_equations(self, bounds: Array, *pieces: tuple[Matrix, int]) -> None:
        """Require that all entries are zero."""
        ...

    def add_inequalities(self, bounds: Array, *pieces: tuple[Matrix, int]) -> None:
        """Require that no entry is negative."""
        ...

    def add_second_order(self, size: int, bounds: Array, *pieces: tuple[Matrix, int]) -> None:
        """Require ``|u| <= t`` of every ``size`` consecutive entries ``(t, u)``."""
        ...

    def add_exponential(self, bounds: Array, *pieces: tuple[Matrix, int]) -> None:
        """Require ``b exp(a / b) <= c`` of every three consecutive entries ``(a, b, c)``."""
        ...

    def require_semidefinite(self, order: int, nonzero: int) -> None:
        """Raise an error if a semidefinite cone with ``nonzero`` nonzero rows does not fit into memory."""
        ...

    def add_semidefinite(self, order: int, bounds: Array, *pieces: tuple[Matrix, int]) -> None:
        """Require that the entries are the scaled upper triangle, by columns, of a semidefinite matrix."""
        ...


@dataclass(frozen=True)
class RealImage:
    """``D v - b`` for the real vector ``v`` of a point: real parts of the image, then imaginary ones."""

    D: Matrix
    b: Array
    is_complex: bool = False
    is_identity: bool = False

    @property
    def rows(self) -> int:
        """The number of real entries of the image."""
        return int(self.D.shape[0])


def add_half_square(program: ConeBuilder, image: RealImage, scale: float) -> None:
    """Add ``scale / 2 |D v - b|^2``.

    In general the residual becomes a variable, which squares no condition number. For a matrix with more than
    four rows per column ``D'D`` is formed, which has at most an eighth of its entries; so it is for the
    identity, whose ``D'D`` is as sparse.
    """
    D, b = image.D, image.b
    m, n = D.shape
    if m > 4 * n or image.is_identity:
        program.add_quadratic(scale * (D.T @ D))
        program.add_linear(-scale * (D.T @ b))
        program.constant += 0.5 * scale * float(b @ b)
        return
    r = program.new_variables(m)
    identity = scipy.sparse.eye_array(m, format="csr")
    program.add_quadratic(scale * identity, r)
    program.add_equations(b, (D, 0), (-identity, r))


def place_rows(rows: Matrix, places: Any, count: int) -> Matrix:
    """Return a matrix of ``count`` rows: the given ones at ``places``, and zeros elsewhere."""
    entries = scipy.sparse.coo_array(rows)
    i, j = entries.coords
    where = (np.asarray(places)[i], j)
    return scipy.sparse.csr_array((entries.data, where), (count, entries.shape[1]))


def real_matrix(A: LinearMap, complex_points: bool) -> Any:
    """Return the matrix that acts on real vectors; real parts come first, then imaginary ones.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.cone_program import real_matrix
    >>> from lopro.maps import linear_map
    >>> real_matrix(linear_map(np.array([[1.0 + 2.0j]])), True)
    array([[ 1., -2.],
           [ 2.,  1.]])
    """
    if not A.explicit:
        raise MissingCapabilityError(
            f"{A!r} is an operator, but a conic form needs the entries of a matrix"
        )
    M = A.matrix if scipy.sparse.issparse(A.matrix) else to_numpy(A.matrix)
    if not complex_points:
        return M.astype(np.float64)
    stack = scipy.sparse.block_array if scipy.sparse.issparse(M) else np.block
    return stack([[M.real, -M.imag], [M.imag, M.real]]).astype(np.float64)


def real_vector(y: Any, complex_points: bool) -> Vector:
    """Return an image as a real vector, in the order of the rows of `real_matrix`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.cone_program import real_vector
    >>> real_vector(np.array([1.0 + 2.0j, 3.0]), True)
    array([1., 3., 2., 0.])
    """
    host = to_numpy(y)
    if not complex_points:
        assert not is_complex(host)
        return np.array(host, dtype=np.float64)
    return np.concatenate([host.real, host.imag]).astype(np.float64)
