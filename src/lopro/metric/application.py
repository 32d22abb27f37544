"""Recognition of sparse metric learning in a general problem, and ADMM on all features at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lopro.constraints import PSDCone
from lopro.core.arrays import Array, asarray_like
from lopro.core.validation import check_count
from lopro.metric.consensus import Consensus
from lopro.metric.feature_working_set import FeatureWorkingSet
from lopro.metric.objective import SparseMetric, require_sparse_metric, sparse_metric_of
from lopro.metric.starts import good_start
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Method, Multiplier, Workbench

__all__ = ["ConsensusADMM", "MetricLearning"]


@dataclass(frozen=True)
class ConsensusADMM:
    """ADMM for metric learning (see `lopro.metric.consensus`), on all features at once.

    Problem: min over psd ``A`` of a `lopro.metric.SparseMetric`. Every iteration makes one exact step for the
    loss and one projection on the cone, at the cost of an eigendecomposition; its multipliers give a dual
    point without further work. `FeatureWorkingSet` uses the same iteration on few features.

    Parameters
    ----------
    report : int
        Iterations between two candidates, which the driver certifies.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> X = np.random.default_rng(0).standard_normal((6, 4))
    >>> labels = [0, 1, 0, 1, 1, 0]
    >>> result = lopro.learn_metric(X, labels, l1=0.01, method=lopro.ConsensusADMM())
    >>> result.success, result.counts.projections == result.iterations
    (True, True)
    """

    card: ClassVar[Card] = Card(
        assumptions="sparse metric learning: squared loss on pairs, l1 norm off the diagonal, A psd",
        oracles="samples, pairs and targets",
        rate="linear in practice",
        projections="1 per iteration",
        reference="ADMM (Boyd et al. 2011) in consensus form with residual balancing",
    )

    report: int = 50

    def __post_init__(self) -> None:
        check_count("report", self.report)

    def check(self, problem: Problem) -> None:
        require_sparse_metric(problem, "ConsensusADMM")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        objective = sparse_metric_of(bench.problem)
        start = asarray_like(good_start(objective, x0), x0)
        admm = Consensus(objective, start, bench.project)
        while not bench.exhausted:
            for _ in range(self.report):
                admm.step()
                if not bench.tick():
                    break
            # The loss step returns double precision.
            yield Candidate(asarray_like(admm.settled(), x0), Multiplier(admm.multiplier()))


class MetricLearning:
    """Recognition of the loss on pairs with the l1 norm off the diagonal over the semidefinite cone."""

    name = "sparse metric learning"
    objectives: tuple[type[Any], ...] = (SparseMetric,)
    methods: dict[str, Any] = {  # noqa: RUF012
        "ConsensusADMM": ConsensusADMM,
        "FeatureWorkingSet": FeatureWorkingSet,
    }

    def recognise(self, problem: Problem) -> Method | None:
        """Return the method of `lopro.learn_metric` for a problem of this form."""
        return self.choose(problem) if isinstance(problem.constraint, PSDCone) else None

    def choose(self, problem: Problem) -> Method:
        """Return the method."""
        return FeatureWorkingSet()
