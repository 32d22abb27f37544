"""Problems as second-order methods take them: one function for each type of objective and of set.

Everything is read from the data, which have to be NumPy arrays or sparse matrices of real numbers; nothing
is made dense, and double precision is not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro._util.arrays import is_complex
from lopro.constraints.affine import Affine
from lopro.constraints.base import Constraint
from lopro.constraints.box import Box
from lopro.constraints.polyhedron import Polyhedron
from lopro.constraints.residual_ball import ResidualBall
from lopro.constraints.simplex import Simplex
from lopro.errors import MissingCapabilityError
from lopro.maps import LinearMap
from lopro.methods.second_order.callables import SmoothCallable
from lopro.newton import smooth as kernel
from lopro.newton.engines import QuadraticProgram
from lopro.newton.parts import Interval
from lopro.newton.problem import Composite
from lopro.newton.smooth import Smooth
from lopro.objectives import (
    FunctionObjective,
    LeastSquares,
    Linear,
    Logistic,
    Objective,
    Quadratic,
    Scaled,
    SquaredDistance,
    Sum,
)
from lopro.problem import Problem

__all__ = ["composite", "quadratic_program", "rows_of", "smooth_form"]

#: An interval and the map whose values lie in it; None is the identity.
Rows: TypeAlias = tuple[Interval, Any]


def composite(problem: Problem) -> Composite:
    """Return a problem as the Newton method takes it.

    Raises
    ------
    MissingCapabilityError
        Where the objective has no second derivatives at hand, or the set is not given by rows.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.second_order import composite
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    >>> [type(term.part).__name__ for term in composite(lopro.Problem(f, box)).terms]
    ['Interval']
    """
    _check_points(problem)
    return Composite(smooth_form(problem.objective, 1.0), rows_of(problem.constraint))


def quadratic_program(problem: Problem) -> QuadraticProgram:
    """Return a problem with a linear or quadratic objective as a quadratic program.

    Raises
    ------
    MissingCapabilityError
        Where the objective is not a quadratic function whose matrix is at hand, or the set is not
        given by rows.
    """
    _check_points(problem)
    P, q, constant = _quadratic(problem.objective)
    n = len(q)
    least, most = np.full(n, -np.inf), np.full(n, np.inf)
    matrices, lower, upper = [], [], []
    for part, D in rows_of(problem.constraint):
        if D is None:
            least, most = np.maximum(least, part.lower), np.minimum(most, part.upper)
        else:
            matrices.append(D)
            lower.append(part.lower)
            upper.append(part.upper)
    if np.any(least > most):
        raise MissingCapabilityError("bounds of variables contradict each other")
    if not matrices:
        return QuadraticProgram.of(P, q, None, None, None, least, most, constant)
    A = _stacked(matrices)
    both = np.concatenate(lower), np.concatenate(upper)
    return QuadraticProgram.of(P, q, A, *both, least, most, constant)


def _check_points(problem: Problem) -> None:
    if problem.shape is None or len(problem.shape) != 1:
        raise MissingCapabilityError("second-order methods take vectors of a known size")
    for part in (problem.objective, problem.constraint):
        if part.like is not None and not isinstance(part.like, np.ndarray):
            raise MissingCapabilityError("second-order methods take NumPy arrays")
        if part.like is not None and is_complex(part.like):
            raise MissingCapabilityError("second-order methods take real numbers")


def _stacked(matrices: Sequence[Any]) -> Any:
    if len(matrices) == 1:
        return matrices[0]
    # One dense block of some size makes the whole of it dense for the solvers; a few rows do not.
    sparse = any(scipy.sparse.issparse(M) for M in matrices)
    return scipy.sparse.vstack(matrices, format="csr") if sparse else np.vstack(matrices)


def _matrix(A: LinearMap) -> Any:
    """Return the entries of a map, in double precision, dense or sparse as they are."""
    if not A.explicit:
        raise MissingCapabilityError(f"{A.name} is an operator: its entries are needed")
    matrix = A.matrix
    if scipy.sparse.issparse(matrix):
        return matrix.astype(np.float64)
    return np.asarray(matrix, dtype=np.float64)


def _host(values: Any) -> Any:
    return np.asarray(values, dtype=np.float64)


# Objectives.


@singledispatch
def smooth_form(f: Objective, factor: float) -> Smooth:
    """Return ``factor * f`` with its second derivatives; register a type of your own with ``register``."""
    raise MissingCapabilityError(
        f"the objective {f!r} has no second derivatives at hand; lopro.Auto() needs none"
    )


@smooth_form.register
def _(f: LeastSquares, factor: float) -> Smooth:
    root = np.sqrt(factor)
    A, b = _matrix(f.A), _host(f.b)
    return kernel.LeastSquares(A, b) if root == 1.0 else kernel.LeastSquares(root * A, root * b)


@smooth_form.register
def _(f: Quadratic, factor: float) -> Smooth:
    P, q = _matrix(f.P), _host(f.q)
    P = P if factor == 1.0 else factor * P
    return kernel.Quadratic(P, factor * q, factor * f.constant)


@smooth_form.register
def _(f: Linear, factor: float) -> Smooth:
    return kernel.Linear(factor * _host(f.a))


@smooth_form.register
def _(f: SquaredDistance, factor: float) -> Smooth:
    return kernel.SquaredDistance(_host(f.z), factor)


@smooth_form.register
def _(f: Logistic, factor: float) -> Smooth:
    n, d = f.X.shape
    loss = kernel.Logistic(_matrix(f.X), _host(f.labels), factor / n)
    if f.l2 == 0.0:
        return loss
    return kernel.Sum([loss, kernel.SquaredDistance(np.zeros(d), factor * f.l2)])


@smooth_form.register
def _(f: FunctionObjective, factor: float) -> Smooth:
    if not f.has_hessian or f.shape is None:
        raise MissingCapabilityError(
            "the objective has no second derivatives: give hess= or hessp="
        )
    return SmoothCallable(f, f.shape[0], factor)


@smooth_form.register
def _(f: Scaled, factor: float) -> Smooth:
    return smooth_form(f.f, factor * f.factor)


@smooth_form.register
def _(f: Sum, factor: float) -> Smooth:
    parts = [smooth_form(part, factor) for part in f.parts]
    return parts[0] if len(parts) == 1 else kernel.Sum(parts)


def _quadratic(f: Objective) -> tuple[Any, Any, float]:
    """Return the matrix (None for zero), the slope and the constant of a quadratic function."""
    form = smooth_form(f, 1.0)
    P: Any = None
    q: Any = 0.0
    constant = 0.0
    for part in form.parts if isinstance(form, kernel.Sum) else (form,):
        if isinstance(part, kernel.Linear):
            matrix, slope, own = None, part.q, 0.0
        elif isinstance(part, kernel.Quadratic):
            matrix, slope, own = part.P, part.q, part.constant
        elif isinstance(part, kernel.SquaredDistance):
            matrix = scipy.sparse.diags_array(part.weights, format="csr")
            slope, own = -part.weights * part.center, 0.5 * float(part.weights @ part.center**2)
        else:
            raise MissingCapabilityError(f"the objective {f!r} is not given by a matrix P")
        P = matrix if P is None else P if matrix is None else P + matrix
        q, constant = q + slope, constant + own
    return P, q, constant


# Sets.


def rows_of(constraint: Constraint) -> list[Rows]:
    """Return a set, or the members of an intersection, as intervals of linear maps.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.second_order.forms import rows_of
    >>> [(interval, D)] = rows_of(lopro.constraints.Polyhedron([[1.0, 2.0]], [4.0]))
    >>> interval.lower, interval.upper, D
    (array([-inf]), array([4.]), array([[1., 2.]]))
    """
    return [rows for member in constraint.members() for rows in _rows(member)]


@singledispatch
def _rows(set_: Constraint) -> list[Rows]:
    raise MissingCapabilityError(f"the constraint {set_!r} is not given by rows")


@_rows.register
def _(set_: Polyhedron) -> list[Rows]:
    return [(Interval(upper=_host(set_.b)), _matrix(set_.C))]


@_rows.register
def _(set_: Box) -> list[Rows]:
    return [(Interval(_host(set_.lower), _host(set_.upper)), None)]


@_rows.register
def _(set_: Affine) -> list[Rows]:
    return [(Interval(_host(set_.lower), _host(set_.upper)), _matrix(set_.M))]


@_rows.register
def _(set_: Simplex) -> list[Rows]:
    total = Interval([set_.total if set_.equality else -np.inf], [set_.total])
    return [(Interval(0.0, np.inf, set_.dim), None), (total, np.ones((1, set_.dim)))]


@_rows.register
def _(set_: ResidualBall) -> list[Rows]:
    if set_.sigma > 0.0:
        raise MissingCapabilityError(f"the constraint {set_!r} is not given by rows")
    y = _host(set_.y)
    return [(Interval(y, y), _matrix(set_.A))]
