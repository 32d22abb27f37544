"""`FeatureWorkingSet`: sparse metric learning on few features, with a certificate for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array
from lopro.core.threads import each_in_one_pool
from lopro.core.validation import check_count
from lopro.metric.feature_search import FeatureSearch
from lopro.metric.objective import require_sparse_metric, sparse_metric_of
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Workbench

__all__ = ["FeatureWorkingSet"]

#: Samples and features up to which linear algebra is limited to one thread pool: products take milliseconds
#: at most there, and there are thousands of them.
FEW = 1000


@dataclass(frozen=True)
class FeatureWorkingSet:
    r"""Metric learning on a working set of features, certified on all of them.

    Problem: min over psd ``A`` of a `lopro.metric.SparseMetric`. ADMM with an exact loss step
    (`lopro.metric.consensus`) solves the problem on the working set; pricing (`lopro.metric.working_set`)
    finds features that would lower the objective, which are added; when there are none, the multiplier is
    extended to all features (`lopro.metric.completion`), which proves the bound. Eigendecompositions are
    those of small matrices; the extension takes products of a factor with few rows, and stops as soon as the
    required gap is proved.

    Parameters
    ----------
    all_below : int
        Up to this number of features, all of them are in the working set from the beginning.
    join : int
        Number of features added at a time.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.metric import SparseMetric
    >>> from lopro.metric.loss import PairLoss
    >>> X = np.random.default_rng(0).standard_normal((6, 4))
    >>> loss = PairLoss(X, np.triu_indices(6, 1), np.tile([0.0, 2.0, 2.0], 5))
    >>> problem = lopro.Problem(
    ...     SparseMetric(loss, 0.01), lopro.constraints.PSDCone(4), gap_scale=0.0
    ... )
    >>> lopro.solve(problem, method=lopro.FeatureWorkingSet(), tol=1e-4).success
    True
    """

    card: ClassVar[Card] = Card(
        assumptions="sparse metric learning: squared loss on pairs, l1 norm off the diagonal, A psd",
        oracles="samples, pairs and targets",
        rate="linear in practice: ADMM with an exact loss step on a small working set",
        projections="none on the full cone; small eigendecompositions, a Cholesky factor for the proof",
        reference="this library: working set, pricing by lasso, completion of the multiplier",
    )

    all_below: int = 64
    join: int = 16

    def __post_init__(self) -> None:
        check_count("all_below", self.all_below, minimum=0)
        check_count("join", self.join)

    def check(self, problem: Problem) -> None:
        require_sparse_metric(problem, "FeatureWorkingSet")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        short = max(sparse_metric_of(bench.problem).loss.X.shape) <= FEW
        return each_in_one_pool(
            FeatureSearch.candidates_of(bench, x0, self.all_below, self.join), short
        )
