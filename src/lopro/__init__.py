"""lopro: convex optimisation with a proof of how good each answer is, and methods with few projections."""

from lopro import certificates, constraints, maps, metric, objectives, penalties
from lopro.basis_pursuit import (
    BPDNResult,
    ByProducts,
    LassoResult,
    LogisticResult,
    MatrixFree,
    WorkingSet,
    WorkingSetNewton,
    bpdn,
    bpdn_path,
    lasso,
    lasso_path,
    sparse_logistic,
    sparse_logistic_path,
)
from lopro.basis_pursuit.application import BasisPursuit
from lopro.batch import QuadraticPrograms, solve_many
from lopro.certifying import certify
from lopro.correlation import nearest_correlation
from lopro.diagonal import fixed_diagonal
from lopro.driver import stopping
from lopro.driver.result import History, Iterate, Result, Status
from lopro.errors import InfeasibleError, MissingCapabilityError, ProjectionError
from lopro.explaining import explain
from lopro.methods import (
    ADMM,
    AlternatingDirections,
    Auto,
    LoPGD,
    LoPNAG,
    LowRankFactors,
    MultiplierMethod,
    NearestPoint,
    NearestSemidefinite,
    NewtonMultipliers,
    OneProjection,
    ProgramEngines,
    SemidefiniteEngines,
    baselines,
    inner,
    theory,
)
from lopro.methods.paper import adaptive, restarts, theorems
from lopro.methods.registry import register
from lopro.metric import ConsensusADMM, FeatureWorkingSet, MetricResult, learn_metric
from lopro.metric.application import MetricLearning
from lopro.minimize import minimize
from lopro.problem import Problem
from lopro.sdpa import read_sdpa
from lopro.solving import iterate, solve

__version__ = "0.2.0"

__all__ = [
    "ADMM",
    "AlternatingDirections",
    "Auto",
    "BPDNResult",
    "ByProducts",
    "ConsensusADMM",
    "FeatureWorkingSet",
    "History",
    "InfeasibleError",
    "Iterate",
    "LassoResult",
    "LoPGD",
    "LoPNAG",
    "LogisticResult",
    "LowRankFactors",
    "MatrixFree",
    "MetricResult",
    "MissingCapabilityError",
    "MultiplierMethod",
    "NearestPoint",
    "NearestSemidefinite",
    "NewtonMultipliers",
    "OneProjection",
    "Problem",
    "ProgramEngines",
    "ProjectionError",
    "QuadraticPrograms",
    "Result",
    "SemidefiniteEngines",
    "Status",
    "WorkingSet",
    "WorkingSetNewton",
    "adaptive",
    "baselines",
    "bpdn",
    "bpdn_path",
    "certificates",
    "certify",
    "constraints",
    "explain",
    "fixed_diagonal",
    "inner",
    "iterate",
    "lasso",
    "lasso_path",
    "learn_metric",
    "maps",
    "metric",
    "minimize",
    "nearest_correlation",
    "objectives",
    "penalties",
    "read_sdpa",
    "restarts",
    "solve",
    "solve_many",
    "sparse_logistic",
    "sparse_logistic_path",
    "stopping",
    "theorems",
    "theory",
]

for _application in (BasisPursuit(), MetricLearning()):
    register(_application)


def __getattr__(name: str) -> object:
    """Import `lopro.sklearn` and `lopro.cvxpy` on first use: what they need is optional."""
    if name in ("sklearn", "cvxpy"):
        import importlib

        return importlib.import_module(f"lopro.{name}")
    raise AttributeError(f"module 'lopro' has no attribute {name!r}")
