"""Quadratic terms as matrices: which terms a quadratic program can hold, and the function they sum to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.engines import QuadraticProgram
from lopro.functions.atoms import HalfSquare, Linear, Quadratic
from lopro.functions.term import Term
from lopro.linalg.dense import Array
from lopro.maps.host import engine_matrix, host_vector
from lopro.newton.losses import FILL

__all__ = [
    "has_sparse_normal_matrix",
    "is_quadratic",
    "is_small_square",
    "quadratic_function",
    "stacked",
    "with_image_variables",
]

#: Least number of variables for each row of a dense square that is posed with its image as variables. Time of
#: Newton's method over that of this sparse program, with a ridge, one sparse row and a box: 2.0 with 50 rows
#: and 200 variables, 6 with 10 rows; with 1000 variables 0.83 for 250 rows, 2.6 for 166, 31 for 50.
_VARIABLES_PER_ROW = 4


def is_quadratic(term: Term) -> bool:
    """Whether a term is linear, or quadratic with an explicit matrix or one that is cheap to form."""
    atom = term.atom
    if isinstance(atom, Linear) or (isinstance(atom, HalfSquare) and term.is_identity):
        return True
    if isinstance(atom, Quadratic):
        return engine_matrix(atom.P) is not None
    if not isinstance(atom, HalfSquare):
        return False
    B = term.entries
    return isinstance(B, np.ndarray) and B.shape[0] >= B.shape[1]


def is_small_square(term: Term) -> bool:
    """Whether a term is the square of an explicit image with few entries compared with the variables."""
    if not isinstance(term.atom, HalfSquare) or term.is_identity:
        return False
    rows, columns = term.D.shape
    B = term.entries
    return (
        B is not None and rows * (_VARIABLES_PER_ROW if isinstance(B, np.ndarray) else 1) <= columns
    )


def has_sparse_normal_matrix(B: Any) -> bool:
    """Whether ``B'B`` is about as sparse as ``B``: its entries are at most the sum of squared row counts."""
    if not scipy.sparse.issparse(B):
        return False
    counts = np.diff(scipy.sparse.csr_array(B).indptr).astype(np.float64)
    return bool(counts @ counts <= FILL * B.nnz)


def with_image_variables(program: QuadraticProgram, terms: Sequence[Term]) -> QuadraticProgram:
    """Return the program with the squares ``s/2 |y|^2`` of new variables ``y = D x - b``."""
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


def stacked(matrices: Sequence[Any]) -> Any:
    """Return the matrices below each other, as a sparse matrix if one of them is sparse."""
    sparse = any(scipy.sparse.issparse(M) for M in matrices)
    return scipy.sparse.vstack(matrices, format="csr") if sparse else np.vstack(matrices)


def quadratic_function(terms: Sequence[Term], size: int) -> tuple[Any, Array, float]:
    """Return P (None for zero), q and c of the sum ``x'Px/2 + q'x + c`` of quadratic terms."""
    if len(terms) == 1 and isinstance(terms[0].atom, Quadratic) and terms[0].scale == 1.0:
        return _parts(terms[0], size)
    P: Any = None
    q, constant = np.zeros(size), 0.0
    for term in terms:
        if isinstance(term.atom, Linear):
            q = q + host_vector(term.atom.c)
            continue
        matrix, slope, offset = _parts(term, size)
        matrix = matrix if term.scale == 1.0 else term.scale * matrix
        P = matrix if P is None else P + matrix
        q, constant = q + term.scale * slope, constant + term.scale * offset
    return P, q, constant


def _parts(term: Term, size: int) -> tuple[Any, Array, float]:
    """Return matrix, linear coefficients and constant of a quadratic term without its scale."""
    atom = term.atom
    if isinstance(atom, Quadratic):
        return engine_matrix(atom.P), host_vector(atom.q), atom.constant
    B = None if term.is_identity else term.entries
    b = np.zeros(size if B is None else len(B)) if term.offset is None else host_vector(term.offset)
    square = 0.5 * float(b @ b)
    if B is None:
        return scipy.sparse.eye_array(size, format="csr"), -b, square
    return B.T @ B, -(b @ B), square
