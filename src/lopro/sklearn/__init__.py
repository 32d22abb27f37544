"""Estimators with the interface of scikit-learn, for pipelines, searches and clones.

They need scikit-learn 1.7 or newer: ``pip install "lopro[sklearn]"``.
"""

from lopro.core.optional import needing

with needing("lopro.sklearn", "scikit-learn 1.7 or newer", "lopro[sklearn]"):
    from sklearn.utils.validation import validate_data as _validate_data  # noqa: F401  (new in 1.6)

from lopro.sklearn.basis_pursuit import BasisPursuitDenoising
from lopro.sklearn.lasso import ElasticNet, Lasso
from lopro.sklearn.lasso_cv import ElasticNetCV, LassoCV
from lopro.sklearn.logistic import SparseLogisticRegression
from lopro.sklearn.logistic_cv import SparseLogisticRegressionCV
from lopro.sklearn.metric import SparseMetricLearner
from lopro.sklearn.metric_cv import SparseMetricLearnerCV
from lopro.sklearn.pair_metric import SparsePairMetricLearner

__all__ = [
    "BasisPursuitDenoising",
    "ElasticNet",
    "ElasticNetCV",
    "Lasso",
    "LassoCV",
    "SparseLogisticRegression",
    "SparseLogisticRegressionCV",
    "SparseMetricLearner",
    "SparseMetricLearnerCV",
    "SparsePairMetricLearner",
]
