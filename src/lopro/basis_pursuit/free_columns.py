"""Basis pursuit denoising without the columns of weight 0, whose coefficients are free."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.application import ProblemData
from lopro.basis_pursuit.columns.pieces import columns_of
from lopro.basis_pursuit.results import BPDNResult
from lopro.certificates import feasibility_tolerance
from lopro.core.arrays import Array, eps, norm, to_numpy
from lopro.core.validation import check_array
from lopro.driver.result import Status
from lopro.errors import MissingCapabilityError
from lopro.maps import LinearMap, linear_map
from lopro.maps.algebra import dense
from lopro.protocol import Certificate, Target

__all__ = ["FreeColumns"]

#: Roundings for each entry of the longer side of A: a right-hand side is in the range of the free columns if
#: less remains of it after two projections. A tenth and ten times as many change no count of
#: `benchmarks.constants`.
_REACHED = 8.0


class FreeColumns:
    """The elimination of the free coefficients, those of weight 0.

    Where ``A = (N F)`` and the columns ``F`` are free, the best free coefficients for any others leave the
    component of ``y - N x`` orthogonal to the range of ``F``. So the problem is one in ``(I - Q Q^H) N`` and
    ``(I - Q Q^H) y`` with an orthonormal basis ``Q`` of that range. Values, bounds and dual points are the
    same: feasible dual points are orthogonal to the free columns.

    Parameters
    ----------
    A : LinearMap
        All columns; on the host.
    weights : array of length d
        Nonnegative, not all of them 0.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.free_columns import FreeColumns
    >>> from lopro.maps import linear_map
    >>> free = FreeColumns(linear_map(np.array([[1.0, 2.0], [0.0, 3.0]])), np.array([0.0, 1.0]))
    >>> free.map.toarray().ravel(), free.shorten(np.array([5.0, 6.0]))
    (array([0., 3.]), array([0., 6.]))
    """

    def __init__(self, A: LinearMap, weights: Array) -> None:
        if not isinstance(A.like, np.ndarray):
            raise MissingCapabilityError(
                "weights of 0 need data on the host: pass NumPy arrays, or small positive weights"
            )
        w = to_numpy(weights)
        self.A, self.free, self.costly = A, np.flatnonzero(w == 0.0), np.flatnonzero(w != 0.0)
        self.weights = w[self.costly]
        self._columns = np.asarray(dense(columns_of(A, self.free)))
        U, s, _ = np.linalg.svd(self._columns, full_matrices=False)
        cut = max(A.shape) * eps(A.like) * (float(s[0]) if s.size else 0.0)
        self._basis = U[:, s > cut]
        self.map = self._shortened_map()

    @staticmethod
    def of(data: ProblemData) -> FreeColumns | None:
        """Return the elimination for some data; None where no weight is 0, or all of them."""
        if data.weights is None or data.nonneg or data.groups is not None:
            return None
        w = to_numpy(check_array("weights", data.weights, allow_complex=False))
        fits = w.shape == (data.A.shape[1],)
        return FreeColumns(data.A, w) if fits and w.min() == 0.0 < w.max() else None

    def shorten(self, v: Any) -> Any:
        """Return the component of vectors that is orthogonal to the free columns."""
        for _ in range(2):  # the second pass removes the rounding errors of the first
            v = v - self._basis @ (self._basis.conj().T @ v)
        return v

    def _shortened_map(self) -> LinearMap:
        rows, d = self.A.shape[0], self.A.shape[1]
        if self.A.explicit and not scipy.sparse.issparse(self.A.matrix):
            return linear_map(self.shorten(np.asarray(dense(columns_of(self.A, self.costly)))), "A")
        dtype = np.result_type(self.A.like.dtype, self._basis.dtype)

        def matvec(x: Any) -> Any:
            full = np.zeros(d, dtype=np.result_type(x.dtype, dtype))
            full[self.costly] = x.ravel()
            return self.shorten(np.asarray(self.A.forward(full)))

        def rmatvec(r: Any) -> Any:
            return np.asarray(self.A.adjoint(self.shorten(r.ravel())))[self.costly]

        operator = scipy.sparse.linalg.LinearOperator(
            (rows, len(self.costly)), matvec=matvec, rmatvec=rmatvec, dtype=dtype
        )
        return linear_map(operator, "A")

    def solve(
        self,
        y: Array,
        sigma: float,
        x0: Array | None,
        solver: Callable[..., BPDNResult],
        tol: float,
    ) -> BPDNResult:
        """Solve without the free columns by ``solver(y, start)``, and compute the free coefficients."""
        right = to_numpy(y)
        rest = self.shorten(right)
        # If y is in the range of the free columns, what remains is rounding, and zero is as feasible.
        reached = norm(rest) <= _REACHED * max(self.A.shape) * eps(rest) * norm(right)
        start = None if x0 is None else to_numpy(x0)[self.costly]
        found = solver(0.0 * rest if reached else rest, start)
        x = np.zeros(self.A.shape[1], dtype=np.result_type(found.x.dtype, self._basis.dtype))
        x[self.costly] = to_numpy(found.x)
        rest = right - np.asarray(self.A.forward(x))
        x[self.free] = np.linalg.lstsq(self._columns, rest, rcond=None)[0].astype(x.dtype)
        if math.isnan(found.fun) or found.dual is None:  # there is no bound
            status = Status.STALLED if found.success else found.status
            return dataclasses.replace(found, x=x, status=status, multiplier=None)
        dual = self.shorten(to_numpy(found.dual))
        certificate = self._certificate(found, right, sigma, x, dual, tol)
        kept = certificate.relative_gap <= tol and certificate.violation <= feasibility_tolerance(x)
        status = Status.STALLED if found.success and not kept else found.status
        return dataclasses.replace(
            found,
            x=x,
            certificate=certificate,
            status=status,
            message=status.value,
            multiplier=None,
            dual=dual,
        )

    def _certificate(
        self, found: BPDNResult, y: Any, sigma: float, x: Any, dual: Any, tol: float
    ) -> Certificate:
        """Return the certificate with all columns; the bound is reduced by the rounding of projections."""
        old = found.certificate
        moved = norm(y) + norm(self._columns) * norm(x[self.free])
        lower = old.lower_bound - 8.0 * eps(x) * moved * norm(dual)
        excess = norm(np.asarray(self.A.forward(x)) - y) - sigma
        scale = max(sigma, 1e-6 * norm(y)) if sigma > 0.0 else norm(y)
        violation = max(0.0, excess) / scale if scale > 0.0 else 0.0
        gained = max(0.0, old.gap - (found.fun - old.lower_bound))
        return Certificate.of(
            found.fun,
            lower,
            violation,
            old.source,
            Target(tol, 0.0),
            gained + norm(dual) * max(0.0, excess),
            absolute=max(0.0, excess),
        )
