"""Problems as second-order methods take them: composite problems and quadratic programs, from their terms.

Everything is read from the data: NumPy arrays, sparse matrices, operators, arrays on a device (in double
precision) of real numbers. Nothing is fetched, and double precision is not copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import VariableBounds
from lopro.certificates.programs import ProgramProof
from lopro.core.arrays import is_complex, is_single, on_host
from lopro.engines import QuadraticProgram
from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import HalfSquare, Interval, Linear, Opaque, Quadratic
from lopro.functions.term import Term, bounds_of
from lopro.linalg.dense import Array
from lopro.maps.host import engine_matrix, host_matrix, host_vector, widens_there
from lopro.methods.answers import term_multipliers
from lopro.newton.problem import Composite
from lopro.newton.smooth import FILL, Image
from lopro.problem import Problem

__all__ = ["Forms", "composite", "has_second_derivatives", "quadratic_program"]


#: Dense squares are few if there are so many variables for each. Time of Newton's method over that of the
#: sparse program, with a ridge, one sparse row and a box: 2.0 with 50 squares of 200 variables, 6 with 10;
#: 0.83 with 250 of 1000, 2.6 with 166, 31 with 50.
_FEW = 4


class Forms:
    """The forms of a problem that second-order methods take; each is made once, on first use.

    Parameters
    ----------
    problem : Problem
        Any problem: the attributes that end in ``_lacks`` say in words why it has not got a form.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.second_order.forms import Forms
    >>> forms = Forms(lopro.Problem(lopro.objectives.L1Norm(shape=(2,))))
    >>> forms.program_lacks, forms.composite_lacks
    ('the objective is not given by a matrix P', None)
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.terms = problem.objective.terms
        self.sets = problem.constraint.terms

    @cached_property
    def _points_lack(self) -> str | None:
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
            if not on_host(like) and is_single(like) and not self._widens:
                return "second-order methods take float64 on a device; lopro.Auto() takes float32 as well"
            if opaque and not isinstance(like, np.ndarray):
                return "second-order methods take functions of NumPy arrays; use lopro.Auto()"
        return None

    @property
    def _widens(self) -> bool:
        """Whether all matrices in single precision can be copied in double precision where they are."""
        maps = [term.map for term in (*self.terms, *self.sets) if term.map is not None]
        return all(on_host(A.like) or widens_there(A) for A in maps)

    @cached_property
    def size(self) -> int:
        """Number of variables."""
        assert self.problem.shape is not None
        return self.problem.shape[0]

    @cached_property
    def sets_on_host(self) -> tuple[Term, ...]:
        """The terms of the sets for vectors on the host."""
        return tuple(term.on_host(self.size) for term in self.sets)

    @cached_property
    def norms(self) -> tuple[Term, ...]:
        """The terms of the objective that have a prox only."""
        return tuple(term for term in self.terms if not term.second_order)

    @cached_property
    def linear(self) -> bool:
        """Whether the smooth terms of the objective are linear."""
        return all(isinstance(t.atom, Linear) for t in self.terms if t.second_order)

    @cached_property
    def composite_lacks(self) -> str | None:
        """Why Newton's method cannot take the problem; None if it can."""
        return self._points_lack or Composite.lacks((*self.sets, *self.terms))

    @cached_property
    def composite(self) -> Composite:
        """The problem as Newton's method takes it."""
        return Composite.of((*self.sets, *self.terms), self.size)

    @cached_property
    def program_lacks(self) -> str | None:
        """Why the problem is no quadratic program whose entries are at hand; None if it is one."""
        if self._points_lack is not None:
            return self._points_lack
        for term in self.terms:
            if not (_is_quadratic(term) or self._is_sparse(term)):
                return "the objective is not given by a matrix P"
        for term in self.sets:
            at_hand = term.is_identity or term.entries is not None
            if not (at_hand and isinstance(term.atom, Interval)):
                return "the constraint is not given by rows whose entries are at hand"
        if len(self._matrices) == len(self.sets):
            return None
        least, most = self.box
        return "bounds of variables contradict each other" if np.any(least > most) else None

    @cached_property
    def program(self) -> QuadraticProgram:
        """The problem as a quadratic program; ``P`` is a normal matrix where f is a sum of squares.

        Squares of images ``y = D x - b`` that have no sparse normal matrix add variables ``y``, after those
        of the problem, and the rows ``D x - y = b``, after its rows.
        """
        kept = [term for term in self.terms if term not in self._images]
        P, q, constant = _quadratic(kept, self.size)
        rows: list[Any] = [term.atom for term in self.sets if not term.is_identity]
        if len(rows) == 1:
            A, lower, upper = self._matrices[0], rows[0].lower, rows[0].upper
        elif rows:
            A = _stacked(self._matrices)
            lower, upper = (
                np.concatenate([getattr(r, k) for r in rows]) for k in ("lower", "upper")
            )
        else:
            A, lower, upper = np.zeros((0, self.size)), np.zeros(0), np.zeros(0)
        program = QuadraticProgram(P, q, A, lower, upper, *self.box, constant)
        return _with_images(program, self._images) if self._images else program

    @cached_property
    def _images(self) -> tuple[Term, ...]:
        """The squares whose images are variables of the program."""
        return tuple(term for term in self.terms if self._adds_variables(term))

    def _is_sparse(self, term: Term) -> bool:
        """Whether a square is one of few images, beside rows that are sparse."""
        if not isinstance(term.atom, HalfSquare) or term.is_identity or self._has_dense_rows:
            return False
        rows, columns = term.D.shape
        B = term.entries
        return B is not None and rows * (_FEW if isinstance(B, np.ndarray) else 1) <= columns

    def _adds_variables(self, term: Term) -> bool:
        """Whether the images of a square are variables of the program: their normal matrix is not sparse."""
        return self._is_sparse(term) and not _has_sparse_normal_matrix(term.entries)

    @cached_property
    def _has_dense_rows(self) -> bool:
        return any(isinstance(M, np.ndarray) for M in self._matrices)

    @cached_property
    def proof(self) -> ProgramProof | None:
        """Proves answers from the data; None where f is linear or some data are not on the host."""
        if self.linear:
            return None
        squares = [t.on_host(self.size) for t in self.terms if isinstance(t.atom, HalfSquare)]
        if any(not t.is_identity and host_matrix(t.D) is None for t in squares):
            return None
        p, m = self.program, self.rows - self._added
        P, q, constant, A = p.P, p.q, p.constant, p.A
        if squares:
            others = [term for term in self.terms if not isinstance(term.atom, HalfSquare)]
            P, q, constant = _quadratic(others, self.size)
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
        """Number of images that are variables of the program, of which each has a row."""
        return sum(term.D.shape[0] for term in self._images)

    @cached_property
    def sparse(self) -> bool:
        """Whether the matrices of the program are sparse; known without forming them."""
        if self._matrices and all(isinstance(M, np.ndarray) for M in self._matrices):
            return False
        return not any(isinstance(M, np.ndarray) for t, M in self._curved if t not in self._images)

    @cached_property
    def entries(self) -> int:
        """Number of entries of the matrices of the program, as they are stored."""
        found = self.variables
        for M in self._matrices:
            found += int(M.size)
        for _, M in self._curved:
            found += int(M.size)
        return found

    @cached_property
    def _matrices(self) -> list[Any]:
        """The matrices of the sets, but for bounds of variables."""
        return [term.entries for term in self.sets if not term.is_identity]

    @cached_property
    def _curved(self) -> list[tuple[Term, Any]]:
        """The matrices of the objective, with their terms."""
        return [
            (t, t.entries if isinstance(t.atom, HalfSquare) else engine_matrix(t.atom.P))
            for t in self.terms
            if isinstance(t.atom, Quadratic)
            or (isinstance(t.atom, HalfSquare) and t.map is not None)
        ]

    @cached_property
    def exact(self) -> bool:
        """Whether the program is the problem itself: normal matrices are rounded when they are formed."""
        return all(not isinstance(term.atom, HalfSquare) or term.is_identity for term in self.terms)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """The largest lower and the smallest upper bounds of single variables."""
        return bounds_of(self.sets, self.size)

    def split(self, rows: Array, box: Array) -> Image:
        """Return one array for each term of the sets from multipliers of all rows and of the box."""
        found, start, box = [], 0, box[: self.size]
        for term in self.sets:
            if term.is_identity:
                assert isinstance(term.atom, Interval)
                # The box is the intersection of all bounds: the first that is as tight pays for it.
                least, most = self.box
                here = np.where(box > 0.0, term.atom.upper == most, term.atom.lower == least)
                found.append(np.where(here, box, 0.0))
                box = np.where(here, 0.0, box)
            else:
                found.append(rows[start : start + term.D.shape[0]])
                start += term.D.shape[0]
        return tuple(found)

    def joined(self, multipliers: Sequence[Array]) -> tuple[Array, Array]:
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
        """Whether a guess of the active rows is worth a try: of a dense quadratic program."""
        return self.program_lacks is None and not (self.linear or self.sparse)


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
    forms = Forms(problem)
    if forms.composite_lacks is not None:
        raise MissingCapabilityError(forms.composite_lacks)
    return forms.composite


def quadratic_program(problem: Problem) -> QuadraticProgram:
    """Return a problem with a linear or quadratic objective as a quadratic program.

    Raises
    ------
    MissingCapabilityError
        Where the objective is not a quadratic function whose matrix is at hand, or the set is not
        given by rows.
    """
    forms = Forms(problem)
    if forms.program_lacks is not None:
        raise MissingCapabilityError(forms.program_lacks)
    return forms.program


def has_second_derivatives(problem: Problem) -> bool:
    """Whether no term of the objective is a callable without second derivatives."""
    return all(
        not isinstance(term.atom, Opaque) or term.atom.function.has_hessian
        for term in problem.objective.terms
    )


def _is_quadratic(term: Term) -> bool:
    """Whether a term is linear, or quadratic with a matrix at hand or one that is cheap to form."""
    atom = term.atom
    if isinstance(atom, Linear) or (isinstance(atom, HalfSquare) and term.is_identity):
        return True
    if isinstance(atom, Quadratic):
        return engine_matrix(atom.P) is not None
    if not isinstance(atom, HalfSquare):
        return False
    B = term.entries
    return isinstance(B, np.ndarray) and B.shape[0] >= B.shape[1]


def _has_sparse_normal_matrix(B: Any) -> bool:
    """Whether ``B'B`` has about as many entries as ``B``."""
    if not scipy.sparse.issparse(B):
        return False
    counts = np.diff(scipy.sparse.csr_array(B).indptr).astype(np.float64)
    return bool(counts @ counts <= FILL * B.nnz)


def _with_images(program: QuadraticProgram, terms: Sequence[Term]) -> QuadraticProgram:
    """Return a program with variables ``y = D x - b`` and the squares ``s/2 |y|^2``."""
    B = scipy.sparse.vstack([scipy.sparse.csr_array(term.entries) for term in terms], format="csr")
    k, n = B.shape
    sides = [np.zeros(t.size) if t.offset is None else host_vector(t.offset).ravel() for t in terms]
    b, free = np.concatenate(sides), np.full(k, np.inf)
    curvature = np.concatenate([np.full(t.size, t.scale) for t in terms])
    P = scipy.sparse.csr_array((n, n)) if program.P is None else scipy.sparse.csr_array(program.P)
    A = scipy.sparse.csr_array(program.A)
    return QuadraticProgram(
        scipy.sparse.block_diag([P, scipy.sparse.diags_array(curvature)], format="csr"),
        np.concatenate([program.q, np.zeros(k)]),
        scipy.sparse.block_array([[A, None], [B, -scipy.sparse.eye_array(k)]], format="csr"),
        np.concatenate([program.lower, b]),
        np.concatenate([program.upper, b]),
        np.concatenate([program.least, -free]),
        np.concatenate([program.most, free]),
        program.constant,
    )


def _stacked(matrices: Sequence[Any]) -> Any:
    """Return matrices below each other, sparse where one of them is."""
    # One dense block of some size makes the whole of it dense for the solvers; a few rows do not.
    sparse = any(scipy.sparse.issparse(M) for M in matrices)
    return scipy.sparse.vstack(matrices, format="csr") if sparse else np.vstack(matrices)


def _quadratic(terms: Sequence[Term], size: int) -> tuple[Any, Array, float]:
    """Return the matrix (None for zero), the slope and the constant of a quadratic function."""
    if len(terms) == 1 and isinstance(terms[0].atom, Quadratic) and terms[0].scale == 1.0:
        return _parts(terms[0], size)
    P: Any = None
    q, constant = np.zeros(size), 0.0
    for term in terms:
        if isinstance(term.atom, Linear):
            q = q + host_vector(term.atom.c)
            continue
        matrix, slope, own = _parts(term, size)
        matrix = matrix if term.scale == 1.0 else term.scale * matrix
        P = matrix if P is None else P + matrix
        q, constant = q + term.scale * slope, constant + term.scale * own
    return P, q, constant


def _parts(term: Term, size: int) -> tuple[Any, Array, float]:
    """Return matrix, slope and constant of a quadratic term without its scale."""
    atom = term.atom
    if isinstance(atom, Quadratic):
        return engine_matrix(atom.P), host_vector(atom.q), atom.constant
    B = None if term.is_identity else term.entries
    b = np.zeros(size if B is None else len(B)) if term.offset is None else host_vector(term.offset)
    square = 0.5 * float(b @ b)
    if B is None:
        return scipy.sparse.eye_array(size, format="csr"), -b, square
    return B.T @ B, -(b @ B), square
