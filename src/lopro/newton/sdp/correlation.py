"""The nearest correlation matrix with a certificate: a feasible matrix and a lower bound of the distance."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from lopro.certificates.tolerances import FEASIBLE, NEGLIGIBLE
from lopro.core.arrays import Array as AnyArray
from lopro.core.arrays import asarray_like, from_numpy, namespace, norm, to_numpy, zeros
from lopro.core.diagonals import diagonal_of, row_inners, with_diagonal
from lopro.linalg.dense import EPS, Array
from lopro.linalg.eigenvalues import is_above, semidefinite_shift
from lopro.linalg.rounding import gamma, total
from lopro.newton.multipliers import never
from lopro.newton.sdp.correlation_target import CorrelationTarget
from lopro.newton.sdp.nearest import Nearest, NearestProblem

__all__ = ["NearestCorrelation", "NoCorrelationMatrix", "nearest_correlation"]

#: Maximum number of runs, each with a smaller residual or a larger margin. 0 loses the correlation matrices
#: of ``python -m benchmarks.constants newton.sdp``, 50 change nothing.
_ATTEMPTS = 5
#: Norms of multipliers along null vectors, relative to the matrix, in the order they are tried. The error of
#: the value is proportional to the inverse, that of rounding to the norm. A block of 20 of 40 variables with
#: weights: gaps of 4.3e-6, 1.4e-6, 5.8e-7 for 3e3, 1e4, 3e4; 100 of 150: 9.0e-7, 1.2e-6 for 3e3, 1e4.
#: 30 of 60: 3e3 is not solved in 60 steps, 1e4 in seven, and 1e5 ends at residuals of 2e-10.
_FAR = 1e4, 3e4, 3e3


class NoCorrelationMatrix(ValueError):
    """No correlation matrix has the fixed entries; ``certificate`` proves it."""

    def __init__(self, certificate: Array, decompositions: int) -> None:
        super().__init__(
            "fixed: no correlation matrix with this least eigenvalue has these entries"
        )
        self.certificate = certificate
        self.decompositions = decompositions


@dataclass(frozen=True)
class NearestCorrelation:
    """A correlation matrix near the given one, with a proof of its distance from the optimum.

    Attributes
    ----------
    X : array
        On the device of the given matrix: symmetric, with a diagonal of ones and the fixed entries.
    fun : float
        ``1/2 |W^(1/2) (X - G) W^(1/2)|_F^2``.
    lower_bound : float
        No correlation matrix with these properties has a smaller value; rounding and the charge for the
        violation are subtracted.
    violation : float
        An upper bound of the required least eigenvalue minus that of ``X``; 0 if ``X`` is proved feasible.
    scale : float
        The least value that gaps are relative to.
    multipliers : array
        Those of the diagonal, then those of the fixed entries.
    decompositions, products : int
        Numbers of eigendecompositions and of products with Jacobians.
    solved : bool
        Whether the dual problem was solved; otherwise the limit of time or steps was reached.
    """

    X: AnyArray
    fun: float
    lower_bound: float
    violation: float
    scale: float
    multipliers: Array
    decompositions: int
    products: int
    solved: bool

    @property
    def gap(self) -> float:
        """An upper bound of the distance from the optimal value."""
        return self.fun - self.lower_bound


def nearest_correlation(
    target: CorrelationTarget, tol: float = 1e-8, stopped: Callable[[], bool] = never
) -> NearestCorrelation:
    """Return the correlation matrix nearest to ``G`` in the W-norm, with a certificate.

    Parameters
    ----------
    target : CorrelationTarget
        The requirements.
    tol : float
        The relative gap to prove.
    stopped : callable
        Returns whether there is no time for another eigendecomposition.

    Raises
    ------
    NoCorrelationMatrix
        If no correlation matrix has the fixed entries.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp.correlation import nearest_correlation
    >>> from lopro.newton.sdp.correlation_target import CorrelationTarget
    >>> G = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    >>> found = nearest_correlation(CorrelationTarget.of(G))
    >>> found.X.round(4)
    array([[1.    , 0.7607, 0.1573],
           [0.7607, 1.    , 0.7607],
           [0.1573, 0.7607, 1.    ]])
    >>> found.gap <= 1e-8 * found.fun
    True
    """
    return _CorrelationSearch(target, tol, stopped).run()


class _CorrelationSearch:
    """Runs of Newton's method, with more accuracy or a wider margin until the gap is proved."""

    def __init__(self, target: CorrelationTarget, tol: float, stopped: Callable[[], bool]) -> None:
        self.target, self.tol, self.stopped = target, tol, stopped
        self.problem, self.T = target.nearest_problem()
        self.scale = NEGLIGIBLE * 0.5 * norm(self.T) ** 2
        self.keeps = len(self.problem.lower) > len(target.w)
        self.decompositions = self.products = 0

    def run(self) -> NearestCorrelation:
        """Return the nearest matrix, or the best one within the time limit."""
        target = self.target
        ones = bool(namespace(target.G).all(diagonal_of(target.G) == 1.0))
        if ones and is_above(target.G, target.least):
            return self._result(target.G, 0.0, 0.0, None, True)
        if self.stopped():
            return self._without_any_step()
        accuracy = min(1e-10, 0.01 * self.tol)
        confined = self._confined(accuracy) if self.keeps else None
        if confined is not None and (self._proved(confined) or self.stopped()):
            return confined
        last = self._with_margin(accuracy)
        if confined is None or self._proved(last) or last.violation < confined.violation:
            return last
        return replace(confined, decompositions=self.decompositions, products=self.products)

    def _with_margin(self, accuracy: float) -> NearestCorrelation:
        """Return the nearest matrix, with a margin of its eigenvalues where entries are fixed."""
        target, margin = self.target, self._first_margin()
        problem, T = target.nearest_problem(margin) if margin else (self.problem, self.T)
        best: NearestCorrelation | None = None
        found: Nearest | None = None
        for _ in range(_ATTEMPTS):
            start = None if found is None else found.y
            found = problem.solve(T, self.stopped, accuracy, start, self.problem)
            self.decompositions += found.decompositions
            self.products += found.products
            if found.emptiness is not None:
                raise NoCorrelationMatrix(found.y, self.decompositions)
            X, off = self._feasible(problem, found)
            if X is not None:
                # A sum of squares is not negative.
                bound = max(0.0, self.problem.bound(self.T, found))
                best = self._result(X, bound, 0.0, found.y, found.solved)
                if best.gap <= self.tol * max(best.fun, self.scale):
                    return best
            # A run that ended without a solution would end there again.
            if self.stopped() or not found.solved:
                break
            accuracy *= 1e-2
            if X is None and 16.0 * off < margin:
                margin *= 8.0
                problem, T = target.nearest_problem(margin)
        assert found is not None
        return best or self._violating(found)

    def _confined(self, accuracy: float) -> NearestCorrelation | None:
        """Return the matrix with the null vectors that singular blocks of fixed entries imply, if any."""
        N, decomposed = self.target.null_vectors
        self.decompositions += decomposed
        if N.shape[1] == 0 or self.stopped():
            return None
        U, sizes, _ = np.linalg.svd(N, full_matrices=False)
        U = U[:, sizes > math.sqrt(EPS)]
        projector = np.eye(len(U)) - U @ U.T
        best: NearestCorrelation | None = None
        for size in _FAR:
            start = self.target.far_multipliers(self.T, size)
            found = self.problem.solve(self.T, self.stopped, accuracy, start)
            self.decompositions += found.decompositions
            self.products += found.products
            if found.emptiness is not None:
                raise NoCorrelationMatrix(found.y, self.decompositions)
            best = replace(self._violating(found, projector), solved=found.solved)
            if self._proved(best) or self.stopped():
                break
        return best

    def _proved(self, found: NearestCorrelation) -> bool:
        """Return whether gap and violation are within their tolerances."""
        close = found.gap <= self.tol * max(found.fun, self.scale)
        return close and found.violation <= FEASIBLE

    def _first_margin(self) -> float:
        """Return the first margin of eigenvalues: X with fixed entries cannot be mixed with the identity."""
        n, unit = len(self.target.w), self.target.unit
        if not self.keeps:
            return 0.0
        # Rounding to single precision moves eigenvalues by about sqrt(n) units.
        single = 0.0 if unit == EPS else math.sqrt(n) * unit
        return 4.0 * gamma(n + 2) * n + single

    def _result(
        self, X: AnyArray, bound: float, violation: float, y: Array | None, solved: bool
    ) -> NearestCorrelation:
        target = self.target
        fun = _value(X, target)
        y = np.zeros(len(self.problem.lower)) if y is None else y
        counts = self.decompositions, self.products
        X = target.in_dtype(X)
        return NearestCorrelation(X, fun, bound, violation, self.scale, y, *counts, solved)

    def _without_any_step(self) -> NearestCorrelation:
        """Return the identity with the fixed entries, for runs without time for a step."""
        X = self.target.correlation(zeros(self.T.shape, self.T))
        violation = 0.0 if is_above(X, self.target.least) else math.inf
        return self._result(X, -math.inf if violation else 0.0, violation, None, False)

    def _violating(self, found: Nearest, projector: Array | None = None) -> NearestCorrelation:
        """Return the last matrix, with a bound of its violation and the charge ``<S, D>`` for it.

        ``Z + D`` is proved to be positive semidefinite for ``D = d W``, and for ``D = R (2 d Q Q' + e I) R``,
        ``R^2 = W``, with the projector Q onto the complement of the null vectors, along which S is large.
        """
        X = self.target.correlation(found.X)
        Q = None if projector is None else from_numpy(projector, X)
        X = self.target.rounded(X if Q is None else self.target.onto_null_space(X, Q))
        self.decompositions += 1
        inner = with_diagonal(X, 1.0 - self.target.least)
        shift = semidefinite_shift(inner, EPS)
        own = to_numpy(row_inners(found.F, found.F))
        price = float(own @ self.target.w) * (1.0 + 1e-10)
        charge = shift * price
        if Q is not None:
            self.decompositions += 1
            n = len(own)
            error = EPS * (1.0 + norm(inner)) + 2.0 * shift * gamma(n + 2) * n
            rest = semidefinite_shift(inner + 2.0 * shift * (Q @ Q.T), error)
            F = from_numpy(np.sqrt(self.target.w), X)[:, None] * found.F
            lost = gamma(n + 2) * math.sqrt(price * n)
            charge = min(charge, 2.0 * shift * (norm(Q.T @ F) + lost) ** 2 * 1.01 + rest * price)
        bound = self.problem.bound(self.T, found) - charge
        return self._result(X, bound, shift, found.y, False)

    def _feasible(self, problem: NearestProblem, found: Nearest) -> tuple[AnyArray | None, float]:
        """Return a matrix proved feasible, or None, and the largest error of constrained entries."""
        target, n = self.target, len(self.target.w)
        X = target.correlation(found.X)
        residual = np.abs(problem.off(found.X))
        if self.keeps:
            X = target.rounded(X)
            off = float(residual.max() / target.w.min())
            return (X if is_above(X, target.least) else None), off
        off = float((residual / target.w).max())
        share = 4.0 * gamma(n + 2) * n + off
        while share < 1.0:
            # Mixing with the identity, the centre of all correlation matrices, raises the eigenvalues.
            mixed = target.rounded(with_diagonal((1.0 - share) * X, 1.0))
            if is_above(mixed, target.least):
                return mixed, off
            share *= 8.0
        return asarray_like(np.eye(n), X), off


def _value(X: AnyArray, target: CorrelationTarget) -> float:
    D, w = X - target.G, from_numpy(target.w, X)
    terms = D * D * (w[:, None] * w)
    return total(terms, 4.0 * EPS * terms).upper() * 0.5
