"""Sparse metric learning: the problem, its methods, its dual, and its result."""

from lopro.metric.api import MetricResult, learn_metric, metric_problem
from lopro.metric.application import ConsensusADMM
from lopro.metric.diagonal import diagonal_from
from lopro.metric.dual import PairMultiplier
from lopro.metric.feature_working_set import FeatureWorkingSet
from lopro.metric.loss import PairLoss
from lopro.metric.objective import SparseMetric

__all__ = [
    "ConsensusADMM",
    "FeatureWorkingSet",
    "MetricResult",
    "PairLoss",
    "PairMultiplier",
    "SparseMetric",
    "diagonal_from",
    "learn_metric",
    "metric_problem",
]
