"""The shortest vector under linear inequalities by a dual active-set method, to full accuracy.

Goldfarb and Idnani (1983), for the identity as Hessian. The iterates are exact solutions of
subproblems with few inequalities; each iteration adds the most violated one and drops those whose
multiplier would become negative. The dual value increases strictly, so that the method is finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.deadline import current_deadline
from lopro.errors import ProjectionError
from lopro.projections.halfspaces import HalfSpaces, Matrix

__all__ = ["Contradiction", "Face", "shortest_vector"]

#: A unit row closer than this to the span of the active ones counts as a combination of them: its direction
#: orthogonal to them would have six correct digits. `python -m benchmarks.constants projections`: a tenth
#: and ten times as much change nothing.
_DEPENDENT = 1e-9


class Contradiction(ProjectionError):
    """A violated row is a combination of the active ones up to rounding, so that no point was found.

    This is no proof of emptiness: rows that are nearly parallel may intersect at a large distance.
    """

    def __init__(self, excess: float) -> None:
        super().__init__(
            f"no nearest point was found: a row violated by {excess:.3g} (unit rows) is a combination "
            f"of others, up to {_DEPENDENT:.0e}"
        )
        self.excess = excess


class Basis:
    """Unit rows in their singular basis."""

    def __init__(self, rows: Matrix) -> None:
        self._left, self._values, self._right = np.linalg.svd(rows, full_matrices=False)
        self._rounding = max(rows.shape) * float(np.finfo(np.float64).eps)

    @property
    def independent(self) -> bool:
        """Whether no row is close to the span of the others."""
        values = self._values
        return bool(values[-1] > _DEPENDENT * values[0]) and len(values) == len(self._left)

    def shortest(self, sides: Matrix) -> Matrix:
        """Return the shortest ``w`` with the given products with the rows, which are independent."""
        return np.asarray(self._right.T @ ((self._left.T @ sides) / self._values))

    def combination(self, v: Matrix) -> Matrix:
        """Return the weights of the combination of rows that is nearest to ``v``."""
        nonzero = self._values > self._rounding * self._values[0]
        h = np.where(nonzero, self._right @ v, 0.0) / np.where(nonzero, self._values, 1.0)
        return np.asarray(self._left @ h)


@dataclass(frozen=True)
class Face:
    """Linearly independent rows that hold with equality, and the shortest vector on them."""

    rows: tuple[int, ...]
    multipliers: Matrix
    w: Matrix
    #: The rows in their singular basis, if known, for the next iteration.
    basis: Basis | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def empty(dimension: int) -> Face:
        """Return the face without rows, whose shortest vector is zero."""
        return Face((), np.empty(0), np.zeros(dimension))

    @staticmethod
    def near(halfspaces: HalfSpaces, slack: Matrix, w: Matrix, rows: Any) -> Face:
        """Return the face whose normals are the rows that ``-w`` is a nonnegative combination of."""
        chosen = np.asarray(rows, dtype=np.intp)
        if len(chosen) == 0:
            return Face.empty(halfspaces.dimension)
        try:
            u, _ = scipy.optimize.nnls(halfspaces.rows(chosen).T, -w)
        except RuntimeError:
            return Face.empty(halfspaces.dimension)
        chosen = chosen[u > 1e-9 * max(1.0, float(u.max()))]
        return Face.among(halfspaces, slack, tuple(chosen.tolist()))

    @staticmethod
    def among(halfspaces: HalfSpaces, slack: Matrix, rows: tuple[int, ...]) -> Face:
        """Return the face of independent ``rows`` without those whose multipliers are negative."""
        deadline = current_deadline()
        while rows:
            deadline.check()
            face = _solved(halfspaces, slack, rows)
            if face is None:
                break
            if face.multipliers.min() >= 0.0:
                return face
            rows = tuple(i for i, u in zip(rows, face.multipliers, strict=True) if u > 0.0)
        return Face.empty(halfspaces.dimension)


def shortest_vector(halfspaces: HalfSpaces, slack: Matrix, start: Face, blur: float) -> Face:
    """Return the face and the shortest ``w`` with ``N w <= slack + blur``.

    Parameters
    ----------
    halfspaces : HalfSpaces
        The unit rows ``N``; the bounds are not used.
    slack : ndarray
        The right-hand side.
    start : Face
        A face with non-negative multipliers: the solution for a subset of the rows.
    blur : float
        Violations up to this are rounding.

    Raises
    ------
    Contradiction
        If a row violated by more than ``1000 blur`` is a combination of active ones.
    ProjectionError
        If the limit of iterations is reached.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.active_set import Face, shortest_vector
    >>> from lopro.projections.halfspaces import HalfSpaces
    >>> slack = np.array([-1.0, 3.0])
    >>> shortest_vector(HalfSpaces(np.eye(2), slack), slack, Face.empty(2), 1e-12).w + 0.0
    array([-1.,  0.])
    """
    face, tolerated = start, np.zeros(len(slack))
    deadline = current_deadline()
    for _ in range(100 + 10 * len(slack)):
        deadline.check()
        excess = halfspaces.normals @ face.w - slack - tolerated
        worst = int(np.argmax(excess))
        if excess[worst] <= blur:
            return face
        extended = _with_row(halfspaces, slack, face, worst)
        if extended is not None:
            face = extended
        elif excess[worst] <= 1e3 * blur:
            # Dependent rows that contradict each other only by rounding.
            tolerated[worst] = excess[worst]
        else:
            raise Contradiction(float(excess[worst]))
    raise ProjectionError(
        "the active-set method reached its limit: the inequalities are degenerate"
    )


def _with_row(halfspaces: HalfSpaces, slack: Matrix, face: Face, new: int) -> Face | None:
    """Return the face with row ``new`` added as an equation; None if that is impossible."""
    normal = halfspaces.rows([new])[0]
    rows, u, w, own = list(face.rows), face.multipliers.copy(), face.w.copy(), 0.0
    basis, deadline = face.basis, current_deadline()
    while True:
        deadline.check()
        active = halfspaces.rows(rows)
        basis = basis or (Basis(active) if rows else None)
        r = basis.combination(normal) if basis else np.empty(0)
        across = normal - active.T @ r if rows else normal
        room = float(across @ across)
        full = (float(normal @ w) - float(slack[new])) / room if room > _DEPENDENT**2 else math.inf
        falling = np.flatnonzero(r > 1e-13)
        ratios = u[falling] / r[falling]
        block = int(np.argmin(ratios)) if len(falling) else -1
        partial = float(ratios[block]) if len(falling) else math.inf
        step = min(full, partial)
        if math.isinf(step):
            return None
        u, own = u - step * r, own + step
        if math.isfinite(full):
            w = w - step * across
        if full <= partial:
            solved = _solved(halfspaces, slack, (*rows, new))
            if solved is not None and solved.multipliers.min() >= -1e-9 * max(1.0, own):
                return replace(solved, multipliers=np.maximum(solved.multipliers, 0.0))
            return Face((*rows, new), np.append(np.maximum(u, 0.0), own), w)
        dropped = int(falling[block])
        del rows[dropped]
        u, basis = np.maximum(np.delete(u, dropped), 0.0), None


def _solved(halfspaces: HalfSpaces, slack: Matrix, rows: tuple[int, ...]) -> Face | None:
    """Solve the equations of some rows directly; None if they depend on each other."""
    basis = Basis(halfspaces.rows(list(rows)))
    if not basis.independent:
        return None
    w = basis.shortest(slack[list(rows)])
    return Face(rows, basis.combination(-w), w, basis)
