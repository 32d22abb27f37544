"""Linear inequalities with rows of unit length, the form that polyhedral routines use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import to_numpy
from lopro.core.deadline import EIGH, current_deadline
from lopro.core.real_vectors import power_of_two
from lopro.engines import Answer, AnswerStatus, QuadraticProgram, solve_by_highs
from lopro.engines.cones import halfspace_rows
from lopro.errors import InfeasibleError, ProjectionError
from lopro.projections.emptiness import cones_exclude

__all__ = ["HalfSpaces"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


@dataclass(frozen=True, eq=False)
class HalfSpaces:
    """``{z : N z <= h}`` with rows of unit length, as NumPy or scipy.sparse arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.halfspaces import HalfSpaces
    >>> H = HalfSpaces.from_system(np.array([[2.0, 0.0]]), np.array([4.0]))
    >>> H.normals, H.bounds
    (array([[1., 0.]]), array([2.]))
    """

    normals: Any
    bounds: Matrix

    @staticmethod
    def from_system(C: Any, b: Any) -> HalfSpaces:
        """Return ``C x <= b`` with unit rows; rows of zeros are checked and dropped."""
        sparse = scipy.sparse.issparse(C)
        rows: Any = C.astype(np.float64) if sparse else np.asarray(to_numpy(C), dtype=np.float64)
        bounds = np.asarray(to_numpy(b), dtype=np.float64)
        lengths = row_norms(rows)
        empty = lengths == 0.0
        if (bounds[empty] < 0.0).any():
            worst = int(np.flatnonzero(empty & (bounds < 0.0))[0])
            raise InfeasibleError(
                f"row {worst} is zero and its bound is {bounds[worst]:g} < 0: no x satisfies it"
            )
        keep = np.flatnonzero(~empty)
        scale = 1.0 / lengths[keep]
        if sparse:
            normals = scipy.sparse.diags_array(scale) @ rows.tocsr()[keep]
            return HalfSpaces(scipy.sparse.csr_array(normals), bounds[keep] * scale)
        return HalfSpaces(rows[keep] * scale[:, None], bounds[keep] * scale)

    def __len__(self) -> int:
        return int(self.bounds.shape[0])

    @staticmethod
    def stacked(parts: Sequence[HalfSpaces]) -> HalfSpaces:
        """Return the rows of all parts, sparse if one of the parts is sparse."""
        bounds = np.concatenate([p.bounds for p in parts])
        if any(scipy.sparse.issparse(p.normals) for p in parts):
            return HalfSpaces(scipy.sparse.vstack([p.csc for p in parts]).tocsr(), bounds)
        return HalfSpaces(np.vstack([p.normals for p in parts]), bounds)

    @property
    def dimension(self) -> int:
        """Number of variables."""
        return int(self.normals.shape[1])

    @cached_property
    def csc(self) -> Any:
        """The normals as a sparse matrix by columns, the format of solvers."""
        return scipy.sparse.csc_matrix(self.normals)

    def rows(self, indices: Any) -> Matrix:
        """Return some of the normals as a dense array."""
        chosen = self.normals[indices]
        return chosen.toarray() if scipy.sparse.issparse(chosen) else np.asarray(chosen)

    def excess_everywhere(self, noise: float = 0.0) -> float | None:
        """Return the least violation of the worst row over all points, if multipliers prove it positive.

        None otherwise. A linear program computes the least ``t`` with ``N z <= h + t``; its multipliers are
        the proof. ``noise`` is the relative error of rows that were computed.
        """
        if len(self) == 0:
            return None
        ones = -np.ones((len(self), 1))
        A = scipy.sparse.hstack([self.csc, scipy.sparse.csc_matrix(ones)]).tocsc()
        cost = np.zeros(self.dimension + 1)
        cost[-1] = 1.0
        scale = self._scale
        answer = _linear_program(cost, A, self.bounds / scale, -1.0)
        if answer is None:
            raise ProjectionError("the linear program for a feasible point failed")
        excess = float(answer.x[-1]) * scale
        if excess <= self.feasibility_tolerance():
            return None
        rows = halfspace_rows(self.normals, self.bounds)
        proved = cones_exclude([rows], [answer.rows], noise=noise)
        return excess if proved else None

    def feasibility_tolerance(self) -> float:
        """Return the accuracy of the linear program in the units of this system."""
        return 1e-8 * self._scale

    @property
    def _scale(self) -> float:
        """Return the power of two nearest to the largest bound: the unit in which programs are solved."""
        return power_of_two(float(np.abs(self.bounds).max(initial=0.0)))

    def radius(self) -> float | None:
        """Return a bound of ``|z|`` over the set from its bounding box; None if the set is unbounded."""
        if not self._bounded():
            return None
        corners = []
        for j in range(self.dimension):
            cost = np.zeros(self.dimension)
            cost[j] = 1.0
            low = _linear_program(cost, self.csc, self.bounds / self._scale, -math.inf)
            high = _linear_program(-cost, self.csc, self.bounds / self._scale, -math.inf)
            if low is None or high is None:
                return None
            corners.append(max(abs(float(low.x[j])), abs(float(high.x[j]))))
        # The program is accurate to about 1e-9; the bound is enlarged by more than that.
        return self._scale * (float(np.linalg.norm(corners)) * (1.0 + 1e-7) + 1e-7)

    def _bounded(self) -> bool:
        """Whether only the direction zero has ``N v <= 0``, by Stiemke's alternative: one linear program."""
        if len(self) <= self.dimension:
            return False
        current_deadline().need(EIGH * self.dimension**2 * len(self))
        if np.linalg.matrix_rank(self.csc.toarray()) < self.dimension:
            return False
        nothing = np.zeros(self.dimension)
        program = QuadraticProgram.of(
            None, np.zeros(len(self)), self.csc.T, nothing, nothing, least=1.0
        )
        answer = solve_by_highs(program, 1e-7, scaled=False)
        current_deadline().check()
        return answer.status is AnswerStatus.SOLVED


def row_norms(rows: Any) -> Matrix:
    """Return the Euclidean norms of the rows of a dense or sparse matrix."""
    if scipy.sparse.issparse(rows):
        return np.asarray(scipy.sparse.linalg.norm(rows, axis=1), dtype=np.float64)
    return np.asarray(np.linalg.norm(rows, axis=1), dtype=np.float64)


def _linear_program(cost: Matrix, A: Any, b: Matrix, floor: float) -> Answer | None:
    """Minimise ``cost . z`` over ``A z <= b``, the last variable at least ``floor``; by HiGHS."""
    deadline = current_deadline()
    deadline.check()
    least = np.full(len(cost), -math.inf)
    least[-1] = floor
    program = QuadraticProgram.of(None, cost, A, upper=b, least=least)
    answer = solve_by_highs(program, 1e-10, scaled=False)
    deadline.check()
    return answer if answer.status is AnswerStatus.SOLVED else None
