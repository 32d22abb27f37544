"""Exact changes of units: engines get data of about size 1, multiplied by powers of two."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector
from lopro.core.units import power_of_two
from lopro.engines.answer import Answer
from lopro.engines.forms import ConeProgram, Matrix, QuadraticProgram

__all__ = ["Units", "cone_units", "in_handy_units"]


@dataclass(frozen=True)
class Units:
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


def _powers(sizes: Vector) -> Vector:
    """Return the powers of two nearest to sizes: `power_of_two` of each."""
    usable = (sizes > 0.0) & np.isfinite(sizes)
    return np.exp2(np.rint(np.log2(np.where(usable, sizes, 1.0))))


def _largest(M: Matrix) -> Vector:
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
