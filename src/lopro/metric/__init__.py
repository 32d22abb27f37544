"""Sparse metric learning: its objective, its dual, good starts, and the parts of its solver."""

from lopro.metric.dual import PairMultiplier
from lopro.metric.objective import SparseMetric

__all__ = ["PairMultiplier", "SparseMetric"]
