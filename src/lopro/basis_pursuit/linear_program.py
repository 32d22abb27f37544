"""Small equations as a linear program: where Newton's method gets lost among degenerate vertices.

HiGHS names a vertex and a dual point, both up to its own tolerances. What is taken from it is which columns
are active; Newton's method computes the pair anew from these, and the dual point is checked like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro._util.deadline import current_deadline
from lopro.basis_pursuit.problem import SparseProblem

__all__ = ["Vertex", "fits_linear_program", "vertex"]

Vector: TypeAlias = "np.ndarray[Any, Any]"

_ENTRIES = 2e5  # of A: beyond, a simplex method takes too long
_ACTIVE = 1e-6  # a correlation so close to its weight is at it


@dataclass(frozen=True)
class Vertex:
    """A vertex of the equations, and the signs of all columns that are active in its dual point."""

    x: Vector
    signs: Vector


def fits_linear_program(sparse: SparseProblem) -> bool:
    """Whether the matrix is small, and wide enough for the equations to have more than one solution."""
    rows, columns = sparse.ball.A.shape
    return bool(rows < columns and rows * columns <= _ENTRIES)


def vertex(sparse: SparseProblem, A: Vector) -> Vertex | None:
    """Return an optimal vertex of ``min sum w_i |x_i|  s.t. A x = y``; None where there is none, or no time.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.linear_program import vertex
    >>> from lopro.basis_pursuit.pose import bpdn_problem
    >>> from lopro.basis_pursuit.problem import SparseProblem
    >>> A = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0]])
    >>> found = vertex(SparseProblem.of(bpdn_problem(A, np.ones(2), 0.0), np.zeros(3)), A)
    >>> np.flatnonzero(found.x), found.signs
    (array([2]), array([0., 0., 1.]))
    """
    deadline = current_deadline()
    deadline.check()
    y, w = np.asarray(sparse.ball.y, dtype=np.float64), np.asarray(sparse.weights, dtype=np.float64)
    unit, size, heavy = (float(np.abs(v).max()) for v in (A, y, w))
    if not (unit > 0.0 and size > 0.0):
        return None
    M = np.asarray(A, dtype=np.float64) / unit
    both = M if sparse.nonneg else np.hstack([M, -M])
    cost = w / heavy if sparse.nonneg else np.concatenate([w, w]) / heavy
    limits = {} if deadline.left == float("inf") else {"time_limit": deadline.left}
    found = scipy.optimize.linprog(cost, A_eq=both, b_eq=y / size, method="highs", options=limits)
    if found.x is None or found.status != 0:
        return None
    d = len(w)
    x = found.x if sparse.nonneg else found.x[:d] - found.x[d:]
    pulled = (M.T @ found.eqlin.marginals) / (w / heavy)
    active = (pulled if sparse.nonneg else np.abs(pulled)) >= 1.0 - _ACTIVE
    signs = np.where(active, np.sign(pulled), np.sign(x))
    return Vertex(x * (size / unit), signs)
