"""How sparse metric learning is recognised in a general problem, and which method it gets."""

from __future__ import annotations

from typing import Any

from lopro.constraints import PSDCone
from lopro.metric.consensus_admm import ConsensusADMM
from lopro.metric.feature_working_set import FeatureWorkingSet
from lopro.metric.objective import SparseMetric
from lopro.problem import Problem
from lopro.protocol import Method

__all__ = ["MetricLearning"]


class MetricLearning:
    """The loss on pairs with the l1 norm off the diagonal, over positive semidefinite matrices."""

    name = "sparse metric learning"
    methods: dict[str, Any] = {  # noqa: RUF012
        "ConsensusADMM": ConsensusADMM,
        "FeatureWorkingSet": FeatureWorkingSet,
    }

    def recognise(self, problem: Problem) -> Method | None:
        """Return the method of `lopro.learn_metric` for a problem of this form."""
        fits = isinstance(problem.objective, SparseMetric) and isinstance(
            problem.constraint, PSDCone
        )
        return self.choose(problem) if fits else None

    def choose(self, problem: Problem) -> Method:
        """Return the method."""
        return FeatureWorkingSet()
