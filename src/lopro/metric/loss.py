"""The squared loss of a metric on pairs of samples."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import Array, Companion, asarray_like, copy, inner, namespace, to_numpy
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.core.validation import check_array, check_shape
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source
from lopro.functions.term import Term
from lopro.metric.pair_indices import checked_pairs, two_sides
from lopro.metric.pair_maps import (
    Differences,
    Indices,
    Matrix,
    PairMap,
    largest_eigenvalue,
    pair_map,
)
from lopro.metric.pair_squares import PairSquares
from lopro.metric.symmetric import ENTRIES_AT_A_TIME, features_in_use, upper_blocks
from lopro.objectives.base import Objective, lipschitz_of_smooth

__all__ = ["PairLoss"]

#: Up to this number of features a product takes some microseconds, about as long as reading the clock.
_FEW_FEATURES = 64
#: The cost of writing an entry of a large symmetric matrix, in operations of a product: with 72 samples of
#: 7129 features 0.28 s less the product itself, where products run at 52 Gflop/s.
_PER_ENTRY = 150.0


class PairLoss(MappedFunction, Objective):
    """``f(A) = 1/(2n) sum over n pairs e of (t_e - z_e'A z_e)^2``, with ``z_e = x_i - x_j``.

    ``z_e'A z_e`` is the squared distance of the pair in the metric ``A``, ``t_e`` its target. All
    distances are computed from ``X A X'``, the gradient ``-1/n X' Lap(R) X`` from the Laplacian of a graph
    on the samples with the residuals ``r_e`` as edge weights: ``O(N d^2)`` work for ``N`` samples whatever
    the number of pairs, without ``d^2`` entries for each pair. With fewer pairs than samples the
    differences ``z_e`` are used directly.

    Parameters
    ----------
    X : array of shape (N, d)
        Samples, real; not copied.
    pairs : two integer arrays of length n
        The indices ``i`` and ``j`` of each pair, possibly with repetitions.
    targets : array of shape (n,)
        Copied.

    Notes
    -----
    The smoothness constant is ``lmax(H) / n`` with ``H_ef = (z_e'z_f)^2``. ``H`` has no negative entry,
    so every positive vector ``v`` proves ``lmax(H) <= max_e (Hv)_e / v_e`` (Collatz and Wielandt); a few
    power steps make the bound sharp without forming ``H``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.loss import PairLoss
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> f = PairLoss(X, ([0, 0, 1], [1, 2, 2]), [0.0, 2.0, 2.0])
    >>> f.distances(np.eye(2))
    array([1., 4., 5.])
    >>> round(f.value(np.eye(2)), 4)
    2.3333
    """

    smooth = True
    fresh_slopes = True

    def __init__(self, X: Any, pairs: Any, targets: Any) -> None:
        X = check_array("X", X, ndim=2, allow_complex=False)
        first, second = checked_pairs(pairs, X.shape[0])
        self._set(X, (first, second), targets)
        self._map: PairMap = pair_map(X, first, second)

    def _set(self, X: Array, pairs: tuple[Indices, Indices], targets: Any) -> None:
        #: Samples, one in each row.
        self.X = X
        #: Two index arrays: the pair ``e`` is ``X[pairs[0][e]] - X[pairs[1][e]]``.
        self.pairs = pairs
        targets = copy(check_array("targets", targets, ndim=1, allow_complex=False))
        self._targets = Companion(asarray_like(targets, X))
        check_shape("targets", self._targets.array, (len(pairs[0]),))
        self.shape = (X.shape[1], X.shape[1])
        self.like = X

    @classmethod
    def from_differences(cls, Z: Any, targets: Any) -> PairLoss:
        """Return the loss of pairs given by their differences ``z_e``, the rows of ``Z``.

        The samples are the rows of ``Z`` and the origin, the second sample of every pair.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.metric.loss import PairLoss
        >>> PairLoss.from_differences(np.array([[1.0, 0.0], [0.0, 2.0]]), [0, 2]).value(np.eye(2))
        1.25
        """
        Z = check_array("Z", Z, ndim=2, allow_complex=False)
        n = Z.shape[0]
        X = namespace(Z).concat([Z, 0.0 * Z[:1, :]], axis=0)
        loss = cls.__new__(cls)
        loss._set(X, (np.arange(n), np.full(n, n)), targets)
        loss._map = Differences(Z)
        return loss

    def __repr__(self) -> str:
        return f"PairLoss({self.targets.shape[0]} pairs, d={self.X.shape[1]})"

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term(PairSquares(self)),)

    @property
    def targets(self) -> Array:
        """The targets of the squared distances, in the library of ``X``; read-only."""
        return self._targets.array

    # The dual variables, weights of the pairs: vectors here.

    @property
    def count(self) -> int:
        """The number of pairs."""
        return int(self._targets.array.shape[0])

    def ones(self) -> Array:
        """Return the weight 1 for every pair, in double precision."""
        xp = namespace(self.targets)
        return xp.astype(0.0 * self.targets, xp.float64) + 1.0

    def residuals(self, A: Array) -> Array:
        """Return ``t_e - z_e'A z_e``."""
        distances = self.distances(A)
        return self._targets.beside(distances) - distances

    def target_terms(self, w: Array) -> tuple[float, float]:
        """Return the inner products ``t'w`` and ``w'w``."""
        return inner(self._targets.beside(w), w), inner(w, w)

    @property
    def total_target(self) -> float:
        """The sum of the targets."""
        return float(to_numpy(self.targets).sum(dtype=np.float64))

    @property
    def target_size(self) -> float:
        """The sum of the absolute values of the targets."""
        return float(np.abs(to_numpy(self.targets)).sum(dtype=np.float64))

    @property
    def target_square(self) -> float:
        """The sum of the squares of the targets."""
        t = to_numpy(self.targets).astype(np.float64)
        return float(t @ t)

    def largest(self, w: Array) -> float:
        """Return the largest absolute weight, or an upper bound of it."""
        return float(namespace(w).max(abs(w)))

    def growth(self, diagonal: Array) -> float:
        """Return the ratio of the terms that cancel in `adjoint` to the entries of ``M1 = M(1)``.

        It is the largest ``sum_i degree_i X_ij^2 / M1_jj``, the ratio of the minuend of ``X' Lap X`` to the
        difference; ``diagonal`` is that of ``M1``.
        """
        first, second = self.pairs
        X, sizes = to_numpy(self.X), to_numpy(diagonal)
        if len(first) < len(X):
            return 1.0  # differences are formed first: nothing cancels
        degrees = np.bincount(first, minlength=len(X)) + np.bincount(second, minlength=len(X))
        terms = degrees @ np.square(X, dtype=np.float64)
        return max(1.0, float(np.max(terms[sizes > 0.0] / sizes[sizes > 0.0], initial=1.0)))

    def identity_terms(self) -> tuple[float, float]:
        """Return ``t'd`` and ``d'd`` for the distances ``d`` of the identity."""
        X = to_numpy(self.X).astype(np.float64)
        first, second = self.pairs
        # |x_i - x_j|^2 without forming the differences: there may be millions of pairs.
        G = X @ X.T if len(X) <= len(first) else None
        if G is None:
            lengths = np.square(X[first] - X[second]).sum(axis=1)
        else:
            lengths = G[first, first] + G[second, second] - 2.0 * G[first, second]
        return float(lengths @ to_numpy(self.targets)), float(lengths @ lengths)

    def with_samples(self, X: Array) -> PairLoss:
        """Return the loss of the same pairs of other samples."""
        return PairLoss(X, self.pairs, self.targets)

    def listed(self) -> PairLoss:
        """Return the loss with a list of its pairs: itself."""
        return self

    def factors(self, w: Array) -> tuple[Matrix, Matrix]:
        """Return ``X`` and ``Y`` in NumPy and double precision, with ``X'Y = M(w)``."""
        return self._map.factors(to_numpy(w).astype(np.float64, copy=False))

    def diagonal_of_adjoint(self, w: Array) -> Matrix:
        """Return the diagonal of ``M(w)`` in NumPy, without the matrix."""
        X, LX = self.factors(w)
        return np.asarray(np.einsum("ij,ij->j", X, LX))

    def adjoint_above_diagonal(
        self, w: Array, factor: Matrix | None = None
    ) -> Iterator[tuple[int, Matrix]]:
        """Yield ``M(w) + B'B`` above its diagonal in NumPy, for a factor ``B``: see `upper_blocks`."""
        X, LX = self.factors(w)
        if factor is not None:
            X, LX = np.vstack([factor, X]), np.vstack([factor, LX])
        return upper_blocks(X, LX)

    def largest_off_diagonal(self, w: Array, factor: Matrix | None = None) -> float:
        """Return the largest absolute entry of ``M(w) + B'B`` off the diagonal."""
        blocks = self.adjoint_above_diagonal(w, factor)
        return max((max(float(Y.max()), -float(Y.min())) for _, Y in blocks), default=0.0)

    def sides(self) -> Matrix | None:
        """Return the two groups, +-1 for each sample, that the targets define, or None (`two_sides`)."""
        return two_sides(self.X.shape[0], self.pairs, to_numpy(self.targets))

    def distances(self, A: Array) -> Array:
        """Return ``z_e'A z_e`` for every pair."""
        count("matvecs")
        used = features_in_use(A)
        if used is not None:
            current_deadline().check()
            small = self.with_samples(np.asarray(self.X)[:, used])
            return small._map.distances(A[np.ix_(used, used)])
        self._need_product()
        return self._map.distances(A)

    def adjoint(self, w: Array) -> Array:
        """Return the matrix ``sum_e w_e z_e z_e'``."""
        count("rmatvecs")
        self._need_product()
        return self._map.adjoint(w)

    def _need_product(self) -> None:
        """Raise `OutOfTime` unless the time allows a product with a matrix over all features."""
        N, d = self.X.shape
        if d > _FEW_FEATURES:
            current_deadline().need((2.0 * N + _PER_ENTRY) * d * d)

    def normal(self, A: Array) -> Array:
        """Return ``M(dist(A))``: n times the Hessian of the loss, applied to ``A``."""
        return self.adjoint(self.distances(A))

    def diagonal_normal(self) -> Matrix:
        """Return ``sum_e z_ei^2 z_ej^2``: `normal` on diagonal matrices, in NumPy."""
        X, (first, second) = to_numpy(self.X).astype(np.float64), self.pairs
        current_deadline().need(2.0 * len(first) * X.shape[1] ** 2)
        total = np.zeros((X.shape[1],) * 2)
        size = max(1, ENTRIES_AT_A_TIME // X.shape[1])
        for start in range(0, len(first), size):
            current_deadline().check()
            part = slice(start, start + size)
            squares = np.square(X[first[part]] - X[second[part]])
            total += squares.T @ squares
        return total

    def image(self, x: Array) -> Image:
        return (self.distances(x),)

    def linearize_at(self, image: Image) -> Linearization:
        (distances,) = image
        r = distances - self._targets.beside(distances)
        n = r.shape[0]
        return inner(r, r) / (2 * n), lambda: self.adjoint(r / n)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return lipschitz_of_smooth(self, ball)

    def smoothness(self) -> Constant:
        n = self.targets.shape[0]
        return Constant(self._largest_eigenvalue / n, Source.DERIVED, "largest eigenvalue of H / n")

    @cached_property
    def _largest_eigenvalue(self) -> float:
        # Computed once, on the host in double precision for every library.
        return largest_eigenvalue(to_numpy(self.X).astype(np.float64, copy=False), self.pairs)

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a sum of squares")
