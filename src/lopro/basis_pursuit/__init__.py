"""Basis pursuit denoising from top to bottom: the problem, its methods, and its result."""

from lopro.basis_pursuit.api import bpdn, bpdn_path
from lopro.basis_pursuit.application import bpdn_problem
from lopro.basis_pursuit.logistic_regression import (
    LogisticResult,
    sparse_logistic,
    sparse_logistic_path,
)
from lopro.basis_pursuit.losses.search import WorkingSetNewton
from lopro.basis_pursuit.operators.by_products import ByProducts
from lopro.basis_pursuit.operators.matrix_free import MatrixFree
from lopro.basis_pursuit.regression import lasso, lasso_path
from lopro.basis_pursuit.results import BPDNResult, LassoPath, LassoResult, ParetoCurve
from lopro.basis_pursuit.working_set import WorkingSet

__all__ = [
    "BPDNResult",
    "ByProducts",
    "LassoPath",
    "LassoResult",
    "LogisticResult",
    "MatrixFree",
    "ParetoCurve",
    "WorkingSet",
    "WorkingSetNewton",
    "bpdn",
    "bpdn_path",
    "bpdn_problem",
    "lasso",
    "lasso_path",
    "sparse_logistic",
    "sparse_logistic_path",
]
