"""The objective of sparse metric learning: a loss on pairs plus penalties of entries, trace and rows."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lopro.constraints import PSDCone
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, asarray_like, to_numpy
from lopro.core.validation import check_number
from lopro.errors import MissingCapabilityError
from lopro.metric.dual import dual_bound
from lopro.metric.loss import PairLoss
from lopro.metric.spread import Spread
from lopro.objectives import Linear, Objective, OffDiagonalL1, Sum
from lopro.objectives.group_norm import RowNorms
from lopro.problem import Problem

__all__ = ["SparseMetric", "require_sparse_metric", "sparse_metric_of"]

#: Values below this share of ``f(0)`` count as zero: optima may be zero, and sums of squares that cancel have
#: rounding errors relative to ``f(0)``, 1e-16 times the number of terms.
NEGLIGIBLE = 1e-9


class SparseMetric(Sum):
    """``f(A) = 1/(2n) sum_e (t_e - z_e'A z_e)^2 + l1 |A|_off + trace tr(A) + features sum_i |A_i|``.

    ``|A|_off`` is the sum of ``|A_ij|`` off the diagonal, ``|A_i|`` the Euclidean norm of a row.

    A `lopro.objectives.Sum` with its dual: over the positive semidefinite matrices every point gives a lower
    bound (see `lopro.metric.dual`), although neither the set nor the sublevel sets of the norm bound the
    solutions.

    Parameters
    ----------
    loss : PairLoss
        The pairs and their targets.
    l1 : float
        Weight of the norm, nonnegative.
    trace : float
        Weight of the trace, nonnegative: it lowers the rank of psd matrices.
    features : float
        Weight of the norms of the rows, nonnegative: it lowers the number of nonzero rows.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric import SparseMetric
    >>> from lopro.metric.loss import PairLoss
    >>> loss = PairLoss(
    ...     np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), ([0, 0], [1, 2]), [0.0, 2.0]
    ... )
    >>> round(SparseMetric(loss, 0.1).value(np.array([[0.0, 0.1], [0.1, 0.5]])), 3)
    0.02
    """

    def __init__(
        self, loss: PairLoss, l1: float, trace: float = 0.0, features: float = 0.0
    ) -> None:
        assert loss.shape is not None
        penalty = OffDiagonalL1(loss.shape[0], l1)
        self.trace = check_number("trace", trace, minimum=0.0)
        self.features = check_number("features", features, minimum=0.0)
        more: list[Objective] = [_trace(self.trace, loss.X)] if self.trace > 0.0 else []
        more += [RowNorms(loss.shape[0], self.features)] if self.features > 0.0 else []
        super().__init__(loss, penalty, *more)
        self.loss = loss
        self.l1 = penalty.weight

    def dual_bound(
        self, constraint: Constraint, x: Array, normal: ValidInequality, fun: float
    ) -> tuple[float, str] | None:
        if not isinstance(constraint, PSDCone):
            return None
        linear = self.trace, self.features
        return dual_bound(self.loss, self.l1, self.spread, x, normal, fun, *linear)

    @cached_property
    def spread(self) -> Spread:
        """Data of the pairs for repairs of dual points."""
        return Spread.of(self.loss, self.l1, max(self.trace, self.features))

    @cached_property
    def negligible(self) -> float:
        """The value below which gaps are relative to it instead of the value: some optima are zero."""
        return NEGLIGIBLE * self.loss.target_square / (2 * self.loss.count)

    def restricted(self, features: Any) -> SparseMetric:
        """Return the objective of matrices that vanish outside of these features, in NumPy."""
        # Copied: products with a slice of columns would be slow.
        X = np.ascontiguousarray(to_numpy(self.loss.X)[:, features], dtype=np.float64)
        return SparseMetric(self.loss.with_samples(X), self.l1, self.trace, self.features)


def _trace(weight: float, like: Array) -> Linear:
    return Linear(asarray_like(weight * np.eye(like.shape[1]), like))


def sparse_metric_of(problem: Problem) -> SparseMetric:
    """Return the objective of a problem that `require_sparse_metric` accepts."""
    assert isinstance(problem.objective, SparseMetric)
    return problem.objective


def require_sparse_metric(problem: Problem, method: str) -> None:
    """Raise `MissingCapabilityError` unless the problem is one of sparse metric learning."""
    f, c = problem.objective, problem.constraint
    if not (isinstance(f, SparseMetric) and isinstance(c, PSDCone)):
        raise MissingCapabilityError(
            f"{method} minimises a lopro.metric.SparseMetric over a PSDCone, got {f!r} over {c!r}; "
            "use lopro.Auto()"
        )
