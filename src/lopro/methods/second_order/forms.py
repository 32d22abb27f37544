"""The forms of a problem that second-order methods solve: composite problems and quadratic programs.

Both are read from the terms of a problem with real data: NumPy arrays, sparse matrices, operators, and arrays
on a device in double precision. No data are transferred from a device, and data in double precision are not
copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from lopro.certificates import VariableBounds
from lopro.certificates.programs import ProgramProof
from lopro.core.arrays import is_complex, is_single, on_host
from lopro.engines import QuadraticProgram
from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import HalfSquare, Interval, Linear, Opaque, Quadratic
from lopro.functions.term import Term, bounds_of
from lopro.linalg.dense import Array
from lopro.maps.host import engine_matrix, host_matrix, widens_there
from lopro.methods.answers import term_multipliers
from lopro.methods.second_order.quadratic_terms import (
    has_sparse_normal_matrix,
    is_quadratic,
    is_small_square,
    quadratic_function,
    stacked,
    with_image_variables,
)
from lopro.newton.problem import Composite
from lopro.newton.smooth import Image
from lopro.problem import Problem

__all__ = ["Forms", "composite"]


class Forms:
    """The forms of a problem that second-order methods solve; each is computed once, when first used.

    Parameters
    ----------
    problem : Problem
        Any problem: `composite_obstacle` and `program_obstacle` state why it does not have a form.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.second_order.forms import Forms
    >>> forms = Forms(lopro.Problem(lopro.objectives.L1Norm(shape=(2,))))
    >>> forms.program_obstacle, forms.composite_obstacle
    ('the objective is not given by a matrix P', None)
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.terms = problem.objective.terms
        self.sets = problem.constraint.terms

    @cached_property
    def _points_obstacle(self) -> str | None:
        """Why second-order methods cannot use the points of the problem; None if they can."""
        shape = self.problem.shape
        if shape is None or len(shape) != 1:
            return "second-order methods take vectors of a known size"
        opaque = any(isinstance(term.atom, Opaque) for term in self.terms)
        for part in (self.problem.objective, self.problem.constraint):
            like = part.like
            if like is None or (type(like) is np.ndarray and like.dtype == np.float64):
                continue
            if is_complex(like):
                return "second-order methods take real numbers"
            if not on_host(like) and is_single(like) and not self._can_widen:
                return "second-order methods take float64 on a device; lopro.Auto() accepts float32 as well"
            if opaque and not isinstance(like, np.ndarray):
                return "second-order methods take functions of NumPy arrays; use lopro.Auto()"
        return None

    @property
    def _can_widen(self) -> bool:
        """Whether all matrices in single precision can be copied to double precision on their device."""
        maps = [term.map for term in (*self.terms, *self.sets) if term.map is not None]
        return all(on_host(A.like) or widens_there(A) for A in maps)

    @cached_property
    def size(self) -> int:
        """Number of variables."""
        assert self.problem.shape is not None
        return self.problem.shape[0]

    @cached_property
    def sets_on_host(self) -> tuple[Term, ...]:
        """The terms of the constraint, with maps for vectors on the host."""
        return tuple(term.on_host(self.size) for term in self.sets)

    @cached_property
    def norms(self) -> tuple[Term, ...]:
        """The nonsmooth terms of the objective, of which the prox is known."""
        return tuple(term for term in self.terms if not term.second_order)

    @cached_property
    def linear(self) -> bool:
        """Whether the smooth terms of the objective are linear."""
        return all(isinstance(t.atom, Linear) for t in self.terms if t.second_order)

    @cached_property
    def composite_obstacle(self) -> str | None:
        """Why Newton's method cannot solve the problem; None if it can."""
        return self._points_obstacle or Composite.lacks((*self.sets, *self.terms))

    @cached_property
    def composite(self) -> Composite:
        """The composite problem of Newton's method."""
        return Composite.of((*self.sets, *self.terms), self.size)

    @cached_property
    def program_obstacle(self) -> str | None:
        """Why the problem is not a quadratic program with explicit matrices; None if it is one."""
        if self._points_obstacle is not None:
            return self._points_obstacle
        for term in self.terms:
            if not (is_quadratic(term) or self._may_add_variables(term)):
                return "the objective is not given by a matrix P"
        for term in self.sets:
            explicit = term.is_identity or term.entries is not None
            if not (explicit and isinstance(term.atom, Interval)):
                return "the constraint is not given by rows of an explicit matrix"
        if len(self._matrices) == len(self.sets):
            return None
        least, most = self.box
        return "bounds of variables contradict each other" if np.any(least > most) else None

    @cached_property
    def program(self) -> QuadraticProgram:
        """The problem as a quadratic program; ``P`` is the normal matrix ``D'D`` of a sum of squares.

        A square whose normal matrix would not be sparse adds its image ``y = D x - b`` to the variables,
        after those of the problem, and the rows ``D x - y = b`` after the rows of the problem.
        """
        kept = [term for term in self.terms if term not in self._images]
        P, q, constant = quadratic_function(kept, self.size)
        rows: list[Any] = [term.atom for term in self.sets if not term.is_identity]
        if len(rows) == 1:
            A, lower, upper = self._matrices[0], rows[0].lower, rows[0].upper
        elif rows:
            A = stacked(self._matrices)
            lower, upper = (
                np.concatenate([getattr(r, k) for r in rows]) for k in ("lower", "upper")
            )
        else:
            A, lower, upper = np.zeros((0, self.size)), np.zeros(0), np.zeros(0)
        program = QuadraticProgram(P, q, A, lower, upper, *self.box, constant)
        return with_image_variables(program, self._images) if self._images else program

    @cached_property
    def _images(self) -> tuple[Term, ...]:
        """The squares whose images are variables of the program."""
        return tuple(term for term in self.terms if self._adds_variables(term))

    def _may_add_variables(self, term: Term) -> bool:
        """Whether a square has few rows and all rows of the constraint are sparse."""
        return not self._has_dense_rows and is_small_square(term)

    def _adds_variables(self, term: Term) -> bool:
        """Whether the image of a square is a variable of the program: its normal matrix is not sparse."""
        return self._may_add_variables(term) and not has_sparse_normal_matrix(term.entries)

    @cached_property
    def _has_dense_rows(self) -> bool:
        return any(isinstance(M, np.ndarray) for M in self._matrices)

    @cached_property
    def proof(self) -> ProgramProof | None:
        """The proof of an answer from the data; None where f is linear or some data are not on the host."""
        if self.linear:
            return None
        squares = [t.on_host(self.size) for t in self.terms if isinstance(t.atom, HalfSquare)]
        if any(not t.is_identity and host_matrix(t.D) is None for t in squares):
            return None
        p, m = self.program, self.rows - self._added
        P, q, constant, A = p.P, p.q, p.constant, p.A
        if squares:
            others = [term for term in self.terms if not isinstance(term.atom, HalfSquare)]
            P, q, constant = quadratic_function(others, self.size)
            A = p.A[:m, : self.size] if self._images else p.A
        sides = p.lower[:m], p.upper[:m]
        return ProgramProof(P, q, constant, squares, A, *sides, VariableBounds(*self.box))

    @property
    def rows(self) -> int:
        """Number of rows of the program."""
        return sum(int(M.shape[0]) for M in self._matrices) + self._added

    @property
    def variables(self) -> int:
        """Number of variables of the program."""
        return self.size + self._added

    @cached_property
    def _added(self) -> int:
        """Number of variables that are entries of images; each adds a row."""
        return sum(term.D.shape[0] for term in self._images)

    @cached_property
    def sparse(self) -> bool:
        """Whether the matrices of the program are sparse; they are not formed for the answer."""
        if self._matrices and all(isinstance(M, np.ndarray) for M in self._matrices):
            return False
        return not any(isinstance(M, np.ndarray) for t, M in self._curved if t not in self._images)

    @cached_property
    def entries(self) -> int:
        """Number of stored entries of the matrices of the program."""
        matrices = [*self._matrices, *(M for _, M in self._curved)]
        return self.variables + sum(int(M.size) for M in matrices)

    @cached_property
    def _matrices(self) -> list[Any]:
        """The matrices of the constraint, without bounds of variables."""
        return [term.entries for term in self.sets if not term.is_identity]

    @cached_property
    def _curved(self) -> list[tuple[Term, Any]]:
        """The quadratic terms of the objective with their matrices."""
        return [
            (t, t.entries if isinstance(t.atom, HalfSquare) else engine_matrix(t.atom.P))
            for t in self.terms
            if isinstance(t.atom, Quadratic)
            or (isinstance(t.atom, HalfSquare) and t.map is not None)
        ]

    @cached_property
    def exact(self) -> bool:
        """Whether the program has the data of the problem: a normal matrix is rounded when it is formed."""
        return all(not isinstance(term.atom, HalfSquare) or term.is_identity for term in self.terms)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """The largest lower and the smallest upper bound of each variable."""
        return bounds_of(self.sets, self.size)

    def split_multipliers(self, rows: Array, box: Array) -> Image:
        """Return the multipliers of each term of the constraint from those of all rows and of the box."""
        found, start, box = [], 0, box[: self.size]
        for term in self.sets:
            if term.is_identity:
                assert isinstance(term.atom, Interval)
                # The box is the intersection of all bounds: a multiplier belongs to the first tight one.
                least, most = self.box
                here = np.where(box > 0.0, term.atom.upper == most, term.atom.lower == least)
                found.append(np.where(here, box, 0.0))
                box = np.where(here, 0.0, box)
            else:
                found.append(rows[start : start + term.D.shape[0]])
                start += term.D.shape[0]
        return tuple(found)

    def joined_multipliers(self, multipliers: Sequence[Array]) -> tuple[Array, Array]:
        """Return the multipliers of all rows and of the box from those of the members of the constraint."""
        found = term_multipliers(self.problem.constraint, multipliers)
        rows, box = [np.zeros(0)], np.zeros(self.size)
        for term, v in zip(self.sets, found, strict=True):
            if term.is_identity:
                box = box + v
            else:
                rows.append(v)
        return np.concatenate(rows), box

    @property
    def has_active_sets(self) -> bool:
        """Whether a guess of the active rows may save time: the problem is a dense quadratic program."""
        return self.program_obstacle is None and not (self.linear or self.sparse)


def composite(problem: Problem) -> Composite:
    """Return the composite problem of Newton's method.

    Raises
    ------
    MissingCapabilityError
        If the objective has a term that Newton's method cannot treat, or the set is not given by rows, balls
        or cones.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.second_order import composite
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    >>> [type(term.atom).__name__ for term in composite(lopro.Problem(f, box)).terms]
    ['Interval']
    """
    forms = Forms(problem)
    if forms.composite_obstacle is not None:
        raise MissingCapabilityError(forms.composite_obstacle)
    return forms.composite
