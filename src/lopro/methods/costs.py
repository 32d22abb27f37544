"""Estimated costs of methods on a problem, in operations of a matrix product.

One unit for all of them: the speed of matrix products, which `lopro.core.deadline` measures once. Everything
else is a count of steps times the operations of a step; the constants say how fast an engine is relative to
that unit. They were measured on dense quadratic programs of 20 to 600 variables with 0.1 to 5 times as many
rows, and on regressions of 2,000 to 20,000 samples (``python -m benchmarks.general.forced``), one thread,
6e10 operations a second. A choice needs them within a factor of two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy  # parts of it load when first used

from lopro.engines import ConeProgram, conic_work
from lopro.functions.atoms import HalfSquare, Linear, Quadratic
from lopro.functions.term import Term
from lopro.linalg.sparse_definite import SparseCholesky
from lopro.maps import SparseMap
from lopro.protocol import Cost

__all__ = [
    "admm_cost",
    "conic_cost",
    "engine_cost",
    "guess_pays",
    "least_conic_cost",
    "least_newton_cost",
    "newton_cost",
    "passes_cost",
]


@dataclass(frozen=True)
class Settings:
    """Steps that methods take, and what they are worth: see ``python -m benchmarks.general.forced``."""

    #: Operations that take as long as the Python code of one Newton step: 0.1 ms.
    newton_call: float = 6e6
    #: Operations that take as long as calling an engine and checking its answer: 0.3 ms.
    engine_call: float = 2e7
    #: Newton steps with few rows, and for each row per variable: 10, 12, 18, 40 and 90 steps were taken with
    #: 0.1, 0.5, 1, 2 and 5 rows per variable.
    newton_steps: float = 10.0
    newton_steps_per_row: float = 16.0
    #: Iterations of PIQP (7 to 15) and of Clarabel (10 to 25).
    piqp_iterations: float = 12.0
    clarabel_iterations: float = 18.0
    #: Operations of PIQP in the time that the Python code of a guess of the active rows takes, few exchanges.
    #: PIQP over the guess, n x 2n moved by 2 %: 0.6 to 0.7 with n = 16 and 30, 1.2 with 50, 1.5 with 100, 2.7
    #: with 300 (``python -m benchmarks.general.sequences``).
    active_set: float = 5e6
    #: Operations of a product in the time that Clarabel takes for an operation of a banded factorisation, and
    #: in each iteration for an entry of the data, posing and proof included. Total variation, one thread,
    #: seconds by this estimate and measured: 64 x 64 0.31 and 0.30, 128 x 128 3.1 and 2.1, a signal of 50,000
    #: entries 0.75 and 1.3; trends of 2,000 entries 0.04 and 0.07.
    conic_factor: float = 4.0
    conic_entry: float = 1e4
    #: Pairs of entries of one row up to which the pattern of normal equations is formed for an estimate.
    pairs: float = 2e7
    #: Pairs of products that ADMM takes with all maps, linear systems by conjugate gradients included:
    #: 3,000 to 10,000 to a gap of 1e-6 for images, and more for second differences.
    admm_products: float = 8000.0
    #: Operations of a product in the time of one of a dense factorisation by PIQP, and of a sparse one by any
    #: engine (3e9 a second). HiGHS and Clarabel treat dense rows as sparse ones.
    dense_factor: float = 1.5
    sparse_factor: float = 20.0
    #: Operations of a product in the time that an entry takes in a matrix-vector product, which reads memory.
    entry: float = 10.0
    #: Iterations of first-order methods: hundreds to thousands.
    first_order: float = 2000.0


SETTINGS = Settings()


def newton_cost(terms: Iterable[Term], size: int) -> Cost:
    """Return the cost of Newton's method: assembling and factorising a matrix of the size of x in each step.

    Examples
    --------
    >>> from lopro.functions.atoms import HalfSquare
    >>> from lopro.functions.term import Term
    >>> from lopro.methods.costs import newton_cost
    >>> newton_cost([Term(HalfSquare())], 500).work
    '10 factorisations of 500 x 500'
    """
    s, once, each, rows = SETTINGS, 0.0, float(size) ** 3 / 3.0, 0.0
    for term in terms:
        if isinstance(term.atom, Linear | Quadratic) or term.is_identity:
            continue
        gram = _gram(term, size)
        if isinstance(term.atom, HalfSquare):
            once += gram  # its normal matrix is formed once
        elif term.is_set:
            rows += term.D.shape[0]
            # Rows in use, of which there are no more than variables.
            each += gram * min(1.0, size / max(1.0, float(term.D.shape[0])))
        else:
            each += gram
    steps = s.newton_steps + s.newton_steps_per_row * min(rows / size, 5.0)
    work = f"{steps:.0f} factorisations of {size} x {size}"
    return Cost(work, once + steps * (each + s.newton_call))


def least_newton_cost() -> float:
    """Return the operations that Newton's method takes on the smallest problem."""
    return SETTINGS.newton_steps * SETTINGS.newton_call


def _gram(term: Term, size: int) -> float:
    """Return the operations of ``D' W D``: by the entries of a row, squared, where it is sparse."""
    rows, columns = term.D.shape
    if isinstance(term.map, SparseMap):
        return SETTINGS.sparse_factor * float(term.map.matrix.nnz) ** 2 / max(1, rows)
    return float(rows) * columns * columns


def engine_cost(rows: int, size: int, entries: int, sparse: bool, name: str = "piqp") -> Cost:
    """Return the cost of a quadratic program by an interior point method.

    Examples
    --------
    >>> from lopro.methods.costs import engine_cost
    >>> engine_cost(rows=100, size=50, entries=7500, sparse=False).work
    '12 iterations of piqp, 50 variables and 100 rows'
    """
    s, n = SETTINGS, float(size)
    if sparse:
        # The fill of factors grows with the entries of a column.
        each = s.sparse_factor * float(entries) * math.sqrt(entries / n)
    else:
        factor = s.dense_factor if name == "piqp" else s.sparse_factor
        each = factor * (rows * n * n + n**3 / 3.0)
    work = f"{s.piqp_iterations:.0f} iterations of {name}, {size} variables and {rows} rows"
    return Cost(work, s.engine_call + s.piqp_iterations * each)


def guess_pays(rows: int, size: int) -> bool:
    """Whether a guess of the active rows of a dense quadratic program may be faster than PIQP.

    Examples
    --------
    >>> from lopro.methods.costs import guess_pays
    >>> guess_pays(60, 30), guess_pays(200, 100)
    (False, True)
    """
    iterations = engine_cost(rows, size, 0, False).operations - SETTINGS.engine_call
    return iterations >= SETTINGS.active_set


def conic_cost(form: ConeProgram) -> Cost:
    """Return the cost of a cone program by Clarabel: banded factorisations of its normal equations.

    Examples
    --------
    A chain of differences has a narrow band, whatever its length:

    >>> import numpy as np, scipy.sparse
    >>> from lopro.engines.forms import ConeProgram
    >>> from lopro.methods.costs import conic_cost
    >>> D = scipy.sparse.diags_array([-np.ones(99), np.ones(99)], offsets=[0, 1], shape=(99, 100))
    >>> form = ConeProgram(
    ...     scipy.sparse.csc_array((100, 100)), np.zeros(100), D.tocsc(), np.zeros(99), []
    ... )
    >>> conic_cost(form).operations < 1e8
    True
    """
    s = SETTINGS
    _, blocks = conic_work(form)
    each = (
        s.conic_factor * _factorisation(form) + s.conic_entry * (form.A.nnz + form.P.nnz) + blocks
    )
    work = f"{s.clarabel_iterations:.0f} iterations of clarabel, {len(form.b)} rows"
    return Cost(work, s.engine_call + s.clarabel_iterations * each)


def least_conic_cost(entries: float) -> float:
    """Return the operations that a cone program with so many entries takes at least."""
    return SETTINGS.clarabel_iterations * SETTINGS.conic_entry * entries


def _factorisation(form: ConeProgram) -> float:
    """Return the operations of a factorisation of ``P + A' W A``: by its band, or as a dense matrix."""
    size = form.A.shape[1]
    counts = np.bincount(form.A.indices, minlength=form.A.shape[0]).astype(np.float64)
    if float(counts @ counts) + form.P.nnz > SETTINGS.pairs:
        return float(size) ** 3 / 3.0
    A, P = abs(form.A), abs(form.P)
    return SparseCholesky.of(scipy.sparse.csr_array(A.T @ A + P + P.T)).work


def admm_cost(entries: float) -> Cost:
    """Return the cost of ADMM: products with all maps in each of many steps."""
    s = SETTINGS
    work = f"{s.admm_products:.0f} products with all maps and their adjoints"
    return Cost(work, s.admm_products * (2.0 * s.entry * entries + s.newton_call))


def passes_cost(entries: float) -> Cost:
    """Return the cost of a first-order method: products with all data in each of many iterations."""
    s = SETTINGS
    work = f"{s.first_order:.0f} iterations of two products"
    return Cost(work, s.first_order * (2.0 * s.entry * entries + s.newton_call))
