"""The two standard forms that engines take: quadratic programs with rows and bounds, and cone programs.

Engines get them with data of about size 1, multiplied by powers of two, so that nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector, power_of_two, powers_of_two
from lopro.engines.answer import Answer
from lopro.engines.cones import Cone, Nonnegative, Zero

__all__ = [
    "ConeProgram",
    "Matrix",
    "OneSided",
    "QuadraticProgram",
    "Scaling",
    "as_cones",
    "cone_units",
    "in_handy_units",
    "nonzeros",
]

#: A dense array or a scipy.sparse array; SciPy ships no types.
Matrix: TypeAlias = Any
#: Of rows and bounds.
Multipliers: TypeAlias = tuple[Vector, Vector]


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
        # Engines in compiled code read beyond the end of arrays that are too short.
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
        """Return the program with everything that is None filled in."""
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
        return bool(np.isfinite(self.least).any() or np.isfinite(self.most).any())


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


class OneSided:
    """The rows of a quadratic program as equations ``A x = b`` and inequalities ``G x <= h``.

    Rows with two sides are two inequalities, rows without any are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.forms import OneSided, QuadraticProgram
    >>> A = [[1.0], [2.0], [3.0]]
    >>> rows = OneSided(
    ...     QuadraticProgram.of(None, [0.0], A, [4.0, -np.inf, 5.0], [4.0, np.inf, 6.0])
    ... )
    >>> rows.b, rows.h
    (array([4.]), array([ 6., -5.]))
    >>> rows.multipliers(np.array([7.0]), np.array([8.0, 0.0]))
    array([7., 0., 8.])
    """

    def __init__(self, program: QuadraticProgram) -> None:
        lower, upper = program.lower, program.upper
        self.equal = lower == upper
        self.above = ~self.equal & np.isfinite(upper)
        self.below = ~self.equal & np.isfinite(lower)
        M = program.A if isinstance(program.A, np.ndarray) else scipy.sparse.csr_array(program.A)
        stack = np.vstack if isinstance(M, np.ndarray) else scipy.sparse.vstack
        self.A, self.b = chosen(M, self.equal), lower[self.equal]
        self.h = np.concatenate([upper[self.above], -lower[self.below]])
        one_side = not self.below.any()
        self.G = chosen(M, self.above) if one_side else stack([M[self.above], -M[self.below]])

    def multipliers(self, equations: Vector, inequalities: Vector) -> Vector:
        """Return the multipliers of the rows from those of equations and inequalities, the latter >= 0."""
        rows = np.zeros(len(self.equal))
        count = int(self.above.sum())
        rows[self.equal] = equations
        rows[self.above] += inequalities[:count]
        rows[self.below] -= inequalities[count:]
        return rows


def chosen(M: Matrix, mask: Any) -> Matrix:
    """Return some rows; without a copy if they are all."""
    return M if len(mask) and mask.all() else M[mask]


def nonzeros(M: Matrix) -> int:
    """Return how many entries of a dense or sparse matrix are not zero."""
    return int(np.count_nonzero(M) if isinstance(M, np.ndarray) else M.nnz)


def as_cones(program: QuadraticProgram) -> tuple[ConeProgram, Callable[[Vector], Multipliers]]:
    """Return the program over equations and inequalities, and what reads its multipliers.

    The rows come first, then upper and lower bounds of the variables.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.forms import QuadraticProgram, as_cones
    >>> cones, read = as_cones(QuadraticProgram.of(None, [1.0], [[2.0]], [3.0], [3.0], least=0.0))
    >>> cones.A.toarray(), cones.b, cones.cones
    (array([[ 2.],
           [-1.]]), array([ 3., -0.]), (Zero(size=1), Nonnegative(size=1)))
    >>> read(np.array([4.0, 5.0]))
    (array([4.]), array([-5.]))
    """
    n, rows = len(program.q), OneSided(program)
    most, least = np.isfinite(program.most), np.isfinite(program.least)
    eye = scipy.sparse.eye_array(n, format="csr")
    own = [scipy.sparse.csr_array(M) for M in (rows.A, rows.G)]
    A = scipy.sparse.vstack([*own, eye[most], -eye[least]])
    b = np.concatenate([rows.b, rows.h, program.most[most], -program.least[least]])
    P = scipy.sparse.csc_matrix((n, n) if program.P is None else program.P)
    cones = Zero(len(rows.b)), Nonnegative(len(b) - len(rows.b))
    sizes = np.cumsum([len(rows.b), len(rows.h), int(most.sum())])

    def read(z: Vector) -> Multipliers:
        equations, inequalities, above, below = np.split(z, sizes)
        box = np.zeros(n)
        box[most] += above
        box[least] -= below
        return rows.multipliers(equations, inequalities), box

    return ConeProgram(P, program.q, A, b, cones), read


@dataclass(frozen=True)
class Scaling:
    """Powers of two by which x, the objective and each row were divided."""

    x: float
    f: float
    rows: Vector

    def back(self, answer: Answer) -> Answer:
        """Return an answer in handy units in those of the user, exactly."""
        x, rows, box = self.restored(answer.x, answer.rows, answer.box)
        return replace(answer, x=x, rows=rows, box=box)

    def restored(self, x: Vector, rows: Vector, box: Vector) -> tuple[Vector, Vector, Vector]:
        """Return a point and multipliers of rows and bounds in the units of the user, exactly."""
        return x * self.x, rows * (self.f / self.rows), box * (self.f / self.x)


def _largest(M: Matrix) -> Vector:
    """Return the largest entry of each row."""
    if M.shape[0] == 0:
        return np.zeros(0)
    sizes = abs(M)
    found = sizes.max(axis=1)
    return np.asarray(found if isinstance(found, np.ndarray) else found.toarray()).ravel()


def in_handy_units(program: QuadraticProgram) -> tuple[QuadraticProgram, Scaling]:
    """Return the program with rows, objective and bounds of about size 1, and the units that do it.

    Everything is multiplied by powers of two, so nothing is rounded: the same program in other units has
    the same handy form.
    """
    p = program
    largest = powers_of_two(_largest(p.A))
    x = _length(p, largest)
    q = p.q * x
    P = None if p.P is None else p.P * (x * x)
    slope = float(np.abs(q).max(initial=0.0))
    if slope == 0.0 and P is not None:
        slope = float(_largest(P).max(initial=0.0))
    f = power_of_two(slope)
    scale = 1.0 / largest
    dense = isinstance(p.A, np.ndarray)
    A = p.A * scale[:, None] if dense else scipy.sparse.diags_array(scale) @ p.A
    rows = largest * x
    scaled = QuadraticProgram(
        None if P is None else P / f,
        q / f,
        A,
        p.lower / rows,
        p.upper / rows,
        p.least / x,
        p.most / x,
        p.constant / f,
    )
    return scaled, Scaling(x, f, rows)


def _length(p: QuadraticProgram, largest: Vector) -> float:
    """Return a length for x from the bounds: the 0.9 quantile of those that are not zero.

    With the median instead, PIQP failed on 6 of 65 problems of Maros and Meszaros; with this none.
    """
    sides = np.where(np.isfinite(p.upper), p.upper, np.where(np.isfinite(p.lower), p.lower, 0.0))
    own = np.where(np.isfinite(p.most), p.most, np.where(np.isfinite(p.least), p.least, 0.0))
    lengths = np.concatenate([np.abs(sides / largest), np.abs(own)])
    lengths = lengths[lengths > 0.0]
    if not len(lengths):
        return 1.0
    # The 0.9 quantile, linear between its neighbours; `np.quantile` takes longer than a small program.
    lengths.sort()
    at = 0.9 * (len(lengths) - 1)
    low = int(at)
    high = min(low + 1, len(lengths) - 1)
    return power_of_two(float(lengths[low] + (at - low) * (lengths[high] - lengths[low])))


def cone_units(program: ConeProgram) -> tuple[float, float]:
    """Return the units of the variables and of the objective in which the data are about 1.

    Rows keep their units: other multiples of single rows would leave the cones.
    """
    P = program.P
    x = power_of_two(float(np.abs(program.b).max(initial=0.0)))
    steepest = float(np.abs(program.q).max(initial=0.0)) * x
    curvature = (float(abs(P).max()) if P.nnz else 0.0) * x * x
    return x, power_of_two(max(steepest, curvature))
