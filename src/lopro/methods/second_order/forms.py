"""Problems as second-order methods take them.

Everything is read from the data: NumPy arrays, sparse matrices, operators, arrays on a device (in double
precision) of real numbers. Nothing is made dense or fetched, and double precision is not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import is_complex, is_single, on_host
from lopro.engines import QuadraticProgram
from lopro.errors import MissingCapabilityError
from lopro.methods.second_order.form_objectives import callables, objective_form, smooth_form
from lopro.methods.second_order.form_sets import rows_of, sets_of
from lopro.newton import smooth as kernel
from lopro.newton.problem import Composite
from lopro.objectives import Objective
from lopro.problem import Problem

__all__ = ["composite", "quadratic_program"]


def composite(problem: Problem) -> Composite:
    """Return a problem as the Newton method takes it.

    Raises
    ------
    MissingCapabilityError
        Where the objective has no second derivatives at hand, or the set is not given by rows or balls.

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
    assert problem.shape is not None
    smooth, norms = objective_form(problem.objective, problem.shape[0])
    return Composite(smooth, [*sets_of(problem.constraint), *norms])


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
        if part.like is None:
            continue
        if is_complex(part.like):
            raise MissingCapabilityError("second-order methods take real numbers")
        if not on_host(part.like) and is_single(part.like):
            raise MissingCapabilityError("second-order methods take double precision on a device")
        if not isinstance(part.like, np.ndarray) and callables(problem.objective):
            raise MissingCapabilityError("second-order methods take functions of NumPy arrays")


def _stacked(matrices: Sequence[Any]) -> Any:
    if len(matrices) == 1:
        return matrices[0]
    # One dense block of some size makes the whole of it dense for the solvers; a few rows do not.
    sparse = any(scipy.sparse.issparse(M) for M in matrices)
    return scipy.sparse.vstack(matrices, format="csr") if sparse else np.vstack(matrices)


def _quadratic(f: Objective) -> tuple[Any, Any, float]:
    """Return the matrix (None for zero), the slope and the constant of a quadratic function."""
    form = smooth_form(f, 1.0)
    P: Any = None
    q: Any = 0.0
    constant = 0.0
    for part in form.parts if isinstance(form, kernel.Sum) else (form,):
        if isinstance(part, kernel.Linear):
            matrix, slope, own = None, part.q, 0.0
        elif isinstance(part, kernel.Quadratic) and not isinstance(part, kernel.QuadraticOnDevice):
            matrix, slope, own = part.P, part.q, part.constant
        elif isinstance(part, kernel.SquaredDistance):
            matrix = scipy.sparse.diags_array(part.weights, format="csr")
            slope, own = -part.weights * part.center, 0.5 * float(part.weights @ part.center**2)
        else:
            raise MissingCapabilityError(f"the objective {f!r} is not given by a matrix P")
        P = matrix if P is None else P if matrix is None else P + matrix
        q, constant = q + slope, constant + own
    return P, q, constant
