"""Estimators for scikit-learn: they go into pipelines, searches and clones like its own.

They need scikit-learn 1.6 or newer: ``pip install "lopro[sklearn]"``.
"""

try:
    from sklearn.utils.validation import validate_data as _validate_data  # noqa: F401  (new in 1.6)
except ImportError as error:
    raise ImportError(
        'lopro.sklearn needs scikit-learn 1.6 or newer: pip install "lopro[sklearn]"'
    ) from error

from lopro.sklearn.basis_pursuit import BasisPursuitDenoising
from lopro.sklearn.metric import SparseMetricLearner
from lopro.sklearn.metric_cv import SparseMetricLearnerCV
from lopro.sklearn.pair_metric import SparsePairMetricLearner

__all__ = [
    "BasisPursuitDenoising",
    "SparseMetricLearner",
    "SparseMetricLearnerCV",
    "SparsePairMetricLearner",
]
