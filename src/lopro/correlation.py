"""The nearest correlation matrix: a projection on the positive semidefinite matrices with a diagonal of ones.

Newton's method on the dual problem (Qi and Sun, 2006) needs six or seven eigendecompositions, whatever the
size of the matrix. Its multipliers prove a lower bound of the distance, and a Cholesky factorisation proves
the eigenvalues of the answer.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lopro.certificates import Certificate, feasibility_tolerance
from lopro.constraints import Affine, Intersection, PSDCone
from lopro.core.arrays import asarray_like, copy, equal, is_array, is_single, on_host
from lopro.core.counting import Counts
from lopro.core.deadline import EIGH, Deadline
from lopro.core.diagonals import raise_diagonal, with_diagonal
from lopro.core.validation import check_array, check_shape
from lopro.driver.result import History, Iterate, Result, Status
from lopro.driver.workbench import Options
from lopro.methods.semidefinite import LowRankFactors
from lopro.newton.sdp.correlation import NearestCorrelation, NoCorrelationMatrix
from lopro.newton.sdp.correlation import nearest_correlation as nearest
from lopro.newton.sdp.correlation_target import CorrelationTarget
from lopro.objectives import SquaredDistance
from lopro.problem import Problem
from lopro.protocol import Target
from lopro.solving import run_to_the_end

__all__ = ["nearest_correlation"]

_METHOD = "Newton's method on the dual of the nearest correlation matrix"
_PROOF = "dual of the nearest correlation matrix, rounding subtracted"


def nearest_correlation(
    G: Any,
    weights: Any = None,
    fixed: Any = None,
    min_eigenvalue: float = 0.0,
    *,
    tol: float = 1e-6,
    time_limit: float | None = None,
) -> Result:
    """Return the correlation matrix nearest to ``G``, with a proved lower bound on the distance.

    It minimises ``1/2 |W^(1/2) (X - G) W^(1/2)|_F^2``, or ``1/2 sum W_ij (X_ij - G_ij)^2``, over symmetric X
    with a diagonal of ones and no eigenvalue below ``min_eigenvalue``.

    Parameters
    ----------
    G : array of shape (n, n)
        Symmetric, and in general not positive semidefinite, for instance estimated pair by pair. Its
        diagonal entries need not be ones. float32 or float64, of any array library; the answer has the same
        dtype and library. Computations run on its device, those with weights of entries on the host.
    weights : array of shape (n,) or (n, n), optional
        A positive weight ``W_ii`` for each variable: entry (i, j) has the weight ``W_ii W_jj``. Or a
        symmetric matrix with a weight ``W_ij >= 0`` for each entry, 0 for unknown entries. Ones by default.
    fixed : array of bool of shape (n, n), optional
        True for entries of ``G`` that the answer keeps exactly; symmetric.
    min_eigenvalue : float
        The least eigenvalue of the answer, in [0, 1). A positive number makes it invertible.
    tol : float
        Certified relative gap to reach, as in `lopro.solve`; the initial value is ``|G|^2 / 2``.
    time_limit : float, optional
        Seconds; the best matrix so far is returned with its proved gap.

    Returns
    -------
    Result
        ``x`` is the matrix: exactly symmetric, with ones on its diagonal and the fixed entries, and with
        eigenvalues proved to be at least ``min_eigenvalue`` in exact arithmetic (``certificate.violation`` is
        0). ``fun`` is half the squared distance. The status is INFEASIBLE if no correlation matrix has the
        fixed entries; ``ray`` then holds multipliers of the diagonal and of the fixed entries (row by row,
        below the diagonal) whose combination of these entries is larger than the trace allows.

    Notes
    -----
    The objective is strongly convex, so that the gap bounds the distance to the solution: it is at most
    ``sqrt(2 gap)`` in the norm above.

    If no matrix with the fixed entries has all eigenvalues above ``min_eigenvalue`` (with a fixed correlation
    of 1, for instance), the least eigenvalue of ``x`` may be below it by ``certificate.violation``, which is
    charged to the lower bound.

    References
    ----------
    Higham, Computing the nearest correlation matrix - a problem from finance, IMA J. Numer. Anal. 22, 2002.

    Qi and Sun, A quadratically convergent Newton method for computing the nearest correlation matrix, SIAM J.
    Matrix Anal. Appl. 28, 2006.

    Examples
    --------
    Three variables with estimated correlations 1 of neighbours and 0 of the outer two:

    >>> import numpy as np, lopro
    >>> G = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    >>> result = lopro.nearest_correlation(G)
    >>> result.success, result.x.round(4)
    (True, array([[1.    , 0.7607, 0.1573],
           [0.7607, 1.    , 0.7607],
           [0.1573, 0.7607, 1.    ]]))
    """
    options = Options(tol=tol, time_limit=time_limit)
    given = check_array("G", G, ndim=2, allow_complex=False)
    if weights is not None and (weights.ndim if is_array(weights) else np.ndim(weights)) == 2:
        return _by_entries(given, weights, fixed, min_eigenvalue, options)
    with Deadline(options.time_limit).active() as deadline:
        stopped = partial(_too_late, deadline, given)
        try:
            target = CorrelationTarget.of(given, weights, fixed, min_eigenvalue)
            found = nearest(target, tol, stopped)
        except NoCorrelationMatrix as empty:
            return _infeasible(given, empty, deadline)
        result = _result(found, tol, stopped(), deadline)
        return replace(result, x=asarray_like(result.x, given))


def _too_late(deadline: Deadline, G: Any) -> bool:
    """Whether the time does not allow another eigendecomposition; those on a device are assumed short."""
    return deadline.passed or (on_host(G) and not deadline.affords(EIGH * G.shape[0] ** 3))


def _by_entries(G: Any, weights: Any, fixed: Any, least: float, options: Options) -> Result:
    """Solve for ``Y = X - e I``, which has the diagonal ``1 - e`` and is positive semidefinite."""
    target = CorrelationTarget.of(G, None, fixed, least)
    n, e = len(target.w), target.least
    W = asarray_like(check_array("weights", weights, allow_complex=False), target.G)
    check_shape("weights", W, (n, n))
    if not equal(W, W.T):
        raise ValueError("weights of entries must be symmetric; (W + W.T) / 2 are")
    i, j = target.pairs
    at = np.concatenate([np.arange(n), i]), np.concatenate([np.arange(n), j])
    sides = np.concatenate([np.full(n, 1.0 - e), target.kept_entries])
    sides = sides.astype(np.float32 if is_single(G) else np.float64)
    shifted = target.in_dtype(raise_diagonal(copy(target.G), -e))
    problem = Problem(
        SquaredDistance(shifted, weights=target.in_dtype(W)),
        Intersection(PSDCone(n), Affine.entries(at, sides, sides, shape=(n, n))),
    )
    if len(i):
        # Feasibility does not depend on the weights.
        with Deadline(options.time_limit).active() as deadline:
            try:
                nearest(target, 1.0, partial(_too_late, deadline, target.G))
            except NoCorrelationMatrix as empty:
                return _infeasible(G, empty, deadline)
            left = None if options.time_limit is None else max(deadline.left, 1e-3)
            options = replace(options, time_limit=left)
    result = run_to_the_end(problem, None, LowRankFactors(), options)
    return replace(result, x=asarray_like(with_diagonal(result.x, 1.0), G))


def _result(found: NearestCorrelation, tol: float, late: bool, deadline: Deadline) -> Result:
    if found.gap < 0.0:
        raise AssertionError(f"a lower bound above the value by {-found.gap:g}")
    source = _PROOF if math.isfinite(found.lower_bound) else "no lower bound yet"
    certificate = Certificate.of(
        found.fun, found.lower_bound, found.violation, source, Target(tol, found.scale),
        absolute=found.violation,
    )  # fmt: skip
    status = _status(found, certificate, tol, late, deadline)
    # The eigenvalues are verified by a Cholesky factorisation; the search counts all other operations.
    counts = Counts(eigendecompositions=found.decompositions, matvecs=found.products)
    history = History()
    history.append(_row(found, certificate, deadline))
    return Result(
        x=found.X,
        fun=found.fun,
        status=status,
        message=status.value,
        certificate=certificate,
        counts=counts,
        certificate_counts=Counts(factorizations=1),
        iterations=found.decompositions,
        seconds=deadline.elapsed,
        method=_METHOD,
        history=history,
    )


def _status(
    found: NearestCorrelation, certificate: Certificate, tol: float, late: bool, deadline: Deadline
) -> Status:
    feasible = certificate.violation <= feasibility_tolerance(found.X)
    if feasible and certificate.relative_gap <= tol:
        return Status.CONVERGED
    if deadline.stopped_by_user:
        return Status.INTERRUPTED
    return Status.TIME_LIMIT if late else Status.STALLED


def _row(found: NearestCorrelation, certificate: Certificate, deadline: Deadline) -> Iterate:
    return Iterate(
        x=found.X,
        epoch=1,
        iterations=found.decompositions,
        projections=0,
        products=found.products,
        fun=found.fun,
        violation=certificate.violation,
        lower_bound=certificate.lower_bound,
        gap=certificate.gap,
        relative_gap=certificate.relative_gap,
        penalty_weight=math.nan,
        exact=None,
        regularity=math.nan,
        seconds=deadline.elapsed,
    )


def _infeasible(G: Any, empty: NoCorrelationMatrix, deadline: Deadline) -> Result:
    status = Status.INFEASIBLE
    return Result(
        x=copy(G),
        fun=math.nan,
        status=status,
        message=f"{status.value}: {empty}",
        certificate=Certificate.unknown(),
        counts=Counts(eigendecompositions=empty.decompositions),
        certificate_counts=Counts(eigendecompositions=1),
        iterations=empty.decompositions,
        seconds=deadline.elapsed,
        method=_METHOD,
        history=History(),
        warnings=(str(empty),),
        ray=empty.certificate,
    )
