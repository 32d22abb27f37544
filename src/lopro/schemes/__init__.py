"""Methods for `lopro.solve`: the only rooms that may project."""

from lopro.schemes.auto import Auto
from lopro.schemes.consensus_admm import ConsensusADMM
from lopro.schemes.feature_working_set import FeatureWorkingSet
from lopro.schemes.lopgd import LoPGD
from lopro.schemes.lopnag import LoPNAG
from lopro.schemes.matrix_free import MatrixFree
from lopro.schemes.multipliers import MultiplierMethod
from lopro.schemes.one_projection import OneProjection
from lopro.schemes.working_set import WorkingSet

__all__ = [
    "Auto",
    "ConsensusADMM",
    "FeatureWorkingSet",
    "LoPGD",
    "LoPNAG",
    "MatrixFree",
    "MultiplierMethod",
    "OneProjection",
    "WorkingSet",
]
