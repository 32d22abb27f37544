"""Linear systems with generalised Hessians, solved by what fits."""

from lopro.linalg.cholesky import SingularSystem
from lopro.newton.systems.base import System
from lopro.newton.systems.cg import ConjugateGradients
from lopro.newton.systems.choose import choose_system
from lopro.newton.systems.corrected import CorrectedSystem
from lopro.newton.systems.dense import DenseSystem
from lopro.newton.systems.on_device import SystemOnDevice
from lopro.newton.systems.row_space import RowSpaceSystem
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
