"""Methods to compare with: each projects as often as its authors say, on lopro's driver and counters."""

from lopro.baselines._steps import BestIterate
from lopro.baselines.augmented_lagrangian import AugmentedLagrangian
from lopro.baselines.conex import ConEx
from lopro.baselines.epro import EproORDA, EproSGD
from lopro.baselines.exterior_penalty import ExteriorPenalty
from lopro.baselines.frank_wolfe import AwayStepFrankWolfe, FrankWolfe, PairwiseFrankWolfe
from lopro.baselines.frank_wolfe_steps import LineSearch, OpenLoop, ShortStep
from lopro.baselines.full_touch import FullTouch
from lopro.baselines.interior_point import InteriorPoint
from lopro.baselines.level_set import LevelSetFrankWolfe
from lopro.baselines.light_touch import LightTouch
from lopro.baselines.log_projections import LogTProjections
from lopro.baselines.mahdavi import OneProjectionSaddle, OneProjectionSmoothed
from lopro.baselines.nesta import NESTA
from lopro.baselines.opgd import OPGD
from lopro.baselines.projected_gradient import ProjectedGradient
from lopro.baselines.projected_subgradient import ProjectedSubgradient
from lopro.baselines.rsg import R2SG, RSG
from lopro.baselines.switching import SwitchingSubgradient
from lopro.restarts.parallel import ParallelRestarts

__all__ = [
    "NESTA",
    "OPGD",
    "R2SG",
    "RSG",
    "AugmentedLagrangian",
    "AwayStepFrankWolfe",
    "BestIterate",
    "ConEx",
    "EproORDA",
    "EproSGD",
    "ExteriorPenalty",
    "FrankWolfe",
    "FullTouch",
    "InteriorPoint",
    "LevelSetFrankWolfe",
    "LightTouch",
    "LineSearch",
    "LogTProjections",
    "OneProjectionSaddle",
    "OneProjectionSmoothed",
    "OpenLoop",
    "PairwiseFrankWolfe",
    "ParallelRestarts",
    "ProjectedGradient",
    "ProjectedSubgradient",
    "ShortStep",
    "SwitchingSubgradient",
]
