"""The nearest correlation matrix, certified: a feasible matrix and a lower bound of the distance."""

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

#: Reductions of the residual, or increases of the margin, at most. None loses the correlation matrices of
#: ``python -m benchmarks.constants newton.sdp``, fifty change nothing.
_ATTEMPTS = 5
#: Sizes of multipliers along null vectors, relative to the matrix, in the order they are tried. The value is
#: off by a multiple of the inverse, and rounding grows with the size. A singular block of 20 of 40 variables
#: with weights: gaps of 4.3e-6, 1.4e-6, 5.8e-7 for 3e3, 1e4, 3e4; 100 of 150: 9.0e-7, 1.2e-6 for 3e3, 1e4.
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
    """A correlation matrix near the given one, and the proof of how near.

    Attributes
    ----------
    X : array
        Where the given matrix is: symmetric, with a diagonal of ones and the fixed entries.
    fun : float
        ``1/2 |W^(1/2) (X - G) W^(1/2)|_F^2``.
    lower_bound : float
        No correlation matrix with these properties has a smaller value; rounding is subtracted, and so is
        what the violation might have gained.
    violation : float
        How far the least eigenvalue may be below the required one; 0 where it is proved not to be.
    scale : float
        The least value that gaps are relative to.
    multipliers : array
        Of the diagonal, then of the fixed entries.
    decompositions, products : int
        Eigendecompositions and products with Jacobians made.
    solved : bool
        Whether the dual problem was solved; otherwise time or steps were used up.
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
        """The proved distance from the optimal value."""
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
        Whether there is no time for another eigendecomposition.

    Raises
    ------
    NoCorrelationMatrix
        If the fixed entries leave no such matrix.

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
    """Newton's method, repeated with more accuracy or a wider margin until the gap is proved."""

    def __init__(self, target: CorrelationTarget, tol: float, stopped: Callable[[], bool]) -> None:
        self.target, self.tol, self.stopped = target, tol, stopped
        self.problem, self.T = target.nearest_problem()
        self.scale = NEGLIGIBLE * 0.5 * norm(self.T) ** 2
        self.keeps = len(self.problem.lower) > len(target.w)
        self.decompositions = self.products = 0

    def run(self) -> NearestCorrelation:
        """Return the nearest matrix, or the best that time allows."""
        asked = self.target
        ones = bool(namespace(asked.G).all(diagonal_of(asked.G) == 1.0))
        if ones and is_above(asked.G, asked.least):
            return self._result(asked.G, 0.0, 0.0, None, True)
        if self.stopped():
            return self._without_any_step()
        accuracy = min(1e-10, 0.01 * self.tol)
        confined = self._on_null_space(accuracy) if self.keeps else None
        if confined is not None and (self._proved(confined) or self.stopped()):
            return confined
        last = self._inside(accuracy)
        if confined is None or self._proved(last) or last.violation < confined.violation:
            return last
        return replace(confined, decompositions=self.decompositions, products=self.products)

    def _inside(self, accuracy: float) -> NearestCorrelation:
        """Return the nearest matrix, inside by a margin where entries are fixed, or the best reached."""
        asked, margin = self.target, self._first_margin()
        problem, T = asked.nearest_problem(margin) if margin else (self.problem, self.T)
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
            # Steps that ended without a solution end there again.
            if self.stopped() or not found.solved:
                break
            accuracy *= 1e-2
            if X is None and 16.0 * off < margin:
                margin *= 8.0
                problem, T = asked.nearest_problem(margin)
        assert found is not None
        return best or self._violating(found)

    def _on_null_space(self, accuracy: float) -> NearestCorrelation | None:
        """Return the answer where singular blocks of fixed entries confine X; None if none do."""
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
        """Whether the gap is within the tolerance, and the violation too."""
        close = found.gap <= self.tol * max(found.fun, self.scale)
        return close and found.violation <= FEASIBLE

    def _first_margin(self) -> float:
        """Return by how much the solution stays inside: fixed entries cannot be mixed with the identity."""
        n, unit = len(self.target.w), self.target.unit
        if not self.keeps:
            return 0.0
        # Rounding to single precision moves eigenvalues by about sqrt(n) units.
        single = 0.0 if unit == EPS else math.sqrt(n) * unit
        return 4.0 * gamma(n + 2) * n + single

    def _result(
        self, X: AnyArray, bound: float, violation: float, y: Array | None, solved: bool
    ) -> NearestCorrelation:
        asked = self.target
        fun = _value(X, asked)
        y = np.zeros(len(self.problem.lower)) if y is None else y
        counts = self.decompositions, self.products
        X = asked.handed_out(X)
        return NearestCorrelation(X, fun, bound, violation, self.scale, y, *counts, solved)

    def _without_any_step(self) -> NearestCorrelation:
        """Return the identity with the fixed entries, if there is no time for anything else."""
        X = self.target.correlation(zeros(self.T.shape, self.T))
        violation = 0.0 if is_above(X, self.target.least) else math.inf
        return self._result(X, -math.inf if violation else 0.0, violation, None, False)

    def _violating(self, found: Nearest, projector: Array | None = None) -> NearestCorrelation:
        """Return the matrix that was reached, with its violation measured and charged: ``<S, D>``.

        ``Z + D`` is proved to be positive semidefinite for ``D = d W``, and for ``D = R (2 d Q Q' + e I) R``,
        ``R^2 = W``, with a projector Q on the complement of the null vectors, along which S is large.
        """
        X = self.target.correlation(found.X)
        Q = None if projector is None else from_numpy(projector, X)
        X = self.target.rounded(X if Q is None else self.target.onto_null_space(X, Q))
        self.decompositions += 1
        inner = with_diagonal(X, 1.0 - self.target.least)
        short = semidefinite_shift(inner, EPS)
        own = to_numpy(row_inners(found.F, found.F))
        price = float(own @ self.target.w) * (1.0 + 1e-10)
        charge = short * price
        if Q is not None:
            self.decompositions += 1
            n = len(own)
            error = EPS * (1.0 + norm(inner)) + 2.0 * short * gamma(n + 2) * n
            rest = semidefinite_shift(inner + 2.0 * short * (Q @ Q.T), error)
            F = from_numpy(np.sqrt(self.target.w), X)[:, None] * found.F
            lost = gamma(n + 2) * math.sqrt(price * n)
            charge = min(charge, 2.0 * short * (norm(Q.T @ F) + lost) ** 2 * 1.01 + rest * price)
        bound = self.problem.bound(self.T, found) - charge
        return self._result(X, bound, short, found.y, False)

    def _feasible(self, problem: NearestProblem, found: Nearest) -> tuple[AnyArray | None, float]:
        """Return a correlation matrix whose eigenvalues are proved, or None, and how far entries are off."""
        asked, n = self.target, len(self.target.w)
        X = asked.correlation(found.X)
        residual = np.abs(problem.off(found.X))
        if self.keeps:
            X = asked.rounded(X)
            off = float(residual.max() / asked.w.min())
            return (X if is_above(X, asked.least) else None), off
        off = float((residual / asked.w).max())
        share = 4.0 * gamma(n + 2) * n + off
        while share < 1.0:
            # The identity is the centre of all correlation matrices: off-diagonal entries shrink.
            mixed = asked.rounded(with_diagonal((1.0 - share) * X, 1.0))
            if is_above(mixed, asked.least):
                return mixed, off
            share *= 8.0
        return asarray_like(np.eye(n), X), off


def _value(X: AnyArray, target: CorrelationTarget) -> float:
    D, w = X - target.G, from_numpy(target.w, X)
    terms = D * D * (w[:, None] * w)
    return total(terms, 4.0 * EPS * terms).upper() * 0.5
