"""Quadratic programs for engines whose rows have one side: equations and inequalities, or cones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.real_vectors import Vector
from lopro.engines.cones import Nonnegative, Zero
from lopro.engines.forms import ConeProgram, Matrix, QuadraticProgram

__all__ = ["OneSided", "as_cones"]

#: Of rows and bounds.
Multipliers: TypeAlias = tuple[Vector, Vector]


class OneSided:
    """The rows of a quadratic program as equations ``A x = b`` and inequalities ``G x <= h``.

    Rows with two sides become two inequalities, rows without a side are dropped.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.forms import QuadraticProgram
    >>> from lopro.engines.one_sided import OneSided
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
    """Return the rows of a mask, without a copy if it selects all."""
    return M if len(mask) and mask.all() else M[mask]


def as_cones(program: QuadraticProgram) -> tuple[ConeProgram, Callable[[Vector], Multipliers]]:
    """Return the program over equations and inequalities, and the map from its multipliers to those of rows.

    The rows come first, then upper and lower bounds of the variables.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.engines.forms import QuadraticProgram
    >>> from lopro.engines.one_sided import as_cones
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
