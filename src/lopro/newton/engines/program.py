"""Quadratic and linear programs in one form, with exact changes of units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.units import power_of_two
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.maps import NumPyMap, SparseMap
from lopro.newton.arrays import Array, Matrix
from lopro.newton.engines.answer import Answer
from lopro.newton.problem import Composite
from lopro.newton.smooth import QuadraticForm

__all__ = ["QuadraticProgram", "Units", "in_handy_units"]


@dataclass(frozen=True)
class QuadraticProgram:
    """``min 1/2 x'Px + q'x + constant`` over ``lower <= A x <= upper``, ``least <= x <= most``.

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
    >>> from lopro.newton.engines import QuadraticProgram, solve_by_piqp
    >>> program = QuadraticProgram.of(np.eye(2), [-3.0, 0.0], A=[[1.0, 1.0]], upper=[1.0])
    >>> solve_by_piqp(program).x.round(6)
    array([ 2., -1.])
    """

    P: Matrix | None
    q: Array
    A: Matrix
    lower: Array
    upper: Array
    least: Array
    most: Array
    constant: float = 0.0

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

        def filled(bound: Any, size: int, missing: float) -> Array:
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

    @property
    def boxed(self) -> bool:
        """Whether any variable has a bound of its own."""
        return bool(np.any(np.isfinite(self.least)) or np.any(np.isfinite(self.most)))

    def composite(self) -> Composite:
        """Return the problem as the Newton method and the bounds take it: rows first, then the box."""
        A = scipy.sparse.csr_array(self.A) if self.A.shape[0] == 0 else self.A
        kind = SparseMap if scipy.sparse.issparse(A) else NumPyMap
        rows = Term(Interval(self.lower, self.upper), kind(A, "A"))
        box = Term(Interval(self.least, self.most))
        return Composite(QuadraticForm(self.P, self.q, self.constant), [rows, box])


@dataclass(frozen=True)
class Units:
    """Powers of two by which x, the objective and each row were divided."""

    x: float
    f: float
    rows: Array

    def back(self, answer: Answer) -> Answer:
        """Return an answer in handy units in those of the user, exactly."""
        return Answer(
            answer.status,
            answer.x * self.x,
            answer.rows * (self.f / self.rows),
            answer.box * (self.f / self.x),
            answer.iterations,
        )


def _powers(sizes: Array) -> Array:
    """Return the powers of two nearest to sizes: `power_of_two` of each."""
    usable = (sizes > 0.0) & np.isfinite(sizes)
    return np.exp2(np.rint(np.log2(np.where(usable, sizes, 1.0))))


def _largest(M: Matrix) -> Array:
    """Return the largest entry of each row."""
    if M.shape[0] == 0:
        return np.zeros(0)
    sizes = abs(M)
    found = sizes.max(axis=1)
    return np.asarray(found if isinstance(found, np.ndarray) else found.toarray()).ravel()


def in_handy_units(program: QuadraticProgram) -> tuple[QuadraticProgram, Units]:
    """Return the program with rows, objective and bounds of about size 1, and the units that do it.

    Everything is multiplied by powers of two, so nothing is rounded: the same program in other units has
    the same handy form.
    """
    p = program
    largest = _powers(_largest(p.A))
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
    return scaled, Units(x, f, rows)


def _length(p: QuadraticProgram, largest: Array) -> float:
    """Return a length for x from the bounds, as the engines like it best: larger than most of them.

    With the median instead, PIQP failed on 6 of 65 problems of Maros and Meszaros; with this none.
    """
    sides = np.where(np.isfinite(p.upper), p.upper, np.where(np.isfinite(p.lower), p.lower, 0.0))
    own = np.where(np.isfinite(p.most), p.most, np.where(np.isfinite(p.least), p.least, 0.0))
    lengths = np.concatenate([np.abs(sides / largest), np.abs(own)])
    lengths = lengths[lengths > 0.0]
    return power_of_two(float(np.quantile(lengths, 0.9))) if len(lengths) else 1.0
