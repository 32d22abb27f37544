"""Linear costs over positive semidefinite matrices with a given diagonal: the relaxation of max-cut."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import from_numpy, is_array
from lopro.core.counting import Counts, counting
from lopro.core.validation import check_array, check_count, check_seed, check_shape, host_array
from lopro.driver.result import Result
from lopro.driver.workbench import Options
from lopro.linalg.rounding import EPS
from lopro.maps.host import transferred
from lopro.methods.semidefinite.diagonal_form import default_rank
from lopro.methods.semidefinite.factor_problem import FactorCost, RowLengths
from lopro.methods.semidefinite.low_rank import LowRankFactors
from lopro.problem import Problem
from lopro.solving import run_to_the_end

__all__ = ["fixed_diagonal"]


def fixed_diagonal(
    C: Any,
    diagonal: Any = 1.0,
    *,
    rank: int | None = None,
    tol: float = 1e-6,
    time_limit: float | None = None,
    seed: int | np.random.Generator | None = 0,
) -> Result:
    """Minimise ``<C, X>`` over positive semidefinite X with a given diagonal; return a factor of X.

    No dense matrix of size n x n is formed, unless the proof requires it: a Cholesky factorisation of
    ``C - Diag(y)``, which is banded if the pattern of C permits.

    Parameters
    ----------
    C : array or scipy.sparse matrix of shape (n, n)
        Symmetric and real. For the largest cut of a graph with the weights W: ``W / 4``, or
        ``-(Diag(W 1) - W) / 4`` for minus its weight. A matrix on a device is copied to the host once; the
        transfer is counted.
    diagonal : float or array of shape (n,)
        The diagonal of X; positive.
    rank : int, optional
        Initial number of columns of the factor; half of ``sqrt(2 n)`` by default. Columns are added where the
        proof shows that there are too few.
    tol : float
        Certified relative gap to reach, as in `lopro.solve`.
    time_limit : float, optional
        Seconds; the best factor so far is returned with its proved gap.
    seed : int or Generator, optional
        For the initial factor.

    Returns
    -------
    Result
        ``x`` is the factor V with ``X = V V'``, in double precision and on the device of C, ``fun`` is
        ``<C, X>``, and ``multipliers`` holds a number for each entry of the diagonal, with the sign of an
        upper bound: ``C + Diag(multipliers[0])`` is positive semidefinite. ``certificate`` bounds ``<C, X>``
        over all X, of any rank.

    Examples
    --------
    The relaxation of the largest cut of a cycle of five nodes:

    >>> import numpy as np, scipy.sparse, lopro
    >>> i = np.arange(5)
    >>> W = scipy.sparse.coo_array((np.ones(5), (i, (i + 1) % 5)), (5, 5))
    >>> result = lopro.fixed_diagonal((W + W.T) / 4)
    >>> result.success, round(result.fun, 5), round(5 / 2 * float(np.cos(4 * np.pi / 5)), 5)
    (True, -2.02254, -2.02254)
    """
    with counting(Counts()) as copied:
        matrix = _symmetric(C)
    n = matrix.shape[0]
    d = np.array(np.broadcast_to(host_array("diagonal", diagonal), (n,)), dtype=np.float64)
    check_shape("diagonal", d, (n,))
    if not (d > 0.0).all() or not np.isfinite(d).all():
        raise ValueError(f"diagonal must be positive and finite, got {d.min():g} to {d.max():g}")
    columns = default_rank(n) if rank is None else check_count("rank", rank)
    columns = min(columns, n)
    problem = Problem(FactorCost(matrix, columns), RowLengths(d, columns))
    start = problem.constraint.project(check_seed("seed", seed).standard_normal((n, columns)))
    options = Options(tol=tol, time_limit=time_limit)
    result = run_to_the_end(problem, start, LowRankFactors(rank), options)
    result.counts.transfers += copied.transfers
    result.counts.bytes_transferred += copied.bytes_transferred
    return replace(result, x=from_numpy(result.x, C)) if is_array(C) else result


def _symmetric(C: Any) -> Any:
    """Return a copy of the matrix in double precision, sparse if it is."""
    if scipy.sparse.issparse(C):
        matrix: Any = scipy.sparse.csr_array(C)
        entries = check_array("C", matrix.data, allow_complex=False) if matrix.nnz else matrix.data
        matrix = scipy.sparse.csr_array(
            (np.array(entries, np.float64), matrix.indices, matrix.indptr), matrix.shape
        )
        matrix.sum_duplicates()
    else:
        matrix = np.array(transferred(check_array("C", C, ndim=2, allow_complex=False)))
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"C must be square, got shape {matrix.shape}")
    largest = float(abs(matrix).max()) if math.prod(matrix.shape) else 0.0
    if float(abs(matrix - matrix.T).max()) > 64.0 * EPS * largest:
        raise ValueError("C must be symmetric; (C + C.T) / 2 is")
    return 0.5 * (matrix + matrix.T)
