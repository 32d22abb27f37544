"""Problems as second-order methods take them: composite problems and quadratic programs, from their terms.

Everything is read from the data: NumPy arrays, sparse matrices, operators, arrays on a device (in double
precision) of real numbers. Nothing is made dense or fetched, and double precision is not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.constraints.base import Constraint
from lopro.constraints.simplex import Simplex
from lopro.core.arrays import is_complex, is_single, on_host
from lopro.engines import QuadraticProgram
from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import HalfSquare, Interval, Linear, Opaque, Quadratic
from lopro.functions.term import Term
from lopro.maps.host import engine_matrix, host_vector
from lopro.newton.arrays import Array, Image
from lopro.newton.problem import Composite
from lopro.problem import Problem

__all__ = [
    "composite",
    "has_second_derivatives",
    "member_multipliers",
    "program_multipliers",
    "quadratic_program",
    "term_multipliers",
]


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
    >>> [type(term.atom).__name__ for term in composite(lopro.Problem(f, box)).terms]
    ['Interval']
    """
    _check_points(problem)
    assert problem.shape is not None
    return Composite.of((*problem.constraint.terms, *problem.objective.terms), problem.shape[0])


def quadratic_program(problem: Problem) -> QuadraticProgram:
    """Return a problem with a linear or quadratic objective as a quadratic program.

    Raises
    ------
    MissingCapabilityError
        Where the objective is not a quadratic function whose matrix is at hand, or the set is not
        given by rows.
    """
    _check_points(problem)
    assert problem.shape is not None
    n = problem.shape[0]
    P, q, constant = _quadratic(problem.objective.terms, n)
    least, most = _box(problem.constraint, n)
    matrices, lower, upper = [], [], []
    for term in problem.constraint.terms:
        interval, M = _rows(term)
        if M is not None:
            matrices.append(M)
            lower.append(interval.lower)
            upper.append(interval.upper)
    if np.any(least > most):
        raise MissingCapabilityError("bounds of variables contradict each other")
    if not matrices:
        return QuadraticProgram.of(P, q, None, None, None, least, most, constant)
    A = _stacked(matrices)
    both = np.concatenate(lower), np.concatenate(upper)
    return QuadraticProgram.of(P, q, A, *both, least, most, constant)


def has_second_derivatives(problem: Problem) -> bool:
    """Whether no term of the objective is a callable without second derivatives."""
    return all(
        not isinstance(term.atom, Opaque) or term.atom.function.has_hessian
        for term in problem.objective.terms
    )


# Multipliers: those of the terms, and those of the members of the constraint as a user counts them.


def member_multipliers(constraint: Constraint, multipliers: Sequence[Array]) -> Image:
    """Return one array for each member from the multipliers of the terms of a constraint."""
    left, found = list(multipliers), []
    for member in constraint.members():
        own = [left.pop(0) for _ in member.terms]
        # A member of several terms has one normal vector.
        pairs = zip(member.terms, own, strict=True)
        found.append(own[0] if len(own) == 1 else sum(term.pullback(v) for term, v in pairs))
    return tuple(found)


def term_multipliers(constraint: Constraint, multipliers: Sequence[Array]) -> list[Array]:
    """Return multipliers of the members as those of the terms: the inverse of `member_multipliers`."""
    found: list[Array] = []
    for member, v in zip(constraint.members(), multipliers, strict=True):
        if isinstance(member, Simplex):
            # The total is what positive entries pay, the largest multiplier; the others pay less.
            found += [v - v.max(), np.array([v.max()])]
        else:
            found.append(v)
    return found


def program_multipliers(constraint: Constraint, multipliers: Sequence[Array]) -> Image:
    """Return the multipliers of all rows and of the box of a quadratic program, one array for each member."""
    rows, box = multipliers
    least, most = _box(constraint, len(box))
    found, start = [], 0
    for term in constraint.terms:
        interval, M = _rows(term)
        if M is None:
            # The box is the intersection of all bounds: the first that is as tight pays for it.
            here = np.where(box > 0.0, interval.upper == most, interval.lower == least)
            found.append(np.where(here, box, 0.0))
            box = np.where(here, 0.0, box)
        else:
            found.append(rows[start : start + M.shape[0]])
            start += M.shape[0]
    return member_multipliers(constraint, found)


def _rows(term: Term) -> tuple[Interval, Any]:
    """Return the bounds of a term and its matrix, None for the variables themselves."""
    if isinstance(term.atom, Interval):
        if term.is_identity:
            return term.atom, None
        assert term.map is not None
        M = engine_matrix(term.map)
        if M is not None:
            return term.atom, M
    raise MissingCapabilityError("the constraint is not given by rows whose entries are at hand")


def _box(constraint: Constraint, size: int) -> tuple[Array, Array]:
    """Return the largest lower and the smallest upper bounds of single variables."""
    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    for term in constraint.terms:
        if term.is_identity and isinstance(term.atom, Interval):
            lower = np.maximum(lower, term.atom.lower)
            upper = np.minimum(upper, term.atom.upper)
    return lower, upper


def _check_points(problem: Problem) -> None:
    if problem.shape is None or len(problem.shape) != 1:
        raise MissingCapabilityError("second-order methods take vectors of a known size")
    opaque = any(isinstance(term.atom, Opaque) for term in problem.objective.terms)
    for part in (problem.objective, problem.constraint):
        if part.like is None:
            continue
        if is_complex(part.like):
            raise MissingCapabilityError("second-order methods take real numbers")
        if not on_host(part.like) and is_single(part.like):
            raise MissingCapabilityError(
                "second-order methods take double precision on a device: convert the data to float64, "
                "or leave the choice to lopro.Auto()"
            )
        if not isinstance(part.like, np.ndarray) and opaque:
            raise MissingCapabilityError(
                "second-order methods take functions of NumPy arrays; lopro.MultiplierMethod() takes others"
            )


def _stacked(matrices: Sequence[Any]) -> Any:
    if len(matrices) == 1:
        return matrices[0]
    # One dense block of some size makes the whole of it dense for the solvers; a few rows do not.
    sparse = any(scipy.sparse.issparse(M) for M in matrices)
    return scipy.sparse.vstack(matrices, format="csr") if sparse else np.vstack(matrices)


def _quadratic(terms: Sequence[Term], size: int) -> tuple[Any, Array, float]:
    """Return the matrix (None for zero), the slope and the constant of a quadratic function."""
    P: Any = None
    q, constant = np.zeros(size), 0.0
    for term in terms:
        atom, matrix = term.atom, None
        if isinstance(atom, Linear):
            q = q + host_vector(atom.c)
            continue
        if isinstance(atom, Quadratic):
            matrix = engine_matrix(atom.P)
            slope, own = host_vector(atom.q), atom.constant
        elif isinstance(atom, HalfSquare) and term.is_identity:
            matrix = scipy.sparse.eye_array(size, format="csr")
            center = np.zeros(size) if term.offset is None else host_vector(term.offset)
            slope, own = -center, 0.5 * float(center @ center)
        if matrix is None:
            raise MissingCapabilityError("the objective is not given by a matrix P")
        matrix = matrix if term.scale == 1.0 else term.scale * matrix
        P = matrix if P is None else P + matrix
        q, constant = q + term.scale * slope, constant + term.scale * own
    return P, q, constant
