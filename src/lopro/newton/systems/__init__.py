"""Solvers of linear systems with generalised Hessians, one for each structure."""

from lopro.linalg.dense import SingularSystem
from lopro.newton.systems.choose import choose_system
from lopro.newton.systems.dense import DenseSystem, RowSpaceSystem, SystemOnDevice
from lopro.newton.systems.iterative import ConjugateGradients, CorrectedSystem, System
from lopro.newton.systems.sparse import SparseSystem

__all__ = [
    "ConjugateGradients",
    "CorrectedSystem",
    "DenseSystem",
    "RowSpaceSystem",
    "SingularSystem",
    "SparseSystem",
    "System",
    "SystemOnDevice",
    "choose_system",
]
