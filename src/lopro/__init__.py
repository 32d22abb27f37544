"""lopro: convex optimisation with few projections, and a certificate with every answer."""

from lopro import (
    adaptive,
    baselines,
    certificates,
    constraints,
    inner,
    objectives,
    penalties,
    schedules,
    theory,
)
from lopro.applications import BPDNResult, bpdn, bpdn_path
from lopro.driver import iterate, solve
from lopro.errors import InfeasibleError, MissingCapabilityError, ProjectionError
from lopro.minimize import minimize
from lopro.problem import Problem
from lopro.result import History, Iterate, Result, Status
from lopro.schemes import (
    Auto,
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
    "History",
    "InfeasibleError",
    "Iterate",
    "LoPGD",
    "LoPNAG",
    "MatrixFree",
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
    "minimize",
    "objectives",
    "penalties",
    "schedules",
    "solve",
    "theory",
]
