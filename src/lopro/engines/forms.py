"""The two standard forms of engines: quadratic programs with rows and bounds, and cone programs.

Engines receive them scaled by powers of two to data of about size 1, so that nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector, power_of_two, powers_of_two
from lopro.engines.answer import Answer
from lopro.engines.cones import Cone

__all__ = [
    "ConeProgram",
    "Matrix",
    "QuadraticProgram",
    "Scaling",
    "cone_units",
    "nonzeros",
    "normalised",
]

#: A dense array or a scipy.sparse array; SciPy ships no types.
Matrix: TypeAlias = Any


@dataclass(frozen=True, eq=False)
class QuadraticProgram:
    """``min 1/2 x'Px + q'x + constant`` over ``lower <= A x <= upper``, ``least <= x <= most``.

    At a solution ``P x + q + A' rows + box = 0``: multipliers of the rows and of the bounds are positive at
    upper sides and negative at lower ones.

    Attributes
    ----------
    P : matrix or None
        Positive semidefinite, dense or sparse; None for linear programs.
    q : array
        The linear part.
    A : matrix
        Dense or sparse.
    lower, upper, least, most : arrays
        Infinite where there is no bound.
    constant : float
        Added to the value.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines import QuadraticProgram, solve_by_piqp
    >>> program = QuadraticProgram.of(np.eye(2), [-3.0, 0.0], A=[[1.0, 1.0]], upper=[1.0])
    >>> solve_by_piqp(program).x.round(6)
    array([ 2., -1.])
    """

    P: Matrix | None
    q: Vector
    A: Matrix
    lower: Vector
    upper: Vector
    least: Vector
    most: Vector
    constant: float = 0.0

    def __post_init__(self) -> None:
        n, m = len(self.q), len(self.lower)
        # Compiled engines read beyond the end of arrays that are too short.
        square = self.P is None or self.P.shape == (n, n)
        sides = len(self.upper) == m and len(self.least) == len(self.most) == n
        if not (square and sides and self.A.shape == (m, n)):
            raise ValueError("the parts of the program do not have matching sizes")

    @staticmethod
    def of(
        P: Any,
        q: Any,
        A: Any = None,
        lower: Any = None,
        upper: Any = None,
        least: Any = None,
        most: Any = None,
        constant: float = 0.0,
    ) -> QuadraticProgram:
        """Return the program with defaults in place of None."""
        q = np.asarray(q, dtype=np.float64)
        A = np.zeros((0, len(q))) if A is None else A
        A = A if scipy.sparse.issparse(A) else np.asarray(A, dtype=np.float64)
        rows, columns = A.shape[0], len(q)

        def filled(bound: Any, size: int, missing: float) -> Vector:
            if isinstance(bound, np.ndarray) and bound.shape == (size,):
                return np.array(bound, dtype=np.float64)
            given = missing if bound is None else bound
            return np.array(np.broadcast_to(np.asarray(given, dtype=np.float64), (size,)))

        return QuadraticProgram(
            P if P is None or scipy.sparse.issparse(P) else np.asarray(P, dtype=np.float64),
            q,
            A,
            filled(lower, rows, -np.inf),
            filled(upper, rows, np.inf),
            filled(least, columns, -np.inf),
            filled(most, columns, np.inf),
            constant,
        )

    @property
    def sparse(self) -> bool:
        """Whether the matrices are sparse."""
        dense = isinstance(self.A, np.ndarray) and self.A.size
        return not dense and (self.P is None or not isinstance(self.P, np.ndarray))

    @cached_property
    def boxed(self) -> bool:
        """Whether any variable has a bound of its own."""
        bounds = np.maximum(self.least, -self.most)  # -inf where there is neither
        return bool(np.logical_or.reduce(bounds > -np.inf))


@dataclass(frozen=True, eq=False)
class ConeProgram:
    """``min 1/2 x'Px + q'x`` over ``b - A x`` in the product of cones.

    At a solution ``P x + q + A' rows = 0`` with multipliers ``rows`` in the dual cones.

    Attributes
    ----------
    P, A : scipy.sparse matrices
        All of ``P``, not only a triangle.
    q, b : arrays
        The linear part and the right-hand side.
    cones : sequence of cones
        In the order of the rows.
    """

    P: Any
    q: Vector
    A: Any
    b: Vector
    cones: Sequence[Cone]


def nonzeros(M: Matrix) -> int:
    """Return the number of nonzero entries of a dense or sparse matrix."""
    return int(np.count_nonzero(M) if isinstance(M, np.ndarray) else M.nnz)


@dataclass(frozen=True)
class Scaling:
    """Powers of two by which x, the objective and each row were divided."""

    x: float
    f: float
    rows: Vector

    def back(self, answer: Answer) -> Answer:
        """Return an answer in normalised units in those of the user, exactly."""
        x, rows, box = self.restored(answer.x, answer.rows, answer.box)
        return replace(answer, x=x, rows=rows, box=box)

    def restored(self, x: Vector, rows: Vector, box: Vector) -> tuple[Vector, Vector, Vector]:
        """Return a point and multipliers of rows and bounds in the units of the user, exactly."""
        return x * self.x, rows * (self.f / self.rows), box * (self.f / self.x)


def _largest(M: Matrix) -> Vector:
    """Return the largest entry of each row."""
    if M.shape[0] == 0:
        return np.zeros(0)
    if isinstance(M, np.ndarray):
        return np.asarray(np.maximum.reduce(np.abs(M), axis=1))
    rows, found = scipy.sparse.csr_array(M), np.zeros(M.shape[0])
    starts = rows.indptr[:-1][np.diff(rows.indptr) > 0]
    if len(starts):
        found[np.diff(rows.indptr) > 0] = np.maximum.reduceat(np.abs(rows.data), starts)
    return found


def _scaled_rows(M: Matrix, scale: Vector) -> Matrix:
    """Return a matrix with its rows multiplied by powers of two."""
    if isinstance(M, np.ndarray):
        return M * scale[:, None]
    rows = scipy.sparse.csr_array(M)
    data = rows.data * np.repeat(scale, np.diff(rows.indptr))
    return scipy.sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)


def normalised(program: QuadraticProgram) -> tuple[QuadraticProgram, Scaling]:
    """Return the program with rows, objective and bounds scaled to about size 1, and the scaling.

    All factors are powers of two, so nothing is rounded: the same program in other units has the same
    normalised form.
    """
    p = program
    largest = powers_of_two(_largest(p.A))
    x = _length(p, largest)
    q = p.q * x
    slope = float(np.maximum.reduce(np.abs(q), initial=0.0))
    if slope == 0.0 and p.P is not None:
        slope = float(_largest(p.P).max(initial=0.0)) * x * x
    f = power_of_two(slope)
    rows = largest * x
    scaled = QuadraticProgram(
        None if p.P is None else p.P * (x * x / f),
        q / f,
        _scaled_rows(p.A, 1.0 / largest),
        p.lower / rows,
        p.upper / rows,
        p.least / x,
        p.most / x,
        p.constant / f,
    )
    return scaled, Scaling(x, f, rows)


def _length(p: QuadraticProgram, largest: Vector) -> float:
    """Return a typical length of x from the bounds: the 0.9 quantile of those that are not zero.

    With the median instead, PIQP failed on 6 of 65 problems of Maros and Meszaros; with this none.
    """
    lengths = np.abs(_finite_side(p.lower, p.upper) / largest)
    if p.boxed:
        lengths = np.concatenate([lengths, np.abs(_finite_side(p.least, p.most))])
    lengths = lengths[lengths > 0.0]
    if not len(lengths):
        return 1.0
    # The 0.9 quantile, linear between its neighbours; `np.quantile` takes longer than a small program.
    lengths.sort()
    at = 0.9 * (len(lengths) - 1)
    low = int(at)
    high = min(low + 1, len(lengths) - 1)
    return power_of_two(float(lengths[low] + (at - low) * (lengths[high] - lengths[low])))


def _finite_side(lower: Vector, upper: Vector) -> Vector:
    """Return the upper bounds, the lower ones where these are missing, and 0 where both are."""
    found = np.where(np.isfinite(upper), upper, lower)
    return np.where(np.isfinite(found), found, 0.0)


def cone_units(program: ConeProgram) -> tuple[float, float]:
    """Return the units of the variables and of the objective in which the data are about 1.

    Rows keep their units: scaling single rows would change the cones.
    """
    P = program.P
    x = power_of_two(float(np.abs(program.b).max(initial=0.0)))
    steepest = float(np.abs(program.q).max(initial=0.0)) * x
    curvature = (float(abs(P).max()) if P.nnz else 0.0) * x * x
    return x, power_of_two(max(steepest, curvature))
