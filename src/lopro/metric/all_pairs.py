r"""The loss on all pairs of labelled samples, without a list of pairs: by moments and class sums.

Squared distances are ``d_ij = a_i + a_j - 2 K_ij`` with ``a_i = x_i'A x_i`` and ``K = X A X'``. For centred
samples the rows of ``K`` sum to zero, and for two such vectors of distances

    ``sum over i < j of d_ij e_ij = N a'b + (sum a)(sum b) + 2 <K, L>``,

where ``<K, L>`` is an inner product of matrices of the size of ``A``. Targets are 2 between and 0 within
classes; their inner products need sums over classes alone. The total cost is ``O(N d^2)``, whatever the
number of pairs. Sums of squares that nearly cancel have rounding errors relative to the value at 0.

The dual is a function of weights of the pairs. All that occur are sums of a multiple of the targets, a
constant and distances, the form in which `PairSum` stores them: no vector has an entry for each pair.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from lopro.core.arrays import Array
from lopro.core.counting import count
from lopro.core.validation import check_array
from lopro.functions import Constant, Image, Linearization, Source
from lopro.metric.loss import PairLoss
from lopro.metric.pair_sums import Distances, PairSum
from lopro.metric.symmetric import features_in_use, symmetric_product

__all__ = ["AllPairsLoss"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Indices: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

#: Targets of squared distances: the paper's ``1 - y_e`` for pairs of one class and of two.
SAME, DIFFERENT = 0.0, 2.0
#: Most steps of the power iteration for the smoothness constant, the relative accuracy at which it stops, and
#: the share of the identity that keeps its matrices positive definite: 1.00, 1.00 for each.
_POWER_STEPS, _POWER_ACCURACY, _FLOOR = 300, 1e-6, 1e-8


class AllPairsLoss(PairLoss):
    """``f(A) = 1/(2n) sum over i < j of (t_ij - d_ij(A))^2``, with targets 0 within classes and 2 between.

    The `PairLoss` of all pairs, at a cost that grows with the number of samples instead of pairs.

    Parameters
    ----------
    X : ndarray of shape (N, d)
        Samples, real.
    classes : ndarray of int of shape (N,)
        The class of each sample.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.all_pairs import AllPairsLoss
    >>> f = AllPairsLoss(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), np.array([0, 0, 1]))
    >>> round(f.value(np.eye(2)), 4), f.count
    (2.3333, 3)
    """

    image_length = 2

    def __init__(self, X: Any, classes: Any) -> None:
        X = check_array("X", X, ndim=2, allow_complex=False)
        order = np.argsort(classes, kind="stable")
        # Sorted by class, so that sums over classes are sums of slices; no result depends on the order.
        self._set_samples(X[order], np.asarray(classes)[order])

    def _set_samples(self, X: Matrix, classes: Indices) -> None:
        self.X, self.like, self.shape = X, X, (X.shape[1], X.shape[1])
        self._classes = classes
        self._starts = np.flatnonzero(np.append(True, classes[1:] != classes[:-1]))
        self._sizes = np.diff(np.append(self._starts, len(classes))).astype(np.float64)
        centred = X.astype(np.float64)
        centred -= centred.mean(axis=0)
        self._centred = centred

    def __repr__(self) -> str:
        return f"AllPairsLoss({len(self.X)} samples, d={self.X.shape[1]})"

    def with_samples(self, X: Array) -> AllPairsLoss:
        loss = type(self).__new__(type(self))
        loss._set_samples(X, self._classes)
        return loss

    def listed(self) -> PairLoss:
        """Return the same loss with a list of all pairs."""
        first, second = np.triu_indices(len(self.X), 1)
        same = self._classes[first] == self._classes[second]
        return PairLoss(self.X, (first, second), np.where(same, SAME, DIFFERENT))

    # Weights of pairs.

    @property
    def count(self) -> int:
        return len(self.X) * (len(self.X) - 1) // 2

    @property
    def targets(self) -> Any:
        return PairSum(target=1.0)

    def ones(self) -> PairSum:
        return PairSum(constant=1.0)

    def residuals(self, A: Array) -> PairSum:
        return PairSum(1.0, 0.0, ((-1.0, self._parts(np.asarray(A, dtype=np.float64))),))

    def distances(self, A: Array) -> Any:
        count("matvecs")
        return PairSum(distances=((1.0, self._parts(np.asarray(A, dtype=np.float64))),))

    def _parts(self, A: Matrix) -> Distances:
        X = self._centred
        used = features_in_use(A)
        if used is None:
            F = X @ A
            return Distances(np.einsum("ij,ij->i", F, X), F, X)
        F, inside = np.zeros_like(X), X[:, used]
        F[:, used] = inside @ A[np.ix_(used, used)]
        return Distances(np.einsum("ij,ij->i", F[:, used], inside), F, X)

    def identity_terms(self) -> tuple[float, float]:
        parts = self._parts(np.eye(self.X.shape[1]))
        return self._with_targets(parts), parts.inner(parts)

    @cached_property
    def _different(self) -> float:
        """The number of pairs of two classes."""
        return self.count - 0.5 * float(np.sum(self._sizes * (self._sizes - 1.0)))

    @property
    def total_target(self) -> float:
        return DIFFERENT * self._different

    @property
    def target_size(self) -> float:
        return self.total_target

    @property
    def target_square(self) -> float:
        return DIFFERENT**2 * self._different

    def target_terms(self, w: Any) -> tuple[float, float]:
        of_targets, of_ones = self._products(w)
        square = w.target * of_targets + w.constant * of_ones
        for c, parts in w.distances:
            crossed = sum(b * parts.inner(other) for b, other in w.distances)
            square += c * (w.target * self._with_targets(parts) + w.constant * self._total(parts))
            square += c * crossed
        return of_targets, square

    def _products(self, w: PairSum) -> tuple[float, float]:
        """Return the inner products of weights with the targets and with ones."""
        targets = w.target * self.target_square + w.constant * self.total_target
        ones = w.target * self.total_target + w.constant * self.count
        for c, parts in w.distances:
            targets += c * self._with_targets(parts)
            ones += c * self._total(parts)
        return targets, ones

    def _total(self, parts: Distances) -> float:
        return len(parts.a) * float(parts.a.sum())

    def _with_targets(self, parts: Distances) -> float:
        sums = self._over_classes(parts.F), self._over_classes(parts.X)
        within = float(self._sizes @ self._over_classes(parts.a)) - float(np.vdot(*sums))
        return DIFFERENT * (self._total(parts) - within)

    def _over_classes(self, values: Matrix) -> Matrix:
        return np.add.reduceat(values, self._starts, axis=0)

    def largest(self, w: Any) -> float:
        size = DIFFERENT * abs(w.target) + abs(w.constant)
        return float(size + sum(abs(c) * parts.largest for c, parts in w.distances))

    def growth(self, diagonal: Array) -> float:
        """Return a bound of the cancellation in `adjoint`: its sums have the size of the largest weight."""
        return 4.0

    # Matrices.

    def adjoint(self, w: Any) -> Array:
        count("rmatvecs")
        return symmetric_product(*self.factors(w))

    def factors(self, w: Any) -> tuple[Matrix, Matrix]:
        X, N = self._centred, float(len(self.X))
        weights = np.full(len(X), w.constant * N)
        total = np.zeros_like(X)
        if w.target:
            sizes = np.repeat(self._sizes, self._sizes.astype(int))
            weights += DIFFERENT * w.target * (N - sizes)
            sums = np.repeat(self._over_classes(X), self._sizes.astype(int), axis=0)
            total += (DIFFERENT * w.target) * sums
        for c, parts in w.distances:
            weights += c * (N * parts.a + parts.a.sum())
            total += parts.F @ (2.0 * c * (parts.X.T @ X))
            total -= c * (parts.a @ X)
        total += weights[:, None] * X
        return X, total

    def normal(self, A: Array) -> Array:
        count("matvecs")
        count("rmatvecs")
        X, C = self._centred, self._gram
        a = np.einsum("ij,ij->i", X @ A, X)
        return symmetric_product(X, (len(X) * a + a.sum())[:, None] * X) + 2.0 * (C @ A @ C)

    def diagonal_normal(self) -> Matrix:
        squares, C = np.square(self._centred), self._gram
        totals = squares.sum(axis=0)
        return len(squares) * (squares.T @ squares) + np.outer(totals, totals) + 2.0 * C**2

    @cached_property
    def _gram(self) -> Matrix:
        return self._centred.T @ self._centred

    # The function.

    def image(self, x: Array) -> Image:
        count("matvecs")
        parts = self._parts(np.asarray(x, dtype=np.float64))
        return parts.a, parts.F

    def linearize_at(self, image: Image) -> Linearization:
        a, F = image
        w = PairSum(-1.0, 0.0, ((1.0, Distances(a, F, self._centred)),))
        _, square = self.target_terms(w)
        n, dtype = self.count, self.X.dtype
        return max(square, 0.0) / (2 * n), lambda: self.adjoint(w / n).astype(dtype)

    def smoothness(self) -> Constant:
        note = "largest eigenvalue of H / n"
        return Constant(self._largest_eigenvalue / self.count, Source.DERIVED, note)

    @cached_property
    def _largest_eigenvalue(self) -> float:
        """An upper bound of ``lmax(H)``: for psd ``P``, ``M(dist(P)) <= c P`` proves ``lmax(H) <= c``.

        It is the bound of Collatz and Wielandt for the nonnegative weights ``dist(P)``.
        """
        d = self.X.shape[1]
        C = self._centred.T @ self._centred
        size, bound = float(np.linalg.norm(C)), math.inf
        if size == 0.0:
            return 0.0
        # The floor keeps P positive definite; any such P will do.
        P = C / size + _FLOOR * np.eye(d)
        for _ in range(_POWER_STEPS):
            M = self.adjoint(self.distances(P))
            L = np.linalg.cholesky(P)
            half = np.linalg.solve(L, np.linalg.solve(L, M).T)
            bound = min(bound, float(np.linalg.eigvalsh(0.5 * (half + half.T))[-1]))
            if bound - float(np.vdot(M, P) / np.vdot(P, P)) <= _POWER_ACCURACY * bound:
                break
            P = M / float(np.linalg.norm(M)) + _FLOOR * np.eye(d)
        return bound * (1.0 + 1e-7)

    def sides(self) -> Matrix | None:
        if len(self._sizes) != 2:
            return None
        return np.where(self._classes == self._classes[0], 1.0, -1.0)
