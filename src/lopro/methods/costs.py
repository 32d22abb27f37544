"""Estimates of the cost of methods on a problem, in operations of a matrix product.

The unit is the time of one operation of a dense matrix product, which `lopro.core.deadline` measures once. A
cost is the number of steps times the operations of a step; the constants state the speed of the parts of a
method relative to the unit. They were measured on dense quadratic programs of 20 to 600 variables with 0.1 to
5 times as many rows, and on regressions of 2,000 to 20,000 samples (``python -m benchmarks.general.forced``),
with one thread of 6e10 operations per second. An estimate should be right to a factor of two.
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
    """Numbers of steps, and times in the unit; see ``python -m benchmarks.general.forced``."""

    #: The time of the Python code of one Newton step: 0.1 ms.
    newton_call: float = 6e6
    #: The time of a call of an engine and of the check of its answer: 0.3 ms.
    engine_call: float = 2e7
    #: Newton steps without rows, and additional ones for each row per variable: 10, 12, 18, 40 and 90 steps
    #: were counted with 0.1, 0.5, 1, 2 and 5 rows per variable.
    newton_steps: float = 10.0
    newton_steps_per_row: float = 16.0
    #: Iterations of PIQP (7 to 15 were counted) and of Clarabel (10 to 25).
    piqp_iterations: float = 12.0
    clarabel_iterations: float = 18.0
    #: The time of the Python code of the active-set method after a guess, with few exchanges. Time of PIQP
    #: over that of the active-set method, with n variables, 2n rows and data changed by 2 %: 0.6 to 0.7 with
    #: n = 16 and 30, 1.2 with 50, 1.5 with 100, 2.7 with 300 (``python -m benchmarks.general.sequences``).
    active_set: float = 5e6
    #: The time that Clarabel takes for an operation of a banded factorisation, and in each iteration for an
    #: entry of the data, including the construction of the program and the proof. Total variation, one
    #: thread, seconds by this estimate and measured: 64 x 64 0.31 and 0.30, 128 x 128 3.1 and 2.1, a signal
    #: of 50,000 entries 0.75 and 1.3; trends of 2,000 entries 0.04 and 0.07.
    conic_factor: float = 4.0
    conic_entry: float = 1e4
    #: Largest number of pairs of entries in the same row for which the pattern of the normal equations is
    #: formed. At 12 bytes for each pair it takes at most 240 MB.
    pairs: float = 2e7
    #: Pairs of products with all maps that ADMM takes, including those of conjugate gradients: 3,000 to
    #: 10,000 were counted for images to a gap of 1e-6, more for second differences.
    admm_products: float = 8000.0
    #: The time of an operation of a dense factorisation by PIQP, and of a sparse factorisation by any engine
    #: (3e9 operations per second). HiGHS and Clarabel treat dense rows as sparse ones.
    dense_factor: float = 1.5
    sparse_factor: float = 20.0
    #: The time of one entry in a matrix-vector product, which reads memory: 6e9 entries per second.
    entry: float = 10.0
    #: Iterations of first-order methods: hundreds to thousands were counted.
    first_order: float = 2000.0


SETTINGS = Settings()


def newton_cost(terms: Iterable[Term], size: int) -> Cost:
    """Return the cost of Newton's method: each step assembles and factorises a matrix of the size of x.

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
            # Only active rows enter the matrix; there are at most as many as variables.
            each += gram * min(1.0, size / max(1.0, float(term.D.shape[0])))
        else:
            each += gram
    steps = s.newton_steps + s.newton_steps_per_row * min(rows / size, 5.0)
    work = f"{steps:.0f} factorisations of {size} x {size}"
    return Cost(work, once + steps * (each + s.newton_call))


def least_newton_cost() -> float:
    """Return the operations of Newton's method on the smallest problem."""
    return SETTINGS.newton_steps * SETTINGS.newton_call


def _gram(term: Term, size: int) -> float:
    """Return the operations of ``D' W D``; for a sparse D from the mean number of entries of a row."""
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
        # The fill-in of the factors grows with the entries of a column.
        each = s.sparse_factor * float(entries) * math.sqrt(entries / n)
    else:
        factor = s.dense_factor if name == "piqp" else s.sparse_factor
        each = factor * (rows * n * n + n**3 / 3.0)
    work = f"{s.piqp_iterations:.0f} iterations of {name}, {size} variables and {rows} rows"
    return Cost(work, s.engine_call + s.piqp_iterations * each)


def guess_pays(rows: int, size: int) -> bool:
    """Whether the active-set method from a guess may be faster than PIQP on a dense quadratic program.

    Examples
    --------
    >>> from lopro.methods.costs import guess_pays
    >>> guess_pays(60, 30), guess_pays(200, 100)
    (False, True)
    """
    iterations = engine_cost(rows, size, 0, False).operations - SETTINGS.engine_call
    return iterations >= SETTINGS.active_set


def conic_cost(form: ConeProgram) -> Cost:
    """Return the cost of a cone program by Clarabel: banded factorisations of the normal equations.

    Examples
    --------
    The normal equations of a chain of differences are banded, whatever its length:

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
    """Return a lower estimate of the operations of a cone program with this number of entries."""
    return SETTINGS.clarabel_iterations * SETTINGS.conic_entry * entries


def _factorisation(form: ConeProgram) -> float:
    """Return the operations of a factorisation of ``P + A' W A``, as a banded or as a dense matrix."""
    size = form.A.shape[1]
    counts = np.bincount(form.A.indices, minlength=form.A.shape[0]).astype(np.float64)
    if float(counts @ counts) + form.P.nnz > SETTINGS.pairs:
        return float(size) ** 3 / 3.0
    A, P = abs(form.A), abs(form.P)
    return SparseCholesky.of(scipy.sparse.csr_array(A.T @ A + P + P.T)).work


def admm_cost(entries: float) -> Cost:
    """Return the cost of ADMM: its products with all maps."""
    s = SETTINGS
    work = f"{s.admm_products:.0f} products with all maps and their adjoints"
    return Cost(work, s.admm_products * (2.0 * s.entry * entries + s.newton_call))


def passes_cost(entries: float) -> Cost:
    """Return the cost of a first-order method: two products with all data in each iteration."""
    s = SETTINGS
    work = f"{s.first_order:.0f} iterations of two products"
    return Cost(work, s.first_order * (2.0 * s.entry * entries + s.newton_call))
