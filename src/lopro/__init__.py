"""lopro: convex optimisation with few projections, and a certificate with every answer."""

from lopro import (
    adaptive,
    baselines,
    certificates,
    constraints,
    inner,
    maps,
    metric,
    objectives,
    penalties,
    restarts,
    schedules,
    theory,
)
from lopro.applications import BPDNResult, MetricResult, bpdn, bpdn_path, learn_metric
from lopro.driver import iterate, solve
from lopro.errors import InfeasibleError, MissingCapabilityError, ProjectionError
from lopro.minimize import minimize
from lopro.problem import Problem
from lopro.result import History, Iterate, Result, Status
from lopro.schemes import (
    Auto,
    ConsensusADMM,
    FeatureWorkingSet,
    LoPGD,
    LoPNAG,
    MatrixFree,
    MultiplierMethod,
    OneProjection,
    WorkingSet,
)

__version__ = "0.1.0"

__all__ = [
    "Auto",
    "BPDNResult",
    "ConsensusADMM",
    "FeatureWorkingSet",
    "History",
    "InfeasibleError",
    "Iterate",
    "LoPGD",
    "LoPNAG",
    "MatrixFree",
    "MetricResult",
    "MissingCapabilityError",
    "MultiplierMethod",
    "OneProjection",
    "Problem",
    "ProjectionError",
    "Result",
    "Status",
    "WorkingSet",
    "adaptive",
    "baselines",
    "bpdn",
    "bpdn_path",
    "certificates",
    "constraints",
    "inner",
    "iterate",
    "learn_metric",
    "maps",
    "metric",
    "minimize",
    "objectives",
    "penalties",
    "restarts",
    "schedules",
    "solve",
    "theory",
]


def __getattr__(name: str) -> object:
    """Import `lopro.sklearn` when it is first asked for: it needs scikit-learn, which is optional."""
    if name == "sklearn":
        import importlib

        return importlib.import_module("lopro.sklearn")
    raise AttributeError(f"module 'lopro' has no attribute {name!r}")
